"""Extraction within a partition of the graph that was made in advance (LEGO-GraphRAG, B.7)."""

from dataclasses import dataclass, field, replace

import numpy as np

from clew.context import Context
from clew.graph.community_tree import CommunityForest
from clew.graph.csr import Ints, build_csr, isin_sorted
from clew.graph.pagerank import LocalGraph, prepare_graph
from clew.index.view import View
from clew.retrieve.graph_cache import get_entity_communities, neighbour_graph, require_tree
from clew.retrieve.subgraph.extract import (
    PprSubgraph,
    SubgraphEntities,
    induced_facts,
    seed_weights,
)
from clew.types import Found

_MAX_CACHED = 16  # partitions whose graphs are kept per generation


@dataclass(frozen=True, slots=True)
class _PartGraph:
    """The edges among some entities: node `i` is entity `entities[i]`."""

    entities: Ints
    graph: LocalGraph


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
        seeds = seed_weights(found)
        sizes = forest.sizes()
        chosen = {self._widest_community(forest, sizes, int(community_of[at])) for at in seeds}
        part = _get_part_graph(ctx.view, forest, self.tree, tuple(sorted(chosen)), sorted(seeds))
        nodes = np.searchsorted(part.entities, np.array(list(seeds), np.int64)).tolist()
        inside = dict(zip(nodes, seeds.values(), strict=True))
        near = self.within.rank_nodes(part.graph, inside)
        cut = SubgraphEntities(part.entities[near.entities], near.scores)
        return replace(found, facts=induced_facts(ctx.view, cut, "partition"))

    def _widest_community(self, forest: CommunityForest, sizes: Ints, at: int) -> int:
        while at >= 0 and forest.parent[at] >= 0 and sizes[forest.parent[at]] <= self.max_size:
            at = int(forest.parent[at])
        return at


def _get_part_graph(
    view: View, forest: CommunityForest, tree: str, communities: tuple[int, ...], seeds: list[int]
) -> _PartGraph:
    """Return the graph of some communities, cached; entities in no community are added."""
    cache: dict[tuple[str, tuple[int, ...], tuple[int, ...]], _PartGraph]
    cache = view.memo.setdefault("partitions", {})
    outside = tuple(seeds) if -1 in communities else ()
    key = tree, communities, outside
    if key not in cache:
        if len(cache) >= _MAX_CACHED:
            cache.pop(next(iter(cache)))
        members = [forest.members(at)[0] for at in communities if at >= 0]
        members.append(np.array(seeds, np.int64))
        cache[key] = _build_part_graph(view, np.unique(np.concatenate(members)).astype(np.int64))
    return cache[key]


def _build_part_graph(view: View, entities: Ints) -> _PartGraph:
    links = neighbour_graph(view)
    row, edge = links.edges_of(entities)
    column = links.columns[edge].astype(np.int64)
    inside = isin_sorted(column, entities)
    row, edge, column = row[inside], edge[inside], np.searchsorted(entities, column[inside])
    part = build_csr(len(entities), row, column, links.weights[edge])
    return _PartGraph(entities, prepare_graph(part))
