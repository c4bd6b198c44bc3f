"""Measures what integrity costs: checksums in a build and when a knowledge base is opened.

`python -m bench.integrity CORPUS.jsonl [--documents N] [--rounds N]`: builds the same documents
with and without checksums, in turn, and opens the result in the same way; processor time, so that
a busy machine does not count. The fake embedder costs next to nothing: with a real one the share
of checksums is smaller.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench.attack.sample import open_kb, stream
from bench.machine import print_result, require_path
from clew.ingest.readers.source import make_document

_SUM_FUNCTIONS = ("checksum_bytes", "checksum_cells", "checksum_vectors")


@contextmanager
def without_checksums() -> Iterator[None]:
    """Replace every checksum by nothing, in whichever module it is used."""
    free: dict[str, Any] = {
        "checksum_bytes": lambda raw: 0,
        "checksum_cells": lambda *cells: 0,
        "checksum_vectors": lambda hashes, vectors: np.zeros(len(vectors), np.uint64),
    }
    changed = [
        (module, name, vars(module)[name])
        for module_name, module in list(sys.modules.items())
        for name in _SUM_FUNCTIONS
        if module_name.startswith("clew.") and name in vars(module)
    ]
    for module, name, _ in changed:
        setattr(module, name, free[name])
    try:
        yield
    finally:
        for module, name, real in changed:
            setattr(module, name, real)


def build(folder: Path, rows: Sequence[dict[str, Any]]) -> float:
    """Build a knowledge base; return seconds of processor time."""
    documents = [
        make_document(row["text"], row.get("title", ""), f"{number}.txt")
        for number, row in enumerate(rows)
    ]

    async def work() -> None:
        base = await open_kb(folder)
        await base.take(stream(documents))
        await base.close()

    began = time.process_time()
    asyncio.run(work())
    return time.process_time() - began


def open_and_search(folder: Path) -> float:
    """Open a knowledge base and ask it something; return seconds of processor time."""

    async def work() -> None:
        base = await open_kb(folder)
        await base.search("Who designed the bridge?", recipe="hybrid")
        await base.close()

    began = time.process_time()
    asyncio.run(work())
    return time.process_time() - began


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    lines = require_path(given.corpus, "CORPUS.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines[: given.documents]]
    times: dict[str, list[float]] = {"with": [], "without": [], "open": [], "open_without": []}
    for _ in range(given.rounds):
        folder = Path(tempfile.mkdtemp(prefix="clew-integrity-"))
        times["with"].append(build(folder / "with", rows))
        for _ in range(given.rounds):
            times["open"].append(open_and_search(folder / "with"))
        with without_checksums():
            times["without"].append(build(folder / "without", rows))
            for _ in range(given.rounds):
                times["open_without"].append(open_and_search(folder / "without"))
        shutil.rmtree(folder)
    figures = {
        "build_s": round(min(times["with"]), 2),
        "build_without_s": round(min(times["without"]), 2),
        "build_share_percent": round(100 * (min(times["with"]) / min(times["without"]) - 1), 1),
        "open_and_first_question_ms": round(1000 * median(times["open"]), 1),
        "of_that_checks_ms": round(
            1000 * (median(times["open"]) - median(times["open_without"])), 1
        ),
    }
    print_result("integrity", figures, {"documents": len(rows), "rounds": given.rounds})


if __name__ == "__main__":
    main()
