"""Builds or updates one community tree from a generation's arrays."""

from dataclasses import dataclass, replace

import numpy as np

from clew.errors import ConfigError
from clew.graph.carry import name_codes
from clew.graph.cluster.hierarchy import Grown, Growth, Hierarchy, grow
from clew.graph.cluster.leiden import leiden
from clew.graph.cluster.perception import BALANCED, PAPER, RELEASED, Dual, affinities
from clew.graph.cluster.soft import Soft, means_of, soft_levels
from clew.graph.cluster.tend import Tended, middles_of, tended
from clew.graph.cluster.ties import some_rows
from clew.graph.cluster.vectors import Floats, Ints, unit_rows, without_gaps
from clew.graph.csr import Csr, csr
from clew.graph.forest import TREES, Codes, Forest, alone, empty, marked
from clew.tree.ground import Ground, runs_of

# Weights and thresholds chosen on real vectors: docs/tree.md.
HOUSE = replace(BALANCED)
DUALS: dict[str, Dual] = {"dual": HOUSE, "paper": PAPER, "released": RELEASED}
RUN = 5  # E²GraphRAG: passages summarised together
SIZES = Growth()
CLUSTERS = Soft()
LOCAL = 0.2  # share of new elements up to which a tree is updated locally, not rebuilt


@dataclass(frozen=True)
class Passages:
    """Document and content hash of each chunk by position, for trees over chunks."""

    documents: list[str]
    codes: Codes


def plant(inputs: Ground, tree: str, passages: Passages | None = None) -> Forest:
    """Build one tree from scratch."""
    chunks = inputs.view.count("chunk")
    if tree not in TREES:
        raise ConfigError(f"no tree {tree!r}; have {', '.join(TREES)}")
    if not (chunks if tree in ("raptor", "e2") else len(inputs.entities)):
        found = empty(chunks)
    elif tree in DUALS:
        grown = grow(inputs.vectors, inputs.ties, DUALS[tree], SIZES)
        found = _of_entities(inputs, tree, grown, middles_of(inputs.vectors, grown.tree))
    elif tree == "leiden":
        hierarchy = _by_links(inputs)
        found = _of_entities(inputs, tree, Grown(hierarchy, *_standing(inputs, hierarchy)))
    else:
        assert passages is not None
        if tree == "raptor":
            levels = soft_levels(inputs.passages, CLUSTERS)
        else:
            levels = runs_of(passages.documents, RUN)
        found = _of_chunks(tree, levels, passages.codes)
    codes = name_codes(inputs.view.arrays) if len(found) else np.zeros(0, np.uint64)
    return marked(found, codes)


def tend(inputs: Ground, tree: str, held: Forest, passages: Passages | None = None) -> Forest:
    """Update a tree after its graph changed: locally if few elements are new, else rebuild."""
    tree_now = alone(held, tree)
    # Without mean vectors (the embedder changed) new entities cannot be placed.
    if tree in DUALS and tree_now.middles.any():
        leaf = tree_now.homes(tree, inputs.view.count("entity"))[inputs.entities]
        if np.count_nonzero(leaf < 0) <= LOCAL * len(leaf):
            return marked(_tended(inputs, tree, tree_now, leaf), name_codes(inputs.view.arrays))
    if tree == "raptor" and len(tree_now) and passages is not None:
        extended = _placed(inputs, replace(tree_now, codes=passages.codes))
        if extended is not None:
            return marked(extended, name_codes(inputs.view.arrays))
    return plant(inputs, tree, passages)


def _tended(inputs: Ground, tree: str, forest: Forest, leaf: Ints) -> Forest:
    number = np.full(inputs.view.count("entity") + 1, -1)
    number[inputs.entities] = np.arange(len(inputs.entities))
    scores = np.zeros(len(number), np.float32)
    scores[forest.entities.columns] = forest.entities.weights
    old = Grown(
        Hierarchy(leaf, forest.parent, forest.level), number[forest.centre], scores[inputs.entities]
    )
    updated = tended(inputs.some, inputs.ties, Tended(old, forest.middles), DUALS[tree], SIZES)
    return _of_entities(inputs, tree, updated.grown, updated.middles)


def _placed(inputs: Ground, forest: Forest) -> Forest | None:
    """Add new passages to the nearest cluster; None if too many or a cluster overflows."""
    count = inputs.view.count("chunk")
    new = np.setdiff1d(np.arange(count), forest.chunks.columns)
    if len(new) > LOCAL * count:
        return None
    leaves = np.flatnonzero(forest.chunks.degrees() > 0)
    middles = unit_rows(means_of(inputs.passages, some_rows(forest.chunks, leaves)))
    cluster = leaves[(inputs.passages[new] @ middles.T).argmax(axis=1)]
    row = np.repeat(np.arange(len(forest)), forest.chunks.degrees())
    members = csr(
        len(forest),
        np.concatenate([row, cluster]),
        np.concatenate([forest.chunks.columns.astype(np.int64), new]),
        np.concatenate([forest.chunks.weights, np.ones(len(new), np.float32)]),
    )
    return replace(forest, chunks=members) if members.degrees().max() <= CLUSTERS.max_size else None


def _by_links(inputs: Ground) -> Hierarchy:
    """Run Leiden over entities ordered by name hash, to be independent of store order."""
    codes = name_codes(inputs.view.arrays)[inputs.entities]
    place = np.empty(len(codes), np.int64)
    place[np.argsort(codes, kind="stable")] = np.arange(len(codes))
    one, other, weight = inputs.links
    low, high = np.minimum(place[one], place[other]), np.maximum(place[one], place[other])
    order = np.lexsort((high, low))
    found = leiden(len(codes), (low[order], high[order], weight[order]), SIZES.max_size)
    return replace(found, leaf=found.leaf[place])


def _standing(inputs: Ground, tree: Hierarchy) -> tuple[Ints, Floats]:
    """Return centres and scores for a partition made from links alone."""
    if not len(tree.parent):
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    try:
        dense = without_gaps(tree.leaf)
        scores, _ = affinities(inputs.vectors, inputs.ties, dense, HOUSE)
    except ConfigError:
        # Without vectors, the score is the weight of links within the community.
        one, other, weight = inputs.links
        inside = tree.leaf[one] == tree.leaf[other]
        ends = np.concatenate([one[inside], other[inside]])
        both = np.concatenate([weight[inside]] * 2)
        scores = np.bincount(ends, weights=both, minlength=len(tree.leaf)).astype(np.float32)
    return _centres(tree, scores), scores


def _centres(tree: Hierarchy, scores: Floats) -> Ints:
    """Return the member with the highest score of each community, on every level."""
    centres = np.full(len(tree.parent), -1)
    order = np.lexsort((np.arange(len(scores)), -scores))[::-1]
    at = tree.leaf[order]
    for _ in range(tree.depth):
        there = at >= 0
        centres[at[there]] = order[there]  # the best is written last
        at = np.where(there, tree.parent[at], -1)
    return centres


def _of_entities(inputs: Ground, tree: str, grown: Grown, middles: Floats | None = None) -> Forest:
    hierarchy, entities = grown.tree, inputs.entities
    count = len(hierarchy.parent)
    inner = np.flatnonzero(hierarchy.parent >= 0)
    none = np.zeros(0, np.int64)
    return Forest(
        np.full(count, TREES.index(tree)),
        hierarchy.level,
        hierarchy.parent,
        np.where(grown.centres >= 0, entities[grown.centres], -1),
        np.zeros((count, 2), np.uint64),
        np.full(count, -1),
        csr(count, hierarchy.parent[inner], inner),
        csr(count, hierarchy.leaf, entities, grown.scores),
        csr(count, none, none),
        np.zeros(inputs.view.count("chunk"), np.uint64),
        np.zeros((count, 0), np.float32) if middles is None else middles,
    )


def _of_chunks(tree: str, levels: list[Csr], codes: Codes) -> Forest:
    """Build a forest from levels given bottom-up; the root gets number 0."""
    depth = len(levels)
    sizes = [len(level) for level in reversed(levels)]
    first = np.cumsum([0, *sizes])
    count = int(first[-1])
    upper, lower, weight = [], [], []
    for level, (one, links) in enumerate(zip(first, list(reversed(levels))[:-1], strict=False)):
        upper.append(one + np.repeat(np.arange(len(links)), links.degrees()))
        lower.append(first[level + 1] + links.columns.astype(np.int64))
        weight.append(links.weights)
    rows = np.concatenate([np.zeros(0, np.int64), *upper])
    below = np.concatenate([np.zeros(0, np.int64), *lower])
    ties = np.concatenate([np.zeros(0, np.float32), *weight])
    bottom = levels[0]
    leaf = first[depth - 1] + np.repeat(np.arange(len(bottom)), bottom.degrees())
    none = np.zeros(0, np.int64)
    members = csr(count, leaf, bottom.columns, bottom.weights)
    return Forest(
        np.full(count, TREES.index(tree)),
        np.repeat(np.arange(depth), sizes),
        _strongest_parent(count, rows, below, ties),
        np.full(count, -1),
        np.zeros((count, 2), np.uint64),
        np.full(count, -1),
        csr(count, rows, below, ties),
        csr(count, none, none),
        members,
        codes,
        np.zeros((count, 0), np.float32),
    )


def _strongest_parent(count: int, upper: Ints, lower: Ints, weight: Floats) -> Ints:
    parent = np.full(count, -1)
    order = np.lexsort((-upper, weight))  # the strongest is written last
    parent[lower[order]] = upper[order]
    return parent
