"""The entity graph and the community trees of a generation, built once and cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.graph.community_tree import CommunityForest, forest_from_arrays
from clew.graph.csr import Csr, Ints
from clew.graph.entity_graph import EntityGraph, build_entity_graph
from clew.graph.traverse import FactGraph
from clew.retrieve.labels import has_vectors
from clew.retrieve.rank import top_positions
from clew.tree.outline import missing_tree_error, read_summaries
from clew.tree.summaries import CommunitySummary
from clew.tree.summary_source import SummarySource
from clew.types import Hit

if TYPE_CHECKING:
    from clew.index.view import View

# With more relations than this, few facts of each, and embedded sentences, the relations are as
# good as free text, and steps are scored by their sentences.
MAX_RELATION_LABELS = 512
_MIN_FACTS_PER_LABEL = 4


def entity_graph(view: View) -> EntityGraph:
    """Return entities joined by facts, with parallel edges."""
    if "joined" not in view.memo:
        members = view.links("fact_entity")
        view.memo["joined"] = build_entity_graph(members, view.count("entity"))
    graph: EntityGraph = view.memo["joined"]
    return graph


def neighbour_graph(view: View) -> Csr:
    """Return the entity graph with parallel edges merged and counted as weight."""
    if "merged" not in view.memo:
        view.memo["merged"] = entity_graph(view).links.sum_duplicates()
    links: Csr = view.memo["merged"]
    return links


def facts_between(view: View, one: int, other: int) -> NDArray[np.int32]:
    """Return the facts that join two entities."""
    graph = entity_graph(view)
    begin, end = int(graph.links.starts[one]), int(graph.links.starts[one + 1])
    first = begin + int(np.searchsorted(graph.links.columns[begin:end], other, "left"))
    last = begin + int(np.searchsorted(graph.links.columns[begin:end], other, "right"))
    return graph.facts[first:last]


def build_traversal(view: View, within: Ints | None = None) -> FactGraph:
    """Return the whole graph, or the part with the facts `within` (ascending), as steps."""
    names = len(view.arrays.get("relation_fact", ()))
    labels = view.relations
    few = len(labels) < _MIN_FACTS_PER_LABEL * names
    if names > MAX_RELATION_LABELS and few and has_vectors(view, "fact"):
        labels = np.full(len(labels), -1, np.int32)
    facts, members = view.links("entity_fact"), view.links("fact_entity")
    return FactGraph(facts, members, labels, names, within)


def get_forest(ctx: Context) -> CommunityForest:
    """Return all trees of this generation."""
    memo = ctx.view.memo
    if "forest" not in memo:
        memo["forest"] = forest_from_arrays(ctx.view.arrays)
    found: CommunityForest = memo["forest"]
    return found


def require_tree(ctx: Context, tree: str) -> CommunityForest:
    """Return the trees; raise an error where this one has not been built."""
    found = get_forest(ctx)
    # An empty knowledge base has no tree, and nothing to find.
    if tree not in found.tree_names() and ctx.view.count("chunk"):
        raise missing_tree_error(tree)
    return found


def get_entity_communities(ctx: Context, tree: str) -> Ints:
    """Return the lowest community of each entity in a tree."""
    memo, name = ctx.view.memo, f"homes of {tree}"
    if name not in memo:
        memo[name] = require_tree(ctx, tree).leaf_communities(tree, ctx.view.count("entity"))
    found: Ints = memo[name]
    return found


def summary_source(ctx: Context) -> SummarySource:
    """Return the source of community summaries."""
    return SummarySource(ctx.view, ctx.snapshot, get_forest(ctx))


async def load_summaries(ctx: Context, communities: Ints) -> dict[int, CommunitySummary]:
    """Load the summaries of communities."""
    assert ctx.key_values is not None, "a context over trees has the knowledge base's memory"
    return await read_summaries(summary_source(ctx), ctx.key_values, communities)


async def rank_communities(ctx: Context, communities: Ints, most: int, by: str) -> tuple[Hit, ...]:
    """Return the communities whose summaries are nearest to the question, best first."""
    near = ctx.view.cosines("community", await ctx.vector(), communities)
    return tuple(
        Hit(int(communities[at]), float(near[at]), by)
        for at in top_positions(near, communities, most)
    )
