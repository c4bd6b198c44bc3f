"""The neighbourhood of found entities: relations, reports, passages (MS GraphRAG, local)."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.retrieve.grown.grove import fits, homes, quarry
from clew.retrieve.region.expand import facts_of, positions
from clew.types import Found, Hit

_COUNTS = 1e-3  # among one entity's passages, those that say more of its relations come first


@dataclass(frozen=True)
class Around:
    """Found entities → their relations, the reports on their communities, their passages."""

    tree: str = "leiden"
    relations: int = 10
    """For each entity found."""
    reports: int = 5
    top_k: int = 100

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`, `communities` and `chunks`, best first."""
        facts = await self._relations(ctx, found)
        return replace(
            found,
            facts=facts,
            communities=self._reports(ctx, found),
            chunks=self._passages(ctx, found, {hit.at for hit in facts}),
        )

    async def _relations(self, ctx: Context, found: Found) -> tuple[Hit, ...]:
        """Those between two found entities first, then those whose ends are met most often."""
        view = ctx.view
        chosen = positions(found.entities)
        said = facts_of(view, chosen)
        members = view.links("fact_entity")
        which, edge = members.edges_of(said)
        inside = np.isin(members.columns[edge], chosen)
        joined = np.bincount(which, weights=inside, minlength=len(said))
        near = await fits(ctx, said)
        order = np.lexsort((said, -near, joined <= 1))[: self.relations * len(chosen)]
        return tuple(Hit(int(said[at]), float(near[at]), "relation") for at in order)

    def _reports(self, ctx: Context, found: Found) -> tuple[Hit, ...]:
        """The communities that most of the entities are in, larger ones at equal count."""
        home = homes(ctx, self.tree)
        sizes = quarry(ctx).sizes
        met = Counter(int(home[hit.at]) for hit in found.entities if home[hit.at] >= 0)
        ranked = sorted(met, key=lambda at: (-met[at], -int(sizes[at]), at))[: self.reports]
        return tuple(Hit(at, float(met[at]), "report") for at in ranked)

    def _passages(self, ctx: Context, found: Found, facts: set[int]) -> tuple[Hit, ...]:
        """Entity by entity; of one entity's passages those that say most of the relations."""
        links, said = ctx.view.links("entity_chunk"), ctx.view.links("chunk_fact")
        score: dict[int, float] = {}
        for rank, hit in enumerate(found.entities, start=1):
            for chunk in links.row(hit.at).tolist():
                if chunk not in score:
                    tells = sum(fact in facts for fact in said.row(chunk).tolist())
                    score[chunk] = 1 / rank + _COUNTS * tells
        ranked = sorted(score, key=lambda at: (-score[at], at))[: self.top_k]
        return tuple(Hit(at, score[at], "entity") for at in ranked)
