"""Gaussian mixtures with diagonal covariance, and PCA to reduce dimensions first."""

from dataclasses import dataclass

import numpy as np

from clew.graph.cluster.kmeans import KMeansOptions, kmeans
from clew.graph.cluster.vectors import BLOCK, Doubles, Floats, Ints, content_order

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
    """Return responsibilities and the log-likelihood."""
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
