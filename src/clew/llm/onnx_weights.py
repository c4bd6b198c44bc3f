"""Reads and replaces the weights of an ONNX file by name."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def read_weights(graph: Path) -> dict[str, Floats]:
    """Every weight and bias by its name without prefix."""
    import onnx
    from onnx import numpy_helper

    return {
        _plain_name(tensor.name): numpy_helper.to_array(tensor).astype(np.float32)
        for tensor in onnx.load(str(graph)).graph.initializer
        if tensor.name.endswith((".weight", ".bias"))
    }


def write_weights(graph: Path, weights: Mapping[str, Floats], target: Path) -> None:
    """Write a copy of the graph with these weights to one file."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(str(graph))
    for tensor in model.graph.initializer:
        if _plain_name(tensor.name) in weights:
            tensor.CopyFrom(numpy_helper.from_array(weights[_plain_name(tensor.name)], tensor.name))
    target.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(target))


def _plain_name(name: str) -> str:
    return name.lstrip(".").removeprefix("model.")
