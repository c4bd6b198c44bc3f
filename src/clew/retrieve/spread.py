"""Spreads a ranking: near copies count once, and no page takes all the first places.

A question that wants breadth ("describe", "what are the main …") is given passages that differ
from each other, and after the first five those that say the best sentences that none before says;
if the name, title or heading of a page is what is asked for ("list all environment variables"),
several of its passages come early, since it may be the list itself;
other questions keep their order, except that a further passage of a page, or a copy, must be better
by a margin.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heapreplace
from pathlib import PurePosixPath

import numpy as np

from clew.context import Context, TraceStep
from clew.graph.csr import Floats, Mask
from clew.index.cosines import compare_rows
from clew.retrieve.best_units import stems_of, weigh_stems
from clew.retrieve.breadth import BREADTH_WORDS, judge_breadth
from clew.retrieve.copies import can_compare_vectors, group_copies
from clew.retrieve.labels import has_vectors
from clew.retrieve.pack import fetch_chunks
from clew.retrieve.rank import hit_positions, top_positions
from clew.retrieve.sections import fetch_places
from clew.text.unicode import split_words
from clew.types import Found, Hit

_SAME_VECTOR = 0.985  # passages of one page with at least this cosine say the same
_NAMED = 0.2  # least share of the question's words, by rarity, that names a page
_SEVERAL = 5  # passages of that page
_SENTENCES = 20  # best fitting sentences that an account should say


@dataclass(frozen=True)
class Spread:
    """Reorders the first `top_k` chunks so that pages and contents differ."""

    page: float = 0.9
    """Factor for each passage of the same page that is ranked before."""
    broad_page: float = 0.7
    novelty: float = 0.3
    """What similarity to passages ranked before costs, where breadth is wanted."""
    coverage: float = 0.7
    """What saying sentences counts that no passage before says, where breadth is wanted."""
    head: int = 5
    """Places that go by fit alone before coverage counts."""
    before: int = 2
    """Places before the passages of a page that is named by what is asked for."""
    top_k: int = 30

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`; those after the first `top_k` keep their order behind them."""
        if len(found.chunks) < 2:
            return found
        chunks, copies = await _fold_copies(ctx, found.chunks)
        first, rest = chunks[: self.top_k], chunks[self.top_k :]
        broad = await judge_breadth(ctx)
        places = await fetch_places(ctx, hit_positions(first).tolist())
        pages = [place.document for place in places]
        if broad or len(set(pages)) < len(pages):
            similar = _compare_vectors(ctx, first)
            said = await _compare_sentences(ctx, first) if broad else None
            order = self._choose_order(first, pages, similar, said)
        else:  # no two are of one page
            order = np.argsort(-_scale_scores(first), kind="stable").tolist()
        ctx.trace.append(TraceStep("spread", "", f"breadth {'wanted' if broad else 'not'}", 0.0))
        ranked = (*(first[at] for at in order), *rest)
        if broad and (listed := await _find_list_page(ctx, ranked)):
            ctx.trace.append(TraceStep("spread", "", f"{len(listed)} of one page about it", 0.0))
            ranked = tuple(dict.fromkeys((*ranked[: self.before], *listed, *ranked)))
        return replace(found, chunks=(*ranked, *copies))

    def _choose_order(
        self, hits: Sequence[Hit], pages: Sequence[str], similar: Floats, said: Floats | None
    ) -> list[int]:
        """Take the best of what is left, again and again; what its page repeats comes last.

        `said` is how far each hit says each sentence, where breadth is wanted.
        """
        score = _scale_scores(hits)
        number = {name: at for at, name in enumerate(dict.fromkeys(pages))}
        page = np.array([number[name] for name in pages])
        same_page = page[:, None] == page
        repeated = same_page & (similar >= _SAME_VECTOR)
        if said is None:
            return _put_back(score, same_page, repeated, self.page)
        penalty, left = np.zeros_like(score), np.ones(len(hits), np.bool_)
        order: list[int] = []
        for place in range(len(hits)):
            value = score
            if place >= self.head:
                value = (1 - self.coverage) * score + self.coverage * _new_share(said, order, left)
            at = int(np.where(left, value - penalty, -np.inf).argmax())
            order.append(at)
            left[at] = False
            score[same_page[at]] *= self.broad_page
            penalty[repeated[at]] = 2.0
            penalty = np.maximum(penalty, self.novelty * np.maximum(similar[at], 0))
        return order


def _scale_scores(hits: Sequence[Hit]) -> Floats:
    """Return the scores of hits from 0 for the lowest to 1 for the highest."""
    score = np.array([hit.score for hit in hits], np.float32)
    scaled: Floats = (score - score.min()) / max(1e-9, float(score.max() - score.min()))
    return scaled


def _put_back(score: Floats, same_page: Mask, repeated: Mask, factor: float) -> list[int]:
    """Take the best of what is left, again and again; others of its page then count less."""
    values, penalty = score.tolist(), [0.0] * len(score)
    counts = list(values)
    waiting = [(-value, at) for at, value in enumerate(values)]
    heapify(waiting)
    order: list[int] = []
    while waiting:
        before, at = waiting[0]
        if -before != counts[at]:  # one of its page was taken since
            heapreplace(waiting, (-counts[at], at))
            continue
        heappop(waiting)
        order.append(at)
        others = same_page[at].nonzero()[0].tolist()
        for other in others if len(others) > 1 else ():
            values[other] = float(np.float32(values[other] * np.float32(factor)))
            penalty[other] = 2.0 if repeated[at, other] else penalty[other]
            counts[other] = float(np.float32(values[other]) - np.float32(penalty[other]))
    return order


async def _fold_copies(
    ctx: Context, hits: tuple[Hit, ...]
) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
    """Return the hits, and apart from them those whose own text is a near copy of a better one's.

    What differs in nothing is left out; the others come last, behind all else that was found.
    """
    group, exact = await group_copies(ctx, hit_positions(hits))
    # One that says what is asked for takes the place of the first of its copies.
    first: dict[int, int] = {}
    for at, one in enumerate(group.tolist()):
        first.setdefault(one, at)
    kept = tuple(
        hits[one] if at == one else replace(hits[one], score=hits[at].score)
        for one, at in first.items()
    )
    copies = tuple(hit for at, hit in enumerate(hits) if group[at] != at and not exact[at])
    if folded := len(hits) - len(kept):
        said = "1 near copy folded" if folded == 1 else f"{folded} near copies folded"
        ctx.trace.append(TraceStep("copies", "", said, 0.0))
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


async def _compare_sentences(ctx: Context, hits: Sequence[Hit]) -> Floats:
    """Return chunks × the best fitting sentences of all of them: how far each chunk says each."""
    view, links = ctx.view, ctx.view.links("chunk_fact")
    which, edge = links.edges_of(hit_positions(hits))
    facts = links.columns[edge].astype(np.int64)
    if not len(facts) or not has_vectors(view, "fact"):
        return np.zeros((len(hits), 0), np.float32)
    fit = ctx.cosines("fact", await ctx.vector(), facts)
    best = top_positions(fit, view.codes("fact")[facts], _SENTENCES)
    vectors = view.vectors("fact", facts)
    said = np.zeros((len(hits), len(best)), np.float32)
    np.maximum.at(said, which, vectors @ vectors[best].T)
    return said


def _new_share(said: Floats, chosen: Sequence[int], left: Mask) -> Floats:
    """Return what each hit says that the chosen ones do not; 1 for the most among those left."""
    covered = said[list(chosen)].max(axis=0, initial=0)
    gain = np.maximum(said - covered, 0).sum(axis=1)
    shares: Floats = gain / max(1e-9, float(gain[left].max(initial=0)))
    return shares


def _compare_vectors(ctx: Context, hits: Sequence[Hit]) -> Floats:
    """Return the cosines of all pairs of hits; 0 where vectors do not tell."""
    vectors = ctx.view.vectors("chunk", hit_positions(hits)) if can_compare_vectors(ctx) else None
    if vectors is None or not vectors.shape[1]:
        return np.zeros((len(hits), len(hits)), np.float32)
    return compare_rows(vectors)
