"""Build cost of Clew itself, with a model that answers at once.

`python -m bench.model_build [--sizes 1000,5000] [--latency-ms 0]`. The endpoint is the stub of
`clew.testing` in its own process; it serves chat and embeddings. "floor" is the same calls alone;
"cpu" is this process and its child, "own" without the child, "stub" the endpoint's; "peak" is the
sum of both processes' peaks, though not at the same moment. With latency, "of_ideal" is the ideal
time of the calls, 32 at once, over the measured time.
"""

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from bench.corpus import make_documents
from bench.machine import print_result
from clew.config import EmbedSettings, ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.llm.chat import Message, Request
from clew.llm.openai_chat import OpenAIChat
from clew.types import Document

CONCURRENCY = 32


async def _iter_documents(many: Sequence[Document]) -> AsyncIterator[Document]:
    for one in many:
        yield one


def _make_settings(folder: Path, url: str) -> Settings:
    return Settings(
        kb=folder,
        models=ModelSettings(model="stub", base_url=url, concurrency=CONCURRENCY),
        embed=EmbedSettings(model="stub-embed", base_url=url, api_key="k", batch=256),
    )


async def _time_calls_only(many: Sequence[Document], url: str) -> float:
    """Time only the chat calls."""
    chat = OpenAIChat("stub", url)
    waiting = iter(many)

    async def work() -> None:
        for one in waiting:
            await chat(Request((Message("user", one.text),)))

    began = perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(CONCURRENCY):
            group.create_task(work())
    return perf_counter() - began


def _cpu_seconds() -> float:
    """CPU seconds of this process and its finished children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def _process_cpu_seconds(pid: int) -> float:
    """CPU seconds of another process; 0 where /proc is missing."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_mb(*whose: int) -> int:
    return round(sum(resource.getrusage(who).ru_maxrss for who in whose) / 1024)


async def _measure_size(size: int, url: str, stub: int) -> dict[str, Any]:
    docs = list(make_documents(size + 10))
    floor = await _time_calls_only(docs[:size], url)
    with tempfile.TemporaryDirectory() as folder:
        base = await KnowledgeBase.open(_make_settings(Path(folder) / "kb", url), create=True)
        stub_before = _process_cpu_seconds(stub)
        began, cpu, own = perf_counter(), _cpu_seconds(), process_time()
        added = await base.take(_iter_documents(docs[:size]))
        peak = _peak_mb(resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        row: dict[str, Any] = {
            "passages": size,
            "floor_s": round(floor, 2),
            "seconds": round(perf_counter() - began, 2),
            "cpu_s": round(_cpu_seconds() - cpu, 2),
            "own_cpu_s": round(process_time() - own, 2),
            "stub_cpu_s": round(_process_cpu_seconds(stub) - stub_before, 2),
        }
        began, cpu = perf_counter(), process_time()
        await base.take(_iter_documents(docs[size:]))
        row["add_10_s"] = round(perf_counter() - began, 3)
        row["add_10_cpu_s"] = round(process_time() - cpu, 3)
        began, cpu = perf_counter(), process_time()
        await base.remove(list(docs[0].names))
        row["remove_1_s"] = round(perf_counter() - began, 3)
        row["remove_1_cpu_s"] = round(process_time() - cpu, 3)
        counts = added.counts
        row |= {"entities": counts.entities, "facts": counts.facts}
        row["mb"] = round(counts.bytes / 1e6, 1)
        row["peak_mb"] = max(peak, _peak_mb(resource.RUSAGE_SELF))
        row["own_peak_mb"] = _peak_mb(resource.RUSAGE_SELF)
        await base.close()
    return row


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.model_build", description=__doc__)
    parser.add_argument("--sizes", default="1000,5000")
    parser.add_argument("--latency-ms", type=float, default=0.0)
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    words = [sys.executable, "-m", "clew.testing.stub_endpoint"]
    with subprocess.Popen(
        [*words, "--latency-ms", str(given.latency_ms)], stdout=subprocess.PIPE, text=True
    ) as stub:
        assert stub.stdout is not None
        url = stub.stdout.readline().split()[-1]
        try:
            rows = [asyncio.run(_measure_size(size, url, stub.pid)) for size in sizes]
        finally:
            stub.terminate()
    for row in rows if given.latency_ms else ():
        ideal = row["passages"] * given.latency_ms / 1000 / CONCURRENCY
        row["of_ideal"] = round(ideal / row["seconds"], 3)
    print("  ".join(f"{name:>12}" for name in rows[0]))
    for row in rows:
        print("  ".join(f"{value:>12}" for value in row.values()))
    figures: dict[str, Any] = {"rows": rows, "latency_ms": given.latency_ms}
    per = [row["cpu_s"] / row["passages"] for row in rows]
    figures["cpu_growth"] = round(per[-1] / per[0], 3)
    print_result("model_build", figures, {"passages": sizes})


if __name__ == "__main__":
    main()
