"""The numbers inside an ONNX file: read by name, and written anew into the same graph."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def read_weights(graph: Path) -> dict[str, Floats]:
    """Every weight and bias, by its plain name."""
    import onnx
    from onnx import numpy_helper

    return {
        _plain(one.name): numpy_helper.to_array(one).astype(np.float32)
        for one in onnx.load(str(graph)).graph.initializer
        if one.name.endswith((".weight", ".bias"))
    }


def write_weights(graph: Path, weights: Mapping[str, Floats], target: Path) -> None:
    """The same graph with other numbers, in one file."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(str(graph))
    for one in model.graph.initializer:
        if _plain(one.name) in weights:
            one.CopyFrom(numpy_helper.from_array(weights[_plain(one.name)], one.name))
    target.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(target))


def _plain(name: str) -> str:
    return name.lstrip(".").removeprefix("model.")
