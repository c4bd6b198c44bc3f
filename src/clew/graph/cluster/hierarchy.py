"""A tree of communities: those that are too large are split again."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from clew.graph.cluster.dual import communities
from clew.graph.cluster.perception import PAPER, Dual, affinities, place
from clew.graph.cluster.ties import Ties
from clew.graph.cluster.vectors import Floats, Ints, without_gaps


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


@dataclass(frozen=True, slots=True)
class Growth:
    """Which communities are split again, and which are too small to stand alone."""

    max_size: int = 100  # authors' code
    min_size: int = 3
    max_levels: int = 4


def grow(vectors: Floats, ties: Ties, how: Dual = PAPER, growth: Growth | None = None) -> Grown:
    """Find communities, then communities within each that has more than `max_size` members.

    One that cannot be told apart further (its vectors are alike) stays as large as it is.
    """
    bounds = growth or Growth()
    count = len(vectors)
    leaf, scores = np.full(count, -1), np.zeros(count, np.float32)
    rows: list[tuple[int, int, int]] = []  # parent, level and centre of each community
    waiting = deque([(np.arange(count), -1, 0)] if count else [])
    while waiting:
        members, parent, level = waiting.popleft()
        whole = level == 0
        labels, centres, score = split(
            vectors if whole else vectors[members],
            ties if whole else ties.of(members),
            how if whole else below(how, bounds),
            bounds,
        )
        if len(centres) == 1 and not whole:
            continue  # it stays a leaf, with the score it has
        first = len(rows)
        rows += [(parent, level, centre) for centre in members[centres].tolist()]
        leaf[members], scores[members] = first + labels, score
        order, ends = np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))
        for at, group in enumerate(np.split(members[order], ends[:-1])):
            if len(group) > bounds.max_size and level + 1 < bounds.max_levels:
                waiting.append((group, first + at, level + 1))
    parents, levels, middles = np.array(rows, np.int64).reshape(-1, 3).T
    return Grown(Hierarchy(leaf, parents, levels), middles, scores)


def below(how: Dual, bounds: Growth) -> Dual:
    """Below the top there are many small problems without clear borders.

    One start each keeps the whole near n·log n; clusters half as large as allowed leave room to
    merge, and no merge undoes the split; directions instead of distances, since one community's
    vectors differ mostly by noise.
    """
    start = replace(how.start, n_init=1, spherical=True)
    size = min(bounds.max_size, how.max_size or bounds.max_size)
    return replace(how, start=start, max_size=size, per_cluster=max(bounds.max_size // 2, 1))


def split(vectors: Floats, ties: Ties, how: Dual, bounds: Growth) -> tuple[Ints, Ints, Floats]:
    """Labels, centres and scores; members of tiny communities go where they fit best."""
    found = communities(vectors, ties, how)
    tiny = np.bincount(found.labels) < bounds.min_size
    if not tiny.any() or tiny.all():
        return found.labels, found.centres, found.scores
    # Labels are ordered by size, so those that stay have no gaps.
    labels = without_gaps(place(vectors, ties, np.where(tiny[found.labels], -1, found.labels), how))
    scores, centres = affinities(vectors, ties, labels, how)
    return labels, centres, scores
