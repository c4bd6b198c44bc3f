"""Access to the community trees of the current generation, and ranking over them."""

from clew.context import Context
from clew.graph.community_tree import CommunityForest, forest_from_arrays
from clew.graph.csr import Ints
from clew.retrieve.rank import top_positions
from clew.tree.outline import missing_tree_error, read_summaries
from clew.tree.summaries import CommunitySummary
from clew.tree.summary_source import SummarySource
from clew.types import Hit


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
