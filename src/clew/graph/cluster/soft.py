"""Recursive soft clustering of passages (RAPTOR), with PCA instead of UMAP."""

from dataclasses import dataclass

import numpy as np

from clew.graph.cluster.kmeans import cluster_count
from clew.graph.cluster.mixture import assign_components, project_pca, select_mixture
from clew.graph.cluster.vectors import Doubles, Floats, Ints, content_order
from clew.graph.csr import Csr, build_csr


@dataclass(frozen=True, slots=True)
class RaptorOptions:
    """Options of the RAPTOR clustering."""

    dimensions: int = 10  # RAPTOR's code: dimensions after reduction
    min_probability: float = 0.1  # RAPTOR's code: probability that makes a member
    max_components: int = 50  # RAPTOR's code: components tried
    max_size: int = 30  # a cluster's members must fit into one prompt
    seed: int = 42


def find_soft_clusters(vectors: Floats, how: RaptorOptions | None = None) -> Csr:
    """Return cluster → its members with probabilities; a member may be in several.

    Every row is in at least one cluster, no cluster is empty or larger than `max_size`, and no two
    have the same members. Clusters that are too large are clustered again, with their own PCA.
    """
    how = how or RaptorOptions()
    rows = np.arange(len(vectors))
    waiting: list[tuple[Ints, Doubles]] = [(rows, np.ones(len(rows)))] if len(rows) else []
    found: dict[bytes, tuple[Ints, Doubles]] = {}
    while waiting:
        members, weights = waiting.pop(0)
        if len(members) <= how.max_size and len(members) < max(len(rows), 2):
            found.setdefault(members.tobytes(), (members, weights))
            continue
        parts = _split_cluster(vectors[members], weights, how)
        if len(parts) == 1 and len(members) <= how.max_size:
            found.setdefault(members.tobytes(), (members, weights))
            continue
        if len(parts) == 1 or max(len(part) for part, _ in parts) == len(members):
            parts = _slice_evenly(vectors[members], how.max_size)
        waiting += [(members[part], weights[part] * weight) for part, weight in parts]
    kept = sorted(found.values(), key=lambda one: one[0].tolist())
    return _to_csr(kept)


def build_soft_levels(vectors: Floats, how: RaptorOptions | None = None) -> list[Csr]:
    """Build levels bottom-up: each clusters the means of the one below, until one is left."""
    how = how or RaptorOptions()
    levels: list[Csr] = []
    rows = vectors
    while len(rows) > 1 or (len(rows) == 1 and not levels):
        # So few rows span no more dimensions than are kept (RAPTOR stops there too).
        few = len(rows) <= min(how.dimensions + 1, how.max_size)
        whole = [(np.arange(len(rows)), np.ones(len(rows)))]
        level = _to_csr(whole) if few else find_soft_clusters(rows, how)
        if len(level) >= len(rows) > 1:  # soft membership must not stop a level from shrinking
            level = _to_csr([(part, weight) for part, weight in _slice_evenly(rows, how.max_size)])
        levels.append(level)
        rows = cluster_means(rows, level)
        if len(level) == 1:
            break
    return levels


def cluster_means(vectors: Floats, clusters: Csr) -> Floats:
    """Return the mean of each cluster's members, weighted by their probabilities."""
    means = np.zeros((len(clusters), vectors.shape[1]), np.float32)
    for at in range(len(clusters)):
        weights = clusters.row_weights(at)
        means[at] = weights @ vectors[clusters.row(at)] / weights.sum()
    return means


def _split_cluster(
    vectors: Floats, weights: Doubles, how: RaptorOptions
) -> list[tuple[Ints, Doubles]]:
    """Split one group by a mixture fitted in the group's own principal components."""
    points = project_pca(vectors, how.dimensions, seed=how.seed)
    most = cluster_count(len(vectors), 4, how.max_components)
    order = content_order(vectors)
    model = select_mixture(points[order], most, how.seed)
    # The product of probabilities counts: else members would multiply with every split.
    least = how.min_probability / np.maximum(weights, how.min_probability)
    point, component, weight = assign_components(model.responsibilities(points), least)
    return [
        (point[component == at], weight[component == at])
        for at in range(len(model.shares))
        if (component == at).any()
    ]


def _slice_evenly(vectors: Floats, size: int) -> list[tuple[Ints, Doubles]]:
    """Cut into even slices along the first axis, where a mixture finds only one group."""
    order = np.argsort(project_pca(vectors, 1)[:, 0], kind="stable")
    slices = np.array_split(order, -(-len(order) // size))
    return [(np.sort(part), np.ones(len(part))) for part in slices]


def _to_csr(groups: list[tuple[Ints, Doubles]]) -> Csr:
    sizes = np.array([len(members) for members, _ in groups], np.int64)
    if not len(sizes):
        return Csr(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    return build_csr(
        len(groups),
        np.repeat(np.arange(len(groups)), sizes),
        np.concatenate([members for members, _ in groups]),
        np.concatenate([weights for _, weights in groups]).astype(np.float32),
    )
