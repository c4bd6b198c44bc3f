"""Compressed sparse rows: who is next to whom, as three arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Csr:
    """Row `i` is next to `columns[starts[i]:starts[i+1]]` with `weights` alike."""

    starts: Ints
    columns: NDArray[np.int32]
    weights: Floats

    def __len__(self) -> int:
        """How many rows."""
        return len(self.starts) - 1

    def row(self, at: int) -> NDArray[np.int32]:
        """The neighbours of one row."""
        return self.columns[self.starts[at] : self.starts[at + 1]]

    def row_weights(self, at: int) -> Floats:
        """The weights beside `row(at)`."""
        return self.weights[self.starts[at] : self.starts[at + 1]]

    def edges_of(self, rows: Ints) -> tuple[Ints, Ints]:
        """All edges leaving `rows`: (index into `rows`, index into `columns`)."""
        return spread(self.starts[rows], self.starts[rows + 1])

    def degrees(self) -> Ints:
        """How many neighbours each row has."""
        return np.diff(self.starts)

    def degrees_of(self, rows: NDArray[np.integer]) -> Ints:
        """How many neighbours some rows have."""
        found: Ints = self.starts[rows + 1] - self.starts[rows]
        return found

    def transposed(self, columns: int) -> "Csr":
        """Columns become rows; `columns` says how many there are."""
        rows = np.repeat(np.arange(len(self), dtype=np.int32), self.degrees())
        return csr(columns, self.columns, rows, self.weights)


def distinct(values: NDArray[np.integer]) -> Ints:
    """Each value once, ascending. NumPy's own hashes, which takes far longer where most differ."""
    ordered = np.sort(values).astype(np.int64, copy=False)
    fresh = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return ordered[fresh]


def spread(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Ranges written out: (which range, each index in it)."""
    size = last - first
    which = np.repeat(np.arange(len(first)), size)
    begin = first - (np.cumsum(size) - size)
    return which, np.arange(len(which)) + np.repeat(begin, size)


def csr(
    rows: int,
    sources: NDArray[np.integer],
    targets: NDArray[np.integer],
    weights: Floats | None = None,
) -> Csr:
    """Sort edges by source, then target; parallel edges all stay."""
    # One combined key sorts three times faster than two.
    width = int(targets.max()) + 1 if len(targets) else 1
    order = np.argsort(sources.astype(np.int64) * width + targets, kind="stable")
    starts = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=rows), out=starts[1:])
    sorted_weights = np.ones(len(sources), np.float32) if weights is None else weights[order]
    return Csr(starts, targets[order].astype(np.int32), sorted_weights.astype(np.float32))
