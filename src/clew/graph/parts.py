"""Parts of a computation that do not depend on each other: done here, or given to a cluster.

Whoever computes says how it is split: names by the hash of their key, passages and vectors by
ranges. The result is that of one part, whatever the number of parts and wherever they are done.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Ints


class RunParts(Protocol):
    """Computes a function of each part."""

    @property
    def count(self) -> int:
        """Into how many parts a computation is best split."""

    def __call__(
        self,
        function: Callable[..., Any],
        parts: Sequence[tuple[Any, ...]],
        shared: tuple[Any, ...] = (),
    ) -> list[Any]:
        """The results of `function(*part, *shared)`, in the order of the parts."""


class RunHere:
    """Computes all parts in this process, one after another."""

    count = 1

    def __call__(
        self,
        function: Callable[..., Any],
        parts: Sequence[tuple[Any, ...]],
        shared: tuple[Any, ...] = (),
    ) -> list[Any]:
        """The results, in the order of the parts."""
        return [function(*part, *shared) for part in parts]


HERE = RunHere()


def split_range(count: int, parts: int) -> list[slice]:
    """So many numbers as at most so many ranges of nearly the same length; at least one range."""
    edges = np.linspace(0, count, max(1, min(parts, count)) + 1).astype(np.int64).tolist()
    return [slice(first, last) for first, last in zip(edges[:-1], edges[1:], strict=True)]


def split_by_key(hashes: NDArray[np.integer], parts: int) -> list[Ints]:
    """The positions of each block of keys, ascending: equal keys are in the same block."""
    if parts <= 1:
        return [np.arange(len(hashes))]
    block = np.asarray(hashes).astype(np.int64).view(np.uint64) % np.uint64(parts)
    return [np.flatnonzero(block == number) for number in range(parts)]
