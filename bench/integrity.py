"""Measures what integrity costs: checksums in a build and when a knowledge base is opened.

`python -m bench.integrity CORPUS.jsonl [--documents N] [--rounds N]`: the processor time within
checksums, as a share of the whole; the fake embedder costs next to nothing, so that the share is
larger than with a real one. The difference of two runs would be smaller than their noise.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.attack.sample import open_kb, stream
from bench.machine import print_result, require_path
from clew.ingest.readers.source import make_document

_SUM_FUNCTIONS = ("checksum_bytes", "checksum_cells", "checksum_vectors")


@contextmanager
def timed_checksums() -> Iterator[list[float]]:
    """Collect the seconds of processor time of every checksum, in whichever module it is used."""
    spent: list[float] = []

    def time_calls(real: Callable[..., Any]) -> Callable[..., Any]:
        def work(*arguments: Any) -> Any:
            began = time.thread_time()
            try:
                return real(*arguments)
            finally:
                spent.append(time.thread_time() - began)

        return work

    changed = [
        (module, name, vars(module)[name])
        for module_name, module in list(sys.modules.items())
        for name in _SUM_FUNCTIONS
        if module_name.startswith("clew.") and name in vars(module)
    ]
    for module, name, real in changed:
        setattr(module, name, time_calls(real))
    try:
        yield spent
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
    found: list[dict[str, float]] = []
    for _ in range(given.rounds):
        folder = Path(tempfile.mkdtemp(prefix="clew-integrity-"))
        with timed_checksums() as in_build:
            built = build(folder, rows)
        with timed_checksums() as in_open:
            opened = open_and_search(folder)
        shutil.rmtree(folder)
        found.append(
            {
                "build_s": built,
                "checksums_percent": 100 * sum(in_build) / built,
                "open_and_first_question_ms": 1000 * opened,
                "checksums_ms": 1000 * sum(in_open),
            }
        )
    figures = {name: round(median(one[name] for one in found), 2) for name in found[0]}
    print_result("integrity", figures, {"documents": len(rows), "rounds": given.rounds})


if __name__ == "__main__":
    main()
