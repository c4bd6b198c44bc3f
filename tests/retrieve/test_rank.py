"""Reranking keeps hits and texts together."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew.engine import KnowledgeBase
from clew.retrieve.lookup import Dense
from clew.retrieve.rank import Reranked, fuse_rankings, top_positions
from clew.types import Found, Hit


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0])), st.integers(-1, 10))
def test_best_is_a_stable_sort_cut_off(scores: list[float], k: int) -> None:
    array = np.array(scores, np.float32)
    order = sorted(range(len(scores)), key=lambda at: (-scores[at], at))
    assert top_positions(array, np.arange(len(scores)), k).tolist() == order[: max(k, 0)]


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 30))
def test_the_best_of_many_are_found_block_by_block(seed: int, k: int, kinds: int) -> None:
    scores = np.random.default_rng(seed).integers(0, kinds, 2500).astype(np.float32)
    order = sorted(range(len(scores)), key=lambda at: (-scores[at], at))
    assert top_positions(scores, np.arange(len(scores)), k).tolist() == order[:k]


def test_the_best_among_some_that_include_them() -> None:
    scores = np.random.default_rng(3).integers(0, 9, 500).astype(np.float32)
    keys = np.arange(500)[::-1].copy()
    best = top_positions(scores, keys, 20)
    some = np.union1d(best, np.arange(0, 500, 3))
    assert top_positions(scores, keys, 20, some).tolist() == best.tolist()


def test_fusing_adds_reciprocal_ranks_and_absence_adds_nothing() -> None:
    one = (Hit(7, 9.0, "a"), Hit(8, 8.0, "a"))
    two = (Hit(8, 1.0, "b"),)
    assert [(hit.at, hit.score) for hit in fuse_rankings([one, two], constant=1)] == [
        (8, 1 / 3 + 1 / 2),
        (7, 1 / 2),
    ]


class ByLength:
    """Finds short texts best."""

    name = "by length"

    def __init__(self) -> None:
        self.read: list[str] = []

    async def __call__(self, question: str, texts: Sequence[str], /) -> np.ndarray:
        self.read += texts
        return np.array([-len(text) for text in texts], np.float32)


async def test_scores_stay_with_the_texts_they_are_for(valley: KnowledgeBase) -> None:
    judge = ByLength()
    async with valley.store.snapshot() as now:
        ctx = replace(await valley.context(now, "a town on the coast"), rerank=judge)
        plain = await Dense()(ctx, Found())
        found = await Reranked(top_k=4)(ctx, plain)
        chunks = await now.chunks(ctx.view.keys("chunk").tolist())
        keys = ctx.view.keys("chunk")
    lengths = []
    for hit in found.chunks[:4]:
        chunk = chunks[int(keys[hit.at])]
        assert -hit.score == len(f"{chunk.title}\n{chunk.text}")
        lengths.append(-hit.score)
    assert lengths == sorted(lengths)
    assert {hit.at for hit in found.chunks[:4]} == {hit.at for hit in plain.chunks[:4]}
    assert found.chunks[4:] == plain.chunks[4:]
    assert len(judge.read) == 4


async def test_nothing_found_needs_no_reranking(base: KnowledgeBase) -> None:
    async with base.store.snapshot() as now:
        ctx = replace(await base.context(now, "x"), rerank=ByLength())
        assert (await Reranked()(ctx, Found())).chunks == ()
