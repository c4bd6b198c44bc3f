"""A tree of communities: those that are too large are split again."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from clew.graph.cluster.dual import communities
from clew.graph.cluster.perception import PAPER, Dual
from clew.graph.cluster.ties import Ties
from clew.graph.cluster.vectors import Floats, Ints


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Communities of all levels, numbered parents first; level 0 is the coarsest."""

    leaf: Ints  # per entity, the lowest community it is in
    parent: Ints  # per community, the one it was split from; -1 at the top
    level: Ints  # per community

    @property
    def depth(self) -> int:
        """How many levels there are."""
        return int(self.level.max()) + 1 if len(self.level) else 0

    def at(self, level: int) -> Ints:
        """The community of each entity on one level; where none is so low, the lowest it has."""
        found = self.leaf
        for _ in range(self.depth):
            above = self.parent[found]
            found = np.where(self.level[found] > level, above, found)
        return found

    def levels(self) -> Iterator[tuple[int, Ints, Ints]]:
        """(level, the community of each entity on it, the parent of each community)."""
        for level in range(self.depth):
            yield level, self.at(level), self.parent


@dataclass(frozen=True, slots=True)
class Grown:
    """A hierarchy whose communities have centres and whose entities have scores."""

    tree: Hierarchy
    centres: Ints  # per community of any level
    scores: Floats  # per entity, φ in its lowest community


def grow(
    vectors: Floats, ties: Ties, how: Dual = PAPER, max_size: int = 100, max_levels: int = 4
) -> Grown:
    """Find communities, then communities within each that has more than `max_size` members.

    One that cannot be told apart further (its vectors are alike) stays as large as it is.
    """
    count = len(vectors)
    leaf, scores = np.full(count, -1), np.zeros(count, np.float32)
    parents: list[int] = []
    levels: list[int] = []
    centres: list[int] = []
    waiting = [(np.arange(count), -1, 0)] if count else []
    # Below the top there are many small problems: one start each keeps the whole near n·log n.
    below = replace(how, start=replace(how.start, n_init=1))
    while waiting:
        members, parent, level = waiting.pop(0)
        whole = level == 0
        found = communities(
            vectors if whole else vectors[members],
            ties if whole else ties.of(members),
            how if whole else below,
        )
        split = len(found.centres)
        if split == 1 and not whole:
            continue  # it stays a leaf, with the score it has
        first = len(parents)
        parents += [parent] * split
        levels += [level] * split
        centres += members[found.centres].tolist()
        leaf[members], scores[members] = first + found.labels, found.scores
        order = np.argsort(found.labels, kind="stable")
        sizes = np.bincount(found.labels)
        for at, group in enumerate(np.split(members[order], np.cumsum(sizes)[:-1])):
            if len(group) > max_size and level + 1 < max_levels:
                waiting.append((group, first + at, level + 1))
    tree = Hierarchy(leaf, np.array(parents, np.int64), np.array(levels, np.int64))
    return Grown(tree, np.array(centres, np.int64), scores)
