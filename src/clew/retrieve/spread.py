"""Spreads a ranking: near copies count once, and no page takes all the first places.

A question that wants breadth ("describe", "what are the main …") is given passages that differ
from each other; other questions keep their order, except that a further passage of a page, or a
copy, must be better by a margin.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context, TraceStep
from clew.graph.csr import Floats
from clew.index.view import View
from clew.retrieve.labels import has_vectors
from clew.retrieve.question import wants_breadth
from clew.retrieve.rank import hit_positions, top_positions
from clew.types import Found, Hit

_COPY = 0.985  # passages with at least this cosine say the same
_LOOKED_AT, _CROWD = 30, 15  # of so many first passages, copies of one that crowd others out
_MAX_CROWDS = 5  # of one ranking that are thinned out


@dataclass(frozen=True)
class Spread:
    """Reorders the first `top_k` chunks so that pages and contents differ."""

    page: float = 0.8
    """Factor for each passage of the same page that is ranked before."""
    broad_page: float = 0.7
    novelty: float = 0.3
    """What similarity to passages ranked before costs, where breadth is wanted."""
    top_k: int = 30

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`; those after the first `top_k` keep their order behind them."""
        first, rest = found.chunks[: self.top_k], found.chunks[self.top_k :]
        if len(first) < 2:
            return found
        broad = wants_breadth(ctx.question)
        pages = await _fetch_pages(ctx, first)
        vectors = ctx.view.vectors("chunk", hit_positions(first)) if ctx.view.matrices else None
        order = self._choose_order(first, pages, _similarities(vectors, len(first)), broad)
        ctx.trace.append(TraceStep("spread", "", f"breadth {'wanted' if broad else 'not'}", 0.0))
        return replace(found, chunks=(*(first[at] for at in order), *rest))

    def _choose_order(
        self, hits: Sequence[Hit], pages: Sequence[str], similar: Floats, broad: bool
    ) -> list[int]:
        """Take the best of what is left, again and again; copies come last."""
        score = np.array([hit.score for hit in hits], np.float32)
        score = (score - score.min()) / max(1e-9, float(score.max() - score.min()))
        factor, penalty = np.ones_like(score), np.zeros_like(score)
        left = np.ones(len(hits), np.bool_)
        order: list[int] = []
        same = np.array(pages)
        for _ in hits:
            at = int(np.argmax(np.where(left, factor * score - penalty, -np.inf)))
            order.append(at)
            left[at] = False
            factor[same == same[at]] *= self.broad_page if broad else self.page
            penalty[similar[at] >= _COPY] = 2.0
            if broad:
                near = self.novelty * np.maximum(similar[at], 0)
                penalty = np.maximum(penalty, near)
        return order


def drop_copies(view: View, scores: Floats) -> Floats:
    """Where copies of one passage take most of the first places, put all but the best last."""
    if not has_vectors(view, "chunk"):
        return scores
    for _ in range(_MAX_CROWDS):
        first = top_positions(scores, view.keys("chunk"), _LOOKED_AT)
        vectors = view.vectors("chunk", first)
        alike = vectors @ vectors.T >= _COPY
        copied = int(np.argmax(alike.sum(axis=1)))
        if alike[copied].sum() < _CROWD:
            break
        copies = view.cosines("chunk", vectors[copied]) >= _COPY
        copies[first[alike[copied]][0]] = False
        scores = np.where(copies, scores.min() - 1, scores).astype(np.float32)
    return scores


def _similarities(vectors: Floats | None, count: int) -> Floats:
    if vectors is None or not vectors.shape[1]:
        return np.zeros((count, count), np.float32)
    found: Floats = vectors @ vectors.T
    return found


async def _fetch_pages(ctx: Context, hits: Sequence[Hit]) -> list[str]:
    """Return the document of each hit; cached, since questions ask for the same passages."""
    memo: dict[int, str] = ctx.view.memo.setdefault("documents of chunks", {})
    missing = [hit.at for hit in hits if hit.at not in memo]
    if missing:
        keys = ctx.view.keys("chunk")
        fetched = await ctx.snapshot.chunks([int(keys[at]) for at in missing])
        memo.update({at: fetched[int(keys[at])].document for at in missing})
    return [memo[hit.at] for hit in hits]
