"""Dual-perception communities (Youtu-GraphRAG): k-means, then merging by relations and vectors."""

from dataclasses import dataclass

import numpy as np

from clew.graph.cluster.kmeans import cluster_count, kmeans
from clew.graph.cluster.merging import mergeable
from clew.graph.cluster.perception import PAPER, Dual, affinities, scene_of
from clew.graph.cluster.ties import Ties
from clew.graph.cluster.vectors import Floats, Ints, without_gaps


@dataclass(frozen=True, slots=True)
class Merge:
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
    merges: tuple[Merge, ...]


def communities(vectors: Floats, ties: Ties, how: Dual = PAPER) -> Communities:
    """Cluster by k-means, then merge communities until none qualifies."""
    if not len(vectors):
        none = np.zeros(0, np.int64)
        return Communities(none, none, np.zeros(0, np.float32), none, ())
    start = kmeans(vectors, cluster_count(len(vectors), how.per_cluster), how.start).labels
    labels, names = start, np.arange(int(start.max()) + 1)
    merges: list[Merge] = []
    for iteration in range(how.max_iterations):
        one, other, score = mergeable(scene_of(vectors, ties, labels, how), labels)
        if not len(one):
            break
        pairs = zip(names[one].tolist(), names[other].tolist(), score.tolist(), strict=True)
        merges += [Merge(iteration, kept, gone, by) for kept, gone, by in pairs]
        into = np.arange(len(names))
        into[other] = one
        left, place = np.unique(into, return_inverse=True)
        names, labels = names[left], place[labels]
    labels = without_gaps(labels)
    scores, centres = affinities(vectors, ties, labels, how)
    return Communities(labels, centres, scores, start, tuple(merges))
