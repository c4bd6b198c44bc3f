"""Gradient ascent with Adam over a few arrays."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass
class Adam:
    """The Adam optimiser; each array has its own learning rate."""

    speed: dict[str, float]
    _first: dict[str, Floats] = field(default_factory=dict)
    _second: dict[str, Floats] = field(default_factory=dict)
    _time: int = 0

    def __call__(self, arrays: dict[str, Floats], gradients: dict[str, Floats]) -> None:
        """Take one step uphill, in place."""
        self._time += 1
        for name, gradient in gradients.items():
            first = self._first.setdefault(name, np.zeros_like(gradient))
            second = self._second.setdefault(name, np.zeros_like(gradient))
            first += 0.1 * (gradient - first)
            second += 0.01 * (gradient * gradient - second)
            size = self.speed[name] / (1 - 0.9**self._time)
            arrays[name] += size * first / (np.sqrt(second / (1 - 0.99**self._time)) + 1e-8)


@dataclass(frozen=True, slots=True)
class Choices:
    """Rows grouped by example: `starts` are where each group begins."""

    starts: NDArray[np.int64]
    owner: NDArray[np.int64]

    def chances(self, scores: Floats) -> Floats:
        """Return the softmax of the scores within each group."""
        top = np.maximum.reduceat(scores, self.starts)
        exps = np.exp(scores - top[self.owner])
        share: Floats = (exps / np.add.reduceat(exps, self.starts)[self.owner]).astype(np.float32)
        return share

    def pull(self, scores: Floats, right: Floats) -> tuple[Floats, float]:
        """Return the gradient of the scores and the mean log probability of the right rows."""
        probability = self.chances(scores)
        right_probability = probability * right
        share = np.maximum(np.add.reduceat(right_probability, self.starts), 1e-9)
        gradient = (right_probability / share[self.owner] - probability) / len(self.starts)
        return gradient.astype(np.float32), float(np.log(share).mean())


def choices(sizes: list[int]) -> Choices:
    """Make groups of these sizes, one after another; none is empty."""
    starts = np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0, np.int64)
    return Choices(starts, np.repeat(np.arange(len(sizes)), sizes))
