"""Paths from the question's entities towards entities of the types it asks for (MiniRAG)."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.retrieve.facts import score_facts
from clew.retrieve.lookup import query_texts
from clew.retrieve.naming.labels import type_names
from clew.retrieve.paths.flow import search_depth_first
from clew.retrieve.paths.ways import embed_cached
from clew.types import Found, Path
from clew.view import View

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TypedPaths:
    """Ranks paths by the entities of the asked types and the relevant facts on them.

    A path scores seed similarity × (1 + answers on it + for each fact the seeds and answers among
    its members).
    """

    hops: int = 2
    width: int = 8
    seeds: int = 5
    types: int = 2
    """How many types count as asked for."""
    top_k: int = 40

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `paths`, best first."""
        view = ctx.view
        fit = await score_facts(ctx, await ctx.vector())
        starts = found.entities[: self.seeds]
        candidates = [
            (hit.score, path)
            for hit in starts
            for path in search_depth_first(view, fit, hit.at, self.hops, self.width)
        ]
        wanted = await self._find_asked_types(ctx, found)
        seeds = {hit.at for hit in starts}
        reached = {at for _, path in candidates for at in path.entities[1:]} - seeds
        answers = {at for at in reached if int(view.types[at]) in wanted}
        scored = [
            replace(path, score=near * self._score_path(view, path, seeds, answers), by="typed")
            for near, path in candidates
        ]
        scored.sort(key=lambda path: (-path.score, -float(fit[list(path.facts)].mean())))
        return replace(found, paths=tuple(scored[: self.top_k]))

    async def _find_asked_types(self, ctx: Context, found: Found) -> set[int]:
        """Return the types whose names are nearest to what the question asks for."""
        names = await type_names(ctx)
        if not names:
            return set()
        [vector] = await ctx.vectors([", ".join(query_texts(ctx, found, "topics"))])
        near = (await embed_cached(ctx, names)) @ vector
        return set(np.argsort(-near, kind="stable")[: self.types].tolist())

    def _score_path(self, view: View, path: Path, seeds: set[int], answers: set[int]) -> float:
        members = view.links("fact_entity")
        near = sum(
            sum(member in seeds or member in answers for member in members.row(fact).tolist())
            for fact in path.facts
        )
        return 1.0 + sum(at in answers for at in path.entities) + near
