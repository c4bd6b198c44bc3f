"""Sparse adjacency in compressed sparse row (CSR) form, as three NumPy arrays."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.sorted_columns import bisect_column

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Csr:
    """Row `i` has the neighbours `columns[starts[i]:starts[i+1]]`; `weights` is parallel."""

    starts: Ints
    columns: NDArray[np.int32]
    weights: Floats

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.starts) - 1

    def row(self, at: int) -> NDArray[np.int32]:
        """Return the neighbours of one row."""
        return self.columns[self.starts[at] : self.starts[at + 1]]

    def row_weights(self, at: int) -> Floats:
        """Return the weights parallel to `row(at)`."""
        return self.weights[self.starts[at] : self.starts[at + 1]]

    def edges_of(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return all edges leaving `rows`: (index into `rows`, index into `columns`)."""
        return expand_ranges(self.starts[rows], self.starts[rows + 1])

    def degrees(self) -> Ints:
        """Return the number of neighbours of each row."""
        return np.diff(self.starts)

    def degrees_of(self, rows: NDArray[np.integer]) -> Ints:
        """Return the number of neighbours of some rows."""
        found: Ints = self.starts[rows + 1] - self.starts[rows]
        return found

    def row_numbers(self) -> Ints:
        """Return the row of each edge."""
        return np.repeat(np.arange(len(self)), self.degrees())

    def select(self, rows: Ints) -> "Csr":
        """Return some rows, in the order given."""
        _, at = self.edges_of(rows)
        starts = np.append(0, np.cumsum(self.degrees_of(rows)))
        return Csr(starts, self.columns[at], self.weights[at])

    def transpose(self, columns: int) -> "Csr":
        """Swap rows and columns; `columns` is the number of columns."""
        rows = np.repeat(np.arange(len(self), dtype=np.int32), self.degrees())
        return build_csr(columns, self.columns, rows, self.weights)

    def sum_duplicates(self) -> "Csr":
        """Merge equal entries of a row into one, with the sum of their weights."""
        row = self.row_numbers()
        is_first = np.ones(len(row), np.bool_)
        is_first[1:] = (np.diff(row) != 0) | (np.diff(self.columns) != 0)
        first = np.flatnonzero(is_first)
        weights = np.add.reduceat(self.weights, first) if len(first) else np.zeros(0)
        starts = row_starts(row[first], len(self))
        return Csr(starts, self.columns[first], weights.astype(np.float32))


def sorted_unique(values: NDArray[np.integer]) -> Ints:
    """Return each value once, ascending; np.unique hashes, far slower where most values differ."""
    ordered = np.sort(values).astype(np.int64, copy=False)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def isin_sorted(wanted: NDArray[np.integer], known: Ints) -> Mask:
    """Return which of `wanted` are in the ascending `known`."""
    if not len(known):
        return np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    found: Mask = known[at] == wanted
    return found


def expand_ranges(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Expand ranges `first:last` into (range number, index) pairs."""
    size = last - first
    which = np.arange(len(first)).repeat(size)
    begin = first - (size.cumsum() - size)
    found = begin.repeat(size)
    found += np.arange(len(which))
    return which, found


def row_starts(rows: NDArray[np.integer], count: int) -> Ints:
    """Return where each of `count` rows starts among edges sorted by row."""
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=starts[1:])
    return starts


def argsort_numbers(numbers: Ints) -> Ints:
    """Return the order of a stable sort of numbers from 0 on."""
    count = len(numbers)
    if not count or bool((numbers[1:] >= numbers[:-1]).all()):
        return np.arange(count)
    shift = count.bit_length()
    if int(numbers.max()) >> (62 - shift):
        return np.argsort(numbers, kind="stable")
    # Numbers with their positions in the low bits: sorting these is ten times faster.
    packed = (numbers << shift) | np.arange(count)
    packed.sort()
    order: Ints = packed & ((1 << shift) - 1)
    return order


def argsort_pairs(first: NDArray[np.integer], second: Ints) -> Ints:
    """Return the order of a stable sort by `first`, then by the numbers from 0 on in `second`.

    Only equals are sorted again: of numbers that mostly differ this is several times faster.
    """
    order = np.argsort(first)
    ordered = first[order]
    is_same = ordered[1:] == ordered[:-1]
    tied = np.flatnonzero(np.append(False, is_same) | np.append(is_same, False))
    run = np.cumsum(np.append(False, ~is_same))[tied] if len(tied) else tied
    again, by_place = order[tied], np.argsort(order[tied])
    again, run = again[by_place], run[by_place]
    by_second = argsort_numbers(second[again])
    order[tied] = again[by_second][argsort_numbers(run[by_second])]
    return order


def group_equals(values: NDArray[np.integer]) -> tuple[NDArray[np.integer], Ints, Ints]:
    """Return the distinct values, the index of the first of each, and the group of each value.

    The same as np.unique, which sorts stably and therefore several times slower.
    """
    order = np.argsort(values)
    ordered = values[order]
    is_first = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    begins = np.flatnonzero(is_first)
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(is_first) - 1
    first = np.minimum.reduceat(order, begins) if len(begins) else begins
    return ordered[begins], first, group


def csr_to_arrays(links: Csr) -> dict[str, NDArray[Any]]:
    """The parts of a matrix by name, to be kept."""
    return {part: getattr(links, part) for part in Csr.__slots__}


def find_positions(keys: Ints, wanted: NDArray[np.integer]) -> Ints:
    """Index of each wanted key in the ascending keys; every key must be present."""
    if not len(keys) or not len(wanted):
        return np.zeros(len(wanted), np.int64)
    if int(keys[-1]) - int(keys[0]) == len(keys) - 1:  # no key is missing
        return wanted.astype(np.int64) - int(keys[0])
    if len(wanted) < len(keys) >> 7:
        return bisect_column(keys, wanted)
    # A table finds dense keys far faster than binary search; a few sparse ones may follow.
    limit = min(4 * len(keys) + 1024, int(keys[-1]) + 1)
    dense = int(np.searchsorted(keys, limit))
    table = np.zeros(limit, np.int64)
    table[keys[:dense]] = np.arange(dense)
    if dense == len(keys):
        found: Ints = table[wanted]
        return found
    is_dense = wanted < limit
    found = np.where(is_dense, table[np.where(is_dense, wanted, 0)], 0)
    found[~is_dense] = np.searchsorted(keys, wanted[~is_dense])
    return found


def build_csr(
    rows: int,
    sources: NDArray[np.integer],
    targets: NDArray[np.integer],
    weights: Floats | None = None,
) -> Csr:
    """Build a CSR matrix: edges sorted by source, then target; parallel edges are kept."""
    # One combined key sorts three times faster than two.
    width = int(targets.max()) + 1 if len(targets) else 1
    order = argsort_numbers(sources.astype(np.int64) * width + targets)
    in_order = np.ones(len(sources), np.float32) if weights is None else weights[order]
    columns = targets[order].astype(np.int32)
    return Csr(row_starts(sources, rows), columns, in_order.astype(np.float32))
