"""Workers do the work of a build by the queue: same result, shared limits, any may be killed."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew.config import EmbedSettings, ModelSettings, Price, Settings, StoreSettings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.ingest.remote import decode_extraction, encode_extraction
from clew.kb_address import DatabaseAddress
from clew.llm.budget import BudgetExceeded
from clew.store.protocol import COPIED_COLUMNS, CopiedStore
from clew.testing.stub_endpoint import StubEndpoint
from clew.types import Extraction, RawEntity, RawFact
from conftest import document, stream

pytest.importorskip("psycopg", reason="psycopg is not installed")

from clew.cluster.queue import Worker, open_queue_runner
from clew.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow  # processes that wait for each other: not beside the whole suite

DOCUMENTS = [
    document(
        f"page {number}",
        f"Town Number{number} lies on the river Sarn. Anton Reeve{number % 7} founded it.",
        f"Number{number}",
    )
    for number in range(24)
]


def _with_models(settings: Settings, stub: StubEndpoint, **models: Any) -> Settings:
    return settings.model_copy(
        update={
            "models": ModelSettings(model="stub", base_url=stub.base_url, **models),
            "embed": EmbedSettings(model="stub-embed", base_url=stub.base_url, batch=16),
            "wait": 5.0,
        }
    )


def _tables(store: CopiedStore) -> dict[str, Any]:
    with store.read_rows() as found:
        tables = {name: list(found.rows(name)) for name in COPIED_COLUMNS if name != "memory"}
        return tables | {name: found.arrays[name].tolist() for name in found.arrays}


async def _build_alone(settings: Settings, folder: Path) -> dict[str, Any]:
    base = await KnowledgeBase.open(settings.model_copy(update={"kb": folder}), create=True)
    await base.take(stream(DOCUMENTS))
    found = _tables(base.store)
    await base.close()
    return found


async def _build_by_workers(base: KnowledgeBase, budget: float | None = None) -> Any:
    async with open_queue_runner(base, budget) as runner:
        base.builder = replace(base.builder, runner=runner)
        return await base.take(stream(DOCUMENTS))


@asynccontextmanager
async def _work(settings: Settings, many: int, at_once: int = 4) -> AsyncIterator[list[Worker]]:
    bases = [await KnowledgeBase.open(settings, create=True) for _ in range(many)]
    workers = [Worker.of(base, at_once) for base in bases]
    tasks = [asyncio.create_task(worker.work()) for worker in workers]
    try:
        yield workers
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for base in bases:
            await base.close()


async def test_workers_build_what_one_machine_builds(shared: Settings, tmp_path: Path) -> None:
    async with StubEndpoint() as stub:
        settings = _with_models(shared, stub, concurrency=3, adapt=False)
        alone = await _build_alone(settings, tmp_path / "alone")
        calls, stub.stats.most_in_flight = stub.stats.chat_calls, 0
        base = await KnowledgeBase.open(settings, create=True)
        async with _work(settings, 2) as workers:
            added = await _build_by_workers(base)
            assert all(worker.done for worker in workers)
        assert _tables(base.store) == alone
        assert added.usage.calls == stub.stats.chat_calls - calls == len(DOCUMENTS)
        assert (await base.status())["calls"] == len(DOCUMENTS)
        assert await base.verify() == []
        await base.close()


async def test_files_are_parsed_by_workers(shared: Settings, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for number in range(6):
        text = f"<h1>Number{number}</h1><p>Town Number{number} lies on the river Sarn.</p>"
        (pages / f"page{number}.html").write_text(text)
    (pages / "broken.pdf").write_bytes(b"%PDF-1.4 nonsense")
    (pages / "plain.txt").write_text("Sarn is a river.")
    async with StubEndpoint() as stub:
        settings = _with_models(shared, stub, concurrency=3, adapt=False)
        alone = await KnowledgeBase.open(
            settings.model_copy(update={"kb": tmp_path / "alone"}), create=True
        )
        here = await alone.add([pages])
        base = await KnowledgeBase.open(settings, create=True)
        async with _work(settings, 2) as workers, open_queue_runner(base) as runner:
            kinds: list[str] = []
            for worker in workers:
                worker.on_done = lambda job: kinds.append(job.kind)
            base.builder = replace(base.builder, runner=runner)
            there = await base.add([pages])
        assert kinds.count("read") == 7
        assert there.skipped == here.skipped
        assert there.added == here.added == 7
        assert _tables(base.store) == _tables(alone.store)
        await alone.close()
        await base.close()


async def test_a_limit_is_shared_by_all_workers(shared: Settings) -> None:
    async with StubEndpoint(latency=0.02) as stub, StubEndpoint() as embedder:
        settings = _with_models(shared, stub, concurrency=2, adapt=False)
        embed = settings.embed.model_copy(update={"base_url": embedder.base_url})
        settings = settings.model_copy(update={"embed": embed})
        base = await KnowledgeBase.open(settings, create=True)
        async with _work(settings, 2):
            await _build_by_workers(base)
        assert stub.stats.chat_calls == len(DOCUMENTS)
        assert stub.stats.most_in_flight <= 2
        await base.close()


async def test_a_spent_budget_ends_the_build_and_a_larger_one_goes_on(shared: Settings) -> None:
    async with StubEndpoint() as stub:
        prices = {"stub": Price(1000.0, 1000.0), "stub-embed": Price()}
        settings = _with_models(shared, stub, concurrency=2, adapt=False, prices=prices)
        base = await KnowledgeBase.open(settings, create=True)
        async with _work(settings, 1, at_once=2):
            with pytest.raises(BudgetExceeded, match="larger --budget"):
                await _build_by_workers(base, budget=1.0)
            paid = stub.stats.chat_calls
            assert 0 < paid < len(DOCUMENTS)
            await _build_by_workers(base)
        assert stub.stats.chat_calls == len(DOCUMENTS)  # nothing was paid for twice
        await base.close()


async def test_all_calls_are_in_the_books_when_a_budget_ends_the_build(shared: Settings) -> None:
    async with StubEndpoint(latency=0.05) as stub:
        prices = {"stub": Price(1000.0, 1000.0), "stub-embed": Price()}
        settings = _with_models(shared, stub, concurrency=6, adapt=False, prices=prices)
        base = await KnowledgeBase.open(settings, create=True)
        async with _work(settings, 2):
            for budget in (1.0, 2.0):
                with pytest.raises(BudgetExceeded):
                    await _build_by_workers(base, budget)
            added = await _build_by_workers(base)
        status = await base.status()
        assert stub.stats.chat_calls == len(DOCUMENTS)
        assert status["calls"] == stub.stats.chat_calls + stub.stats.embed_calls
        assert added.usage.cached_calls > 0
        await base.close()


async def test_embedding_counts_against_the_budget_and_its_limit_is_shared(
    shared: Settings, tmp_path: Path
) -> None:
    async with StubEndpoint() as stub, StubEndpoint(latency=0.05) as vectors:
        prices = {"stub": Price(), "stub-embed": Price(1000.0, 0.0)}
        settings = _with_models(shared, stub, adapt=False, prices=prices)
        about = {"base_url": vectors.base_url, "batch": 2, "concurrency": 2}
        settings = settings.model_copy(update={"embed": settings.embed.model_copy(update=about)})
        alone = await KnowledgeBase.open(
            settings.model_copy(update={"kb": tmp_path / "alone"}), create=True
        )
        await alone.take(stream(DOCUMENTS))
        money, calls = (await alone.status())["spent"], vectors.stats.embed_calls
        assert money > 0
        base = await KnowledgeBase.open(settings, create=True)
        vectors.stats.most_in_flight = 0
        async with _work(settings, 2):
            with pytest.raises(BudgetExceeded):
                await _build_by_workers(base, budget=money / 3)
            spent = (await base.status())["spent"]
            assert money / 3 <= spent < money
            await _build_by_workers(base)
        assert vectors.stats.most_in_flight <= 2
        status = await base.status()
        assert status["calls"] == stub.stats.chat_calls // 2 + vectors.stats.embed_calls - calls
        await alone.close()
        await base.close()


async def test_a_budget_needs_the_price_of_the_embedder(shared: Settings) -> None:
    async with StubEndpoint() as stub:
        settings = _with_models(shared, stub, prices={"stub": Price()})
        base = await KnowledgeBase.open(settings, create=True)
        with pytest.raises(ConfigError, match="no price is set for 'stub-embed'"):
            await _build_by_workers(base, budget=1.0)
        await base.close()


async def test_a_worker_with_other_settings_says_so(shared: Settings) -> None:
    async with StubEndpoint() as stub:
        settings = _with_models(shared, stub)
        base = await KnowledgeBase.open(settings, create=True)
        other = settings.models.model_copy(update={"model": "another"})
        stranger = await KnowledgeBase.open(settings.model_copy(update={"models": other}))
        building = asyncio.create_task(_build_by_workers(base))
        with pytest.raises(ConfigError, match="same \\[models\\]"):
            await Worker.of(stranger).work()
        async with _work(settings, 1):
            assert (await building).added == len(DOCUMENTS)
        await stranger.close()
        await base.close()


def test_an_extraction_comes_back_as_it_was_sent() -> None:
    entity = RawEntity("Ilse", "person", "an engineer", ((0, 4),), 0.5, ("I.",), {"born": "1870"})
    fact = RawFact("f", (("Ilse", "head"), ("Sarn", "tail")), "at", ("w",), "d", 2.0, (3, 9))
    whole = Extraction((entity,), (fact,), "why", True)
    assert decode_extraction(encode_extraction(whole)) == whole
    assert isinstance(decode_extraction(encode_extraction(whole)).entities[0].spans[0], tuple)


@asynccontextmanager
async def _processes(folder: Path, address: DatabaseAddress, many: int) -> AsyncIterator[Any]:
    """Workers in processes of their own; yields a function that kills one and starts another."""
    running: list[Process] = []

    async def start() -> None:
        running.append(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "clew", "worker", "--kb", address.full_url),
                *("--at-once", "3"),
                cwd=folder,
                stdout=PIPE,
                stderr=DEVNULL,
            )
        )

    async def replace_one() -> None:
        oldest = running.pop(0)
        assert oldest.stdout is not None
        await oldest.stdout.readline()  # it has begun to work
        oldest.kill()
        await oldest.wait()
        await start()

    for _ in range(many):
        await start()
    try:
        yield replace_one
    finally:
        for process in running:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _write_settings(folder: Path, stub: StubEndpoint, cache: Path) -> None:
    (folder / "clew.toml").write_text(
        f'cache = "{cache}"\nwait = 5\n[store]\nlease = 2.0\n'
        f'[models]\nmodel = "stub"\nbase_url = "{stub.base_url}"\n'
        f'concurrency = 6\nadapt = false\n[embed]\nmodel = "stub-embed"\n'
        f'base_url = "{stub.base_url}"\nbatch = 16\n'
    )


@pytest.mark.slow
async def test_workers_that_lose_their_connection_go_on(
    shared: Settings, address: DatabaseAddress
) -> None:
    async with StubEndpoint(latency=0.1) as stub:
        settings = _with_models(shared, stub, concurrency=2, adapt=False)
        settings = settings.model_copy(update={"store": StoreSettings(lease=2.0)})
        base = await KnowledgeBase.open(settings, create=True)
        # Under a name of its own, so that only its sessions are ended.
        there = DatabaseAddress(f"{address.url}&application_name=worker", address.schema)
        async with _work(settings.model_copy(update={"kb": there}), 1):
            building = asyncio.create_task(_build_by_workers(base))
            judge = PostgresStore(address, settings.cache / "judge").database
            for _ in range(4):
                await asyncio.sleep(0.15)
                with judge.transaction() as db:
                    db.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE application_name = 'worker'"
                    )
            assert (await building).added == len(DOCUMENTS)
            judge.close()
        assert await base.verify() == []
        await base.close()


@pytest.mark.slow
async def test_killed_workers_lose_nothing(
    shared: Settings, address: DatabaseAddress, tmp_path: Path
) -> None:
    async with StubEndpoint(latency=0.3) as stub:
        settings = _with_models(shared, stub, concurrency=6, adapt=False)
        base = await KnowledgeBase.open(settings, create=True)
        _write_settings(tmp_path, stub, settings.cache)
        async with _processes(tmp_path, address, 2) as replace_one:
            building = asyncio.create_task(_build_by_workers(base))
            kills = 0
            while not building.done() and kills < 4:
                await replace_one()
                kills += 1
            assert (await building).added == len(DOCUMENTS)
        paid = stub.stats.chat_calls
        alone = await _build_alone(settings, tmp_path / "alone")
        assert _tables(base.store) == alone
        assert len(DOCUMENTS) <= paid <= len(DOCUMENTS) + 3 * kills
        await base.close()
