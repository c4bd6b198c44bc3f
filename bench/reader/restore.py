"""Writes the weights of an exported reader or query scorer as a file to train on from.

    python -m bench.reader.restore src/clew/reader/reader.onnx --out reader.npz

What was rounded to 8 bits stays so; training on undoes it. Differences from the file's own logits
are printed.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from tokenizers import Tokenizer

from bench.reader.export import compare
from bench.reader.graph import make_windows
from bench.reader.model import ReaderModel, save_weights
from clew.reader.span_reader import TOKENIZER_KEY

_PREFIXES = (".model.", "model.")


def read_weights(path: Path) -> tuple[dict[str, NDArray[Any]], bytes]:
    """Return the weights of a file under the encoder's names, and its tokenizer."""
    model = onnx.load(str(path))
    held = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    found = {}
    for name, array in held.items():
        plain = name
        for prefix in _PREFIXES:
            plain = plain.removeprefix(prefix)
        if name.endswith("_quantized"):
            own = name.removesuffix("_quantized")
            zero = held[f"{own}_zero_point"].astype(np.float32)
            scale = held[f"{own}_scale"].astype(np.float32)
            found[plain.removesuffix("_quantized")] = (array.astype(np.float32) - zero) * scale
        elif plain.endswith((".weight", ".bias")):
            found[plain] = array.astype(np.float32)
    tokenizer = next(one.value for one in model.metadata_props if one.key == TOKENIZER_KEY)
    return found, tokenizer.encode("utf-8")


def main() -> None:
    """Write the weights."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("file", type=Path)
    ask.add_argument("--out", type=Path, required=True)
    given = ask.parse_args()
    weights, tokenizer = read_weights(given.file)
    save_weights(given.out, weights, tokenizer)
    windows = make_windows(Tokenizer.from_buffer(tokenizer))
    model = ReaderModel(weights, drop=0.0)
    print(json.dumps({"weights": len(weights), "differs": compare(given.file, model, windows)}))


if __name__ == "__main__":
    main()
