"""Gradient ascent with Adam over a handful of arrays."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass
class Adam:
    """Moves arrays along their gradients; each array has its own speed."""

    speed: dict[str, float]
    _first: dict[str, Floats] = field(default_factory=dict)
    _second: dict[str, Floats] = field(default_factory=dict)
    _time: int = 0

    def __call__(self, arrays: dict[str, Floats], gradients: dict[str, Floats]) -> None:
        """One step uphill, in place."""
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
    """Rows that belong together by twos and more: `starts` are where each group begins."""

    starts: NDArray[np.int64]
    owner: NDArray[np.int64]

    def chances(self, scores: Floats) -> Floats:
        """Each row's share of its group."""
        top = np.maximum.reduceat(scores, self.starts)
        grown = np.exp(scores - top[self.owner])
        share: Floats = (grown / np.add.reduceat(grown, self.starts)[self.owner]).astype(np.float32)
        return share

    def pull(self, scores: Floats, right: Floats) -> tuple[Floats, float]:
        """Where scores should go so that the right rows win, and how well they do (mean log)."""
        chance = self.chances(scores)
        good = chance * right
        share = np.maximum(np.add.reduceat(good, self.starts), 1e-9)
        pull = (good / share[self.owner] - chance) / len(self.starts)
        return pull.astype(np.float32), float(np.log(share).mean())


def choices(sizes: list[int]) -> Choices:
    """Groups of these sizes, one after another; none is empty."""
    starts = np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0, np.int64)
    return Choices(starts, np.repeat(np.arange(len(sizes)), sizes))
