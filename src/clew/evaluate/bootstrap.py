"""Paired bootstrap: how sure a difference between recipes is, given these questions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ROUNDS = 10_000
_AT_A_TIME = 4_000_000  # draws held in memory at once
LEVEL = 0.95


@dataclass(frozen=True)
class Spread:
    """Resampled means of every column; columns of one round saw the same questions."""

    means: Floats  # rounds × columns

    def interval(self, level: float = LEVEL) -> tuple[Floats, Floats]:
        """Where the mean of each column lies with this confidence (percentiles)."""
        tail = 100 * (1 - level) / 2
        low, high = np.percentile(self.means, [tail, 100 - tail], axis=0)
        return low, high

    def p_value(self, one: int, other: int) -> float:
        """How often resampling turns the difference round, both ways (two-sided)."""
        gap = self.means[:, one] - self.means[:, other]
        below, above = float(np.mean(gap <= 0)), float(np.mean(gap >= 0))
        return min(1.0, max(2 * min(below, above), 1 / len(gap)))


def resample(values: Floats, rounds: int = ROUNDS, seed: int = 0) -> Spread:
    """Draw the questions (rows) anew with replacement, the same draw for all columns.

    NaN marks a question that a column has no value for; its mean is over those it has.
    """
    n, columns = values.shape
    if n == 0 or columns == 0:
        return Spread(np.zeros((1, columns)))
    held = ~np.isnan(values)
    complete = bool(held.all())
    filled = np.where(held, values, 0.0).astype(np.float32)
    weights = held.astype(np.float32)
    usual = filled.sum(axis=0) / np.maximum(weights.sum(axis=0), 1)
    rng = np.random.default_rng(seed)
    batch = max(1, min(rounds, _AT_A_TIME // n))
    found = []
    for start in range(0, rounds, batch):
        size = min(batch, rounds - start)
        drawn = rng.integers(0, n, (size, n), dtype=np.int32)
        drawn += np.arange(size, dtype=np.int32)[:, None] * n
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        times = counts.astype(np.float32)
        total = times @ filled
        if complete:
            found.append(total / np.float32(n))
            continue
        number = times @ weights
        # A draw without a single question of a column says nothing about it.
        found.append(np.where(number > 0, total / np.maximum(number, 1), usual))
    return Spread(np.concatenate(found).astype(np.float64))


def holm(p_values: list[float]) -> list[float]:
    """Holm's correction: many comparisons at once make chance differences likely."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, at in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = highest
    return corrected
