"""Load the communities of the knowledge trees for export."""

from collections.abc import Iterator

import numpy as np

from clew.export.graph import Community
from clew.graph.forest import forest_from_arrays, format_marks
from clew.store.protocol import KeyValueStore, Snapshot
from clew.tree.outline import COMMUNITY, Branch, OutlineOptions, read_outline
from clew.view import View


async def load_communities(now: Snapshot, memory: KeyValueStore) -> list[Community]:
    """Return every community of every tree, parents before children."""
    forest = forest_from_arrays(now.arrays)
    marks = format_marks(forest, np.arange(len(forest)))
    at_of = {(int(tree), mark): at for at, (tree, mark) in enumerate(zip(forest.tree, marks))}  # noqa: B905
    keys = View(now.arrays, {}).keys("entity")
    entities = await now.entities([int(keys[at]) for at in np.unique(forest.entities.columns)])
    found = []
    for tree in forest.tree_names():
        number = int(forest.tree[forest.communities(tree)[0]])
        tree_outline = await read_outline(now, memory, tree, OutlineOptions(None, COMMUNITY, 0))
        for branch, parent in _flatten(tree_outline.branches, ""):
            positions = forest.entities.row(at_of[number, branch.id])
            names = tuple(entities[int(keys[at])].name for at in positions)
            texts = branch.name, branch.summary
            at = tuple(map(int, positions))
            found.append(Community(branch.id, tree, branch.level, parent, *texts, names, at))
    return found


def _flatten(branches: tuple[Branch, ...], parent: str) -> Iterator[tuple[Branch, str]]:
    for branch in branches:
        yield branch, parent
        yield from _flatten(branch.below, branch.id)
