"""CSR arrays of more edges than fit into memory: edges come in blocks, results go to files."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Ints, argsort_numbers, find_positions
from clew.out_of_core import Buckets, WorkingMemory, split_evenly

EDGE_BYTES = 64  # taken by an edge while a range of rows is sorted
POSITION_BYTES = 32  # taken by a key while it is looked up
EdgeBlock = tuple[NDArray[np.integer], NDArray[np.integer], tuple[NDArray[Any], ...]]
"""Rows, columns, and the weights of each kind, of some edges."""
EdgeBlocks = Callable[[], Iterator[EdgeBlock]]
"""Returns all edges, block by block; it is called twice."""


@dataclass(frozen=True, slots=True)
class WeightedCsr:
    """A CSR with several weights for each edge."""

    starts: Ints
    columns: NDArray[np.int32]
    weights: tuple[NDArray[np.float32], ...]

    def edge_blocks(self, memory: WorkingMemory) -> Iterator[EdgeBlock]:
        """All edges, in order."""
        for some in memory.blocks(len(self.columns), EDGE_BYTES):
            first = int(np.searchsorted(self.starts, some.start, "right")) - 1
            last = int(np.searchsorted(self.starts, some.stop, "left"))
            edges = np.clip(self.starts[first : last + 1], some.start, some.stop)
            rows = np.repeat(np.arange(first, last), np.diff(edges))
            yield rows, self.columns[some], tuple(one[some] for one in self.weights)


def build_csr_in_blocks(
    shape: tuple[int, int], kinds: int, blocks: EdgeBlocks, memory: WorkingMemory
) -> WeightedCsr:
    """Build a CSR matrix with `kinds` weights for each edge.

    Edges are sorted by row, then column; parallel edges are kept in the order in which they come,
    so that the result equals that of `build_csr` byte for byte.
    """
    starts = _count_edges(shape[0], blocks, memory)
    edges = split_evenly(starts, memory.rows_at_once(EDGE_BYTES))
    record = _record_type(kinds)
    buckets = Buckets(memory, edges, record)
    for rows, columns, weights in blocks():
        buckets.add(rows, _pack(record, rows, columns, weights))
    total = int(starts[-1])
    found_columns = memory.empty(total, np.int32)
    found_weights = tuple(memory.empty(total, np.float32) for _ in range(kinds))
    done = 0
    for held in buckets:
        order = argsort_numbers(held["row"].astype(np.int64) * shape[1] + held["column"])
        some = slice(done, done + len(held))
        found_columns[some] = held["column"][order]
        for at, kind in enumerate(found_weights):
            kind[some] = held[f"weight{at}"][order]
        done = some.stop
        memory.release()
    return WeightedCsr(starts, found_columns, found_weights)


def _count_edges(count: int, blocks: EdgeBlocks, memory: WorkingMemory) -> Ints:
    """Where the edges of each row will start."""
    starts: Ints = memory.empty(count + 1, np.int64)
    starts[:] = 0
    for rows, _, _ in blocks():
        if len(rows):
            first = int(rows.min())
            found = np.bincount(rows - first)
            starts[first + 1 : first + 1 + len(found)] += found
    np.cumsum(starts, out=starts)
    return starts


def _record_type(kinds: int) -> np.dtype[Any]:
    weights = [(f"weight{at}", np.float32) for at in range(kinds)]
    return np.dtype([("row", np.int32), ("column", np.int32), *weights])


def _pack(
    record: np.dtype[Any],
    rows: NDArray[np.integer],
    columns: NDArray[np.integer],
    weights: Sequence[NDArray[Any]],
) -> NDArray[Any]:
    found = np.empty(len(rows), record)
    found["row"], found["column"] = rows, columns
    for at, one in enumerate(weights):
        found[f"weight{at}"] = one
    return found


def find_positions_in_blocks(
    keys: Ints, wanted: NDArray[np.integer], memory: WorkingMemory
) -> NDArray[np.int64]:
    """The same as `find_positions`, into an array that may be larger than memory."""
    if memory.fits(len(wanted), POSITION_BYTES):
        return find_positions(keys, wanted)
    found = memory.empty(len(wanted), np.int64)
    for some in memory.blocks(len(wanted), POSITION_BYTES):
        found[some] = find_positions(keys, wanted[some])
    return found
