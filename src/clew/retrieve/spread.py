"""Spreads a ranking: near copies count once, and no page takes all the first places.

A further passage of a page, or a copy, must be better by a margin. Where a question wants breadth
("describe", "what are the main …") the margin is larger, and likeness to passages before costs. If
the name, title or heading of a page is then what is asked for ("list all environment variables"),
several of its passages come early, since it may be the list itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import numpy as np

from clew.context import Context, TraceStep
from clew.graph.csr import Floats
from clew.index.cosines import compare_rows
from clew.retrieve.best_units import stems_of, weigh_stems
from clew.retrieve.breadth import BREADTH_WORDS, judge_breadth
from clew.retrieve.copies import can_compare_vectors, describe_copies, group_copies
from clew.retrieve.pack import fetch_chunks, fetch_documents
from clew.retrieve.rank import hit_positions
from clew.text.unicode import split_words
from clew.types import Found, Hit

_SAME_VECTOR = 0.985  # passages of one page with at least this cosine say the same
_LAST = 2.0  # penalty of what comes last: all scores are 0 to 1
_NAMED = 0.2  # least share of the question's words, by rarity, that names a page
_SEVERAL = 5  # passages of that page


@dataclass(frozen=True)
class Spread:
    """Reorders the first `top_k` chunks so that pages and contents differ."""

    page: float = 0.85
    """Factor for each passage of the same page that is ranked before."""
    broad_page: float = 0.7
    """The same where breadth is wanted."""
    novelty: float = 0.3
    """What similarity to passages ranked before costs, where breadth is wanted."""
    before: int = 2
    """Places before the passages of a page that is named by what is asked for."""
    top_k: int = 30

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`; those after the first `top_k` keep their order behind them."""
        if len(found.chunks) < 2:
            return found
        broad = await judge_breadth(ctx)
        chunks, copies = await _fold_copies(ctx, found.chunks, broad=broad)
        first, rest = chunks[: self.top_k], chunks[self.top_k :]
        pages = await fetch_documents(ctx, hit_positions(first).tolist())
        order = self._choose_order(ctx, first, pages, broad)
        ctx.trace.append(TraceStep("spread", "", f"breadth {'wanted' if broad else 'not'}", 0.0))
        ranked = (*(first[at] for at in order), *rest)
        if broad and (listed := await _find_list_page(ctx, ranked)):
            ctx.trace.append(TraceStep("spread", "", f"{len(listed)} of one page about it", 0.0))
            ranked = tuple(dict.fromkeys((*ranked[: self.before], *listed, *ranked)))
        return replace(found, chunks=(*ranked, *copies))

    def _choose_order(
        self, ctx: Context, hits: Sequence[Hit], pages: Sequence[str], broad: bool
    ) -> list[int]:
        """Take the best of what is left, again and again; what its page repeats comes last."""
        score = _scale_scores(hits)
        number = {name: at for at, name in enumerate(dict.fromkeys(pages))}
        if not broad and len(number) == len(pages):  # no two are of one page
            order: list[int] = np.argsort(-score, kind="stable").tolist()
            return order
        page = np.array([number[name] for name in pages])
        same_page, similar = page[:, None] == page, _compare_vectors(ctx, hits)
        factors = np.where(same_page, self.broad_page if broad else self.page, 1)
        novelty = self.novelty if broad else 0.0
        costs = (novelty * np.maximum(similar, 0)).astype(np.float32)
        costs[same_page & (similar >= _SAME_VECTOR)] = _LAST
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
    ctx: Context, hits: tuple[Hit, ...], *, broad: bool
) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
    """Return the hits, and apart from them those whose own text is a near copy of a better one's.

    What differs in nothing is left out; the others come last, behind all else that was found.
    """
    positions = hit_positions(hits)
    group, exact = await group_copies(ctx, positions, broad=broad)
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


async def _find_list_page(ctx: Context, hits: Sequence[Hit]) -> list[Hit]:
    """Return the best hits of the page whose name, title or heading is what is asked for."""
    asked = " ".join(word for word in split_words(ctx.question) if word not in BREADTH_WORDS)
    words = weigh_stems(ctx.view, asked)
    chunks = await fetch_chunks(ctx, hit_positions(hits).tolist())
    names = await ctx.snapshot.names([chunk.document for chunk in chunks.values()])
    shares: dict[str, float] = {}
    for chunk in chunks.values():
        last = [PurePosixPath(name).stem for name in names.get(chunk.document, ())]
        for label in (chunk.title, chunk.heading, *last):
            said = stems_of(label)
            share = sum(words[word] for word in said) if said <= words.keys() else 0.0
            shares[chunk.document] = max(share, shares.get(chunk.document, 0.0))
    page = max(shares, key=lambda one: shares[one], default="")
    if not page or shares[page] < _NAMED:
        return []
    return [hit for hit in hits if chunks[hit.at].document == page][:_SEVERAL]


def _compare_vectors(ctx: Context, hits: Sequence[Hit]) -> Floats:
    """Return the cosines of all pairs of hits; 0 where vectors do not tell."""
    vectors = ctx.view.vectors("chunk", hit_positions(hits)) if can_compare_vectors(ctx) else None
    if vectors is None or not vectors.shape[1]:
        return np.zeros((len(hits), len(hits)), np.float32)
    return compare_rows(vectors)
