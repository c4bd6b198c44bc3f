"""Dual-perception scores of entities in communities (Youtu-GraphRAG eq. 5-6)."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clew.graph.cluster.kmeans import KMeansOptions
from clew.graph.cluster.ties import (
    CommunityCounts,
    EntityRelations,
    count_by_community,
    jaccard_overlap,
)
from clew.graph.cluster.vectors import (
    BLOCK,
    Doubles,
    Floats,
    Ints,
    group_sums,
    inverse_norms,
    normalize_rows,
)
from clew.graph.csr import Csr


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
