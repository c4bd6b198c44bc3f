"""Community hierarchy: splits large communities recursively, and updates them locally."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from clew.graph.cluster.dual import (
    PAPER,
    DualOptions,
    assign_communities,
    build_profiles,
    compute_affinities,
    find_communities,
    select_merges,
)
from clew.graph.cluster.relations import EntityRelations
from clew.graph.cluster.vectors import group_sums, relabel_by_size
from clew.graph.csr import Floats, Ints

VectorReader = Callable[[Ints], Floats]
"""Returns the vectors of some entities."""


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
    limits: HierarchyLimits | None = None,
) -> ScoredHierarchy:
    """Find communities, then split each that has more than `max_size` members.

    One that cannot be split (its vectors are too similar) keeps its size.
    """
    bounds = limits or HierarchyLimits()
    count = len(vectors)
    leaf, scores = np.full(count, -1), np.zeros(count, np.float32)
    rows: list[tuple[int, int, int]] = []  # parent, level and centre of each community
    waiting = deque([(np.arange(count), -1, 0)] if count else [])
    while waiting:
        members, parent, level = waiting.popleft()
        top = level == 0
        labels, centres, score = split_members(
            vectors if top else vectors[members],
            ties if top else ties.select(members),
            how if top else sublevel_options(how, bounds),
            bounds,
        )
        if len(centres) == 1 and not top:
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


@dataclass(frozen=True, slots=True)
class HierarchyState:
    """A scored hierarchy, and the mean vectors of its communities."""

    scored: ScoredHierarchy
    middles: Floats


@dataclass
class _MutableHierarchy:
    """Hierarchy under change: parent, level and centre by community; leaf by entity."""

    leaf: Ints
    parent: list[int]
    level: list[int]
    centre: list[int]

    def sizes(self) -> Ints:
        return np.bincount(self.leaf[self.leaf >= 0], minlength=len(self.parent))

    def sibling_members(self, leaves: set[int]) -> Ints:
        """Return the entities in leaves that share a parent with these."""
        parents = {self.parent[leaf] for leaf in leaves}
        near = [at for at, up in enumerate(self.parent) if up in parents]
        return np.flatnonzero(np.isin(self.leaf, near))


def community_means(vectors: Floats, tree: Hierarchy) -> Floats:
    """Return the mean vector of each community's members, on every level."""
    count = len(tree.parent)
    sizes = np.bincount(tree.leaf, minlength=count)
    sums = group_sums(vectors, tree.leaf, count)
    for at in range(count - 1, -1, -1):  # children come after their parents
        up = int(tree.parent[at])
        if up >= 0:
            sums[up] += sums[at]
            sizes[up] += sizes[at]
    return (sums / np.maximum(sizes, 1)[:, None]).astype(np.float32)


def update_hierarchy(
    read: VectorReader,
    ties: EntityRelations,
    held: HierarchyState,
    how: DualOptions = PAPER,
    limits: HierarchyLimits | None = None,
) -> HierarchyState:
    """Place entities whose leaf is -1, merge the leaves they joined, split those too large.

    Leaves below the minimum size are dissolved. Communities that no new entity joined do not
    change.
    """
    bounds, old = limits or HierarchyLimits(), held.scored
    rows = _MutableHierarchy(
        old.tree.leaf.copy(),
        old.tree.parent.tolist(),
        old.tree.level.tolist(),
        old.centres.tolist(),
    )
    before = rows.sizes()
    tiny = (before > 0) & (before < bounds.min_size)
    if (before >= bounds.min_size).any():
        rows.leaf[(rows.leaf >= 0) & tiny[rows.leaf]] = -1
    new = np.flatnonzero(rows.leaf < 0)
    vectors, scores = held.middles[rows.leaf], old.scores.copy()
    if len(new):
        vectors[new] = read(new)
        rows.leaf = _assign_leaves(vectors, ties, rows.leaf, how)
        touched = set(np.unique(rows.leaf[new]).tolist())
        near = rows.sibling_members(touched)
        rest = np.setdiff1d(near, new)
        vectors[rest] = read(rest)
        touched = _merge_touched(vectors, ties, rows, touched, (how, bounds))
        _split_large(vectors, ties, rows, touched, (how, bounds))
        names, dense = np.unique(rows.leaf[near], return_inverse=True)
        scores[near], centres = compute_affinities(vectors[near], ties.select(near), dense, how)
        for name, centre in zip(names.tolist(), near[centres].tolist(), strict=True):
            rows.centre[name] = centre
    tree, kept = _renumber(rows)
    scored = ScoredHierarchy(tree, np.array(rows.centre, np.int64)[kept], scores)
    return HierarchyState(scored, community_means(vectors, tree))


def _assign_leaves(vectors: Floats, ties: EntityRelations, leaf: Ints, how: DualOptions) -> Ints:
    """Assign each unplaced entity to the leaf of highest φ; leaf numbers do not change."""
    known = np.unique(leaf[leaf >= 0])
    if not len(known):
        return np.zeros_like(leaf)
    dense = np.where(leaf >= 0, np.searchsorted(known, leaf), -1)
    placed: Ints = known[assign_communities(vectors, ties, dense, how)]
    return placed


def _merge_touched(
    vectors: Floats,
    ties: EntityRelations,
    rows: _MutableHierarchy,
    touched: set[int],
    how: tuple[DualOptions, HierarchyLimits],
) -> set[int]:
    """Merge touched leaves with similar siblings; return the leaves touched."""
    dual, bounds = how
    for parent in sorted({rows.parent[leaf] for leaf in touched}):
        mine = {leaf for leaf in touched if rows.parent[leaf] == parent}
        members = rows.sibling_members(mine)
        # Never merge what would be split again.
        rule = replace(dual, max_size=bounds.max_size)
        rule = rule if parent < 0 else sublevel_options(rule, bounds)
        for _ in range(rule.max_iterations):
            names, labels = np.unique(rows.leaf[members], return_inverse=True)
            scene = build_profiles(vectors[members], ties.select(members), labels, rule)
            one, other = (names[side].tolist() for side in select_merges(scene, labels)[:2])
            wanted = [(a, b) for a, b in zip(one, other, strict=True) if {a, b} & touched]
            if not wanted:
                break
            for kept, gone in wanted:
                rows.leaf[rows.leaf == gone] = kept
                touched = (touched - {gone}) | {kept}
    return touched


def _split_large(
    vectors: Floats,
    ties: EntityRelations,
    rows: _MutableHierarchy,
    touched: set[int],
    how: tuple[DualOptions, HierarchyLimits],
) -> None:
    dual, bounds = how
    for leaf in sorted(touched):
        members, level = np.flatnonzero(rows.leaf == leaf), rows.level[leaf]
        if len(members) <= bounds.max_size or level + 1 >= bounds.max_levels:
            continue
        labels, centres, _ = split_members(
            vectors[members], ties.select(members), sublevel_options(dual, bounds), bounds
        )
        if len(centres) == 1:
            continue
        first = len(rows.parent)
        rows.parent += [leaf] * len(centres)
        rows.level += [level + 1] * len(centres)
        rows.centre += members[centres].tolist()
        rows.leaf[members] = first + labels


def _renumber(rows: _MutableHierarchy) -> tuple[Hierarchy, Ints]:
    """Drop empty communities and renumber; children still come after their parents."""
    parent, level = np.array(rows.parent, np.int64), np.array(rows.level, np.int64)
    occupied = rows.sizes() > 0
    for at in range(len(parent) - 1, -1, -1):
        if occupied[at] and parent[at] >= 0:
            occupied[parent[at]] = True
    number = np.append(np.where(occupied, np.cumsum(occupied) - 1, -1), -1)
    tree = Hierarchy(number[rows.leaf], number[parent[occupied]], level[occupied])
    return tree, np.flatnonzero(occupied)
