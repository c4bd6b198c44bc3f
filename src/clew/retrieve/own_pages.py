"""Facts of the pages that are about what a query names, then of those nearest to it. Pure arrays.

Made for the short queries of an agent ("date of birth of NAME"). Training uses the same functions
on machines without the store, so nothing here knows of a context.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.names import tokens
from clew.retrieve.naming.link import LinkNames, link_names
from clew.view import View

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class OwnPages:
    """How many facts of how many pages, and what counts. Numbers: docs/results/training.md."""

    facts: int = 12
    pages: int = 3
    page: float = 0.5
    """What a page's nearness counts beside its fact's: a fact alone often says just "he"."""
    own: float = 1.0
    """Given to the page that is surely about a named thing, less to those less surely so."""

    def __call__(self, view: View, near: tuple[Floats, Floats], about: dict[int, float]) -> Ints:
        """The chosen facts, page by page, the best page and its best fact first.

        `near` has the query's cosine with every fact and every chunk, `about` the chunks that are
        about what it names.
        """
        facts, chunks = near
        worth = self.page * chunks  # a new array: what was given stays as it is
        surest = max(about.values(), default=0.0)
        for at, sure in about.items() if surest > 0 else ():  # an imported page is about nothing
            worth[at] += self.own * sure / surest
        said = view.links("fact_chunk")
        fact = np.repeat(np.arange(len(said)), said.degrees())
        chunk = said.columns.astype(np.int64)
        score = facts[fact] + worth[chunk]
        best = np.full(len(worth), -np.inf, np.float32)
        np.maximum.at(best, chunk, score)
        count = min(self.pages, int(np.isfinite(best).sum()))
        pages = _highest(best, count)
        mine = np.flatnonzero(np.isin(chunk, pages))
        mine = mine[np.lexsort((fact[mine], -score[mine]))]
        _, first = np.unique(fact[mine], return_index=True)
        mine = mine[np.sort(first)][: self.facts]
        rank = {page: at for at, page in enumerate(pages.tolist())}
        mine = mine[np.argsort([rank[at] for at in chunk[mine].tolist()], kind="stable")]
        chosen: Ints = fact[mine]
        return chosen


def _highest(scores: Floats, count: int) -> Ints:
    if not count:
        return np.zeros(0, np.int64)
    edge = np.partition(scores, len(scores) - count)[len(scores) - count]
    high = np.flatnonzero(scores >= edge)
    return high[np.lexsort((high, -scores[high]))][:count].astype(np.int64)


def pages_about(view: View, query: str) -> dict[int, float]:
    """The chunks that are about what a query names, and how surely."""
    t, links = tokens(query), LinkNames()
    found: dict[int, float] = {}
    for link in link_names(view, query, t):
        for hit in links.about(view, t, link):
            found[hit.at] = max(hit.score, found.get(hit.at, 0.0))
    return found
