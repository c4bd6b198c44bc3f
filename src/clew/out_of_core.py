"""Arrays larger than memory: kept in scratch files, worked on in blocks, sorted by buckets.

`WorkingMemory` says how much memory there is. Without a limit everything is in memory and is one
block, so that the same code is as fast as if there were no limit; results never depend on it.
"""

import ctypes
import os
import sys
import weakref
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from mmap import MADV_DONTNEED, mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
Ints = NDArray[np.int64]
_BLOCK_SHARE = 12  # of the limit: what is computed from one block takes as much at most
_ARRAY_SHARE = 64  # of the limit: larger arrays are kept in files
# Freed memory that stays with this process, and arrays that are returned to the system at once.
_KEPT_BYTES, _RETURNED_BYTES = 64 << 20, 32 << 20
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as glibc's malloc.h numbers its parameters
_COPIED_BYTES = 64  # reckoned for each element of a column that is copied or searched


@dataclass(frozen=True, eq=False)
class WorkingMemory:
    """How many bytes may be used at once (None: any number), and where scratch files go."""

    limit: int | None = None
    folder: Path | None = None
    _maps: "weakref.WeakSet[mmap]" = field(default_factory=weakref.WeakSet, repr=False)
    _watched: list[Callable[[], None]] = field(default_factory=list, repr=False)

    @property
    def is_bounded(self) -> bool:
        """Whether there is a limit."""
        return self.limit is not None

    def holds(self, size: int) -> bool:
        """Whether an array of so many bytes is kept in memory."""
        return self.limit is None or size <= self.limit // _ARRAY_SHARE

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
        """An array to be filled; a large one is in a file that is gone when it is."""
        shape = shape if isinstance(shape, tuple) else (shape,)
        size = prod(shape) * np.dtype(dtype).itemsize
        if self.holds(size):
            return np.empty(shape, dtype)
        with TemporaryFile(dir=self.folder) as file:
            _reserve(file, size)
            try:
                held = mmap(file.fileno(), size)
            except OSError as error:  # the process may not have so much address space
                raise MemoryError from error
        self._maps.add(held)
        return np.ndarray(shape, dtype, held)

    def rows_at_once(self, row_bytes: int) -> int | None:
        """How many rows may be worked on at once, each with so many bytes; None for any number."""
        return None if self.limit is None else max(1, self.limit // _BLOCK_SHARE // row_bytes)

    def fits(self, rows: int, row_bytes: int) -> bool:
        """Whether so many rows may be worked on at once."""
        most = self.rows_at_once(row_bytes)
        return most is None or rows <= most

    def blocks(self, rows: int, row_bytes: int = _COPIED_BYTES) -> Iterator[slice]:
        """Ranges of rows that are worked on one after another; none if there are no rows."""
        size = self.rows_at_once(row_bytes) or max(rows, 1)
        for first in range(0, rows, size):
            yield slice(first, min(first + size, rows))
            self.release()

    def copy(self, column: Array, dtype: DTypeLike | None = None) -> Array:
        """A contiguous copy, perhaps with another type of numbers."""
        found = self.empty(column.shape, dtype or column.dtype)
        for some in self.blocks(len(column), max(_COPIED_BYTES, column[:1].nbytes)):
            found[some] = column[some]
        return found

    def take(self, table: Array, rows: Array) -> Array:
        """Copy some rows of a table."""
        found = self.empty((len(rows), *table.shape[1:]), table.dtype)
        for some in self.blocks(len(rows), max(1, 2 * table[:1].nbytes)):
            found[some] = table[rows[some]]
        return found

    def watch(self, release: Callable[[], None]) -> None:
        """Let `release` be called, too, whenever pages are let go of; nothing without a limit."""
        if self.is_bounded:
            self._watched.append(release)

    def release(self) -> None:
        """Let go of the pages of mapped files; they are read again when they are used."""
        release_maps(self._maps)
        for release in self._watched:
            release()


UNBOUNDED = WorkingMemory()


def release_maps(maps: Iterable[Any]) -> None:
    """Let go of the pages of those that are mapped files; what was written to them is kept."""
    for held in maps:
        if isinstance(held, mmap):
            held.madvise(MADV_DONTNEED)


def _reserve(file: IO[bytes], size: int) -> None:
    """Take the room for a mapped file now: a disk that is full later would kill the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)


def write_npy(path: Path, array: Array, memory: WorkingMemory) -> None:
    """Write the same file as `np.save`, a block of rows at a time."""
    row = max(1, array.nbytes // max(len(array), 1)) if array.ndim else 1
    if not array.ndim or not array.flags.c_contiguous or memory.fits(len(array), row):
        np.save(path, array, allow_pickle=False)
        return
    with path.open("wb", buffering=0) as file:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(array))
        for some in memory.blocks(len(array), row):
            array[some].tofile(file)


def blocks_of_groups(memory: WorkingMemory, groups: Array, row_bytes: int) -> Iterator[slice]:
    """The same as `WorkingMemory.blocks`, but rows of one group (ascending) stay together."""
    first = 0
    for some in memory.blocks(len(groups), row_bytes):
        last = some.stop
        if last < len(groups):
            last = bisect_left(groups, groups[last], first, last)  # without a copy of the column
        if last > first:
            yield slice(first, last)
            first = last


class Buckets:
    """Records, distributed to files by ranges of a number and read again range by range.

    Within a range they come in the order in which they were added: sorting each range stably
    sorts all of them.
    """

    def __init__(
        self, memory: WorkingMemory, edges: Sequence[int] | Array, dtype: np.dtype[Any]
    ) -> None:
        """`edges` are the numbers with which each range begins, after the first one."""
        self._edges = np.asarray(edges)
        self._dtype = dtype
        self._files: list[IO[bytes]] = [
            TemporaryFile(dir=memory.folder) for _ in range(len(self._edges) + 1)
        ]

    def add(self, numbers: Array, records: Array) -> None:
        """Add records, each with the number that decides its range."""
        if len(self._files) == 1:
            self._files[0].write(records.tobytes())
            return
        bucket = np.searchsorted(self._edges, numbers, "right")
        for at in np.flatnonzero(np.bincount(bucket)).tolist():
            self._files[at].write(records[bucket == at].tobytes())

    def __iter__(self) -> Iterator[Array]:
        """The records of each range, once."""
        for file in self._files:
            size = file.tell()
            file.seek(0)
            yield np.fromfile(file, self._dtype, size // self._dtype.itemsize)
            file.close()


def split_evenly(starts: Array, most: int | None) -> Ints:
    """Rows before which to split, so that each range of rows has about `most` edges or fewer."""
    total = int(starts[-1])
    if most is None or total <= most:
        return np.zeros(0, np.int64)
    wanted = np.arange(most, total, most)
    rows = np.searchsorted(starts, wanted, "right") - 1
    return np.unique(rows[(rows > 0) & (rows < len(starts) - 1)]).astype(np.int64)


@cache
def keep_freed_memory() -> bool:
    """Let the next question have the memory of the last one; return whether that could be said.

    Over very many passages a question fills dozens of arrays. Their pages went back to the system
    after each question, and the next one waited for as many again.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        set_parameter = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another library of C
        return False
    given = (_TRIM_THRESHOLD, _KEPT_BYTES), (_MMAP_THRESHOLD, _RETURNED_BYTES)
    return all([set_parameter(*one) == 1 for one in given])
