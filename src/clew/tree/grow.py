"""Builds or updates one community tree from a generation's arrays."""

from dataclasses import dataclass, replace

import numpy as np

from clew.errors import ConfigError
from clew.graph.carry import entity_name_hashes
from clew.graph.cluster.hierarchy import (
    Hierarchy,
    HierarchyLimits,
    ScoredHierarchy,
    build_hierarchy,
)
from clew.graph.cluster.leiden import leiden_communities
from clew.graph.cluster.perception import BALANCED, PAPER, RELEASED, DualOptions, compute_affinities
from clew.graph.cluster.soft import RaptorOptions, build_soft_levels, cluster_means
from clew.graph.cluster.tend import HierarchyState, community_means, update_hierarchy
from clew.graph.cluster.ties import select_rows
from clew.graph.cluster.vectors import Floats, Ints, normalize_rows, relabel_by_size
from clew.graph.csr import Csr, build_csr
from clew.graph.forest import TREES, Codes, CommunityForest, assign_marks, empty_forest, select_tree
from clew.tree.ground import TreeInput, group_consecutive

# Weights and thresholds chosen on real vectors: docs/tree.md.
DEFAULT_DUAL = replace(BALANCED)
DUAL_OPTIONS: dict[str, DualOptions] = {"dual": DEFAULT_DUAL, "paper": PAPER, "released": RELEASED}
RUN_LENGTH = 5  # E²GraphRAG: passages summarised together
HIERARCHY_LIMITS = HierarchyLimits()
RAPTOR_OPTIONS = RaptorOptions()
MAX_LOCAL_SHARE = 0.2  # share of new elements up to which a tree is updated locally, not rebuilt


@dataclass(frozen=True)
class PassageInfo:
    """Document and content hash of each chunk by position, for trees over chunks."""

    documents: list[str]
    codes: Codes


def build_tree(
    inputs: TreeInput, tree: str, passages: PassageInfo | None = None
) -> CommunityForest:
    """Build one tree from scratch."""
    chunks = inputs.view.count("chunk")
    if tree not in TREES:
        raise ConfigError(f"no tree {tree!r}; have {', '.join(TREES)}")
    if not (chunks if tree in ("raptor", "e2") else len(inputs.entities)):
        found = empty_forest(chunks)
    elif tree in DUAL_OPTIONS:
        grown = build_hierarchy(
            inputs.vectors, inputs.entity_relations, DUAL_OPTIONS[tree], HIERARCHY_LIMITS
        )
        found = _forest_from_entities(
            inputs, tree, grown, community_means(inputs.vectors, grown.tree)
        )
    elif tree == "leiden":
        hierarchy = _build_leiden(inputs)
        found = _forest_from_entities(
            inputs, tree, ScoredHierarchy(hierarchy, *_score_leiden(inputs, hierarchy))
        )
    else:
        assert passages is not None
        if tree == "raptor":
            levels = build_soft_levels(inputs.passage_vectors, RAPTOR_OPTIONS)
        else:
            levels = group_consecutive(passages.documents, RUN_LENGTH)
        found = _forest_from_chunks(tree, levels, passages.codes)
    codes = entity_name_hashes(inputs.view.arrays) if len(found) else np.zeros(0, np.uint64)
    return assign_marks(found, codes)


def update_tree(
    inputs: TreeInput, tree: str, held: CommunityForest, passages: PassageInfo | None = None
) -> CommunityForest:
    """Update a tree after its graph changed: locally if few elements are new, else rebuild."""
    tree_now = select_tree(held, tree)
    # Without mean vectors (the embedder changed) new entities cannot be placed.
    if tree in DUAL_OPTIONS and tree_now.middles.any():
        leaf = tree_now.leaf_communities(tree, inputs.view.count("entity"))[inputs.entities]
        if np.count_nonzero(leaf < 0) <= MAX_LOCAL_SHARE * len(leaf):
            return assign_marks(
                _update_dual(inputs, tree, tree_now, leaf), entity_name_hashes(inputs.view.arrays)
            )
    if tree == "raptor" and len(tree_now) and passages is not None:
        extended = _place_passages(inputs, replace(tree_now, codes=passages.codes))
        if extended is not None:
            return assign_marks(extended, entity_name_hashes(inputs.view.arrays))
    return build_tree(inputs, tree, passages)


def _update_dual(
    inputs: TreeInput, tree: str, forest: CommunityForest, leaf: Ints
) -> CommunityForest:
    number = np.full(inputs.view.count("entity") + 1, -1)
    number[inputs.entities] = np.arange(len(inputs.entities))
    scores = np.zeros(len(number), np.float32)
    scores[forest.entities.columns] = forest.entities.weights
    old = ScoredHierarchy(
        Hierarchy(leaf, forest.parent, forest.level), number[forest.centre], scores[inputs.entities]
    )
    updated = update_hierarchy(
        inputs.vectors_of,
        inputs.entity_relations,
        HierarchyState(old, forest.middles),
        DUAL_OPTIONS[tree],
        HIERARCHY_LIMITS,
    )
    return _forest_from_entities(inputs, tree, updated.scored, updated.middles)


def _place_passages(inputs: TreeInput, forest: CommunityForest) -> CommunityForest | None:
    """Add new passages to the nearest cluster; None if too many or a cluster overflows."""
    count = inputs.view.count("chunk")
    new = np.setdiff1d(np.arange(count), forest.chunks.columns)
    if len(new) > MAX_LOCAL_SHARE * count:
        return None
    leaves = np.flatnonzero(forest.chunks.degrees() > 0)
    middles = normalize_rows(
        cluster_means(inputs.passage_vectors, select_rows(forest.chunks, leaves))
    )
    cluster = leaves[(inputs.passage_vectors[new] @ middles.T).argmax(axis=1)]
    row = np.repeat(np.arange(len(forest)), forest.chunks.degrees())
    members = build_csr(
        len(forest),
        np.concatenate([row, cluster]),
        np.concatenate([forest.chunks.columns.astype(np.int64), new]),
        np.concatenate([forest.chunks.weights, np.ones(len(new), np.float32)]),
    )
    return (
        replace(forest, chunks=members)
        if members.degrees().max() <= RAPTOR_OPTIONS.max_size
        else None
    )


def _build_leiden(inputs: TreeInput) -> Hierarchy:
    """Run Leiden over entities ordered by name hash, to be independent of store order."""
    codes = entity_name_hashes(inputs.view.arrays)[inputs.entities]
    place = np.empty(len(codes), np.int64)
    place[np.argsort(codes, kind="stable")] = np.arange(len(codes))
    one, other, weight = inputs.links
    low, high = np.minimum(place[one], place[other]), np.maximum(place[one], place[other])
    order = np.lexsort((high, low))
    found = leiden_communities(
        len(codes), (low[order], high[order], weight[order]), HIERARCHY_LIMITS.max_size
    )
    return replace(found, leaf=found.leaf[place])


def _score_leiden(inputs: TreeInput, tree: Hierarchy) -> tuple[Ints, Floats]:
    """Return centres and scores for a partition made from links alone."""
    if not len(tree.parent):
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    try:
        dense = relabel_by_size(tree.leaf)
        scores, _ = compute_affinities(inputs.vectors, inputs.entity_relations, dense, DEFAULT_DUAL)
    except ConfigError:
        # Without vectors, the score is the weight of links within the community.
        one, other, weight = inputs.links
        inside = tree.leaf[one] == tree.leaf[other]
        ends = np.concatenate([one[inside], other[inside]])
        both = np.concatenate([weight[inside]] * 2)
        scores = np.bincount(ends, weights=both, minlength=len(tree.leaf)).astype(np.float32)
    return _find_centres(tree, scores), scores


def _find_centres(tree: Hierarchy, scores: Floats) -> Ints:
    """Return the member with the highest score of each community, on every level."""
    centres = np.full(len(tree.parent), -1)
    order = np.lexsort((np.arange(len(scores)), -scores))[::-1]
    at = tree.leaf[order]
    for _ in range(tree.depth):
        there = at >= 0
        centres[at[there]] = order[there]  # the best is written last
        at = np.where(there, tree.parent[at], -1)
    return centres


def _forest_from_entities(
    inputs: TreeInput, tree: str, grown: ScoredHierarchy, middles: Floats | None = None
) -> CommunityForest:
    hierarchy, entities = grown.tree, inputs.entities
    count = len(hierarchy.parent)
    inner = np.flatnonzero(hierarchy.parent >= 0)
    none = np.zeros(0, np.int64)
    return CommunityForest(
        np.full(count, TREES.index(tree)),
        hierarchy.level,
        hierarchy.parent,
        np.where(grown.centres >= 0, entities[grown.centres], -1),
        np.zeros((count, 2), np.uint64),
        np.full(count, -1),
        build_csr(count, hierarchy.parent[inner], inner),
        build_csr(count, hierarchy.leaf, entities, grown.scores),
        build_csr(count, none, none),
        np.zeros(inputs.view.count("chunk"), np.uint64),
        np.zeros((count, 0), np.float32) if middles is None else middles,
    )


def _forest_from_chunks(tree: str, levels: list[Csr], codes: Codes) -> CommunityForest:
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
    members = build_csr(count, leaf, bottom.columns, bottom.weights)
    return CommunityForest(
        np.full(count, TREES.index(tree)),
        np.repeat(np.arange(depth), sizes),
        _find_strongest_parent(count, rows, below, ties),
        np.full(count, -1),
        np.zeros((count, 2), np.uint64),
        np.full(count, -1),
        build_csr(count, rows, below, ties),
        build_csr(count, none, none),
        members,
        codes,
        np.zeros((count, 0), np.float32),
    )


def _find_strongest_parent(count: int, upper: Ints, lower: Ints, weight: Floats) -> Ints:
    parent = np.full(count, -1)
    order = np.lexsort((-upper, weight))  # the strongest is written last
    parent[lower[order]] = upper[order]
    return parent
