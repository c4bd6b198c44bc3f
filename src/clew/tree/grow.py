"""Growing one tree: from a generation's arrays to communities of every level."""

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
LOCAL = 0.2  # the share of new entities up to which a tree is tended, not grown afresh


@dataclass(frozen=True)
class Passages:
    """What chunk trees need beside vectors: each chunk's document and content, by position."""

    documents: list[str]
    codes: Codes


def plant(ground: Ground, tree: str, passages: Passages | None = None) -> Forest:
    """Grow one tree afresh."""
    chunks = ground.view.count("chunk")
    if tree not in TREES:
        raise ConfigError(f"no tree {tree!r}; have {', '.join(TREES)}")
    if not (chunks if tree in ("raptor", "e2") else len(ground.entities)):
        found = empty(chunks)
    elif tree in DUALS:
        grown = grow(ground.vectors, ground.ties, DUALS[tree], SIZES)
        found = _of_entities(ground, tree, grown, middles_of(ground.vectors, grown.tree))
    elif tree == "leiden":
        hierarchy = _by_links(ground)
        found = _of_entities(ground, tree, Grown(hierarchy, *_standing(ground, hierarchy)))
    else:
        assert passages is not None
        if tree == "raptor":
            levels = soft_levels(ground.passages, CLUSTERS)
        else:
            levels = runs_of(passages.documents, RUN)
        found = _of_chunks(tree, levels, passages.codes)
    codes = name_codes(ground.view.arrays) if len(found) else np.zeros(0, np.uint64)
    return marked(found, codes)


def tend(ground: Ground, tree: str, held: Forest, passages: Passages | None = None) -> Forest:
    """A tree after its graph changed: locally where that is enough, afresh where it is not."""
    here = alone(held, tree)
    # Without middles (another embedder came) nothing says where new entities belong.
    if tree in DUALS and here.middles.any():
        leaf = here.homes(tree, ground.view.count("entity"))[ground.entities]
        if np.count_nonzero(leaf < 0) <= LOCAL * len(leaf):
            return marked(_tended(ground, tree, here, leaf), name_codes(ground.view.arrays))
    if tree == "raptor" and len(here) and passages is not None:
        placed = _placed(ground, replace(here, codes=passages.codes))
        if placed is not None:
            return marked(placed, name_codes(ground.view.arrays))
    return plant(ground, tree, passages)


def _tended(ground: Ground, tree: str, here: Forest, leaf: Ints) -> Forest:
    number = np.full(ground.view.count("entity") + 1, -1)
    number[ground.entities] = np.arange(len(ground.entities))
    scores = np.zeros(len(number), np.float32)
    scores[here.entities.columns] = here.entities.weights
    old = Grown(
        Hierarchy(leaf, here.parent, here.level), number[here.centre], scores[ground.entities]
    )
    now = tended(ground.some, ground.ties, Tended(old, here.middles), DUALS[tree], SIZES)
    return _of_entities(ground, tree, now.grown, now.middles)


def _placed(ground: Ground, here: Forest) -> Forest | None:
    """New passages in the nearest cluster; None where they are too many, or a cluster overflows."""
    count = ground.view.count("chunk")
    new = np.setdiff1d(np.arange(count), here.chunks.columns)
    if len(new) > LOCAL * count:
        return None
    leaves = np.flatnonzero(here.chunks.degrees() > 0)
    middles = unit_rows(means_of(ground.passages, some_rows(here.chunks, leaves)))
    home = leaves[(ground.passages[new] @ middles.T).argmax(axis=1)]
    row = np.repeat(np.arange(len(here)), here.chunks.degrees())
    held = csr(
        len(here),
        np.concatenate([row, home]),
        np.concatenate([here.chunks.columns.astype(np.int64), new]),
        np.concatenate([here.chunks.weights, np.ones(len(new), np.float32)]),
    )
    return replace(here, chunks=held) if held.degrees().max() <= CLUSTERS.max_size else None


def _by_links(ground: Ground) -> Hierarchy:
    """Leiden sees entities in the order of their names: their order in the store must not show."""
    codes = name_codes(ground.view.arrays)[ground.entities]
    place = np.empty(len(codes), np.int64)
    place[np.argsort(codes, kind="stable")] = np.arange(len(codes))
    one, other, weight = ground.links
    low, high = np.minimum(place[one], place[other]), np.maximum(place[one], place[other])
    order = np.lexsort((high, low))
    found = leiden(len(codes), (low[order], high[order], weight[order]), SIZES.max_size)
    return replace(found, leaf=found.leaf[place])


def _standing(ground: Ground, tree: Hierarchy) -> tuple[Ints, Floats]:
    """Centres and scores for a partition that links alone decided."""
    if not len(tree.parent):
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    try:
        dense = without_gaps(tree.leaf)
        scores, _ = affinities(ground.vectors, ground.ties, dense, HOUSE)
    except ConfigError:
        # Without vectors, whoever has most links within stands for its community.
        one, other, weight = ground.links
        inside = tree.leaf[one] == tree.leaf[other]
        ends = np.concatenate([one[inside], other[inside]])
        both = np.concatenate([weight[inside]] * 2)
        scores = np.bincount(ends, weights=both, minlength=len(tree.leaf)).astype(np.float32)
    return _centres(tree, scores), scores


def _centres(tree: Hierarchy, scores: Floats) -> Ints:
    """Per community of any level the member with the highest score."""
    centres = np.full(len(tree.parent), -1)
    order = np.lexsort((np.arange(len(scores)), -scores))[::-1]
    at = tree.leaf[order]
    for _ in range(tree.depth):
        there = at >= 0
        centres[at[there]] = order[there]  # the best is written last
        at = np.where(there, tree.parent[at], -1)
    return centres


def _of_entities(ground: Ground, tree: str, grown: Grown, middles: Floats | None = None) -> Forest:
    found, entities = grown.tree, ground.entities
    count = len(found.parent)
    inner = np.flatnonzero(found.parent >= 0)
    none = np.zeros(0, np.int64)
    return Forest(
        np.full(count, TREES.index(tree)),
        found.level,
        found.parent,
        np.where(grown.centres >= 0, entities[grown.centres], -1),
        np.zeros((count, 2), np.uint64),
        np.full(count, -1),
        csr(count, found.parent[inner], inner),
        csr(count, found.leaf, entities, grown.scores),
        csr(count, none, none),
        np.zeros(ground.view.count("chunk"), np.uint64),
        np.zeros((count, 0), np.float32) if middles is None else middles,
    )


def _of_chunks(tree: str, levels: list[Csr], codes: Codes) -> Forest:
    """Levels come from the bottom up; here the root is number 0."""
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
    held = csr(count, leaf, bottom.columns, bottom.weights)
    return Forest(
        np.full(count, TREES.index(tree)),
        np.repeat(np.arange(depth), sizes),
        _strongest_parent(count, rows, below, ties),
        np.full(count, -1),
        np.zeros((count, 2), np.uint64),
        np.full(count, -1),
        csr(count, rows, below, ties),
        csr(count, none, none),
        held,
        codes,
        np.zeros((count, 0), np.float32),
    )


def _strongest_parent(count: int, upper: Ints, lower: Ints, weight: Floats) -> Ints:
    parent = np.full(count, -1)
    order = np.lexsort((-upper, weight))  # the strongest is written last
    parent[lower[order]] = upper[order]
    return parent
