"""Facts of the pages about what a query names: a retriever for agents' short queries.

`OwnPages` works on plain arrays without a `Context`, because training uses it on machines without
the store.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.graph.csr import Floats, Ints
from clew.index.view import View
from clew.retrieve.linking.link_names import LinkNames, link_names, measure_rarity
from clew.text.names import tokenize
from clew.types import Found, Hit

if TYPE_CHECKING:
    from clew.context import Context


@dataclass(frozen=True)
class OwnPages:
    """How many facts of how many pages, and how they are scored (docs/results/training.md)."""

    facts: int = 12
    pages: int = 3
    page: float = 0.5
    """Weight of the page's cosine beside its fact's: a fact alone often says just "he"."""
    own: float = 1.0
    """Bonus for the page most surely about a named entity; less for less certain ones."""

    def __call__(self, view: View, near: tuple[Floats, Floats], about: dict[int, float]) -> Ints:
        """Select facts page by page, the best page and its best fact first.

        `near` has the query's cosine with every fact and every chunk, `about` the chunks that are
        about what it names.
        """
        facts, chunks = near
        page_scores = self.page * chunks  # a new array: the input stays unchanged
        surest = max(about.values(), default=0.0)
        for at, sure in about.items() if surest > 0 else ():  # imported pages: none
            page_scores[at] += self.own * sure / surest
        fact_chunks = view.links("fact_chunk")
        fact = fact_chunks.row_numbers()
        chunk = fact_chunks.columns.astype(np.int64)
        score = facts[fact] + page_scores[chunk]
        best = np.full(len(page_scores), -np.inf, np.float32)
        np.maximum.at(best, chunk, score)
        count = min(self.pages, int(np.isfinite(best).sum()))
        pages = _top_positions(best, count)
        rows = np.flatnonzero(np.isin(chunk, pages))
        rows = rows[np.lexsort((fact[rows], -score[rows]))]
        _, first = np.unique(fact[rows], return_index=True)
        rows = rows[np.sort(first)][: self.facts]
        rank = {page: at for at, page in enumerate(pages.tolist())}
        rows = rows[np.argsort([rank[at] for at in chunk[rows].tolist()], kind="stable")]
        chosen: Ints = fact[rows]
        return chosen


def _top_positions(scores: Floats, count: int) -> Ints:
    if not count:
        return np.zeros(0, np.int64)
    edge = np.partition(scores, len(scores) - count)[len(scores) - count]
    high = np.flatnonzero(scores >= edge)
    return high[np.lexsort((high, -scores[high]))][:count].astype(np.int64)


def find_pages_about(view: View, query: str) -> dict[int, float]:
    """Return the chunks about what a query names, with their confidence."""
    t, links = tokenize(query), LinkNames()
    found: dict[int, float] = {}
    for link in link_names(view, query, t):
        for hit in links.passages_about(view, t, link, measure_rarity(view, t, link)):
            found[hit.at] = max(hit.score, found.get(hit.at, 0.0))
    return found


@dataclass(frozen=True)
class OwnFacts:
    """Takes facts of the pages found so far and of those nearest in meaning, page by page."""

    take: OwnPages = OwnPages()

    async def __call__(self, ctx: "Context", found: Found, /) -> Found:
        """Set `facts` and the `chunks` that state them, best page first."""
        view, vector = ctx.view, await ctx.vector()
        facts_near, chunks_near = ctx.estimates("fact", vector), ctx.estimates("chunk", vector)
        near = facts_near.values, chunks_near.values
        about: dict[int, float] = {}
        for hit in found.chunks:
            about[hit.at] = max(hit.score, about.get(hit.at, 0.0))
        if not view.count("fact"):
            ranked = np.argsort(-near[1], kind="stable")[: self.take.pages].tolist()
            pages = list(dict.fromkeys([*about, *ranked]))[: self.take.pages]
            return replace(found, chunks=tuple(Hit(at, float(near[1][at]), "page") for at in pages))
        facts = self.take(view, near, about)
        facts_near.at(facts)  # of very many, what is given has its own cosine
        fact_chunks = view.links("fact_chunk")
        pages = list(dict.fromkeys(int(fact_chunks.row(at)[0]) for at in facts.tolist()))
        chunks_near.at(np.array(pages, np.int64))
        return replace(
            found,
            facts=tuple(Hit(at, float(near[0][at]), "of its page") for at in facts.tolist()),
            chunks=tuple(Hit(at, float(near[1][at]), "page") for at in pages),
        )
