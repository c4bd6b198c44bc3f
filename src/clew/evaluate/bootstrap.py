"""Paired bootstrap over questions: confidence intervals and p-values of differences."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ROUNDS = 10_000
_MAX_DRAWS = 4_000_000  # random draws in memory at once
CONFIDENCE_LEVEL = 0.95


@dataclass(frozen=True)
class BootstrapMeans:
    """Resampled means of every column; all columns of a round use the same questions."""

    means: Floats  # rounds × columns

    def confidence_interval(self, level: float = CONFIDENCE_LEVEL) -> tuple[Floats, Floats]:
        """Return the percentile interval of each column's mean."""
        tail = 100 * (1 - level) / 2
        low, high = np.percentile(self.means, [tail, 100 - tail], axis=0)
        return low, high

    def p_value(self, one: int, other: int) -> float:
        """Two-sided p-value: how often resampling reverses the sign of the difference."""
        gap = self.means[:, one] - self.means[:, other]
        below, above = float(np.mean(gap <= 0)), float(np.mean(gap >= 0))
        return min(1.0, max(2 * min(below, above), 1 / len(gap)))


def resample(values: Floats, rounds: int = ROUNDS, seed: int = 0) -> BootstrapMeans:
    """Draw the questions (rows) with replacement, the same draw for all columns.

    NaN marks a question without a value in a column; means are over the values there are.
    """
    n, columns = values.shape
    if n == 0 or columns == 0:
        return BootstrapMeans(np.zeros((1, columns)))
    present = ~np.isnan(values)
    complete = bool(present.all())
    filled = np.where(present, values, 0.0).astype(np.float32)
    weights = present.astype(np.float32)
    column_means = filled.sum(axis=0) / np.maximum(weights.sum(axis=0), 1)
    rng = np.random.default_rng(seed)
    batch = max(1, min(rounds, _MAX_DRAWS // n))
    batches = []
    for start in range(0, rounds, batch):
        size = min(batch, rounds - start)
        drawn = rng.integers(0, n, (size, n), dtype=np.int32)
        drawn += np.arange(size, dtype=np.int32)[:, None] * n
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        draws = counts.astype(np.float32)
        total = draws @ filled
        if complete:
            batches.append(total / np.float32(n))
            continue
        number = draws @ weights
        # A draw that has no value for a column falls back to the column's mean.
        batches.append(np.where(number > 0, total / np.maximum(number, 1), column_means))
    return BootstrapMeans(np.concatenate(batches).astype(np.float64))


def holm_correction(p_values: list[float]) -> list[float]:
    """Holm's step-down correction for multiple comparisons."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, at in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = highest
    return corrected
