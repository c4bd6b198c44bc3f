"""The knowledge trees as rows: every community with its place, its words and its members."""

from collections.abc import Iterator

import numpy as np

from clew.export.graph import Community
from clew.graph.forest import forest_of, mark_names
from clew.store.protocol import Memory, Snapshot
from clew.tree.outline import COMMUNITY, Branch, Opening, outline
from clew.view import View


async def communities(now: Snapshot, memory: Memory) -> list[Community]:
    """Every community of every tree there is, those above before those below."""
    forest = forest_of(now.arrays)
    marks = mark_names(forest, np.arange(len(forest)))
    at_of = {(int(tree), mark): at for at, (tree, mark) in enumerate(zip(forest.tree, marks))}  # noqa: B905
    keys = View(now.arrays, {}).keys("entity")
    held = await now.entities([int(keys[at]) for at in np.unique(forest.entities.columns)])
    found = []
    for tree in forest.names():
        number = int(forest.tree[forest.of(tree)[0]])
        shown = await outline(now, memory, tree, Opening(None, COMMUNITY, 0))
        for branch, parent in _flat(shown.branches, ""):
            own = forest.entities.row(at_of[number, branch.id])
            names = tuple(held[int(keys[at])].name for at in own)
            words = branch.name, branch.summary
            at = tuple(map(int, own))
            found.append(Community(branch.id, tree, branch.level, parent, *words, names, at))
    return found


def _flat(branches: tuple[Branch, ...], parent: str) -> Iterator[tuple[Branch, str]]:
    for branch in branches:
        yield branch, parent
        yield from _flat(branch.below, branch.id)
