"""Reranking keeps hits and texts together."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from clew.engine import KnowledgeBase
from clew.retrieve.lookup import Dense
from clew.retrieve.rerank import Reranked
from clew.types import Found


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
