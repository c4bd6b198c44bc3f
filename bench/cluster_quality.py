"""Quality measures of a partition: modularity, silhouette, purity."""

import numpy as np

from clew.graph.cluster.vectors import BLOCK, group_sums, inverse_norms
from clew.graph.csr import Doubles, Floats, Ints


def modularity(
    labels: Ints, one: Ints, other: Ints, weights: Floats | None = None, resolution: float = 1.0
) -> float:
    """Return modularity: links within communities minus those expected from degrees."""
    weight = np.ones(len(one)) if weights is None else weights.astype(np.float64)
    total = weight.sum()
    if total <= 0:
        return 0.0
    inside = weight[labels[one] == labels[other]].sum()
    count = int(labels.max()) + 1
    ends = np.bincount(labels[one], weights=weight, minlength=count)
    ends += np.bincount(labels[other], weights=weight, minlength=count)
    return float(inside / total - resolution * np.sum((ends / (2 * total)) ** 2))


def silhouette(vectors: Floats, labels: Ints, sample: int = 2000, seed: int = 42) -> float:
    """Return the mean silhouette under cosine distance, for a sample of entities.

    The mean distance to a community follows from the sum of its unit vectors, so it is exact.
    """
    count = int(labels.max()) + 1 if len(labels) else 0
    if count < 2:
        return 0.0
    inverse = inverse_norms(vectors)
    sums = group_sums(vectors, labels, count, inverse)
    sizes = np.bincount(labels, minlength=count)
    rows = np.arange(len(labels))
    if len(rows) > sample:
        rows = np.sort(np.random.default_rng(seed).choice(len(rows), sample, replace=False))
    step = max(1, (BLOCK << 8) // count)
    means = (sums / np.maximum(sizes, 1)[:, None]).T
    widths = [
        _silhouette_widths(
            (vectors[part] * inverse[part][:, None]).astype(np.float64), labels[part], means, sizes
        )
        for part in (rows[first : first + step] for first in range(0, len(rows), step))
    ]
    return float(np.concatenate(widths).mean())


def purity(labels: Ints, types: Ints) -> float:
    """Return the share of entities that have their community's most common type."""
    if not len(labels):
        return 0.0
    width = int(types.max()) + 1
    keys, times = np.unique(labels * width + types, return_counts=True)
    most = np.zeros(int(labels.max()) + 1, np.int64)
    np.maximum.at(most, keys // width, times)
    return float(most.sum() / len(labels))


def _silhouette_widths(units: Doubles, labels: Ints, means: Doubles, sizes: Ints) -> Doubles:
    """Return the silhouette of each row; 0 for one alone in its community."""
    similarity, at = units @ means, np.arange(len(labels))
    size = sizes[labels]
    # A row is not compared with itself.
    itself = np.einsum("ij,ij->i", units, units)
    within = 1 - (similarity[at, labels] * size - itself) / np.maximum(size - 1, 1)
    similarity[at, labels] = -np.inf
    similarity[:, sizes == 0] = -np.inf
    away = 1 - similarity.max(axis=1)
    larger = np.maximum(within, away)
    width = np.divide(away - within, larger, out=np.zeros(len(at)), where=larger > 0)
    return np.where(size > 1, width, 0.0)
