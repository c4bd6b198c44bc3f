"""Facts of the pages about what a query names: a retriever for agents' short queries."""

from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.retrieve.own_pages import OwnPages
from clew.types import Found, Hit


@dataclass(frozen=True)
class OwnFacts:
    """Takes facts of the pages found so far and of those nearest in meaning, page by page."""

    take: OwnPages = OwnPages()

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts` and the `chunks` that state them, best page first."""
        view, vector = ctx.view, await ctx.vector()
        near = view.cosines("fact", vector), view.cosines("chunk", vector)
        about: dict[int, float] = {}
        for hit in found.chunks:
            about[hit.at] = max(hit.score, about.get(hit.at, 0.0))
        if not view.count("fact"):
            ranked = np.argsort(-near[1], kind="stable")[: self.take.pages].tolist()
            pages = list(dict.fromkeys([*about, *ranked]))[: self.take.pages]
            return replace(found, chunks=tuple(Hit(at, float(near[1][at]), "page") for at in pages))
        facts = self.take(view, near, about)
        fact_chunks = view.links("fact_chunk")
        pages = list(dict.fromkeys(int(fact_chunks.row(at)[0]) for at in facts.tolist()))
        return replace(
            found,
            facts=tuple(Hit(at, float(near[0][at]), "of its page") for at in facts.tolist()),
            chunks=tuple(Hit(at, float(near[1][at]), "page") for at in pages),
        )
