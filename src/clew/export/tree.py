"""Load the communities of the knowledge trees for export."""

from collections.abc import Iterator

import numpy as np

from clew.export.graph import Community
from clew.graph.forest import forest_of, mark_names
from clew.store.protocol import Memory, Snapshot
from clew.tree.outline import COMMUNITY, Branch, Opening, outline
from clew.view import View


async def communities(now: Snapshot, memory: Memory) -> list[Community]:
    """Return every community of every tree, parents before children."""
    forest = forest_of(now.arrays)
    marks = mark_names(forest, np.arange(len(forest)))
    at_of = {(int(tree), mark): at for at, (tree, mark) in enumerate(zip(forest.tree, marks))}  # noqa: B905
    keys = View(now.arrays, {}).keys("entity")
    entities = await now.entities([int(keys[at]) for at in np.unique(forest.entities.columns)])
    found = []
    for tree in forest.names():
        number = int(forest.tree[forest.of(tree)[0]])
        tree_outline = await outline(now, memory, tree, Opening(None, COMMUNITY, 0))
        for branch, parent in _flat(tree_outline.branches, ""):
            positions = forest.entities.row(at_of[number, branch.id])
            names = tuple(entities[int(keys[at])].name for at in positions)
            texts = branch.name, branch.summary
            at = tuple(map(int, positions))
            found.append(Community(branch.id, tree, branch.level, parent, *texts, names, at))
    return found


def _flat(branches: tuple[Branch, ...], parent: str) -> Iterator[tuple[Branch, str]]:
    for branch in branches:
        yield branch, parent
        yield from _flat(branch.below, branch.id)
