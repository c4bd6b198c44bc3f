"""Extracts the subgraph around the question's entities (LEGO-GraphRAG's SBE, G-Retriever).

Each step sets `found.facts` to the facts of the subgraph; later steps use only these.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np

from clew.adapters import get_tuning
from clew.context import Context
from clew.graph.csr import Csr, Doubles, Floats, Ints, Mask, sorted_unique
from clew.graph.pagerank import RankedGraph
from clew.graph.steiner import prize_collecting_tree
from clew.graph.traverse import expand_entities
from clew.index.view import View
from clew.retrieve.facts import score_facts
from clew.retrieve.graph_cache import (
    build_traversal,
    neighbour_graph,
)
from clew.retrieve.labels import embed_cached, has_vectors
from clew.text.unicode import hash64
from clew.types import Found, Hit

_HUB_DEGREE = 20_000  # facts; edges between two entities with more are not searched
Stakes = Literal["usual", "critical", "light"]
_USUAL_HOPS = 2  # of a question, where no classifier was fitted
_MIN_SHARE, _DEFAULT_SHARE, _MAX_SHARE = 0.5, 0.6, 0.75  # B.5: 50-60 % is low, 60-75 % high
_DENSE_DEGREE = 64.0  # mean degree of the linked entities from which a region is dense
_SPARSE_DEGREE = 8.0
_MIN_ENTITIES = 32  # entities


@dataclass(frozen=True, slots=True)
class SubgraphEntities:
    """Entities of a subgraph, nearest first, with scores."""

    entities: Ints
    scores: Doubles


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
        graph = view.ranked_graph("lego ground", partial(neighbour_graph, view))
        return self.rank_nodes(graph, seed_weights(found))

    def rank_nodes(self, graph: RankedGraph, seeds: dict[int, float]) -> SubgraphEntities:
        """Return the nodes of any graph by PageRank from the seeds, nearest first."""
        if not seeds or self.max_ent < 1:
            return SubgraphEntities(np.zeros(0, np.int64), np.zeros(0))
        budget = None if self.exact else self.budget
        ranked = graph.rank(seeds, self.max_ent, damping=self.damping, budget=budget)
        return SubgraphEntities(ranked.nodes, ranked.scores)


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


@dataclass(frozen=True)
class AdaptiveSubgraph:
    """Grows a PageRank subgraph until it holds the target share of the PageRank mass.

    Questions of several hops, as a classifier that `clew tune` fitted tells, and sparse regions
    raise the target, dense regions lower it; `target` sets it outright. The share of mass stands
    for recall, see docs/lego.md.
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
        hops = await predict_hops(ctx, found.rest)
        share = _DEFAULT_SHARE + {1: -0.05, 2: 0.03}.get(hops, 0.08)
        share += {"usual": 0.0, "critical": 0.06, "light": -0.05}[self.stakes]
        density = _mean_degree(ctx.view, found)
        share += 0.04 * (density < _SPARSE_DEGREE) - 0.04 * (density > _DENSE_DEGREE)
        return float(np.clip(share, _MIN_SHARE, _MAX_SHARE))


async def predict_hops(ctx: Context, rest: str) -> int:
    """Predict a question's hops from its text without names; `_USUAL_HOPS` without a classifier."""
    classifier = get_tuning(ctx.view).hops
    if classifier is None:
        return _USUAL_HOPS
    [vector] = await embed_cached(ctx, [rest or ctx.question])
    return classifier.predict(vector)


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


@dataclass(frozen=True)
class IndexSubgraph:
    """Takes the facts and entities nearest by vector, and their direct neighbourhood.

    No walk comes before it: the vector index is queried directly.
    """

    top_k: int = 64
    max_facts: int = 2000

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `facts`, those nearest by vector first."""
        view = ctx.view
        vector = await ctx.vector()
        links = view.links("entity_fact")
        if has_vectors(view, "fact"):
            facts, _ = ctx.nearest("fact", vector, self.top_k)
            members = view.links("fact_entity")
            near = sorted_unique(members.columns[members.edges_of(facts)[1]])
        elif has_vectors(view, "entity"):
            near, facts = ctx.nearest("entity", vector, self.top_k)[0], np.zeros(0, np.int64)
        else:
            return found
        near = np.unique(np.append(near, [hit.at for hit in found.entities])).astype(np.int64)
        degree = links.degrees_of(near)
        near = near[np.argsort(degree, kind="stable")]
        nearby = links.columns[links.edges_of(near)[1][: self.max_facts]].astype(np.int64)
        kept = list(dict.fromkeys([*facts.tolist(), *nearby.tolist()]))[: self.max_facts]
        score = view.cosines("fact", vector, np.array(kept, np.int64)).tolist()
        hits = (Hit(at, value, "index") for at, value in zip(kept, score, strict=True))
        return replace(found, facts=tuple(hits))


@dataclass(frozen=True)
class PrizedTree:
    """Joins the found entities and facts in one tree, leaving out what costs more than its prize.

    The best entity and the best fact have as many points as there are, the next ones one less;
    every fact on the way costs `cost`, half on each side.
    """

    cost: float = 0.5
    reach: int = 6

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Set `entities` and `facts` to those of the tree, best first."""
        view = ctx.view
        count = view.count("entity")
        prizes = {hit.at: float(len(found.entities) - n) for n, hit in enumerate(found.entities)}
        for rank, hit in enumerate(found.facts):
            prizes[count + hit.at] = float(len(found.facts) - rank)
        kept = prize_collecting_tree(incidence_graph(view), prizes, self.cost / 2, self.reach)
        vector = await ctx.vector()
        entities = np.array(sorted(at for at in kept if at < count), np.int64)
        facts = np.array(sorted(at - count for at in kept if at >= count), np.int64)
        return replace(
            found,
            entities=_rank_hits(entities, view.cosines("entity", vector, entities)),
            facts=_rank_hits(facts, await score_facts(ctx, vector, at=facts)),
        )


def seed_weights(found: Found) -> dict[int, float]:
    """Return the linked entities as reset weights."""
    return {hit.at: hit.score for hit in found.entities if hit.score > 0}


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


def _touches_hub(view: View, facts: Ints, hubs: Ints) -> Mask:
    """Tell which facts have a hub of the subgraph among their members."""
    members = view.links("fact_entity")
    at, edge = members.edges_of(facts)
    found = np.zeros(len(facts), np.bool_)
    found[at[np.isin(members.columns[edge], hubs)]] = True
    return found


def _rank_hits(positions: Ints, scores: Floats) -> tuple[Hit, ...]:
    order = np.lexsort((positions, -scores))
    return tuple(Hit(int(positions[at]), float(scores[at]), "tree") for at in order)


def incidence_graph(view: View) -> Csr:
    """Return entities and facts as nodes of one graph; facts come after the entities."""
    if "incidence" not in view.memo:
        there, back = view.links("entity_fact"), view.links("fact_entity")
        count = view.count("entity")
        starts = np.concatenate([there.starts, there.starts[-1] + back.starts[1:]])
        columns = np.concatenate([there.columns + count, back.columns]).astype(np.int32)
        view.memo["incidence"] = Csr(starts, columns, np.broadcast_to(np.float32(1), len(columns)))
    links: Csr = view.memo["incidence"]
    return links
