"""The server under load: what HTTP adds, searches a second, /health, streams, memory, start.

`python -m bench.serve [--data DIR] [--kb DIR] [--workers N] [--clients N] [--seconds S]
[--requests N] [--over S] [--only start,load,streams,soak]`. `soak` sends so many searches, with
`--over` evenly over so many seconds, and watches the memory. The server runs in processes of its
own on a free port, over a copy of the knowledge base, or one built from the data set's corpus. The
clients share the machine with it, so figures are lower than with clients elsewhere; `cpu_ms` is
the server's processor time per search, which other programs do not change.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from bench.machine import percentiles_ms, print_result, read_jsonl, require_path
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.ingest.files import read

RECIPES = ("bm25", "clew")
HEALTH_INTERVAL = 0.05
STREAMS = 200
SAMPLES = 20  # of the memory in a soak


@dataclass
class Connection:
    """A kept-alive HTTP/1.1 connection; plain, as a client library would cost more than it."""

    port: int
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, bytes, float]:
        """Send one request; return status, body and seconds."""
        if self.reader is None or self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        sent = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(sent)}\r\n\r\n"
        )
        began = perf_counter()
        self.writer.write(head.encode() + sent)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        answer = await self.reader.readexactly(int(headers["content-length"]))
        return int(lines[0].split()[1]), answer, perf_counter() - began

    def close(self) -> None:
        """Close the connection."""
        if self.writer is not None:
            self.writer.close()


@dataclass
class Load:
    """Times and statuses of one run."""

    times: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)

    def figures(self, seconds: float) -> dict[str, Any]:
        """Searches a second, percentiles and the slowest health check."""
        return {
            "per_second": round(len(self.times) / seconds, 1),
            **percentiles_ms(self.times or [0.0]),
            "health_max_ms": round(1000 * max(self.health or [0.0]), 1),
            "health_p99_ms": round(
                1000 * sorted(self.health or [0.0])[-1 - len(self.health) // 100], 1
            ),
            "statuses": {str(k): v for k, v in sorted(self.statuses.items())},
        }


async def run_load(
    port: int, recipe: str, questions: list[str], clients: int, seconds: float
) -> dict[str, Any]:
    """Let clients search for some time, each as soon as its last search is answered."""
    load, turn = Load(), cycle(questions)
    end = perf_counter() + seconds

    async def search() -> None:
        connection = Connection(port)
        while perf_counter() < end:
            body = {"question": next(turn), "recipe": recipe, "k": 10}
            status, _, took = await connection.call("POST", "/workspaces/default/search", body)
            load.statuses[status] = load.statuses.get(status, 0) + 1
            if status == 200:
                load.times.append(took)
        connection.close()

    async def check_health() -> None:
        connection = Connection(port)
        while perf_counter() < end:
            _, _, took = await connection.call("GET", "/health")
            load.health.append(took)
            await asyncio.sleep(HEALTH_INTERVAL)
        connection.close()

    began = perf_counter()
    await asyncio.gather(check_health(), *(search() for _ in range(clients)))
    return load.figures(perf_counter() - began)


async def measure_overhead(port: int, questions: list[str]) -> dict[str, Any]:
    """What HTTP adds to a search: the time of the call less the time the engine reports."""
    connection, added = Connection(port), []
    for question in questions[:100]:
        body = {"question": question, "recipe": "bm25", "k": 10}
        _, answer, took = await connection.call("POST", "/workspaces/default/search", body)
        added.append(took - json.loads(answer)["seconds"])
    connection.close()
    return percentiles_ms(added)


async def open_streams(port: int, question: str) -> int:
    """Open many streamed answers at once; return how many ended with their answer."""
    body = json.dumps({"question": question, "recipe": "bm25", "stream": True}).encode()
    head = (
        "POST /workspaces/default/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()

    async def follow() -> bool:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + body)
        text = await reader.read()
        writer.close()
        return b"event: answer" in text

    return sum(await asyncio.gather(*(follow() for _ in range(STREAMS))))


def process_tree(root: int) -> list[int]:
    """A process and its descendants."""
    found = [root]
    for pid in found:
        listed = Path(f"/proc/{pid}/task/{pid}/children")
        found += [int(child) for child in listed.read_text().split()] if listed.exists() else []
    return found


def resident_mb(root: int) -> float:
    """Memory of the server's processes that is not shared with files or each other, in MB."""
    total = 0
    for pid in process_tree(root):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return round(total / 1000, 1)


def cpu_seconds(root: int) -> float:
    """Processor time of the server's processes so far: the fairer figure on a shared machine."""
    ticks = 0
    for pid in process_tree(root):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def start_server(kb: Path, workers: int) -> tuple[subprocess.Popen[bytes], int, float]:
    """Start `clew serve`; return the process, its port, and the seconds until it was ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    began = perf_counter()
    settings = kb.parent / "clew.toml"
    settings.write_text("[serve]\nrequests_per_minute = 10000000\nqueue = 256\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "clew", "serve", "--kb", kb.name, "--port", str(port)]
        + ["--workers", str(workers)],
        cwd=kb.parent,
    )
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
                probe.sendall(
                    b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                )
                if b" 200 " in probe.recv(100):
                    return process, port, perf_counter() - began
        except OSError:
            sleep(0.01)


def read_questions(data: Path) -> list[str]:
    """The questions of a data set."""
    return [row["question"] for row in read_jsonl(data / "questions.jsonl")]


@contextmanager
def serving(kb: Path, workers: int) -> Iterator[tuple[int, int, float]]:
    """Run the server; yield its process, its port and the seconds until it was ready."""
    process, port, started = start_server(kb, workers)
    try:
        yield process.pid, port, started
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


async def measure_start(args: argparse.Namespace, kb: Path, questions: list[str]) -> dict[str, Any]:
    """A cold start, memory before any request, and what HTTP adds to a search."""
    with serving(kb, 1) as (pid, port, started):
        figures = {
            "start_seconds": round(started, 2),
            "start_cpu_seconds": round(cpu_seconds(pid), 2),
            "idle_mb": resident_mb(pid),
        }
        await run_load(port, "bm25", questions, 1, 2)
        return {**figures, "http_adds": await measure_overhead(port, questions)}


async def measure_load(args: argparse.Namespace, kb: Path, questions: list[str]) -> dict[str, Any]:
    """Searches a second of each recipe, with health checks meanwhile."""
    figures = {}
    with serving(kb, args.workers) as (pid, port, _):
        for recipe in RECIPES:
            await run_load(port, recipe, questions, args.clients, min(4, args.seconds))
            before = cpu_seconds(pid)
            found = await run_load(port, recipe, questions, args.clients, args.seconds)
            answered = max(1, found["statuses"].get("200", 0))
            used = cpu_seconds(pid) - before
            figures[recipe] = {**found, "cpu_ms": round(1000 * used / answered, 2)}
    return figures


async def measure_streams(
    args: argparse.Namespace, kb: Path, questions: list[str]
) -> dict[str, Any]:
    """Many streamed answers at once."""
    with serving(kb, args.workers) as (_, port, _):
        return {"opened": STREAMS, "answered": await open_streams(port, questions[0])}


async def measure_soak(args: argparse.Namespace, kb: Path, questions: list[str]) -> dict[str, Any]:
    """Memory over many searches, as they go on; the first tenth warms everything up."""
    with serving(kb, args.workers) as (pid, port, _):
        turn, statuses, memory = cycle(questions), Counter[int](), []
        began = perf_counter()
        pace = args.over / args.requests

        async def search(count: int) -> None:
            connection = Connection(port)
            for _ in range(count):
                await asyncio.sleep(began + statuses.total() * pace - perf_counter())
                body = {"question": next(turn), "recipe": "bm25", "k": 10}
                status, _, _ = await connection.call("POST", "/workspaces/default/search", body)
                statuses[status] += 1
            connection.close()

        for _ in range(SAMPLES):
            each = args.requests // SAMPLES // args.clients + 1
            await asyncio.gather(*(search(each) for _ in range(args.clients)))
            memory.append(resident_mb(pid))
            print(f"{statuses.total()} searches, {memory[-1]} MB", flush=True)
        settled = memory[SAMPLES // 10 :]
        return {
            "requests": statuses.total(),
            "seconds": round(perf_counter() - began, 1),
            "statuses": {str(k): v for k, v in statuses.items()},
            "memory_mb": memory,
            "growth_mb": round(settled[-1] - settled[0], 1),
        }


PARTS = {
    "start": measure_start,
    "load": measure_load,
    "streams": measure_streams,
    "soak": measure_soak,
}


async def measure(args: argparse.Namespace, kb: Path) -> dict[str, Any]:
    """Run the measurements that are wanted."""
    questions, figures = read_questions(args.data), {}
    for name in args.only.split(","):
        figures[name] = await PARTS[name](args, kb, questions)
        print(name, json.dumps(figures[name]), flush=True)
    return figures


async def build(data: Path, folder: Path) -> None:
    """Build a knowledge base of the corpus, by rules."""
    base = await KnowledgeBase.open(Settings(kb=folder), create=True)
    await base.take(read([data / "corpus.jsonl"], row_names="id"), "offline")
    await base.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kb", type=Path, default=None)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/hotpotqa100"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--requests", type=int, default=10_000, help="of the soak")
    parser.add_argument("--over", type=float, default=0.0, help="seconds of the soak at least")
    parser.add_argument("--only", default=",".join(PARTS))
    args = parser.parse_args()
    require_path(args.data, "--data")
    with tempfile.TemporaryDirectory() as folder:
        kb = Path(folder) / "kb"
        if args.kb is None:
            asyncio.run(build(args.data, kb))
        else:
            shutil.copytree(args.kb, kb, ignore=shutil.ignore_patterns("runs", ".server"))
        figures = asyncio.run(measure(args, kb))
    sizes = {"workers": args.workers, "clients": args.clients, "data": args.data.name}
    print_result("serve", figures, sizes)


if __name__ == "__main__":
    main()
