"""RAPTOR's recursive soft clustering: Gaussian mixtures over principal components, not UMAP."""

from dataclasses import dataclass

import numpy as np

from clew.graph.cluster.kmeans import KMeansOptions, cluster_count, kmeans
from clew.graph.cluster.vectors import BLOCK, content_order
from clew.graph.csr import Csr, Doubles, Floats, Ints, build_csr

# Numbers of components tried: dense where one more matters.
_COMPONENT_COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 26, 31, 37, 43, 50)
_OVERSAMPLES, _POWER_ROUNDS = (
    8,
    4,
)  # extra directions and rounds of subspace iteration, for fast convergence


@dataclass(frozen=True, slots=True)
class GaussianMixture:
    """Components as arrays: mixture weight, mean and variance of each."""

    shares: Doubles
    means: Doubles
    variances: Doubles
    bic: float

    def responsibilities(self, points: Doubles) -> Doubles:
        """Return the probability of each component for each point."""
        return _e_step(points, self)[0]


def project_pca(vectors: Floats, dimensions: int, sample: int = 4096, seed: int = 42) -> Doubles:
    """Project to principal components fitted on a sample; fewer where vectors span fewer."""
    count, width = vectors.shape
    rows = content_order(vectors)
    if count > sample:
        rows = rows[np.sort(np.random.default_rng(seed).choice(count, sample, replace=False))]
    some = vectors[rows].astype(np.float64)
    mean = some.mean(axis=0) if count else np.zeros(width)
    axes = _principal_axes(some - mean, dimensions)
    if not axes.shape[1]:
        return np.zeros((count, 1))
    points = np.empty((count, axes.shape[1]))
    for first in range(0, count, BLOCK):
        points[first : first + BLOCK] = (vectors[first : first + BLOCK] - mean) @ axes
    return points


def _principal_axes(centred: Doubles, dimensions: int) -> Doubles:
    """Return the leading principal axes as columns, by a few rounds of subspace iteration.

    Exact where rows span few directions; a full decomposition took half of the run time.
    """
    width = centred.shape[1]
    basis = np.random.default_rng(0).standard_normal((width, min(dimensions + _OVERSAMPLES, width)))
    for _ in range(_POWER_ROUNDS):
        basis = np.linalg.qr(centred.T @ (centred @ basis))[0]
    projection = centred @ basis
    values, vectors = np.linalg.eigh(projection.T @ projection)
    values, axes = values[::-1], (basis @ vectors)[:, ::-1]
    axes = axes[:, values > max(float(values.max(initial=0.0)) * 1e-9, 1e-12)][:, :dimensions]
    if not axes.shape[1]:
        return np.zeros((width, 0))
    # The sign of an axis is arbitrary: its largest entry is made positive.
    sign = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    signed: Doubles = axes * sign
    return signed


def select_mixture(
    points: Doubles, most: int, seed: int = 42, sample: int = 4096
) -> GaussianMixture:
    """Return the mixture of at most `most` components with the lowest BIC, fitted on a sample."""
    some = points
    if len(points) > sample:
        rng = np.random.default_rng(seed)
        some = points[np.sort(rng.choice(len(points), sample, replace=False))]
    best, worse = fit_mixture(some, 1, seed), 0
    for components in (step for step in _COMPONENT_COUNTS if 1 < step <= min(most, len(some) - 1)):
        found = fit_mixture(some, components, seed)
        worse = 0 if found.bic < best.bic else worse + 1
        best = min(best, found, key=lambda one: one.bic)
        if worse == 2:  # BIC falls, then rises: two rises in a row are past its minimum
            break
    return best


def fit_mixture(
    points: Doubles, components: int, seed: int = 42, iterations: int = 30
) -> GaussianMixture:
    """Fit a mixture by expectation maximisation from a k-means start."""
    count, width = points.shape
    start = kmeans(points.astype(np.float32), components, KMeansOptions(n_init=1, seed=seed))
    # Without a variance floor a component on one point would have infinite density.
    floor = max(float(points.var(axis=0).mean()) * 1e-3, 1e-12)
    weights = np.zeros((count, len(start.centroids)))
    weights[np.arange(count), start.labels] = 1
    model, previous = _m_step(points, weights, floor), -np.inf
    for _ in range(iterations):
        weights, likelihood = _e_step(points, model)
        model = _m_step(points, weights, floor)
        if likelihood - previous < 1e-3 * count:
            break
        previous = likelihood
    likelihood = _e_step(points, model)[1]
    free = len(model.shares) * (2 * width + 1) - 1
    bic = free * float(np.log(max(count, 1))) - 2 * likelihood
    return GaussianMixture(model.shares, model.means, model.variances, bic)


def _m_step(points: Doubles, weights: Doubles, floor: float) -> GaussianMixture:
    mass = np.maximum(weights.sum(axis=0), 1e-9)
    means = (weights.T @ points) / mass[:, None]
    variances = (weights.T @ points**2) / mass[:, None] - means**2
    return GaussianMixture(mass / mass.sum(), means, np.maximum(variances, floor), 0.0)


def _e_step(points: Doubles, model: GaussianMixture) -> tuple[Doubles, float]:
    precision = 1 / model.variances
    distance = points**2 @ precision.T - 2 * points @ (model.means * precision).T
    distance += np.sum(model.means**2 * precision, axis=1)
    log_norm = np.log(model.shares) - 0.5 * np.sum(np.log(2 * np.pi * model.variances), axis=1)
    logs = log_norm - 0.5 * distance
    top = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - top)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total, float(np.sum(np.log(total) + top))


def assign_components(weights: Doubles, least: float | Doubles) -> tuple[Ints, Ints, Doubles]:
    """Return (point, component, probability) of at least `least`; each point keeps its best."""
    keep = weights >= np.reshape(least, (-1, 1))
    keep[np.arange(len(weights)), weights.argmax(axis=1)] = True
    point, component = np.nonzero(keep)
    return point, component, weights[point, component]


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
        single = [(np.arange(len(rows)), np.ones(len(rows)))]
        level = _to_csr(single) if few else find_soft_clusters(rows, how)
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
