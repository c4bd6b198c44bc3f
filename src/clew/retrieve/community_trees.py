"""Access to the community trees of the current generation, and ranking over them."""

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.graph.community_tree import CommunityForest, forest_from_arrays
from clew.retrieve.labels import embed_cached, has_vectors, load_relation_texts
from clew.retrieve.rank import top_positions
from clew.tree.outline import missing_tree_error, read_summaries
from clew.tree.summaries import CommunitySummary
from clew.tree.summary_source import SummarySource
from clew.types import Hit

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


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


async def score_facts_for_question(ctx: Context, facts: Ints) -> Floats:
    """Cosine of facts with the question; where facts have no vectors, by names and relation."""
    view, question = ctx.view, await ctx.vector()
    if has_vectors(view, "fact") or not len(facts):
        return ctx.cosines("fact", question, facts)
    members = view.links("fact_entity")
    which, edge = members.edges_of(facts)
    names = view.cosines("entity", question, members.columns[edge])
    near = np.full(len(facts), -1, np.float32)
    np.maximum.at(near, which, names)
    labels = (await embed_cached(ctx, await load_relation_texts(ctx))) @ question
    if not len(labels):
        return near
    relation = view.relations[facts]
    mean = (near + np.where(relation >= 0, labels[relation], 0)) / 2
    return mean.astype(np.float32)
