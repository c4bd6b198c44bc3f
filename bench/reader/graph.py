"""What an exported file computes, and nothing that is not asked for: no mask, or one token alone.

    python -m bench.reader.graph FILE.onnx --out FILE.onnx [--first]

rewrites a file that was exported before, and prints how far its logits differ. The weights stay.
Every window and every pair of texts runs by itself, so a mask would be all ones; attention without
one takes less time. Of a pair only the logits of the first token are asked for: with `--first` the
last layer computes no other, which is a sixth of the time less.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from tokenizers import Tokenizer

from clew.llm.embed_local import open_session
from clew.reader.span_reader import TOKENIZER_KEY
from clew.reader.windows import Window, WindowMaker

CHECK_TEXT = (
    "The lighthouse of Arnvik was built in 1871 by the engineer Tove Lind, who had worked on two "
    "harbours before. It burns rape oil and is seen from eleven miles."
)
CHECK_QUESTIONS = ("Who built the lighthouse?", "when was it built", "What is the keeper's name?")


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


def keep_first(model: onnx.ModelProto) -> None:
    """Let the last layer of an int8 graph compute the first token alone, from all the others."""
    graph = model.graph
    maker = {name: node for node in graph.node for name in node.output}
    asks = [node for node in graph.node if node.op_type == "MultiHeadAttention"][-1]
    while asks.op_type != "MatMulInteger":  # what the attention asks for, not what it looks at
        asks = maker[asks.input[0]]
    rounding = maker[asks.input[0]]
    hidden = rounding.input[0]
    bounds = ("first_begin", "first_end", "first_axis")
    for name, value in zip(bounds, (0, 1, 1), strict=True):
        graph.initializer.append(numpy_helper.from_array(np.array([value], np.int64), name))
    for node in graph.node:
        if node is not rounding:
            node.input[:] = ["first_hidden" if name == hidden else name for name in node.input]
    cut = [
        helper.make_node("Slice", [whole, *bounds], [part], part)
        for whole, part in ((asks.input[0], "first_rounded"), (hidden, "first_hidden"))
    ]
    asks.input[0] = "first_rounded"
    at = list(graph.node).index(rounding) + 1
    behind = list(graph.node)[at:]
    del graph.node[at:]
    graph.node.extend([*cut, *behind])
    tokens = graph.output[0].type.tensor_type.shape.dim[1]
    tokens.Clear()
    tokens.dim_value = 1


def make_windows(tokenizer: Tokenizer) -> list[Window]:
    """Return the windows by which files are compared."""
    maker = WindowMaker(tokenizer)
    return [maker.separate(asked, [CHECK_TEXT])[0] for asked in CHECK_QUESTIONS]


def run_windows(path: Path, windows: list[Window]) -> list[np.ndarray]:
    """Return the logits of windows by a file, each run by itself."""
    session, found = open_session(path), []
    for window in windows:
        ids = np.array([window.ids])
        feed = {"input_ids": ids, "token_type_ids": np.array([window.types])}
        if "attention_mask" in {one.name for one in session.get_inputs()}:
            feed["attention_mask"] = np.ones_like(ids)
        found.append(session.run(None, feed)[0])
    return found


def main() -> None:
    """Rewrite the file and print its size and its distance from what it was."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("file", type=Path)
    ask.add_argument("--out", type=Path, required=True)
    ask.add_argument("--first", action="store_true", help="only the first token is asked for")
    given = ask.parse_args()
    model = onnx.load(str(given.file))
    held = next(one.value for one in model.metadata_props if one.key == TOKENIZER_KEY)
    windows = make_windows(Tokenizer.from_str(held))
    before = run_windows(given.file, windows)
    drop_mask(model)
    if given.first:
        keep_first(model)
    onnx.save(model, str(given.out))
    after = run_windows(given.out, windows)
    worst = max(
        float(np.abs(new - old[:, : new.shape[1]]).max())
        for new, old in zip(after, before, strict=True)
    )
    print(json.dumps({"bytes": given.out.stat().st_size, "differs": worst}))


if __name__ == "__main__":
    main()
