"""Structure-based extraction (SBE): the subgraph around the question's entities.

Each step sets `found.facts` to the facts of the subgraph; later steps use only these.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.graph.diffuse import approximate_pagerank, pagerank
from clew.graph.diffuse_push import NodeSlots, allocate_slots
from clew.graph.terrain import TransitionGraph, build_transition_graph
from clew.graph.traverse import Ints, expand_entities
from clew.retrieve.paths.ways import build_traversal
from clew.retrieve.region.neighbours import neighbour_graph
from clew.text import hash64
from clew.types import Found, Hit
from clew.view import View

_HUB_DEGREE = 20_000  # facts; edges between two entities with more are not searched


@dataclass(frozen=True, slots=True)
class SubgraphEntities:
    """Entities of a subgraph, nearest first, with scores."""

    entities: Ints
    scores: NDArray[np.float64]


@dataclass(frozen=True)
class PprSubgraph:
    """Keeps the `max_ent` entities nearest by personalised PageRank, and the facts among them."""

    max_ent: int = 1000
    damping: float = 0.8
    exact: bool = False
    """Power iteration over the whole graph instead of the bounded approximation."""
    budget: int = 40_000
    """Edges the approximation visits; for a thousand entities a tenth more finds no more."""

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`."""
        near = self.nearest_entities(ctx.view, found)
        return replace(found, facts=induced_facts(ctx.view, near, "ppr"))

    def nearest_entities(self, view: View, found: Found) -> SubgraphEntities:
        """Return the entities, nearest first."""
        seeds = seed_weights(found)
        if not seeds:
            return SubgraphEntities(np.zeros(0, np.int64), np.zeros(0))
        transitions, buffers = get_transition_graph(view)
        if not self.exact:
            pushed = approximate_pagerank(
                transitions, buffers, seeds, self.max_ent, damping=self.damping, budget=self.budget
            )
            return SubgraphEntities(pushed.nodes, pushed.scores)
        scores = pagerank(transitions, [seeds], damping=self.damping)[0]
        order = np.lexsort((np.arange(len(scores)), -scores))[: self.max_ent]
        order = order[scores[order] > 0]
        return SubgraphEntities(order, scores[order])


@dataclass(frozen=True)
class EgoSubgraph:
    """Keeps the `hops`-hop neighbourhood, nearest hops first, at most `max_ent` entities."""

    hops: int = 2
    max_ent: int = 1000

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`."""
        ways = build_traversal(ctx.view)
        ring = visited = np.unique(np.array(sorted(seed_weights(found)), np.int64))
        rings = [ring]
        for _ in range(self.hops):
            ring = np.setdiff1d(expand_entities(ways, ring).target, visited)
            ring = ring[: max(0, self.max_ent - len(visited))]
            visited = np.union1d(visited, ring)
            rings.append(ring)
        distance = np.repeat(np.arange(len(rings)), [len(ring) for ring in rings])
        near = SubgraphEntities(np.concatenate(rings), 1 / (1.0 + distance))
        return replace(found, facts=induced_facts(ctx.view, near, "ego"))


@dataclass(frozen=True)
class WalkedSubgraph:
    """Keeps the entities that random walks visit most; the question seeds the generator."""

    max_ent: int = 1000
    walks: int = 1000
    length: int = 4

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`."""
        links = neighbour_graph(ctx.view)
        seeds = np.array(sorted(seed_weights(found)), np.int64)
        rng = np.random.default_rng(hash64(ctx.question))
        at = np.repeat(seeds, -(-self.walks // max(1, len(seeds))))
        visits = [at]
        for _ in range(self.length):
            degree = links.degrees_of(at)
            at, degree = at[degree > 0], degree[degree > 0]
            at = links.columns[links.starts[at] + rng.integers(0, degree)].astype(np.int64)
            visits.append(at)
        visited, counts = np.unique(np.concatenate(visits), return_counts=True)
        order = np.lexsort((visited, -counts))[: self.max_ent]
        near = SubgraphEntities(visited[order], counts[order] / max(1, self.walks))
        return replace(found, facts=induced_facts(ctx.view, near, "random walk"))


def seed_weights(found: Found) -> dict[int, float]:
    """Return the linked entities as reset weights."""
    return {hit.at: hit.score for hit in found.entities if hit.score > 0}


def get_transition_graph(view: View) -> tuple[TransitionGraph, NodeSlots]:
    """Return the entity graph as a transition matrix, built once per generation."""
    if "lego ground" not in view.memo:
        transitions = build_transition_graph(neighbour_graph(view))
        view.memo["lego ground"] = transitions, allocate_slots(len(transitions))
    graph: tuple[TransitionGraph, NodeSlots] = view.memo["lego ground"]
    return graph


def induced_facts(view: View, near: SubgraphEntities, by: str) -> tuple[Hit, ...]:
    """Return the facts that join entities of a subgraph, those of the nearest entities first."""
    if not len(near.entities):
        return ()
    links = view.links("entity_fact")
    small = np.flatnonzero(links.degrees_of(near.entities) <= _HUB_DEGREE)
    at, edge = links.edges_of(near.entities[small])
    facts, rank = links.columns[edge].astype(np.int64), small[at]
    # Sorted by fact, then rank: a fact listed twice joins two entities, the last is the farther.
    facts, rank = np.divmod(np.sort(facts * len(near.entities) + rank), len(near.entities))
    last = np.flatnonzero(np.diff(facts, append=-1))
    twice = np.diff(last, prepend=-1) > 1
    if len(small) < len(near.entities):
        twice |= _touches_hub(view, facts[last], np.delete(near.entities, small))
    fact, rank = facts[last][twice], rank[last][twice]
    best = np.lexsort((fact, rank))
    pairs = zip(fact[best].tolist(), near.scores[rank[best]].tolist(), strict=True)
    return tuple(Hit(one, value, by) for one, value in pairs)


def _touches_hub(view: View, facts: Ints, hubs: Ints) -> NDArray[np.bool_]:
    """Tell which facts have a hub of the subgraph among their members."""
    members = view.links("fact_entity")
    at, edge = members.edges_of(facts)
    found = np.zeros(len(facts), np.bool_)
    found[at[np.isin(members.columns[edge], hubs)]] = True
    return found


def subgraph_facts(found: Found) -> Ints | None:
    """Return the facts of the subgraph, ascending; None when none was extracted."""
    if not found.facts:
        return None
    return np.sort(np.array([hit.at for hit in found.facts], np.int64))
