"""Speed and memory of importing a graph file; no model, no vectors.

`python -m bench.import_graph [--file ../shared/data/metaqa/kb.txt] [--rows 1000000]
[--memory 2e9]`. With `--rows` a file of that many rows is generated: heads and tails follow a power
law, with hubs. Each import runs in its own process, for its peak memory.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from bench.machine import print_result
from clew.ingest.graphs.import_graph import GraphImport
from clew.store.sqlite.store import SqliteStore

_RELATIONS = 40
_BLOCK = 200_000


def generate(file: Path, rows: int, seed: int = 7) -> None:
    """Write rows of tab-separated triples; about a third as many nodes as rows."""
    rng = np.random.default_rng(seed)
    nodes = max(10, rows // 3)
    with file.open("w", encoding="utf-8") as out:
        for start in range(0, rows, _BLOCK):
            size = min(_BLOCK, rows - start)
            ends = (nodes * rng.random((2, size)) ** 2.5).astype(np.int64)
            kinds = rng.integers(0, _RELATIONS, size)
            out.writelines(
                f"Node number {h}\trelation_{r}\tNode number {t}\n"
                for h, r, t in zip(*ends.tolist(), kinds.tolist(), strict=True)
            )


async def _measure_import(file: Path, folder: Path, memory: int | None) -> dict[str, Any]:
    store = SqliteStore(folder, create=True)
    store.memory = memory
    began, cpu = perf_counter(), process_time()
    done = await GraphImport(store, folder / "import")(file)
    seconds = perf_counter() - began
    row = {
        "rows": done.rows,
        "seconds": round(seconds, 1),
        "cpu_s": round(process_time() - cpu, 1),
        "rows_per_s": round(done.rows / seconds),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
        "entities": done.counts.entities,
        "facts": done.counts.facts,
        "chunks": done.counts.chunks,
        **{f"{name}_s": value for name, value in done.seconds.items()},
    }
    began = perf_counter()
    again = await GraphImport(store, folder / "import")(file)
    assert again.unchanged
    row["again_s"] = round(perf_counter() - began, 2)
    await store.close()
    row["mb"] = round(again.counts.bytes / 1e6)
    return row


def _measure_in_process(file: Path, memory: int | None) -> dict[str, Any]:
    """Run the measurement in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "bench.import_graph", "--one", str(file), folder]
        words += ["--memory", str(memory)] if memory else []
        done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure each file and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.import_graph", description=__doc__)
    parser.add_argument("--file", type=Path, default=Path("../shared/data/metaqa/kb.txt"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--memory", type=float, help="bytes that the import may use, as 2e9")
    parser.add_argument("--one", nargs=2, type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    memory = int(given.memory) if given.memory else None
    if given.one:
        print(json.dumps(asyncio.run(_measure_import(*given.one, memory))))
        return
    rows = {given.file.name: _measure_in_process(given.file, memory)} if given.file.exists() else {}
    if given.rows:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "generated.tsv"
            generate(file, given.rows)
            rows["generated"] = _measure_in_process(file, memory)
    for name, row in rows.items():
        print(name, *(f"{key}={value}" for key, value in row.items()), sep="  ")
    print_result("import_graph", rows, {name: row["rows"] for name, row in rows.items()})


if __name__ == "__main__":
    main()
