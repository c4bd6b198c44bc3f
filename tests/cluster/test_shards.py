"""Search over shards ranks as search on one machine, for every recipe."""

from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest

from clew.cluster.sharded_graph import ShardedGraph
from clew.cluster.sharded_view import LocalShards, SpreadLocally
from clew.cluster.shards import Shard, ShardNames
from clew.cluster.walk import WALK_ERROR
from clew.engine import KnowledgeBase
from clew.graph.csr import build_csr
from clew.graph.pagerank import pagerank, prepare_graph
from clew.graph.transition import build_transition_graph
from clew.index import view as view_module
from clew.types import Evidence
from conftest import document, stream

QUESTIONS = (
    "Where was the designer of Marrow Bridge born?",
    "Who described the mosses of the Grey Coast?",
    "town town town",
    "a word that is nowhere: zzyzx",
)
PLAIN = ("naive", "bm25", "hybrid")
WALKING = ("clew", "hipporag2", "hipporag", "lightrag", "linearrag", "pathrag", "lego-12")


@pytest.fixture
async def hamlets(valley: KnowledgeBase) -> AsyncIterator[KnowledgeBase]:
    await valley.take(stream([document(f"n{n}", f"Hamlet {n} lies by a town.") for n in range(40)]))
    yield valley


async def _search(
    base: KnowledgeBase, recipes: Sequence[str], count: int, questions: Sequence[str] = QUESTIONS
) -> list[Evidence]:
    base.spread = SpreadLocally(count) if count else None
    base.forget_view()
    return [
        (await base.search(question, recipe=recipe)).evidence
        for recipe in recipes
        for question in questions
    ]


@pytest.mark.parametrize("count", [1, 2, 5])
async def test_shards_rank_as_one_machine(hamlets: KnowledgeBase, count: int) -> None:
    whole = await _search(hamlets, PLAIN, 0)
    for one, parts in zip(whole, await _search(hamlets, PLAIN, count), strict=True):
        assert [chunk.id for chunk in parts.chunks] == [chunk.id for chunk in one.chunks]
        scores = [chunk.score for chunk in one.chunks]
        # Cosines are rounded to five digits: one on the border may be rounded either way.
        assert [chunk.score for chunk in parts.chunks] == pytest.approx(
            scores, rel=1e-5, abs=1.1e-5
        )


async def test_walks_over_shards_find_what_one_machine_finds(hamlets: KnowledgeBase) -> None:
    named = QUESTIONS[:2]
    whole = await _search(hamlets, WALKING, 0, named)
    for one, parts in zip(whole, await _search(hamlets, WALKING, 3, named), strict=True):
        assert {chunk.id for chunk in parts.chunks} == {chunk.id for chunk in one.chunks}
        assert {entity.id for entity in parts.entities} == {entity.id for entity in one.entities}
        assert {fact.id for fact in parts.facts} == {fact.id for fact in one.facts}
        by_id = {chunk.id: chunk.score for chunk in one.chunks}
        for chunk in parts.chunks:
            assert chunk.score == pytest.approx(by_id[chunk.id], rel=1e-4, abs=1e-5)


async def test_shards_compare_what_one_machine_would_estimate(
    hamlets: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_module, "MIN_ESTIMATED", 1)

    def fail(*_: object) -> None:
        raise AssertionError("the vectors are on the shards")

    monkeypatch.setattr(view_module, "estimate_together", fail)
    monkeypatch.setattr(view_module, "estimate_cosines", fail)
    for found in await _search(hamlets, ("clew",), 2, QUESTIONS[:2]):
        assert found.chunks


async def test_a_new_generation_is_spread_anew(hamlets: KnowledgeBase) -> None:
    await _search(hamlets, ["hybrid"], 2)
    await hamlets.remove(["moss"])
    spread = await _search(hamlets, ["hybrid"], 2)
    alone = await _search(hamlets, ["hybrid"], 0)
    assert [[c.id for c in one.chunks] for one in spread] == [
        [c.id for c in one.chunks] for one in alone
    ]


def _make_graph(shards: "list[Shard]", nodes: int = 300) -> tuple[ShardedGraph, np.ndarray]:
    rng = np.random.default_rng(5)
    one, other = rng.integers(0, nodes - 10, (2, 900))  # the last ten have no edge
    weights = rng.random(900).astype(np.float32)
    source, target = np.concatenate([one, other]), np.concatenate([other, one])
    links = build_csr(nodes, source, target, np.concatenate([weights, weights]))
    owner = rng.integers(0, len(shards), nodes).astype(np.int16)
    graph = ShardedGraph("g", links, owner, LocalShards(shards))
    exact = pagerank(build_transition_graph(links), [{3: 1.0, 295: 0.5, 40: 2.0}], damping=0.7)[0]
    return graph, exact


def _empty_shard() -> Shard:
    none = np.zeros(0, np.int64)
    names = ShardNames(
        none.astype(np.uint64), none, none.astype(np.int32), none.astype(np.float32), none
    )
    return Shard({}, (), names)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_rounds_end_within_the_stated_error(count: int) -> None:
    graph, exact = _make_graph([_empty_shard() for _ in range(count)])
    graph.send()
    found = graph.rank({3: 1.0, 295: 0.5, 40: 2.0}, 300, damping=0.7)
    scores = np.zeros(len(exact))
    scores[found.nodes] = found.scores
    assert np.abs(scores - exact).sum() <= WALK_ERROR
    assert graph.rounds < 60


@pytest.mark.parametrize("budget", [3_000, 12_000])
def test_a_budget_of_edges_gives_what_it_gives_on_one_machine(budget: int) -> None:
    rng = np.random.default_rng(8)
    one, other = rng.integers(0, 2_000, (2, 9_000))
    links = build_csr(2_000, np.concatenate([one, other]), np.concatenate([other, one]))
    seeds = dict.fromkeys(rng.integers(0, 2_000, 40).tolist(), 1.0)
    alone = prepare_graph(links).rank(seeds, 2_000, damping=0.6, budget=budget)
    owner = rng.integers(0, 3, 2_000).astype(np.int16)
    graph = ShardedGraph("g", links, owner, LocalShards([_empty_shard() for _ in range(3)]))
    graph.send()
    found = graph.rank(seeds, 2_000, damping=0.6, budget=budget)
    assert found.nodes[:100].tolist() == alone.nodes[:100].tolist()
    assert found.scores[:100] == pytest.approx(alone.scores[:100], rel=1e-9)
    assert found.bound == pytest.approx(alone.bound)


def test_a_walk_that_can_reach_little_takes_few_rounds() -> None:
    rng = np.random.default_rng(3)
    one, other = rng.integers(20, 2_000, (2, 9_000))  # beside an island of twenty nodes
    ring = np.arange(20)
    source = np.concatenate([one, other, ring, (ring + 1) % 20])
    target = np.concatenate([other, one, (ring + 1) % 20, ring])
    links = build_csr(2_000, source, target)
    seeds = {3: 1.0, 11: 0.5}
    alone = prepare_graph(links).rank(seeds, 1_000, damping=0.8, budget=40_000)
    owner = rng.integers(0, 2, 2_000).astype(np.int16)
    graph = ShardedGraph("g", links, owner, LocalShards([_empty_shard() for _ in range(2)]))
    graph.send()
    found = graph.rank(seeds, 1_000, damping=0.8, budget=40_000)
    assert graph.rounds < 75
    assert found.nodes[:20].tolist() == alone.nodes[:20].tolist()
    assert found.scores[:20] == pytest.approx(alone.scores[:20], abs=alone.bound + WALK_ERROR)


def test_a_shard_that_was_started_again_is_sent_its_graph() -> None:
    shards = [_empty_shard() for _ in range(2)]
    graph, exact = _make_graph(shards)
    graph.send()
    shards[1] = _empty_shard()  # has forgotten everything
    found = graph.rank({3: 1.0, 295: 0.5, 40: 2.0}, 10, damping=0.7)
    assert found.nodes[0] == int(exact.argmax())
    assert found.scores[0] == pytest.approx(exact.max(), abs=WALK_ERROR)
