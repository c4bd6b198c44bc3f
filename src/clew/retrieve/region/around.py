"""MS GraphRAG's local search: relations, reports and passages of found entities."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from clew.context import Context
from clew.retrieve.grown.grove import (
    get_entity_communities,
    score_facts_for_question,
    summary_source,
)
from clew.retrieve.region.expand import entity_facts, hit_positions
from clew.types import Found, Hit

_RELATION_WEIGHT = 1e-3  # among one entity's passages, those with more of its relations come first


@dataclass(frozen=True)
class Around:
    """Takes the found entities' relations, community reports and passages."""

    tree: str = "leiden"
    relations: int = 10
    """For each entity found."""
    reports: int = 5
    top_k: int = 100

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`, `communities` and `chunks`, best first."""
        facts = await self._rank_relations(ctx, found)
        return replace(
            found,
            facts=facts,
            communities=self._rank_reports(ctx, found),
            chunks=self._rank_passages(ctx, found, {hit.at for hit in facts}),
        )

    async def _rank_relations(self, ctx: Context, found: Found) -> tuple[Hit, ...]:
        """Rank relations: those between two found entities first, then by cosine."""
        view = ctx.view
        chosen = hit_positions(found.entities)
        facts = entity_facts(view, chosen)
        members = view.links("fact_entity")
        which, edge = members.edges_of(facts)
        inside = np.isin(members.columns[edge], chosen)
        found_members = np.bincount(which, weights=inside, minlength=len(facts))
        near = await score_facts_for_question(ctx, facts)
        order = np.lexsort((facts, -near, found_members <= 1))[: self.relations * len(chosen)]
        return tuple(Hit(int(facts[at]), float(near[at]), "relation") for at in order)

    def _rank_reports(self, ctx: Context, found: Found) -> tuple[Hit, ...]:
        """Rank communities by the number of found entities in them, then by size."""
        group_of = get_entity_communities(ctx, self.tree)
        sizes = summary_source(ctx).sizes
        counts = Counter(int(group_of[hit.at]) for hit in found.entities if group_of[hit.at] >= 0)
        ranked = sorted(counts, key=lambda at: (-counts[at], -int(sizes[at]), at))[: self.reports]
        return tuple(Hit(at, float(counts[at]), "report") for at in ranked)

    def _rank_passages(self, ctx: Context, found: Found, facts: set[int]) -> tuple[Hit, ...]:
        """Rank passages entity by entity; within one by the number of relations they state."""
        links, chunk_facts = ctx.view.links("entity_chunk"), ctx.view.links("chunk_fact")
        score: dict[int, float] = {}
        for rank, hit in enumerate(found.entities, start=1):
            for chunk in links.row(hit.at).tolist():
                if chunk not in score:
                    stated = sum(fact in facts for fact in chunk_facts.row(chunk).tolist())
                    score[chunk] = 1 / rank + _RELATION_WEIGHT * stated
        ranked = sorted(score, key=lambda at: (-score[at], at))[: self.top_k]
        return tuple(Hit(at, score[at], "entity") for at in ranked)
