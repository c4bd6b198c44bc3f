"""Spreads a ranking: near copies count once, and no page takes all the first places.

A further passage of a page, or a copy, must be better by a margin.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.graph.csr import Floats
from clew.index.cosines import compare_rows
from clew.retrieve.copies import can_compare_vectors, describe_copies, group_copies
from clew.retrieve.pack import fetch_documents
from clew.retrieve.rank import hit_positions
from clew.types import Found, Hit

_SAME_VECTOR = 0.985  # passages of one page with at least this cosine say the same
_LAST = 2.0  # penalty of what comes last: all scores are 0 to 1


@dataclass(frozen=True)
class Spread:
    """Reorders the first `top_k` chunks so that pages and contents differ."""

    page: float = 0.85
    """Factor for each passage of the same page that is ranked before."""
    top_k: int = 30

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`; those after the first `top_k` keep their order behind them."""
        if len(found.chunks) < 2:
            return found
        chunks, copies = await _fold_copies(ctx, found.chunks)
        first, rest = chunks[: self.top_k], chunks[self.top_k :]
        pages = await fetch_documents(ctx, hit_positions(first).tolist())
        order = self._choose_order(ctx, first, pages)
        return replace(found, chunks=(*(first[at] for at in order), *rest, *copies))

    def _choose_order(self, ctx: Context, hits: Sequence[Hit], pages: Sequence[str]) -> list[int]:
        """Take the best of what is left, again and again; what its page repeats comes last."""
        score = _scale_scores(hits)
        number = {name: at for at, name in enumerate(dict.fromkeys(pages))}
        if len(number) == len(pages):  # no two are of one page
            order: list[int] = np.argsort(-score, kind="stable").tolist()
            return order
        page = np.array([number[name] for name in pages])
        same_page, similar = page[:, None] == page, _compare_vectors(ctx, hits)
        factors = np.where(same_page, self.page, 1)
        costs = np.where(same_page & (similar >= _SAME_VECTOR), _LAST, 0).astype(np.float32)
        return _put_back(score, factors.astype(np.float32), costs)


def _scale_scores(hits: Sequence[Hit]) -> Floats:
    """Return the scores of hits from 0 for the lowest to 1 for the highest."""
    score = np.array([hit.score for hit in hits], np.float32)
    scaled: Floats = (score - score.min()) / max(1e-9, float(score.max() - score.min()))
    return scaled


def _put_back(score: Floats, factors: Floats, costs: Floats) -> list[int]:
    """Take the best of what is left, again and again.

    The others' scores are then multiplied by their factor for it, and their highest cost for any
    taken before is subtracted.
    """
    penalty, left = np.zeros_like(score), np.ones(len(score), np.bool_)
    order: list[int] = []
    for _ in range(len(score)):
        at = int(np.where(left, score - penalty, -np.inf).argmax())
        order.append(at)
        left[at] = False
        score = score * factors[at]
        penalty = np.maximum(penalty, costs[at])
    return order


async def _fold_copies(
    ctx: Context, hits: tuple[Hit, ...]
) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
    """Return the hits, and apart from them those whose own text is a near copy of a better one's.

    What differs in nothing is left out; the others come last, behind all else that was found.
    """
    positions = hit_positions(hits)
    group, exact = await group_copies(ctx, positions)
    # One that says what is asked for takes the place of the first of its copies.
    first: dict[int, int] = {}
    for at, one in enumerate(group.tolist()):
        first.setdefault(one, at)
    kept = tuple(
        hits[one] if at == one else replace(hits[one], score=hits[at].score)
        for one, at in first.items()
    )
    copies = tuple(hit for at, hit in enumerate(hits) if group[at] != at and not exact[at])
    if len(kept) < len(hits):
        folded = np.flatnonzero(group != np.arange(len(group)))
        step = await describe_copies(ctx, positions[group[folded]], positions[folded])
        ctx.trace.append(step)
    return kept, copies


def _compare_vectors(ctx: Context, hits: Sequence[Hit]) -> Floats:
    """Return the cosines of all pairs of hits; 0 where vectors do not tell."""
    vectors = ctx.view.vectors("chunk", hit_positions(hits)) if can_compare_vectors(ctx) else None
    if vectors is None or not vectors.shape[1]:
        return np.zeros((len(hits), len(hits)), np.float32)
    return compare_rows(vectors)
