"""K-means: best of several k-means++ starts, trained on a sample when there are many rows."""

from dataclasses import dataclass

import numpy as np

from clew.graph.cluster.vectors import (
    BLOCK,
    content_order,
    group_sums,
    normalize_rows,
    squared_norms,
)
from clew.graph.csr import Floats, Ints


@dataclass(frozen=True, slots=True)
class KMeansOptions:
    """Options of k-means; rows per cluster bound the work of seeding, choosing and training."""

    n_init: int = 5  # Youtu-GraphRAG §3.2
    seed: int = 42  # Youtu-GraphRAG §3.2
    iterations: int = 30
    seeding_rows: int = 16
    choosing_rows: int = 64
    training_rows: int = 256
    passes: int = 2  # over all rows, after training on a sample
    # Compare directions from the mean: where rows differ by noise, distances give one large cluster
    # and single outliers, directions give even ones.
    spherical: bool = False
    tolerance: float = 1e-3  # stop when the mean squared distance falls by less than this share


@dataclass(frozen=True, slots=True)
class KMeansResult:
    """The cluster of each row, and each cluster's mean."""

    labels: Ints
    centroids: Floats
    inertia: float


def cluster_count(entities: int, per_cluster: int = 10, most: int = 200) -> int:
    """Return the number of starting clusters: min(max(2, ⌊|E|/10⌋), 200), Youtu-GraphRAG §3.2."""
    return min(max(2, entities // per_cluster), most)


def kmeans(vectors: Floats, k: int, settings: KMeansOptions | None = None) -> KMeansResult:
    """Find at most `k` non-empty clusters; fewer when there are fewer distinct rows."""
    how = settings or KMeansOptions()
    count = len(vectors)
    if not count or k < 1:
        nothing = np.zeros((min(1, count), vectors.shape[1]), np.float32)
        return KMeansResult(np.zeros(count, np.int64), nothing, 0.0)
    k = min(k, count)
    if how.spherical:
        vectors = normalize_rows(
            vectors - vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        )
    order = content_order(vectors)
    rng = np.random.default_rng(how.seed)
    training = vectors[_sample_rows(order, how.training_rows * k, rng)]
    choosing = training[_sample_rows(np.arange(len(training)), how.choosing_rows * k, rng)]
    tries = (
        _run_lloyd(choosing, _init_centroids(choosing, k, how, at), how) for at in range(how.n_init)
    )
    best = min(tries, key=lambda found: found.inertia)
    if len(training) > len(choosing):
        best = _run_lloyd(training, best.centroids, how)
    if count > len(training):
        best = _run_lloyd(vectors, best.centroids, how, how.passes)
    else:
        place = np.empty(count, np.int64)
        place[order] = best.labels
        best = KMeansResult(place, best.centroids, best.inertia)
    return _drop_empty(best)


def assign_nearest(vectors: Floats, centroids: Floats) -> tuple[Ints, Floats]:
    """Return for each row the nearest centroid and the squared distance to it."""
    labels = np.empty(len(vectors), np.int64)
    distances = np.empty(len(vectors), np.float32)
    lengths, turned = squared_norms(centroids), np.ascontiguousarray(centroids.T) * np.float32(-2)
    for first in range(0, len(vectors), BLOCK):
        rows = np.asarray(vectors[first : first + BLOCK])
        apart = rows @ turned
        apart += lengths
        label = apart.argmin(axis=1)
        own = squared_norms(rows)
        apart_own = apart[np.arange(len(rows)), label] + own
        # Distances below rounding error are 0.
        apart_own[apart_own < own * np.float32(1e-5)] = 0
        labels[first : first + BLOCK], distances[first : first + BLOCK] = label, apart_own
    return labels, distances


def _sample_rows(rows: Ints, most: int, rng: np.random.Generator) -> Ints:
    if len(rows) <= most:
        return rows
    return rows[np.sort(rng.choice(len(rows), most, replace=False))]


def _init_centroids(vectors: Floats, k: int, how: KMeansOptions, attempt: int) -> Floats:
    """Choose starting centroids by k-means++ on a sample."""
    rng = np.random.default_rng([how.seed, attempt])
    rows = vectors[_sample_rows(np.arange(len(vectors)), how.seeding_rows * k, rng)]
    own = squared_norms(rows)
    chosen = [int(rng.integers(len(rows)))]
    distance = np.full(len(rows), np.inf, np.float32)
    while True:
        point = rows[chosen[-1]]
        # Not `@`: starting BLAS threads for a single vector costs more than the product.
        step = own - 2 * np.einsum("ij,j->i", rows, point) + own[chosen[-1]]
        step[step < own * np.float32(1e-5)] = 0
        distance = np.minimum(distance, step)
        distance[chosen[-1]] = 0
        cumulative = np.cumsum(distance, dtype=np.float64)
        if len(chosen) == k or cumulative[-1] <= 0:
            return rows[chosen]
        at = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], "right"))
        chosen.append(min(at, int(np.flatnonzero(distance)[-1])))


def _run_lloyd(
    vectors: Floats, start: Floats, how: KMeansOptions, iterations: int | None = None
) -> KMeansResult:
    """Run Lloyd iterations (assign, average, reseed empty clusters) until convergence."""
    centroids, previous = start, np.inf
    for _ in range(how.iterations if iterations is None else iterations):
        labels, distance = assign_nearest(vectors, centroids)
        inertia = float(distance.sum(dtype=np.float64))
        sizes = np.bincount(labels, minlength=len(centroids))
        sums = group_sums(vectors, labels, len(centroids))
        centroids = (sums / np.maximum(sizes, 1)[:, None]).astype(np.float32)
        if how.spherical:
            centroids = normalize_rows(centroids)
        empty = np.flatnonzero(sizes == 0)
        if previous - inertia <= how.tolerance * inertia and not len(empty):
            break
        previous = inertia
        if not _reseed_empty(vectors, centroids, empty, distance) and inertia == 0:
            break
    labels, distance = assign_nearest(vectors, centroids)
    return KMeansResult(labels, centroids, float(distance.sum(dtype=np.float64)))


def _reseed_empty(vectors: Floats, centroids: Floats, empty: Ints, distance: Floats) -> bool:
    """Move centroids of empty clusters to the rows farthest from their own, in place."""
    if not len(empty):
        return False
    far = np.argsort(-distance, kind="stable")[: len(empty)]
    far = far[distance[far] > 0]
    centroids[empty[: len(far)]] = vectors[far]
    return len(far) > 0


def _drop_empty(result: KMeansResult) -> KMeansResult:
    kept, labels = np.unique(result.labels, return_inverse=True)
    return KMeansResult(labels.astype(np.int64), result.centroids[kept], result.inertia)
