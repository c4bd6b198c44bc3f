"""Vector search and text index alone, at sizes that take long to build as a knowledge base.

`python -m bench.scale_parts --vectors N --texts N [--folder DIR]`. Vectors are random around
topics; texts are those of `bench.scale_corpus`. Times are of the processor, recall is against an
exact search.
"""

import argparse
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from bench.machine import percentiles_ms, print_result
from bench.scale_corpus import make_passages, make_world_questions
from clew.graph.csr import Floats
from clew.index.view import View
from clew.store.bm25 import build_index
from clew.store.vector_files import VectorFile
from clew.text.unicode import split_words

DIMENSIONS = 384
TOPIC_SIZE = 500  # vectors around one topic
QUERIES = 40
BLOCK = 50_000


def make_vectors(count: int, seed: int, topics: int) -> Floats:
    """Unit vectors around topics, each with as much noise as topic."""
    centres = np.random.default_rng(0).standard_normal((topics, DIMENSIONS), np.float32)
    rng = np.random.default_rng(seed)
    found = centres[rng.integers(0, topics, count)]
    found += rng.standard_normal((count, DIMENSIONS), np.float32)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found


def _time(call: Callable[[], Any]) -> tuple[Any, float]:
    began = process_time()
    result = call()
    return result, round(1000 * (process_time() - began), 1)


def measure_vectors(count: int, folder: Path) -> dict[str, Any]:
    """Append, index and search `count` vectors in a vector file."""
    path, topics = folder / "chunk.npy", max(1, count // TOPIC_SIZE)
    writer = VectorFile(path)
    for begin in range(0, count, BLOCK):
        block = make_vectors(min(BLOCK, count - begin), 1 + begin, topics)
        writer.append([f"{begin + n:032x}" for n in range(len(block))], block)
    _, save_ms = _time(writer.save_index)
    _, add_ms = _time(lambda: writer.append(["f" * 32], make_vectors(1, 3, topics)))
    reader = VectorFile(path)
    index, open_ms = _time(reader.row_index)
    rows = np.arange(count)
    arrays = {"chunk_keys": rows, "chunk_rows": rows}
    near = View(arrays, {"chunk": reader.matrix()}, indexes={"chunk": index})
    exact = View(arrays, {"chunk": reader.matrix()})
    times: dict[str, list[float]] = {"near": [], "exact": []}
    shares: dict[int, list[float]] = {10: [], 100: []}
    for query in make_vectors(QUERIES, 2, topics):
        for k, found in shares.items():
            (wanted, _), exact_ms = _time(partial(exact.nearest, "chunk", query, k))
            (got, _), near_ms = _time(partial(near.nearest, "chunk", query, k))
            found.append(float(np.isin(wanted, got).mean()))
            if k == 10:
                times["near"].append(near_ms / 1000)
                times["exact"].append(exact_ms / 1000)
    return {
        "index": type(index).__name__,
        "save index ms": save_ms,
        "append one ms": add_ms,
        "open index ms": open_ms,
        **{name: percentiles_ms(one) for name, one in times.items()},
        **{f"recall@{k}": round(float(np.mean(one)), 4) for k, one in shares.items()},
    }


def measure_texts(count: int) -> dict[str, Any]:
    """Index `count` texts, add ten, remove one, and score questions."""
    texts = {n: f"{one.title}\n{one.text}" for n, one in enumerate(make_passages(count + 10))}
    first = {n: texts[n] for n in range(count)}
    index, build_ms = _time(lambda: build_index(np.arange(count), first))
    fresh = {n: texts[n] for n in range(count, count + 10)}
    both, add_ms = _time(lambda: build_index(np.arange(count + 10), fresh, index))
    kept = np.delete(np.arange(count + 10), 5)
    less, remove_ms = _time(lambda: build_index(kept, {}, both))
    less.scores(["warm"])
    asked = [split_words(question.text) for question in make_world_questions(QUERIES, count)]
    times = [_time(partial(less.scores, words))[1] / 1000 for words in asked]
    return {
        "index ms a text": round(build_ms / count, 4),
        "add ten ms": add_ms,
        "remove one ms": remove_ms,
        "segments": len(less.segments),
        "scores": percentiles_ms(times),
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=given.folder))
    try:
        figures: dict[str, Any] = {}
        if given.vectors:
            figures["vectors"] = measure_vectors(given.vectors, folder)
        if given.texts:
            figures["texts"] = measure_texts(given.texts)
    finally:
        shutil.rmtree(folder)
    print_result("scale_parts", figures, {"vectors": given.vectors, "texts": given.texts})


if __name__ == "__main__":
    main()
