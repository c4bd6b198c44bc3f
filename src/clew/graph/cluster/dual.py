"""Dual-perception communities (Youtu-GraphRAG eq. 5-7): k-means, then merging by score."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clew.graph.cluster.kmeans import KMeansOptions, cluster_count, kmeans
from clew.graph.cluster.relations import (
    CommunityCounts,
    EntityRelations,
    count_by_community,
    jaccard_overlap,
)
from clew.graph.cluster.vectors import (
    BLOCK,
    group_sums,
    inverse_norms,
    normalize_rows,
    relabel_by_size,
)
from clew.graph.csr import Csr, Doubles, Floats, Ints, expand_ranges, sorted_unique

_MEMBER_BLOCK = 1 << 19  # members scored against another community at once


@dataclass(frozen=True, slots=True)
class DualOptions:
    """Options for scoring and merging communities."""

    evidence: Literal["relations", "neighbours"]
    profile: Literal["total", "mean", "set"]  # how members' relations are aggregated
    relational: float  # weight of the overlap
    semantic: float  # weight of the cosine
    rule: Literal["expected", "centres"]
    threshold: float  # ε for "expected", the least similarity for "centres"
    max_size: int | None = None  # no merge makes a larger community
    max_iterations: int = 20
    candidates: int = 16  # nearest communities that one may merge with
    start: KMeansOptions = field(default_factory=KMeansOptions)
    per_cluster: int = 10  # β: entities per starting cluster, Youtu-GraphRAG §3.2


PAPER = DualOptions(
    evidence="relations",
    profile="total",
    relational=1.0,  # eq. 5
    semantic=1.0,  # eq. 5's λ; the paper gives no value
    rule="expected",
    threshold=0.05,  # eq. 7's ε; the paper gives no value
)


# A sum of members' relations dwarfs any one member's, so in `PAPER` the relational term vanishes
# as communities grow; with their mean it does not (docs/decisions/0006-communities.md).
BALANCED = replace(PAPER, profile="mean")


RELEASED = DualOptions(
    evidence="neighbours",
    profile="set",
    relational=0.3,  # authors' code
    semantic=0.7,  # authors' code
    rule="centres",
    threshold=0.5,  # authors' code
    max_size=100,  # authors' code
)


@dataclass(frozen=True, slots=True)
class CommunityProfiles:
    """Precomputed data to score entities against the communities of one partition."""

    vectors: Floats
    inverse: Floats  # one over each vector's length
    evidence: Csr
    relation_counts: CommunityCounts
    centroids: Floats  # unit length
    sizes: Ints
    how: DualOptions

    def relational_score(self, rows: Ints, labels: Ints) -> Doubles:
        """Return the weighted relation overlap of each row with a community."""
        return self.how.relational * jaccard_overlap(
            self.evidence, rows, self.relation_counts, labels
        )

    def semantic_score(self, rows: Ints, labels: Ints) -> Doubles:
        """Return the weighted cosine of each row to a community's centroid."""
        dots = np.einsum("ij,ij->i", self.vectors[rows], self.centroids[labels])
        cosine: Doubles = (dots * self.inverse[rows]).astype(np.float64)
        return self.how.semantic * cosine


def build_profiles(
    vectors: Floats, ties: EntityRelations, labels: Ints, how: DualOptions
) -> CommunityProfiles:
    """Compute relation counts and centroids of each community."""
    sizes = np.bincount(labels)
    evidence = select_evidence(ties, how)
    # The cosine to a sum is the cosine to a mean (eq. 6).
    units = normalize_rows(group_sums(vectors, labels, len(sizes)))
    counts = count_by_community(evidence, labels, len(sizes), how.profile)
    return CommunityProfiles(vectors, inverse_norms(vectors), evidence, counts, units, sizes, how)


def select_evidence(ties: EntityRelations, how: DualOptions) -> Csr:
    """Return the links that count as evidence: relations or neighbours."""
    return ties.relations if how.evidence == "relations" else ties.neighbours


def compute_affinities(
    vectors: Floats, ties: EntityRelations, labels: Ints, how: DualOptions = PAPER
) -> tuple[Floats, Ints]:
    """Return φ of each entity in its community (eq. 5), and each community's centre (argmax).

    Labels have no gaps; they may come from any partitioner.
    """
    return affinities_from_profiles(build_profiles(vectors, ties, labels, how), labels)


def affinities_from_profiles(scene: CommunityProfiles, labels: Ints) -> tuple[Floats, Ints]:
    """Compute affinities from precomputed profiles."""
    scores = np.empty(len(labels), np.float32)
    for rows in iterate_blocks(np.arange(len(labels))):
        scores[rows] = scene.relational_score(rows, labels[rows]) + scene.semantic_score(
            rows, labels[rows]
        )
    order = np.lexsort((-scores, labels))
    return scores, order[np.searchsorted(labels[order], np.arange(len(scene.sizes)))]


def assign_communities(
    vectors: Floats, ties: EntityRelations, labels: Ints, how: DualOptions = PAPER
) -> Ints:
    """Assign entities with label -1 to the community of highest φ among the nearest."""
    placed, known = labels.copy(), np.flatnonzero(labels >= 0)
    if not len(known):
        return np.zeros_like(labels)
    scene = build_profiles(vectors[known], ties.select(known), labels[known], how)
    evidence = select_evidence(ties, how)
    for rows in iterate_blocks(np.flatnonzero(labels < 0)):
        here = vectors[rows]
        cosine = (here @ scene.centroids.T) * inverse_norms(here)[:, None]
        near = top_columns(cosine, how.candidates)
        shared = jaccard_overlap(
            evidence, np.repeat(rows, near.shape[1]), scene.relation_counts, near.ravel()
        )
        score = how.relational * shared.reshape(near.shape)
        score = score + how.semantic * np.take_along_axis(cosine, near, 1)
        placed[rows] = near[np.arange(len(rows)), score.argmax(axis=1)]
    return placed


def iterate_blocks(rows: Ints) -> Iterator[Ints]:
    """Yield rows in blocks that fit in the cache."""
    for first in range(0, len(rows), BLOCK):
        yield rows[first : first + BLOCK]


def top_columns(scores: NDArray[np.floating], most: int) -> Ints:
    """Return per row the columns with the highest scores, ascending by number."""
    if most >= scores.shape[1]:
        return np.tile(np.arange(scores.shape[1]), (len(scores), 1))
    return np.sort(np.argpartition(scores, -most, axis=1)[:, -most:], axis=1)


def select_merges(scene: CommunityProfiles, labels: Ints) -> tuple[Ints, Ints, Doubles]:
    """Return disjoint pairs to merge and their scores, best first, within the size limit."""
    how = scene.how
    one, other = _nearest_pairs(scene.centroids, how.candidates)
    if how.max_size is not None:
        fits = scene.sizes[one] + scene.sizes[other] <= how.max_size
        one, other = one[fits], other[fits]
    if not len(one):
        return one, other, np.zeros(0)
    if how.rule == "expected":
        score = compute_gaps(scene, labels, one, other)
        cost, wanted = score, score < how.threshold
    else:
        score = centre_similarity(scene, affinities_from_profiles(scene, labels)[1], one, other)
        cost, wanted = -score, score >= how.threshold
    order = np.lexsort((other, one, cost))
    picked = _select_disjoint(one, other, order[wanted[order]], len(scene.sizes))
    return one[picked], other[picked], score[picked]


def compute_gaps(scene: CommunityProfiles, labels: Ints, one: Ints, other: Ints) -> Doubles:
    """Return how much better members fit their own community on average (eq. 7).

    The larger direction counts; the mean cosine has a closed form, the overlap is counted.
    """
    sizes = scene.sizes
    order, begin = np.argsort(labels, kind="stable"), np.cumsum(sizes) - sizes
    units = group_sums(scene.vectors, labels, len(sizes), scene.inverse) / sizes[:, None]
    cosine = scene.how.semantic * (units @ scene.centroids.T.astype(np.float64))
    own = np.zeros(len(sizes))
    for rows in iterate_blocks(np.arange(len(labels))):
        fit = scene.relational_score(rows, labels[rows])
        own += np.bincount(labels[rows], weights=fit, minlength=len(sizes))
    own = own / sizes + np.diag(cosine)
    found: Doubles = np.empty((2, len(one)))
    for direction, (own_side, other_side) in enumerate(((one, other), (other, one))):
        found[direction] = own[own_side] - cosine[own_side, other_side]
        for part in _split_by_size(sizes[own_side]):
            which, at = expand_ranges(
                begin[own_side[part]], begin[own_side[part]] + sizes[own_side[part]]
            )
            fit = scene.relational_score(order[at], other_side[part][which])
            found[direction, part] -= np.bincount(which, weights=fit) / sizes[own_side[part]]
    larger: Doubles = found.max(axis=0)
    return larger


def centre_similarity(scene: CommunityProfiles, centres: Ints, one: Ints, other: Ints) -> Doubles:
    """Return the similarity of the centres of each pair of communities."""
    units = scene.vectors[centres] * scene.inverse[centres][:, None]
    count = len(centres)
    counts = count_by_community(
        scene.evidence.select(centres), np.arange(count), count, scene.how.profile
    )
    shared = jaccard_overlap(scene.evidence, centres[one], counts, other)
    cosine: Doubles = np.einsum("ij,ij->i", units[one], units[other]).astype(np.float64)
    return scene.how.relational * shared + scene.how.semantic * cosine


def _nearest_pairs(centroids: Floats, candidates: int) -> tuple[Ints, Ints]:
    """Pair each community with its nearest ones, the lower number first."""
    count = len(centroids)
    if count < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    near = []
    for rows in iterate_blocks(np.arange(count)):
        cosine = centroids[rows] @ centroids.T
        cosine[np.arange(len(rows)), rows] = -2  # nothing merges with itself
        near.append(top_columns(cosine, min(candidates, count - 1)))
    other = np.concatenate(near)
    one, other = np.repeat(np.arange(count), other.shape[1]), other.ravel()
    distinct_pair = one != other
    low, high = np.minimum(one, other)[distinct_pair], np.maximum(one, other)[distinct_pair]
    keys = sorted_unique(low * count + high)
    return keys // count, keys % count


def _select_disjoint(one: Ints, other: Ints, order: Ints, count: int) -> Ints:
    """Select pairs in order, skipping those with a community already taken."""
    taken, chosen = np.zeros(count, np.bool_), []
    for at in order.tolist():
        if not (taken[one[at]] or taken[other[at]]):
            taken[one[at]] = taken[other[at]] = True
            chosen.append(at)
    return np.array(chosen, np.int64)


def _split_by_size(sizes: Ints) -> Iterator[Ints]:
    """Yield runs of pairs with at most about `_MEMBER_BLOCK` members in total."""
    run = (np.cumsum(sizes) - sizes) // _MEMBER_BLOCK
    begins = np.flatnonzero(np.diff(run, prepend=-1))
    for begin, end in zip(begins, np.append(begins[1:], len(run)), strict=True):
        yield np.arange(begin, end)


@dataclass(frozen=True, slots=True)
class CommunityMerge:
    """One merge; a community has the number of the lowest starting cluster in it."""

    iteration: int
    kept: int
    gone: int
    score: float  # the gap under "expected", the similarity under "centres"


@dataclass(frozen=True, slots=True)
class Communities:
    """The community of each entity, and the merges that led to it."""

    labels: Ints
    centres: Ints  # per community, the entity with the highest score
    scores: Floats  # per entity, φ in its own community
    start: Ints  # the k-means cluster of each entity
    merges: tuple[CommunityMerge, ...]


def find_communities(
    vectors: Floats, ties: EntityRelations, how: DualOptions = PAPER
) -> Communities:
    """Cluster by k-means, then merge communities until none qualifies."""
    if not len(vectors):
        none = np.zeros(0, np.int64)
        return Communities(none, none, np.zeros(0, np.float32), none, ())
    start = kmeans(vectors, cluster_count(len(vectors), how.per_cluster), how.start).labels
    labels, names = start, np.arange(int(start.max()) + 1)
    merges: list[CommunityMerge] = []
    for iteration in range(how.max_iterations):
        one, other, score = select_merges(build_profiles(vectors, ties, labels, how), labels)
        if not len(one):
            break
        pairs = zip(names[one].tolist(), names[other].tolist(), score.tolist(), strict=True)
        merges += [CommunityMerge(iteration, kept, gone, by) for kept, gone, by in pairs]
        into = np.arange(len(names))
        into[other] = one
        left, place = np.unique(into, return_inverse=True)
        names, labels = names[left], place[labels]
    labels = relabel_by_size(labels)
    scores, centres = compute_affinities(vectors, ties, labels, how)
    return Communities(labels, centres, scores, start, tuple(merges))
