"""Access to the community trees of the current generation, and ranking over them."""

import numpy as np
from numpy.typing import NDArray

from clew.context import Context
from clew.graph.forest import Forest, forest_of
from clew.retrieve.paths.ways import has_vectors, kept_vectors, label_words
from clew.retrieve.rank import best
from clew.tree.material import Quarry
from clew.tree.outline import described, lacking
from clew.tree.told import Told
from clew.types import Hit

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


def forest(ctx: Context) -> Forest:
    """Return all trees of this generation."""
    memo = ctx.view.memo
    if "forest" not in memo:
        memo["forest"] = forest_of(ctx.view.arrays)
    found: Forest = memo["forest"]
    return found


def grown(ctx: Context, tree: str) -> Forest:
    """Return the trees; raise an error where this one has not been built."""
    found = forest(ctx)
    # An empty knowledge base has no tree, and nothing to find.
    if tree not in found.names() and ctx.view.count("chunk"):
        raise lacking(tree)
    return found


def homes(ctx: Context, tree: str) -> Ints:
    """Return the lowest community of each entity in a tree."""
    memo, name = ctx.view.memo, f"homes of {tree}"
    if name not in memo:
        memo[name] = grown(ctx, tree).homes(tree, ctx.view.count("entity"))
    found: Ints = memo[name]
    return found


def quarry(ctx: Context) -> Quarry:
    """Return the source of community summaries."""
    return Quarry(ctx.view, ctx.snapshot, forest(ctx))


async def told(ctx: Context, communities: Ints) -> dict[int, Told]:
    """Load the summaries of communities."""
    assert ctx.memory is not None, "a context over trees has the knowledge base's memory"
    return await described(quarry(ctx), ctx.memory, communities)


async def nearest(ctx: Context, communities: Ints, most: int, by: str) -> tuple[Hit, ...]:
    """Return the communities whose summaries are nearest to the question, best first."""
    near = ctx.view.similar("community", await ctx.vector(), communities)
    return tuple(
        Hit(int(communities[at]), float(near[at]), by) for at in best(near, communities, most)
    )


async def fits(ctx: Context, facts: Ints) -> Floats:
    """Cosine of facts with the question; where facts have no vectors, by names and relation."""
    view, question = ctx.view, await ctx.vector()
    if has_vectors(view, "fact") or not len(facts):
        return ctx.similar("fact", question, facts)
    members = view.links("fact_entity")
    which, edge = members.edges_of(facts)
    names = view.similar("entity", question, members.columns[edge])
    near = np.full(len(facts), -1, np.float32)
    np.maximum.at(near, which, names)
    labels = (await kept_vectors(ctx, await label_words(ctx))) @ question
    if not len(labels):
        return near
    relation = view.relations[facts]
    mean = (near + np.where(relation >= 0, labels[relation], 0)) / 2
    return mean.astype(np.float32)
