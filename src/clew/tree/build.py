"""Builds or updates one community tree from a generation's arrays."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from clew.errors import ConfigError
from clew.graph.cluster.dual import BALANCED, PAPER, RELEASED, DualOptions, compute_affinities
from clew.graph.cluster.hierarchy import (
    Hierarchy,
    HierarchyLimits,
    HierarchyState,
    ScoredHierarchy,
    build_hierarchy,
    community_means,
    update_hierarchy,
)
from clew.graph.cluster.leiden import leiden_communities
from clew.graph.cluster.raptor import RaptorOptions, build_soft_levels, cluster_means
from clew.graph.cluster.relations import (
    EntityRelations,
    build_entity_links,
    count_relations_with_fallback,
)
from clew.graph.cluster.vectors import add_rows, entity_vectors, normalize_rows, relabel_by_size
from clew.graph.community_tree import (
    TREES,
    Codes,
    CommunityForest,
    assign_marks,
    empty_forest,
    entity_name_hashes,
    select_tree,
)
from clew.graph.csr import Csr, Floats, Ints, Mask, build_csr
from clew.index.view import View
from clew.out_of_core import UNBOUNDED, WorkingMemory
from clew.types import Kind

_NO_VECTORS = (
    "this tree needs vectors, and the knowledge base has none; set [embed] and run `clew reembed`"
)
_ENTITY_BLOCK = 1024  # entities per block of fact reads
# Weights and thresholds chosen on real vectors: docs/tree.md.
DEFAULT_DUAL = replace(BALANCED)
DUAL_OPTIONS: dict[str, DualOptions] = {"dual": DEFAULT_DUAL, "paper": PAPER, "released": RELEASED}
RUN_LENGTH = 5  # E²GraphRAG: passages summarised together
HIERARCHY_LIMITS = HierarchyLimits()
RAPTOR_OPTIONS = RaptorOptions()
MAX_LOCAL_SHARE = 0.2  # share of new elements up to which a tree is updated locally, not rebuilt


@dataclass(frozen=True)
class TreeInput:
    """The entities of one generation, without literals such as dates and numbers."""

    view: View
    relation_vectors: Floats | None = None
    """A vector for each relation label, where facts have none of their own."""
    memory: WorkingMemory = UNBOUNDED
    """How much memory vectors may take; more of them are in scratch files."""

    @cached_property
    def entities(self) -> Ints:
        """Positions of the entities in the view."""
        if not self.view.count("entity"):
            return np.zeros(0, np.int64)
        return np.flatnonzero(~self.view.arrays["entity_literal"])

    @cached_property
    def vectors(self) -> Floats:
        """Mean of each entity's fact vectors (Youtu-GraphRAG eq. 4); its name's without facts.

        Vectors of facts that were not embedded are composed from names and relation.
        """
        facts, names = self._find_matrix("fact"), self._find_matrix("entity")
        if facts is None and names is None:
            raise ConfigError(f"{_NO_VECTORS}, or build the tree with `--by leiden`")
        width = (facts if facts is not None else names).shape[1]  # type: ignore[union-attr]
        members = self.view.links("fact_entity")
        count = self.view.count("entity")
        means = entity_vectors(members, count, width, self._read_facts, self.memory)
        if len(self.entities) < count:
            means = self.memory.take(means, self.entities)
        missing = ~means.any(axis=1)
        if missing.any() and names is not None:
            # Entities without facts would all have the zero vector.
            means[missing] = self.view.vectors("entity", self.entities[missing])
        return means

    def vectors_of(self, rows: Ints) -> Floats:
        """Return the vectors of some entities, reading only their facts."""
        if "vectors" in self.__dict__:
            return self.vectors[rows]
        links = self.view.links("entity_fact")
        parts = [
            self._mean_vectors(links, self.entities[rows[first : first + _ENTITY_BLOCK]])
            for first in range(0, len(rows), _ENTITY_BLOCK)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)

    def _mean_vectors(self, links: Csr, entities: Ints) -> Floats:
        which, edge = links.edges_of(entities)
        facts, at = np.unique(links.columns[edge].astype(np.int64), return_inverse=True)
        vectors, known = self._read_facts(facts)
        pairs = np.unique(which[known[at]] * max(len(facts), 1) + at[known[at]])
        owner, at = pairs // max(len(facts), 1), pairs % max(len(facts), 1)
        means = np.zeros((len(entities), vectors.shape[1]))
        add_rows(means, owner, vectors, at)
        counts = np.bincount(owner, minlength=len(entities))
        means /= np.maximum(counts, 1)[:, None]
        missing = counts == 0
        if missing.any() and self._find_matrix("entity") is not None:
            means[missing] = self.view.vectors("entity", entities[missing])
        return means.astype(np.float32)

    def _find_matrix(self, kind: Kind) -> Floats | None:
        matrix = self.view.matrices.get(kind)
        return matrix if matrix is not None and matrix.size else None

    def _read_facts(self, facts: Ints) -> tuple[Floats, Mask]:
        if self._find_matrix("fact") is None:
            return self._compose_vectors(facts)
        return self.view.vectors("fact", facts), self.view.arrays["fact_rows"][facts] >= 0

    def _compose_vectors(self, facts: Ints) -> tuple[Floats, Mask]:
        """Compose fact vectors: half the mean of the participants' names, half the relation."""
        members = self.view.links("fact_entity")
        which, edge = members.edges_of(facts)
        names = self.view.vectors("entity", members.columns[edge].astype(np.int64))
        known = np.bincount(which, weights=names.any(axis=1), minlength=len(facts))
        vectors = np.zeros((len(facts), names.shape[1]), np.float32)
        add_rows(vectors, which, names, np.arange(len(which)))
        vectors /= np.maximum(known, 1).astype(np.float32)[:, None]
        relation = self.view.relations[facts]
        if self.relation_vectors is not None and len(self.relation_vectors):
            vectors += np.where((relation >= 0)[:, None], self.relation_vectors[relation], 0)
            vectors /= 2
        return vectors, known > 0

    @cached_property
    def entity_relations(self) -> EntityRelations:
        """Relation counts and neighbours of the entities."""
        found = count_relations_with_fallback(
            self.view.links("fact_entity"),
            self.view.count("entity"),
            self.view.relations,
            self.view.types,
        )
        return found.select(self.entities)

    @cached_property
    def links(self) -> tuple[Ints, Ints, Floats]:
        """Entity pairs weighted by shared facts, numbered as in `entities`."""
        number = np.full(self.view.count("entity") + 1, -1)
        number[self.entities] = np.arange(len(self.entities))
        incidence = self.view.links("fact_entity")
        fact = incidence.row_numbers()
        entity = number[incidence.columns]
        pairs = np.unique(fact[entity >= 0] * max(len(self.entities), 1) + entity[entity >= 0])
        width = max(len(self.entities), 1)
        return build_entity_links(build_csr(len(incidence), pairs // width, pairs % width))

    @cached_property
    def passage_vectors(self) -> Floats:
        """Vectors of all chunks."""
        matrix = self.view.matrices.get("chunk")
        if matrix is None or not matrix.size:
            raise ConfigError(_NO_VECTORS)
        return self.view.vectors("chunk", np.arange(self.view.count("chunk")))


def group_consecutive(documents: list[str], size: int) -> list[Csr]:
    """Build levels bottom-up: `size` consecutive items form one, until one is left (E²GraphRAG).

    A document of at least `size` passages shares its runs with no other; shorter ones are
    concatenated, so that a corpus of one-passage documents has a tree too.
    """
    if not documents:
        return []
    number = {name: at for at, name in enumerate(dict.fromkeys(documents))}
    document = np.array([number[name] for name in documents])
    order = np.argsort(document, kind="stable")
    sizes = np.bincount(document)
    long = sizes >= size
    # A stretch is one long document, or all short ones between two long ones.
    stretch = np.cumsum(long | np.append(False, long[:-1]))[document[order]]
    begin = np.flatnonzero(np.diff(stretch, prepend=-1))
    place = np.arange(len(order)) - np.repeat(begin, np.diff(np.append(begin, len(order))))
    group = np.cumsum(place % size == 0) - 1
    levels = [build_csr(int(group[-1]) + 1, group, order)]
    while len(levels[-1]) > 1:
        below = len(levels[-1])
        levels.append(build_csr(-(-below // size), np.arange(below) // size, np.arange(below)))
    return levels


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
        raise ConfigError(f"no tree {tree!r}; available: {', '.join(TREES)}")
    if not (chunks if tree in ("raptor", "e2") else len(inputs.entities)):
        found = empty_forest(chunks)
    elif tree in DUAL_OPTIONS:
        scored = build_hierarchy(
            inputs.vectors, inputs.entity_relations, DUAL_OPTIONS[tree], HIERARCHY_LIMITS
        )
        found = _forest_from_entities(
            inputs, tree, scored, community_means(inputs.vectors, scored.tree)
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
    middles = normalize_rows(cluster_means(inputs.passage_vectors, forest.chunks.select(leaves)))
    cluster = leaves[(inputs.passage_vectors[new] @ middles.T).argmax(axis=1)]
    row = forest.chunks.row_numbers()
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
    inputs: TreeInput, tree: str, scored: ScoredHierarchy, middles: Floats | None = None
) -> CommunityForest:
    hierarchy, entities = scored.tree, inputs.entities
    count = len(hierarchy.parent)
    inner = np.flatnonzero(hierarchy.parent >= 0)
    none = np.zeros(0, np.int64)
    return CommunityForest(
        np.full(count, TREES.index(tree)),
        hierarchy.level,
        hierarchy.parent,
        np.where(scored.centres >= 0, entities[scored.centres], -1),
        np.zeros((count, 2), np.uint64),
        np.full(count, -1),
        build_csr(count, hierarchy.parent[inner], inner),
        build_csr(count, hierarchy.leaf, entities, scored.scores),
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
        upper.append(one + links.row_numbers())
        lower.append(first[level + 1] + links.columns.astype(np.int64))
        weight.append(links.weights)
    rows = np.concatenate([np.zeros(0, np.int64), *upper])
    below = np.concatenate([np.zeros(0, np.int64), *lower])
    ties = np.concatenate([np.zeros(0, np.float32), *weight])
    bottom = levels[0]
    leaf = first[depth - 1] + bottom.row_numbers()
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
