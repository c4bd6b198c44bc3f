"""Subgraph extraction with a size that adapts to the question.

LEGO-GraphRAG's report (B.5) gives ranges for the least recall a subgraph should have: by how
complex the question is, how dense the graph is around it, and what is at stake.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from clew.context import Context
from clew.retrieve.paths.hops import predict_hops
from clew.retrieve.paths.trail_search import prepare_search
from clew.retrieve.region.subgraph import PprSubgraph, SubgraphEntities, induced_facts, seed_weights
from clew.types import Found
from clew.view import View

Stakes = Literal["usual", "critical", "light"]

_MIN_SHARE, _DEFAULT_SHARE, _MAX_SHARE = 0.5, 0.6, 0.75  # B.5: 50-60 % is low, 60-75 % high
_DENSE_DEGREE = 64.0  # mean degree of the linked entities from which a region is dense
_SPARSE_DEGREE = 8.0
_MIN_ENTITIES = 32  # entities


@dataclass(frozen=True)
class AdaptiveSubgraph:
    """Grows a PageRank subgraph until it holds the target share of the PageRank mass.

    Questions of several hops and sparse regions raise the target, dense regions lower it; `target`
    sets it outright. The share of mass stands for recall, see docs/lego.md.
    """

    target: float | None = None
    stakes: Stakes = "usual"
    within: PprSubgraph = field(default_factory=PprSubgraph)

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`."""
        near = self.within.nearest_entities(ctx.view, found)
        least = await self.target_share(ctx, found)
        return replace(
            found, facts=induced_facts(ctx.view, _cut_to_share(near, found, least), "adaptive")
        )

    async def target_share(self, ctx: Context, found: Found) -> float:
        """Return the share of mass to keep, from 0.5 to 0.75 unless `target` is set."""
        if self.target is not None:
            return self.target
        search = prepare_search(ctx, replace(found, facts=()))
        hops = await predict_hops(ctx, search.ways, search.shape)
        share = _DEFAULT_SHARE + {1: -0.05, 2: 0.03}.get(hops, 0.08)
        share += {"usual": 0.0, "critical": 0.06, "light": -0.05}[self.stakes]
        density = _mean_degree(ctx.view, found)
        share += 0.04 * (density < _SPARSE_DEGREE) - 0.04 * (density > _DENSE_DEGREE)
        return float(np.clip(share, _MIN_SHARE, _MAX_SHARE))


def _mean_degree(view: View, found: Found) -> float:
    starts = np.array(sorted(seed_weights(found)), np.int64)
    return float(view.links("entity_fact").degrees_of(starts).mean()) if len(starts) else 0.0


def _cut_to_share(near: SubgraphEntities, found: Found, share: float) -> SubgraphEntities:
    """Keep the nearest entities that hold this share of the mass outside the seeds."""
    outside = ~np.isin(near.entities, np.array(list(seed_weights(found)), np.int64))
    mass = np.cumsum(near.scores * outside)
    if not len(mass) or mass[-1] <= 0:
        return near
    count = max(_MIN_ENTITIES, int(np.searchsorted(mass, share * mass[-1])) + 1)
    return SubgraphEntities(near.entities[:count], near.scores[:count])
