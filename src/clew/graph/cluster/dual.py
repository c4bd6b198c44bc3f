"""Dual-perception communities (Youtu-GraphRAG): k-means, then merging by relations and vectors."""

from dataclasses import dataclass

import numpy as np

from clew.graph.cluster.kmeans import cluster_count, kmeans
from clew.graph.cluster.merging import select_merges
from clew.graph.cluster.perception import PAPER, DualOptions, build_profiles, compute_affinities
from clew.graph.cluster.ties import EntityRelations
from clew.graph.cluster.vectors import Floats, Ints, relabel_by_size


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
