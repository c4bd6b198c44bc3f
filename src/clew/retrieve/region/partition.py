"""Community partitions as subgraphs, and community reports beside paths."""

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from clew.context import Context
from clew.retrieve.grown.grove import get_entity_communities, get_forest, require_tree
from clew.retrieve.paths.answers import ANSWER_MARK
from clew.retrieve.region.subgraph import PprSubgraph, SubgraphEntities, induced_facts
from clew.types import Found, Hit


@dataclass(frozen=True)
class PartitionSubgraph:
    """Takes the communities of the linked entities, and runs PageRank within these only.

    Of nested communities the largest with at most `max_size` members is taken. `clew tree --grow
    --by leiden` partitions the graph, once.
    """

    tree: str = "leiden"
    max_size: int = 20_000
    within: PprSubgraph = field(default_factory=PprSubgraph)

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`."""
        forest, community_of = require_tree(ctx, self.tree), get_entity_communities(ctx, self.tree)
        sizes = forest.sizes()
        members = [np.array([hit.at for hit in found.entities], np.int64)]
        for hit in found.entities:
            at = int(community_of[hit.at])
            while at >= 0 and forest.parent[at] >= 0 and sizes[forest.parent[at]] <= self.max_size:
                at = int(forest.parent[at])
            if at >= 0:
                members.append(forest.members(at)[0])
        inside = np.unique(np.concatenate(members))
        # The PageRank approximation is local: its nearest entities are cut to the community.
        near = replace(self.within, max_ent=2 * self.within.max_ent).nearest_entities(
            ctx.view, found
        )
        kept = np.flatnonzero(np.isin(near.entities, inside))[: self.within.max_ent]
        cut = SubgraphEntities(near.entities[kept], near.scores[kept])
        return replace(found, facts=induced_facts(ctx.view, cut, "partition"))


@dataclass(frozen=True)
class ReportsOf:
    """Adds the reports on the communities of the question's entities."""

    tree: str = "leiden"
    reports: int = 1

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `communities`; none where no tree was built: paths stand without reports."""
        if self.tree not in get_forest(ctx).tree_names():
            return found
        community_of = get_entity_communities(ctx, self.tree)
        starts = [hit.at for hit in found.entities if hit.by != ANSWER_MARK]
        met = Counter(int(community_of[at]) for at in starts if community_of[at] >= 0)
        ranked = sorted(met, key=lambda at: (-met[at], at))[: self.reports]
        return replace(found, communities=tuple(Hit(at, float(met[at]), "report") for at in ranked))
