"""Gaussian mixtures with diagonal covariance, after a projection to few dimensions."""

from dataclasses import dataclass

import numpy as np

from clew.graph.cluster.kmeans import KMeans, kmeans
from clew.graph.cluster.vectors import BLOCK, Doubles, Floats, Ints, by_content

# Numbers of components tried, as far as allowed: close together where one more matters.
_STEPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 26, 31, 37, 43, 50)

_SPARE, _ROUNDS = 8, 4  # more directions than asked, so that those asked for settle soon


@dataclass(frozen=True, slots=True)
class Mixture:
    """Components as arrays: share, mean and variance of each."""

    shares: Doubles
    means: Doubles
    variances: Doubles
    bic: float

    def responsibilities(self, points: Doubles) -> Doubles:
        """How probably each point comes from each component."""
        return _expected(points, self)[0]


def projected(vectors: Floats, dimensions: int, sample: int = 4096, seed: int = 42) -> Doubles:
    """Principal components, found on a sample; fewer where the vectors span fewer."""
    count, width = vectors.shape
    rows = by_content(vectors)
    if count > sample:
        rows = rows[np.sort(np.random.default_rng(seed).choice(count, sample, replace=False))]
    some = vectors[rows].astype(np.float64)
    mean = some.mean(axis=0) if count else np.zeros(width)
    axes = _axes(some - mean, dimensions)
    if not axes.shape[1]:
        return np.zeros((count, 1))
    points = np.empty((count, axes.shape[1]))
    for first in range(0, count, BLOCK):
        points[first : first + BLOCK] = (vectors[first : first + BLOCK] - mean) @ axes
    return points


def _axes(centred: Doubles, dimensions: int) -> Doubles:
    """The directions in which rows differ most, as columns, by a few rounds of subspace iteration.

    Exact where rows span few directions; a full decomposition took half of all the time.
    """
    width = centred.shape[1]
    basis = np.random.default_rng(0).standard_normal((width, min(dimensions + _SPARE, width)))
    for _ in range(_ROUNDS):
        basis = np.linalg.qr(centred.T @ (centred @ basis))[0]
    shadow = centred @ basis
    spread, turns = np.linalg.eigh(shadow.T @ shadow)
    spread, axes = spread[::-1], (basis @ turns)[:, ::-1]
    axes = axes[:, spread > max(float(spread.max(initial=0.0)) * 1e-9, 1e-12)][:, :dimensions]
    if not axes.shape[1]:
        return np.zeros((width, 0))
    # The sign of an axis is arbitrary: its largest number is made positive.
    turn = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    turned: Doubles = axes * turn
    return turned


def fitted(points: Doubles, most: int, seed: int = 42, sample: int = 4096) -> Mixture:
    """The mixture of at most `most` components with the lowest BIC, fitted on a sample."""
    some = points
    if len(points) > sample:
        rng = np.random.default_rng(seed)
        some = points[np.sort(rng.choice(len(points), sample, replace=False))]
    best, worse = mixture(some, 1, seed), 0
    for components in (step for step in _STEPS if 1 < step <= min(most, len(some) - 1)):
        found = mixture(some, components, seed)
        worse = 0 if found.bic < best.bic else worse + 1
        best = min(best, found, key=lambda one: one.bic)
        if worse == 2:  # BIC falls, then rises: two rises in a row are past its valley
            break
    return best


def mixture(points: Doubles, components: int, seed: int = 42, iterations: int = 30) -> Mixture:
    """Expectation maximisation from a k-means start."""
    count, width = points.shape
    start = kmeans(points.astype(np.float32), components, KMeans(n_init=1, seed=seed))
    # A component on one point would have infinite density without a least variance.
    floor = max(float(points.var(axis=0).mean()) * 1e-3, 1e-12)
    weights = np.zeros((count, len(start.centroids)))
    weights[np.arange(count), start.labels] = 1
    now, before = _maximised(points, weights, floor), -np.inf
    for _ in range(iterations):
        weights, likelihood = _expected(points, now)
        now = _maximised(points, weights, floor)
        if likelihood - before < 1e-3 * count:
            break
        before = likelihood
    likelihood = _expected(points, now)[1]
    free = len(now.shares) * (2 * width + 1) - 1
    bic = free * float(np.log(max(count, 1))) - 2 * likelihood
    return Mixture(now.shares, now.means, now.variances, bic)


def _maximised(points: Doubles, weights: Doubles, floor: float) -> Mixture:
    mass = np.maximum(weights.sum(axis=0), 1e-9)
    means = (weights.T @ points) / mass[:, None]
    variances = (weights.T @ points**2) / mass[:, None] - means**2
    return Mixture(mass / mass.sum(), means, np.maximum(variances, floor), 0.0)


def _expected(points: Doubles, now: Mixture) -> tuple[Doubles, float]:
    """Responsibilities and the log-likelihood."""
    precise = 1 / now.variances
    apart = points**2 @ precise.T - 2 * points @ (now.means * precise).T
    apart += np.sum(now.means**2 * precise, axis=1)
    level = np.log(now.shares) - 0.5 * np.sum(np.log(2 * np.pi * now.variances), axis=1)
    logs = level - 0.5 * apart
    top = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - top)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total, float(np.sum(np.log(total) + top))


def strongest(weights: Doubles, least: float | Doubles) -> tuple[Ints, Ints, Doubles]:
    """(point, component, probability) of at least `least`; every point keeps its strongest."""
    keep = weights >= np.reshape(least, (-1, 1))
    keep[np.arange(len(weights)), weights.argmax(axis=1)] = True
    point, component = np.nonzero(keep)
    return point, component, weights[point, component]
