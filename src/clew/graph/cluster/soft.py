"""Recursive soft clustering of passages (RAPTOR), with PCA instead of UMAP."""

from dataclasses import dataclass

import numpy as np

from clew.graph.cluster.kmeans import cluster_count
from clew.graph.cluster.mixture import fitted, projected, strongest
from clew.graph.cluster.vectors import Doubles, Floats, Ints, by_content
from clew.graph.csr import Csr, csr


@dataclass(frozen=True, slots=True)
class Soft:
    """Options of the RAPTOR clustering."""

    dimensions: int = 10  # RAPTOR's code: dimensions after reduction
    least: float = 0.1  # RAPTOR's code: probability that makes a member
    most: int = 50  # RAPTOR's code: components tried
    max_size: int = 30  # a cluster's members must fit into one prompt
    seed: int = 42


def soft_clusters(vectors: Floats, how: Soft | None = None) -> Csr:
    """Return cluster → its members with probabilities; a member may be in several.

    Every row is in at least one cluster, no cluster is empty or larger than `max_size`, and no two
    have the same members. Clusters that are too large are clustered again, with their own PCA.
    """
    how = how or Soft()
    rows = np.arange(len(vectors))
    waiting: list[tuple[Ints, Doubles]] = [(rows, np.ones(len(rows)))] if len(rows) else []
    found: dict[bytes, tuple[Ints, Doubles]] = {}
    while waiting:
        members, weights = waiting.pop(0)
        if len(members) <= how.max_size and len(members) < max(len(rows), 2):
            found.setdefault(members.tobytes(), (members, weights))
            continue
        parts = _split(vectors[members], weights, how)
        if len(parts) == 1 and len(members) <= how.max_size:
            found.setdefault(members.tobytes(), (members, weights))
            continue
        if len(parts) == 1 or max(len(part) for part, _ in parts) == len(members):
            parts = _sliced(vectors[members], how.max_size)
        waiting += [(members[part], weights[part] * weight) for part, weight in parts]
    kept = sorted(found.values(), key=lambda one: one[0].tolist())
    return _as_csr(kept)


def soft_levels(vectors: Floats, how: Soft | None = None) -> list[Csr]:
    """Build levels bottom-up: each clusters the means of the one below, until one is left."""
    how = how or Soft()
    levels: list[Csr] = []
    rows = vectors
    while len(rows) > 1 or (len(rows) == 1 and not levels):
        # So few rows span no more dimensions than are kept (RAPTOR stops there too).
        few = len(rows) <= min(how.dimensions + 1, how.max_size)
        whole = [(np.arange(len(rows)), np.ones(len(rows)))]
        level = _as_csr(whole) if few else soft_clusters(rows, how)
        if len(level) >= len(rows) > 1:  # soft membership must not stop a level from shrinking
            level = _as_csr([(part, weight) for part, weight in _sliced(rows, how.max_size)])
        levels.append(level)
        rows = means_of(rows, level)
        if len(level) == 1:
            break
    return levels


def means_of(vectors: Floats, clusters: Csr) -> Floats:
    """Return the mean of each cluster's members, weighted by their probabilities."""
    means = np.zeros((len(clusters), vectors.shape[1]), np.float32)
    for at in range(len(clusters)):
        weights = clusters.row_weights(at)
        means[at] = weights @ vectors[clusters.row(at)] / weights.sum()
    return means


def _split(vectors: Floats, weights: Doubles, how: Soft) -> list[tuple[Ints, Doubles]]:
    """Split one group by a mixture fitted in the group's own principal components."""
    points = projected(vectors, how.dimensions, seed=how.seed)
    most = cluster_count(len(vectors), 4, how.most)
    order = by_content(vectors)
    model = fitted(points[order], most, how.seed)
    # The product of probabilities counts: else members would multiply with every split.
    least = how.least / np.maximum(weights, how.least)
    point, component, weight = strongest(model.responsibilities(points), least)
    return [
        (point[component == at], weight[component == at])
        for at in range(len(model.shares))
        if (component == at).any()
    ]


def _sliced(vectors: Floats, size: int) -> list[tuple[Ints, Doubles]]:
    """Cut into even slices along the first axis, where a mixture finds only one group."""
    order = np.argsort(projected(vectors, 1)[:, 0], kind="stable")
    slices = np.array_split(order, -(-len(order) // size))
    return [(np.sort(part), np.ones(len(part))) for part in slices]


def _as_csr(groups: list[tuple[Ints, Doubles]]) -> Csr:
    sizes = np.array([len(members) for members, _ in groups], np.int64)
    if not len(sizes):
        return Csr(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    return csr(
        len(groups),
        np.repeat(np.arange(len(groups)), sizes),
        np.concatenate([members for members, _ in groups]),
        np.concatenate([weights for _, weights in groups]).astype(np.float32),
    )
