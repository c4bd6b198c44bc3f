"""Structure-based extraction (SBE): the part of the graph around the question's entities.

Each step sets `found.facts` to the facts of the subgraph; what comes after walks only on these.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.graph.diffuse import nearest, pagerank
from clew.graph.diffuse_push import Places, places
from clew.graph.terrain import Terrain, terrain
from clew.graph.traverse import Ints, onwards
from clew.retrieve.paths.ways import ways_of
from clew.retrieve.region.neighbours import neighbour_graph
from clew.text import hash64
from clew.types import Found, Hit
from clew.view import View

_HUB = 20_000  # facts; edges between two entities with more are not looked for


@dataclass(frozen=True, slots=True)
class Near:
    """Entities of a subgraph, nearest first, and how near."""

    entities: Ints
    scores: NDArray[np.float64]


@dataclass(frozen=True)
class PprSubgraph:
    """Keeps the `max_ent` entities nearest by personalised PageRank, and the facts among them."""

    max_ent: int = 1000
    damping: float = 0.8
    exact: bool = False
    """Power iteration over the whole graph, in place of the approximation with a bound."""
    budget: int = 40_000
    """Edges the approximation looks along; for a thousand entities a tenth more finds no more."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`."""
        near = self.near(ctx.view, found)
        return replace(found, facts=facts_among(ctx.view, near, "ppr"))

    def near(self, view: View, found: Found) -> Near:
        """The entities, nearest first."""
        seeds = seeds_of(found)
        if not seeds:
            return Near(np.zeros(0, np.int64), np.zeros(0))
        ground, where = ground_of(view)
        if not self.exact:
            got = nearest(
                ground, where, seeds, self.max_ent, damping=self.damping, budget=self.budget
            )
            return Near(got.nodes, got.scores)
        scores = pagerank(ground, [seeds], damping=self.damping)[0]
        order = np.lexsort((np.arange(len(scores)), -scores))[: self.max_ent]
        order = order[scores[order] > 0]
        return Near(order, scores[order])


@dataclass(frozen=True)
class EgoSubgraph:
    """Keeps what is within `hops` steps, nearest hops first, at most `max_ent` entities."""

    hops: int = 2
    max_ent: int = 1000

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`."""
        ways = ways_of(ctx.view)
        ring = met = np.unique(np.array(sorted(seeds_of(found)), np.int64))
        rings = [ring]
        for _ in range(self.hops):
            ring = np.setdiff1d(onwards(ways, ring).target, met)
            ring = ring[: max(0, self.max_ent - len(met))]
            met = np.union1d(met, ring)
            rings.append(ring)
        far = np.repeat(np.arange(len(rings)), [len(ring) for ring in rings])
        near = Near(np.concatenate(rings), 1 / (1.0 + far))
        return replace(found, facts=facts_among(ctx.view, near, "ego"))


@dataclass(frozen=True)
class WalkedSubgraph:
    """Keeps the entities that random walks meet most; the same question walks the same way."""

    max_ent: int = 1000
    walks: int = 1000
    length: int = 4

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`."""
        links = neighbour_graph(ctx.view)
        seeds = np.array(sorted(seeds_of(found)), np.int64)
        chance = np.random.default_rng(hash64(ctx.question))
        at = np.repeat(seeds, -(-self.walks // max(1, len(seeds))))
        visits = [at]
        for _ in range(self.length):
            degree = links.degrees_of(at)
            at, degree = at[degree > 0], degree[degree > 0]
            at = links.columns[links.starts[at] + chance.integers(0, degree)].astype(np.int64)
            visits.append(at)
        met, times = np.unique(np.concatenate(visits), return_counts=True)
        order = np.lexsort((met, -times))[: self.max_ent]
        near = Near(met[order], times[order] / max(1, self.walks))
        return replace(found, facts=facts_among(ctx.view, near, "random walk"))


def seeds_of(found: Found) -> dict[int, float]:
    """The linked entities as starting weights."""
    return {hit.at: hit.score for hit in found.entities if hit.score > 0}


def ground_of(view: View) -> tuple[Terrain, Places]:
    """The entity graph ready for walks, made once per generation."""
    if "lego ground" not in view.memo:
        ground = terrain(neighbour_graph(view))
        view.memo["lego ground"] = ground, places(len(ground))
    made: tuple[Terrain, Places] = view.memo["lego ground"]
    return made


def facts_among(view: View, near: Near, by: str) -> tuple[Hit, ...]:
    """The facts that join entities of a subgraph, those of the nearest entities first."""
    if not len(near.entities):
        return ()
    links = view.links("entity_fact")
    small = np.flatnonzero(links.degrees_of(near.entities) <= _HUB)
    at, edge = links.edges_of(near.entities[small])
    said, rank = links.columns[edge].astype(np.int64), small[at]
    # Sorted by fact, then rank: a fact met twice joins two of them, the last being the farther.
    said, rank = np.divmod(np.sort(said * len(near.entities) + rank), len(near.entities))
    last = np.flatnonzero(np.diff(said, append=-1))
    twice = np.diff(last, prepend=-1) > 1
    if len(small) < len(near.entities):
        twice |= _with_hub(view, said[last], np.delete(near.entities, small))
    fact, rank = said[last][twice], rank[last][twice]
    best = np.lexsort((fact, rank))
    pairs = zip(fact[best].tolist(), near.scores[rank[best]].tolist(), strict=True)
    return tuple(Hit(one, value, by) for one, value in pairs)


def _with_hub(view: View, facts: Ints, hubs: Ints) -> NDArray[np.bool_]:
    """Which facts have a hub of the subgraph among their members."""
    members = view.links("fact_entity")
    at, edge = members.edges_of(facts)
    found = np.zeros(len(facts), np.bool_)
    found[at[np.isin(members.columns[edge], hubs)]] = True
    return found


def subgraph_facts(found: Found) -> Ints | None:
    """The facts of the subgraph found so far, ascending; None when none was cut out."""
    if not found.facts:
        return None
    return np.sort(np.array([hit.at for hit in found.facts], np.int64))
