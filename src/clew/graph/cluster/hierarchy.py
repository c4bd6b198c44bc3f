"""Community hierarchy: communities that are too large are split recursively."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from clew.graph.cluster.dual import find_communities
from clew.graph.cluster.perception import PAPER, DualOptions, assign_communities, compute_affinities
from clew.graph.cluster.ties import EntityRelations
from clew.graph.cluster.vectors import Floats, Ints, relabel_by_size


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Communities of all levels, numbered parents first; level 0 is the coarsest."""

    leaf: Ints  # per entity, its leaf community
    parent: Ints  # per community, the one it was split from; -1 at the top
    level: Ints  # per community

    @property
    def depth(self) -> int:
        """Number of levels."""
        return int(self.level.max()) + 1 if len(self.level) else 0

    def labels_at(self, level: int) -> Ints:
        """Return the community of each entity on one level, or its leaf where that is higher."""
        labels = self.leaf
        for _ in range(self.depth):
            parents = self.parent[labels]
            labels = np.where(self.level[labels] > level, parents, labels)
        return labels

    def levels(self) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield (level, the community of each entity on it, the parent of each community)."""
        for level in range(self.depth):
            yield level, self.labels_at(level), self.parent


@dataclass(frozen=True, slots=True)
class ScoredHierarchy:
    """A hierarchy with a centre for each community and a score for each entity."""

    tree: Hierarchy
    centres: Ints  # per community of any level
    scores: Floats  # per entity, φ in its leaf community


@dataclass(frozen=True, slots=True)
class HierarchyLimits:
    """Sizes from which communities are split, or dissolved, and the maximum depth."""

    max_size: int = 100  # authors' code
    min_size: int = 3
    max_levels: int = 4


def build_hierarchy(
    vectors: Floats,
    ties: EntityRelations,
    how: DualOptions = PAPER,
    growth: HierarchyLimits | None = None,
) -> ScoredHierarchy:
    """Find communities, then split each that has more than `max_size` members.

    One that cannot be split (its vectors are too similar) keeps its size.
    """
    bounds = growth or HierarchyLimits()
    count = len(vectors)
    leaf, scores = np.full(count, -1), np.zeros(count, np.float32)
    rows: list[tuple[int, int, int]] = []  # parent, level and centre of each community
    waiting = deque([(np.arange(count), -1, 0)] if count else [])
    while waiting:
        members, parent, level = waiting.popleft()
        whole = level == 0
        labels, centres, score = split_members(
            vectors if whole else vectors[members],
            ties if whole else ties.select(members),
            how if whole else sublevel_options(how, bounds),
            bounds,
        )
        if len(centres) == 1 and not whole:
            continue  # it stays a leaf with its scores
        first = len(rows)
        rows += [(parent, level, centre) for centre in members[centres].tolist()]
        leaf[members], scores[members] = first + labels, score
        order, ends = np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))
        for at, group in enumerate(np.split(members[order], ends[:-1])):
            if len(group) > bounds.max_size and level + 1 < bounds.max_levels:
                waiting.append((group, first + at, level + 1))
    parents, levels, middles = np.array(rows, np.int64).reshape(-1, 3).T
    return ScoredHierarchy(Hierarchy(leaf, parents, levels), middles, scores)


def sublevel_options(how: DualOptions, bounds: HierarchyLimits) -> DualOptions:
    """Return the options below the top level: many small problems without clear borders.

    One start each keeps the total near n·log n; clusters half as large as allowed can still merge,
    and no merge undoes the split; directions instead of distances, since one community's vectors
    differ mostly by noise.
    """
    start = replace(how.start, n_init=1, spherical=True)
    size = min(bounds.max_size, how.max_size or bounds.max_size)
    return replace(how, start=start, max_size=size, per_cluster=max(bounds.max_size // 2, 1))


def split_members(
    vectors: Floats, ties: EntityRelations, how: DualOptions, bounds: HierarchyLimits
) -> tuple[Ints, Ints, Floats]:
    """Return labels, centres and scores; members of tiny communities move to the best other."""
    found = find_communities(vectors, ties, how)
    tiny = np.bincount(found.labels) < bounds.min_size
    if not tiny.any() or tiny.all():
        return found.labels, found.centres, found.scores
    # Labels are ordered by size, so the remaining ones have no gaps.
    labels = relabel_by_size(
        assign_communities(vectors, ties, np.where(tiny[found.labels], -1, found.labels), how)
    )
    scores, centres = compute_affinities(vectors, ties, labels, how)
    return labels, centres, scores
