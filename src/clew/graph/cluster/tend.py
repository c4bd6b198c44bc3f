"""A tree after its graph changed: new entities are placed, and communities settle locally."""

from dataclasses import dataclass, replace

import numpy as np

from clew.graph.cluster.hierarchy import Grown, Growth, Hierarchy, below, split
from clew.graph.cluster.merging import mergeable
from clew.graph.cluster.perception import PAPER, Dual, affinities, place, scene_of
from clew.graph.cluster.ties import Ties
from clew.graph.cluster.vectors import Floats, Ints


@dataclass
class _Rows:
    """Communities while they change: parent and level of each, and the leaf of each entity."""

    leaf: Ints
    parent: list[int]
    level: list[int]

    def sizes(self) -> Ints:
        return np.bincount(self.leaf[self.leaf >= 0], minlength=len(self.parent))


def tended(
    vectors: Floats, ties: Ties, tree: Hierarchy, how: Dual = PAPER, growth: Growth | None = None
) -> Grown:
    """Place entities whose leaf is -1, merge the leaves they came to, split those grown too large.

    Leaves that shrank below the least size give their members away. What no new entity came to
    and nothing left stays as it was.
    """
    bounds = growth or Growth()
    rows = _Rows(tree.leaf.copy(), tree.parent.tolist(), tree.level.tolist())
    before = rows.sizes()
    tiny = (before > 0) & (before < bounds.min_size)
    if (before >= bounds.min_size).any():
        rows.leaf[(rows.leaf >= 0) & tiny[rows.leaf]] = -1
    came = np.flatnonzero(rows.leaf < 0)
    if len(came):
        rows.leaf = _placed(vectors, ties, rows.leaf, how)
        touched = set(np.unique(rows.leaf[came]).tolist())
        touched = _merged(vectors, ties, rows, touched, (how, bounds))
        _split_large(vectors, ties, rows, touched, (how, bounds))
    settled = _renumbered(rows)
    return Grown(settled, *_standing(vectors, ties, settled, how))


def _placed(vectors: Floats, ties: Ties, leaf: Ints, how: Dual) -> Ints:
    """Give each the leaf with the highest φ; the numbers of leaves keep their meaning."""
    known = np.unique(leaf[leaf >= 0])
    if not len(known):
        return np.zeros_like(leaf)
    dense = np.where(leaf >= 0, np.searchsorted(known, leaf), -1)
    placed: Ints = known[place(vectors, ties, dense, how)]
    return placed


def _merged(
    vectors: Floats, ties: Ties, rows: _Rows, touched: set[int], how: tuple[Dual, Growth]
) -> set[int]:
    """Merge touched leaves with siblings that they cannot be told from; say which are touched."""
    dual, bounds = how
    parents = {rows.parent[leaf] for leaf in touched}
    alive = rows.sizes() > 0
    for parent in sorted(parents):
        siblings = [at for at, up in enumerate(rows.parent) if up == parent and alive[at]]
        members = np.flatnonzero(np.isin(rows.leaf, siblings))
        # A merge that would have to be split again is none.
        rule = replace(dual, max_size=bounds.max_size)
        rule = rule if parent < 0 else below(rule, bounds)
        for _ in range(rule.max_iterations):
            names, labels = np.unique(rows.leaf[members], return_inverse=True)
            scene = scene_of(vectors[members], ties.of(members), labels, rule)
            pairs = zip(
                *(names[side].tolist() for side in mergeable(scene, labels)[:2]), strict=True
            )
            wanted = [(kept, gone) for kept, gone in pairs if {kept, gone} & touched]
            if not wanted:
                break
            for kept, gone in wanted:
                rows.leaf[rows.leaf == gone] = kept
                touched = (touched - {gone}) | {kept}
    return touched


def _split_large(
    vectors: Floats, ties: Ties, rows: _Rows, touched: set[int], how: tuple[Dual, Growth]
) -> None:
    dual, bounds = how
    for leaf in sorted(touched):
        members, level = np.flatnonzero(rows.leaf == leaf), rows.level[leaf]
        if len(members) <= bounds.max_size or level + 1 >= bounds.max_levels:
            continue
        labels, centres, _ = split(vectors[members], ties.of(members), below(dual, bounds), bounds)
        if len(centres) == 1:
            continue
        first = len(rows.parent)
        rows.parent += [leaf] * len(centres)
        rows.level += [level + 1] * len(centres)
        rows.leaf[members] = first + labels


def _renumbered(rows: _Rows) -> Hierarchy:
    """Without the communities that hold nothing; children still come after their parents."""
    parent, level = np.array(rows.parent, np.int64), np.array(rows.level, np.int64)
    held = rows.sizes() > 0
    for at in range(len(parent) - 1, -1, -1):
        if held[at] and parent[at] >= 0:
            held[parent[at]] = True
    number = np.append(np.where(held, np.cumsum(held) - 1, -1), -1)
    return Hierarchy(number[rows.leaf], number[parent[held]], level[held])


def _standing(vectors: Floats, ties: Ties, tree: Hierarchy, how: Dual) -> tuple[Ints, Floats]:
    """Centres of all communities, and each entity's φ in its lowest one."""
    centres = np.full(len(tree.parent), -1)
    scores = np.zeros(len(tree.leaf), np.float32)
    for level in reversed(range(tree.depth)):
        label = tree.at(level)
        names, dense = np.unique(label, return_inverse=True)
        score, middle = affinities(vectors, ties, dense, how)
        here = centres[names] < 0
        centres[names[here]] = middle[here]
        lowest = tree.leaf == label
        scores = np.where(lowest & (tree.level[label] == level), score, scores)
    return centres, scores
