"""A knowledge base in PostgreSQL: build time against a folder's, workers, and killed workers.

`python -m bench.postgres build --data FILE [--sizes 1000,5000]` builds both with cheap vectors.
`python -m bench.postgres workers [--workers 1,4] [--documents 200] [--latency 0.2]` builds with a
model that takes that long. `python -m bench.postgres readers [--documents 50]` measures when a
reader has what was announced. `python -m bench.postgres kills [--kills 50] [--log FILE]` kills a
worker again and again during a build, and compares what was built and paid for; with a log it goes
on with the campaign that the log holds. A server is started for it, or
`--server URL` names one.
"""

import argparse
import asyncio
import json
import multiprocessing
import random
import re
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql

from bench.build import RandomEmbed, iter_documents, read_documents
from bench.machine import print_result, require_path
from clew.cluster.queue import Worker, open_queue_runner
from clew.config import EmbedSettings, ModelSettings, Settings, StoreSettings
from clew.engine import KnowledgeBase
from clew.kb_address import DatabaseAddress, parse_location
from clew.store.protocol import COPIED_COLUMNS, CopiedStore
from clew.stores.opening import open_located_store
from clew.testing.postgres_server import start_server, why_not
from clew.testing.stub_endpoint import StubEndpoint
from clew.text.unicode import digest
from clew.types import Document

_END_ALL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = 'clew' AND pid != pg_backend_pid()"
)
_LEASE = 3.0  # seconds; short, as killed workers are waited for
_VICTIMS = 4  # workers at once that are killed one after another: others start meanwhile
_LONGEST_LIFE = 0.25  # seconds from its first look for jobs to the kill, at most


@contextmanager
def _server(given: str | None) -> Iterator[str]:
    if given:
        yield given
    elif reason := why_not():
        raise SystemExit(f"{reason}; name a server with --server")
    else:
        with start_server(durable=True) as url:
            yield url


def _new_address(server: str) -> DatabaseAddress:
    mark = "&" if "?" in server else "?"
    found = parse_location(f"{server}{mark}schema=bench_{uuid4().hex[:12]}")
    if not isinstance(found, DatabaseAddress):
        raise SystemExit(f"{server} is not the address of a database")
    return found


# -- build


async def _time_build(settings: Settings, documents: list[Document]) -> dict[str, float]:
    base = KnowledgeBase(open_located_store(settings, create=True), settings, RandomEmbed())
    began = perf_counter()
    await base.take(iter_documents(documents[:-10]))
    built = perf_counter() - began
    began = perf_counter()
    await base.take(iter_documents(documents[-10:]))
    added = perf_counter() - began
    question = documents[0].text[:80]
    await base.search(question, recipe="hybrid")
    began = perf_counter()
    for _ in range(20):
        await base.search(question, recipe="hybrid")
    searched = (perf_counter() - began) / 20
    await base.close()
    return {
        "build_s": round(built, 2),
        "add_10_s": round(added, 3),
        "search_ms": round(searched * 1000, 2),
    }


def _build_here(data: Path, size: int, settings: Settings) -> dict[str, float]:
    async def build() -> dict[str, float]:
        return await _time_build(settings, await read_documents(data, size))

    return asyncio.run(build())


def _bench_build(server: str, data: Path, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Each build in a process of its own: the second must not find what the first has kept."""
    found = []
    fresh = partial(ProcessPoolExecutor, 1, multiprocessing.get_context("spawn"))
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder) / "cache"
            places = {"folder": Path(folder) / "kb", "postgres": _new_address(server)}
            row: dict[str, Any] = {"passages": size}
            for name, kb in places.items():
                with fresh() as process:
                    given = (data, size, Settings(kb=kb, cache=cache))
                    row[name] = process.submit(_build_here, *given).result()
            row["ratio"] = round(row["postgres"]["build_s"] / row["folder"]["build_s"], 2)
        found.append(row)
        print(row, file=sys.stderr)
    return found


# -- workers


def _make_documents(count: int) -> list[Document]:
    texts = (
        f"Town Number{n} lies on the river Sarn. Anton Reeve{n % 7} founded it in {1200 + n}."
        for n in range(count)
    )
    return [Document(digest(text), text, "", (f"page {n}",)) for n, text in enumerate(texts)]


class _PaidCalls:
    """Counts calls that were made before, and those of them whose reply was stored already."""

    def __init__(self, address: DatabaseAddress) -> None:
        self._url = address.url
        self._stored = sql.SQL("SELECT 1 FROM {} WHERE kind = 'reply' AND value ~ %s").format(
            sql.Identifier(address.schema, "memory")
        )
        self._made: set[str] = set()
        self.again = self.stored_before = 0

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Look at a call when it arrives; the stub answers it."""
        town = re.findall(r"Number\d+", str(messages[-1]["content"]))[-1]
        if town in self._made:
            self.again += 1
            with psycopg.connect(self._url) as db:
                found = db.execute(self._stored, (rf"{town}\D",)).fetchone()
                self.stored_before += bool(found)
        self._made.add(town)


class _Workers:
    """Worker processes."""

    def __init__(self, folder: Path, address: DatabaseAddress, at_once: int) -> None:
        self._folder = folder
        self._arguments = ("worker", "--kb", address.full_url, "--at-once", str(at_once))
        self.running: list[Process] = []

    async def start(self) -> None:
        self.running.append(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "clew", *self._arguments),
                cwd=self._folder,
                stdout=PIPE,
                stderr=DEVNULL,
            )
        )

    async def stop(self) -> None:
        for process in self.running:
            with suppress(ProcessLookupError):  # it has ended by itself
                process.kill()
            await process.wait()


@asynccontextmanager
async def _stage(server: str, latency: float, at_once: int) -> AsyncIterator[Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        address = _new_address(server)
        async with StubEndpoint(_PaidCalls(address), latency=latency) as stub:
            settings = Settings(
                kb=address,
                cache=folder / "cache",
                store=StoreSettings(lease=_LEASE),
                models=ModelSettings(
                    model="stub", base_url=stub.base_url, concurrency=64, adapt=False
                ),
                embed=EmbedSettings(model="stub-embed", base_url=stub.base_url),
            )
            (folder / "clew.toml").write_text(
                f'cache = "{folder / "cache"}"\n[store]\nlease = {_LEASE}\n[models]\n'
                f'model = "stub"\nbase_url = "{stub.base_url}"\nconcurrency = 64\nadapt = false\n'
                f'[embed]\nmodel = "stub-embed"\nbase_url = "{stub.base_url}"\n'
            )
            base = await KnowledgeBase.open(settings, create=True)
            workers = _Workers(folder, address, at_once)
            try:
                yield base, workers, stub
            finally:
                await workers.stop()
                await base.close()


async def _build(base: KnowledgeBase, documents: Sequence[Document]) -> None:
    async with open_queue_runner(base) as runner:
        base.builder = replace(base.builder, runner=runner)
        await base.take(iter_documents(documents))


async def _wait_for_workers(base: KnowledgeBase, count: int) -> None:
    async with open_queue_runner(base) as runner:
        for _ in range(600):
            if await asyncio.to_thread(runner.queue.count_workers) >= count:
                return
            await asyncio.sleep(0.1)
    raise SystemExit("the workers did not start")


async def _bench_workers(
    server: str, counts: Sequence[int], documents: int, latency: float, at_once: int
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for count in counts:
        async with _stage(server, latency, at_once) as (base, workers, stub):
            for _ in range(count):
                await workers.start()
            await _wait_for_workers(base, count)
            began = perf_counter()
            await _build(base, _make_documents(documents))
            seconds = perf_counter() - began
            row = {"workers": count, "seconds": round(seconds, 2), "calls": stub.stats.chat_calls}
            row["speedup"] = round(found[0]["seconds"] / seconds, 2) if found else 1.0
        found.append(row)
        print(row, file=sys.stderr)
    return found


# -- readers


def _wait_for_folder(folder: Path) -> None:
    while not folder.is_dir():
        sleep(0.005)


async def _bench_readers(server: str, writes: int) -> dict[str, Any]:
    """Seconds until a reader has fetched a published generation, also after a lost connection."""
    with tempfile.TemporaryDirectory() as name:
        folder, address = Path(name), _new_address(server)
        kept = Settings(kb=address, cache=folder / "writer")
        writer = KnowledgeBase(open_located_store(kept, create=True), kept, RandomEmbed())
        reader = open_located_store(Settings(kb=address, cache=folder / "reader"))
        await reader.follow()
        copies = address.work_folder(folder / "reader") / "arrays"
        waits: dict[str, list[float]] = {"announced": [], "line lost": []}
        for number, document in enumerate(_make_documents(writes)):
            lost = number % 5 == 4
            if lost:  # all connections end, also the one that listens
                with psycopg.connect(address.url, autocommit=True) as db:
                    db.execute(_END_ALL)
            await writer.take(iter_documents([document]))
            began = perf_counter()
            newest = copies / str((await writer.store.counts()).generation)
            await asyncio.to_thread(_wait_for_folder, newest)
            waits["line lost" if lost else "announced"].append(perf_counter() - began)
        await reader.close()
        await writer.close()
    return {
        what: {
            "times": len(found),
            "median_s": round(median(found), 3),
            "most_s": round(max(found), 3),
        }
        for what, found in waits.items()
        if found
    }


# -- kills


def _dump(store: CopiedStore) -> dict[str, Any]:
    with store.read_rows() as found:
        tables = {name: list(found.rows(name)) for name in COPIED_COLUMNS if name != "memory"}
        return tables | {name: found.arrays[name].tolist() for name in found.arrays}


def _run_worker(settings: Settings, at_once: int, begun: Event) -> None:
    """What `clew worker` does, in a process that has imported everything already."""

    async def work() -> None:
        base = await KnowledgeBase.open(settings)
        begun.set()
        await Worker.of(base, at_once).work()

    asyncio.run(work())


class _Victims:
    """Worker processes that are forked from one with everything imported, to be killed."""

    def __init__(self, settings: Settings, at_once: int) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["clew.cluster.queue", "clew.llm.openai_chat"])
        self._given = (settings, at_once)
        self._running: list[tuple[Any, Event]] = []

    def start(self) -> None:
        begun = self._context.Event()
        process = self._context.Process(target=_run_worker, args=(*self._given, begun), daemon=True)
        process.start()
        self._running.append((process, begun))

    def kill_one(self, rng: random.Random) -> None:
        """Kill one that has begun to work, at any moment of it."""
        process, begun = self._running.pop(0)
        begun.wait(60)
        sleep(rng.uniform(0.0, _LONGEST_LIFE))
        process.kill()
        process.join()

    def stop(self) -> None:
        for process, _ in self._running:
            process.kill()
            process.join()


async def _kill_during_build(
    base: KnowledgeBase, many: Sequence[Document], kills: int, rng: random.Random, at_once: int
) -> int:
    victims = _Victims(base.settings, at_once)
    done = 0
    try:
        for _ in range(_VICTIMS):
            victims.start()
        building = asyncio.create_task(_build(base, many))
        while done < kills and not building.done():
            await asyncio.to_thread(victims.kill_one, rng)
            victims.start()
            done += 1
        await building
    finally:
        victims.stop()
    return done


async def _run_slice(
    server: str, kills: int, documents: int, latency: float, seed: int
) -> dict[str, Any]:
    """One slice of a campaign: a build, during which workers are killed."""
    rng = random.Random(seed)
    many, at_once = _make_documents(documents), 4
    async with _stage(server, latency, at_once) as (base, _, stub):
        began = perf_counter()
        done = await _kill_during_build(base, many, kills, rng, at_once)
        seconds, paid = perf_counter() - began, stub.stats.chat_calls
        again, stored_before = stub.reply.again, stub.reply.stored_before
        built = _dump(base.store)
        with tempfile.TemporaryDirectory() as folder:
            alone = await KnowledgeBase.open(
                base.settings.model_copy(update={"kb": Path(folder) / "kb"}), create=True
            )
            await alone.take(iter_documents(many))
            equal = _dump(alone.store) == built
            await alone.close()
    return {
        "kills": done,
        "documents": documents,
        "seconds": round(seconds, 1),
        "calls_paid": paid,
        "calls_in_flight_repeated": again,
        "calls_repeated_though_stored": stored_before,
        "equal_to_one_machine": equal,
    }


def _bench_kills(
    server: str, kills: int, documents: int, latency: float, log: Path | None
) -> dict[str, Any]:
    """A slice, and the sum with those before it, which are in the log."""
    rows: list[dict[str, Any]] = []
    if log is not None and log.exists():
        rows = [json.loads(line) for line in log.read_text().splitlines()]
    rows.append(asyncio.run(_run_slice(server, kills, documents, latency, 7 + len(rows))))
    if log is not None:
        with log.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
    total = {name: sum(one[name] for one in rows) for name in rows[-1]}
    equal = all(one["equal_to_one_machine"] for one in rows)
    return {
        "slice": rows[-1],
        "campaign": {**total, "slices": len(rows), "equal_to_one_machine": equal},
    }


def main() -> None:
    """Run one part and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("build", "workers", "readers", "kills"))
    parser.add_argument("--server", help="address of a PostgreSQL database")
    parser.add_argument("--data", type=Path, default=Path("corpus.jsonl"))
    parser.add_argument("--sizes", default="1000,5000")
    parser.add_argument("--workers", default="1,4")
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--log", type=Path, help="of a campaign of kills, to go on with it")
    given = parser.parse_args()
    # So that the server is stopped, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with _server(given.server) as server:
        if given.part == "build":
            data = require_path(given.data, "--data")
            sizes = [int(size) for size in given.sizes.split(",")]
            figures: Any = _bench_build(server, data, sizes)
        elif given.part == "workers":
            counts = [int(count) for count in given.workers.split(",")]
            how = (given.documents, given.latency, given.at_once)
            figures = asyncio.run(_bench_workers(server, counts, *how))
        elif given.part == "readers":
            figures = asyncio.run(_bench_readers(server, given.documents))
        else:
            how_many = (given.kills, given.documents, given.latency, given.log)
            figures = _bench_kills(server, *how_many)
    print_result(f"postgres {given.part}", {given.part: figures}, {"documents": given.documents})


if __name__ == "__main__":
    main()
