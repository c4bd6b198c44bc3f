"""Sections and pages as units beside chunks: found by sentence, ranked by section and page.

A sentence is found most surely, and alone it says least. `BestSentence` ranks chunks by their best
sentence, `RankSections` adds what other chunks of the same section and page say, and
`WholeSections` gives the best chunks together with what stands before and after them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.graph.csr import Floats, Mask
from clew.retrieve.facts import score_sentences
from clew.retrieve.pack import fetch_chunks
from clew.retrieve.rank import hit_positions, top_hits
from clew.types import Found, Hit

_MAX_CACHED = 200_000  # chunks whose places a view keeps
_GAP = 40  # characters between chunks that still follow each other
_BEHIND = 1e-4  # what a chunk scores less that is only given because its neighbour was found


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chunk stands: its document, the headings above it, and its characters."""

    document: str
    heading: str
    start: int
    end: int

    def is_near(self, other: "Place") -> bool:
        """Whether both stand in one section: below one heading, or without any side by side."""
        if self.document != other.document or self.heading != other.heading:
            return False
        gap = max(self.start, other.start) - min(self.end, other.end)
        return bool(self.heading) or gap <= _GAP


async def fetch_places(ctx: Context, positions: Sequence[int]) -> list[Place]:
    """Return where chunks stand; cached, since questions ask for the same chunks."""
    memo: dict[int, Place] = ctx.view.memo.setdefault("places of chunks", {})
    if len(memo) > _MAX_CACHED:
        memo.clear()
    missing = [at for at in dict.fromkeys(positions) if at not in memo]
    if missing:
        for at, chunk in (await fetch_chunks(ctx, missing)).items():
            memo[at] = Place(chunk.document, chunk.heading, chunk.start, chunk.end)
    return [memo[at] for at in positions]


@dataclass(frozen=True)
class BestSentence:
    """Ranks chunks by the cosine of their best sentence, or of the whole if that is nearer."""

    top_k: int = 100
    facts: int = 20

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks` and `facts` (the sentences), best first."""
        view = ctx.view
        if not view.count("chunk"):
            return replace(found, chunks=())
        fits = await score_sentences(ctx, await ctx.vector())
        return replace(
            found,
            chunks=top_hits(fits.chunks.values, view.codes("chunk"), self.top_k, "best sentence"),
            facts=top_hits(fits.facts.values, view.codes("fact"), self.facts, "sentence"),
        )


@dataclass(frozen=True)
class RankSections:
    """Reorders the first `top_k` chunks by what their section and their page say as well.

    Scores are scaled to 0 … 1. To its own a chunk adds a share of the best other chunk of its
    section, and a share of the best chunk of its page outside the section.
    """

    section: float = 0.2
    page: float = 0.1
    top_k: int = 100

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`, best first; those after the first `top_k` keep their order behind them."""
        first, rest = found.chunks[: self.top_k], found.chunks[self.top_k :]
        if len(first) < 2:
            return found
        places = await fetch_places(ctx, hit_positions(first).tolist())
        score = np.array([hit.score for hit in first], np.float32)
        # Equals, such as copies of one page, all count fully.
        span = float(score.max() - score.min())
        score = (score - score.min()) / span if span > 0 else np.ones_like(score)
        page, section = _compare_places(places)
        others = ~np.eye(len(first), dtype=np.bool_)
        total = (
            score
            + self.section * _best_of(score, section & others)
            + self.page * _best_of(score, page & ~section)
        )
        order = np.argsort(-total, kind="stable").tolist()
        ranked = (Hit(first[at].at, float(total[at]), first[at].by) for at in order)
        return replace(found, chunks=(*ranked, *rest))


@dataclass(frozen=True)
class WholeSections:
    """Gives each of the first chunks together with its neighbours in the same section."""

    first: int = 5
    around: int = 1
    """Chunks before and after that are given with it."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `chunks`: neighbours stand behind their chunk, in the order of the text."""
        count = ctx.view.count("chunk")
        given: dict[int, Hit] = {}
        for hit in found.chunks[: self.first]:
            around = range(max(0, hit.at - self.around), min(count, hit.at + self.around + 1))
            own, *places = await fetch_places(ctx, [hit.at, *around])
            near = [at for at, place in zip(around, places, strict=True) if own.is_near(place)]
            given.setdefault(hit.at, hit)
            for at in near:
                given.setdefault(at, Hit(at, hit.score - _BEHIND, "same section"))
        for hit in found.chunks[self.first :]:
            given.setdefault(hit.at, hit)
        return replace(found, chunks=tuple(given.values()))


def _compare_places(places: Sequence[Place]) -> tuple[Mask, Mask]:
    """Return which of all pairs are on one page, and which in one section."""
    _, document = np.unique([place.document for place in places], return_inverse=True)
    page: Mask = document[:, None] == document[None, :]
    section = np.eye(len(places), dtype=np.bool_)
    for one, other in np.argwhere(np.triu(page, 1)).tolist():
        section[one, other] = section[other, one] = places[one].is_near(places[other])
    return page, section


def _best_of(score: Floats, chosen: Mask) -> Floats:
    """Return for each row the highest score that is chosen in it, 0 for none."""
    best: Floats = np.where(chosen, score[None, :], 0).max(axis=1)
    return best
