"""Gradient ascent with Adam over a few arrays."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass
class Adam:
    """The Adam optimiser; each array has its own learning rate."""

    learning_rates: dict[str, float]
    _mean: dict[str, Floats] = field(default_factory=dict)
    _variance: dict[str, Floats] = field(default_factory=dict)
    _step_count: int = 0

    def __call__(self, arrays: dict[str, Floats], gradients: dict[str, Floats]) -> None:
        """Take one step uphill, in place."""
        self._step_count += 1
        for name, gradient in gradients.items():
            first = self._mean.setdefault(name, np.zeros_like(gradient))
            second = self._variance.setdefault(name, np.zeros_like(gradient))
            first += 0.1 * (gradient - first)
            second += 0.01 * (gradient * gradient - second)
            size = self.learning_rates[name] / (1 - 0.9**self._step_count)
            arrays[name] += size * first / (np.sqrt(second / (1 - 0.99**self._step_count)) + 1e-8)


@dataclass(frozen=True, slots=True)
class ExampleGroups:
    """Rows grouped by example: `starts` are where each group begins."""

    starts: NDArray[np.int64]
    group_index: NDArray[np.int64]

    def softmax(self, scores: Floats) -> Floats:
        """Return the softmax of the scores within each group."""
        top = np.maximum.reduceat(scores, self.starts)
        exps = np.exp(scores - top[self.group_index])
        share: Floats = (exps / np.add.reduceat(exps, self.starts)[self.group_index]).astype(
            np.float32
        )
        return share

    def score_gradient(self, scores: Floats, right: Floats) -> tuple[Floats, float]:
        """Return the gradient of the scores and the mean log probability of the right rows."""
        probability = self.softmax(scores)
        right_probability = probability * right
        share = np.maximum(np.add.reduceat(right_probability, self.starts), 1e-9)
        gradient = (right_probability / share[self.group_index] - probability) / len(self.starts)
        return gradient.astype(np.float32), float(np.log(share).mean())


def make_groups(sizes: list[int]) -> ExampleGroups:
    """Make groups of these sizes, one after another; none is empty."""
    starts = np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0, np.int64)
    return ExampleGroups(starts, np.repeat(np.arange(len(sizes)), sizes))
