"""A build on Ray equals one on one machine; a node may be lost meanwhile."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew.config import EmbedSettings, ModelSettings, Price, Settings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.ingest.readers.source import ReadBudget, SourceFile
from clew.ingest.remote import encode_read_task
from clew.llm.budget import BudgetExceeded
from clew.store.protocol import COPIED_COLUMNS, CopiedStore
from clew.testing.stub_endpoint import StubEndpoint
from conftest import document, stream

pytest.importorskip("ray", reason="ray is not installed")

import ray

from clew.cluster.ray_shards import spread_over_ray
from clew.cluster.ray_tasks import open_ray_runner

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

CALLS_AT_ONCE = 4
RECIPES = ("naive", "bm25", "hybrid", "hipporag2", "clew")
DOCUMENTS = [
    document(f"page {n}", f"Town Number{n} lies on the Sarn. Anton Reeve{n % 7} founded it.")
    for n in range(24)
]


_READ = encode_read_task(SourceFile(Path("a.txt"), "a.txt"), ReadBudget(), b"A town.")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes on this machine."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    made.add_node(num_cpus=1)
    made.wait_for_nodes()
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
async def stub() -> AsyncIterator[StubEndpoint]:
    async with StubEndpoint(latency=0.05) as opened:
        yield opened


def _settings(folder: Path, stub: StubEndpoint) -> Settings:
    return Settings(
        kb=folder,
        models=ModelSettings(
            model="stub",
            base_url=stub.base_url,
            concurrency=CALLS_AT_ONCE,
            prices={"stub": Price(prompt=1, completion=2), "stub-embed": Price(prompt=1)},
        ),
        embed=EmbedSettings(
            model="stub-embed", base_url=stub.base_url, batch=16, concurrency=CALLS_AT_ONCE
        ),
    )


def _tables(store: CopiedStore) -> dict[str, Any]:
    with store.read_rows() as found:
        tables = {name: list(found.rows(name)) for name in COPIED_COLUMNS if name != "memory"}
        return tables | {name: found.arrays[name].tolist() for name in found.arrays}


async def _build_alone(settings: Settings) -> dict[str, Any]:
    base = await KnowledgeBase.open(settings, create=True)
    await base.take(stream(DOCUMENTS))
    found = _tables(base.store)
    await base.close()
    return found


async def test_a_build_on_two_nodes_equals_one_on_one_machine(
    cluster: Any, stub: StubEndpoint, tmp_path: Path
) -> None:
    alone = await _build_alone(_settings(tmp_path / "alone", stub))
    base = await KnowledgeBase.open(_settings(tmp_path / "kb", stub), create=True)
    before = stub.stats.chat_calls + stub.stats.embed_calls
    stub.stats.most_in_flight = 0
    async with open_ray_runner(base) as runner:
        base.builder = replace(base.builder, runner=runner)
        added = await base.take(stream(DOCUMENTS))
    assert _tables(base.store) == alone
    assert stub.stats.most_in_flight <= CALLS_AT_ONCE  # of both actors together
    assert len(runner.nodes) == 2
    assert len(runner.parts.nodes) == 2  # names were resolved and arrays derived on both, too
    # Extraction and embedding, which has a price, are counted as on one machine.
    assert added.usage.calls == stub.stats.chat_calls + stub.stats.embed_calls - before
    assert added.usage.money > 0
    await base.close()


async def test_other_settings_on_the_cluster_are_named(
    cluster: Any, stub: StubEndpoint, tmp_path: Path
) -> None:
    base = await KnowledgeBase.open(_settings(tmp_path / "kb", stub), create=True)
    async with open_ray_runner(base, actors=1) as runner:
        with pytest.raises(ConfigError, match="same \\[embed\\]"):
            await runner.run("embed", b'{"embedder": "another", "texts": ["x"]}')
    await base.close()


async def test_a_missing_part_of_ray_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['grpc'] = None\n"  # as if it were not installed
        "from clew.cluster.ray_connection import connect\n"
        "connect('ray://127.0.0.1:1')"
    )
    asking = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stderr=PIPE)
    _, errors = await asking.communicate()
    assert b"ConfigError: ray://127.0.0.1:1 needs a part of Ray that is not installed" in errors


async def test_one_actor_is_enough(cluster: Any, stub: StubEndpoint, tmp_path: Path) -> None:
    base = await KnowledgeBase.open(_settings(tmp_path / "kb", stub), create=True)
    async with open_ray_runner(base, actors=5) as runner:  # for which there are two processors
        base.builder = replace(base.builder, runner=runner)
        assert (await base.take(stream(DOCUMENTS))).added == len(DOCUMENTS)
    await base.close()


async def test_a_cluster_without_room_is_named(
    cluster: Any, stub: StubEndpoint, tmp_path: Path
) -> None:
    base = await KnowledgeBase.open(_settings(tmp_path / "kb", stub), create=True)
    async with open_ray_runner(base, patience=120) as first:
        await first.run("read", _READ)  # both processors are held, or will be
        async with open_ray_runner(base, actors=1, patience=2) as second:
            with pytest.raises(ConfigError, match="no actor of the cluster has answered for 2 s"):
                await second.run("read", _READ)
    await base.close()


async def test_what_was_paid_for_is_kept_and_the_budget_holds(
    cluster: Any, stub: StubEndpoint, tmp_path: Path
) -> None:
    settings = _settings(tmp_path / "kb", stub)
    base = await KnowledgeBase.open(settings, create=True)
    with pytest.raises(BudgetExceeded, match="larger --budget"):
        async with open_ray_runner(base, budget=0.0005) as runner:
            base.builder = replace(base.builder, runner=runner)
            await base.take(stream(DOCUMENTS))
    paid = stub.stats.chat_calls
    assert 0 < paid < len(DOCUMENTS)
    await base.close()
    base = await KnowledgeBase.open(settings)
    async with open_ray_runner(base) as runner:
        base.builder = replace(base.builder, runner=runner)
        assert (await base.take(stream(DOCUMENTS))).added == len(DOCUMENTS)
    assert stub.stats.chat_calls < paid + len(DOCUMENTS)
    await base.close()


async def test_shards_on_the_cluster_rank_as_one_machine(
    cluster: Any, stub: StubEndpoint, tmp_path: Path
) -> None:
    base = await KnowledgeBase.open(_settings(tmp_path / "kb", stub), create=True)
    await base.take(stream(DOCUMENTS))
    whole = [await _find_ids(base, recipe) for recipe in RECIPES]
    spread = spread_over_ray(base, 2)
    base.forget_view()
    assert [await _find_ids(base, recipe) for recipe in RECIPES] == whole
    assert len(spread.nodes) == 2
    actors = spread.actors
    assert actors is not None
    lost, spare = actors.actors[1], actors.spare
    ray.kill(lost)
    assert [await _find_ids(base, recipe) for recipe in RECIPES] == whole
    assert actors.actors[1] is spare  # no question waits for a process to start
    await base.take(stream([document("page 99", "Town Number99 lies on the Sarn.")]))
    assert len(await _find_ids(base, "hybrid")) == 10
    assert spread.actors is actors  # a new generation is there without starting processes
    await base.close()


async def _find_ids(base: KnowledgeBase, recipe: str) -> list[str]:
    found = await base.search("Which town lies on the Sarn?", recipe=recipe)
    return sorted(chunk.id for chunk in found.evidence.chunks)


async def test_a_node_lost_with_its_shards_loses_no_question(
    cluster: Any, stub: StubEndpoint, tmp_path: Path
) -> None:
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    base = await KnowledgeBase.open(_settings(tmp_path / "kb", stub), create=True)
    await base.take(stream(DOCUMENTS))
    whole = await _find_ids(base, "hipporag2")
    spread = spread_over_ray(base, 3)
    base.forget_view()
    assert await _find_ids(base, "hipporag2") == whole
    holding = [node for node in cluster.worker_nodes if node.node_id in spread.nodes]
    asking = asyncio.create_task(_ask_often(base))
    await asyncio.sleep(0.1)
    await asyncio.to_thread(cluster.remove_node, holding[-1], False)
    assert all(found == whole for found in await asking)
    await base.close()


async def _ask_often(base: KnowledgeBase) -> list[list[str]]:
    found = []
    for _ in range(20):
        found.append(await _find_ids(base, "hipporag2"))
        await asyncio.sleep(0.02)
    return found


async def _wait_for_call(stub: StubEndpoint) -> None:
    calls = stub.stats.chat_calls
    for _ in range(600):
        if stub.stats.chat_calls > calls:
            return
        await asyncio.sleep(0.05)


async def test_a_node_lost_in_the_middle_loses_nothing(
    cluster: Any, stub: StubEndpoint, tmp_path: Path
) -> None:
    alone = await _build_alone(_settings(tmp_path / "alone", stub))
    stub.latency = 0.5
    before = stub.stats.chat_calls + stub.stats.embed_calls
    base = await KnowledgeBase.open(_settings(tmp_path / "kb", stub), create=True)
    async with open_ray_runner(base) as runner:
        base.builder = replace(base.builder, runner=runner)
        building = asyncio.create_task(base.take(stream(DOCUMENTS)))
        await _wait_for_call(stub)
        # Another test may have removed the second node, and has added a third.
        await asyncio.to_thread(cluster.remove_node, next(iter(cluster.worker_nodes)), False)
        added = await building
        assert added.added == len(DOCUMENTS)
    assert _tables(base.store) == alone
    # Calls that were lost with the node are counted, too.
    calls = stub.stats.chat_calls + stub.stats.embed_calls - before
    assert added.usage.calls == calls >= len(DOCUMENTS) + runner.lost_calls
    await base.close()
