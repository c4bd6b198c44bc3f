"""Row numbers by 16-byte content hash, in sorted arrays: 20 bytes per row."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from clew import kernels

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
_MIN_RECENT = 1 << 16  # rows added since the last sort, at least; then an eighth of all
_MAX_SCANNED_HASHES = 1 << 12  # so few are looked for by reading all rows, some times
_MAX_SCANS = 32  # then the rows are sorted, which takes about as long
_MARK_BITS = np.uint64((1 << 16) - 1)  # of a hash, by which most rows are passed over


def parse_hashes(hashes: Sequence[str]) -> Words:
    """Hexadecimal hashes of 16 bytes as two words each."""
    return np.frombuffer(bytes.fromhex("".join(hashes)), np.uint64).reshape(-1, 2)


class RowLookup:
    """Finds the row of a hash by binary search; rows added since the last sort are in a dict.

    A process that looks for a few hashes only, as a small write does, does not sort.
    """

    def __init__(self, hashes: Words) -> None:
        """`hashes` has the two words of each row."""
        self._hashes: Words | None = hashes  # None once they are sorted
        self._rows, self._scans = len(hashes), 0
        self._order, self._first, self._second = np.zeros(0, np.int32), hashes[:0, 0], hashes[:0, 1]
        self._recent: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        """Number of rows."""
        return self._rows + len(self._recent)

    def find(self, wanted: Words) -> Ints:
        """Row of each hash; -1 if absent."""
        if not len(wanted):
            return np.zeros(0, np.int64)
        found = self._search_or_scan(wanted)
        if self._recent:
            for at in np.flatnonzero(found < 0).tolist():
                found[at] = self._recent.get(_to_pair(wanted[at]), -1)
        return found

    def extend(self, hashes: Words) -> bool:
        """Add further rows; False if they are too many, so that a new lookup is needed."""
        if len(self._recent) + len(hashes) > max(_MIN_RECENT, len(self) // 8):
            return False
        first = len(self)
        self._recent.update((_to_pair(pair), first + i) for i, pair in enumerate(hashes))
        return True

    def _search_or_scan(self, wanted: Words) -> Ints:
        if self._hashes is not None:
            if len(wanted) <= _MAX_SCANNED_HASHES and self._scans < _MAX_SCANS:
                self._scans += 1
                return _scan(self._hashes, wanted)
            order = np.argsort(self._hashes[:, 0], kind="stable")
            self._order = order.astype(np.int32 if len(order) < 1 << 31 else np.int64)
            self._first, self._second = self._hashes[order, 0], self._hashes[order, 1]
            self._hashes = None
        return self._search(wanted)

    def _search(self, wanted: Words) -> Ints:
        found = np.full(len(wanted), -1, np.int64)
        at = np.searchsorted(self._first, wanted[:, 0])
        pending = np.arange(len(wanted))
        while len(pending):
            pending = pending[at[pending] < len(self._first)]
            pending = pending[self._first[at[pending]] == wanted[pending, 0]]
            hit = self._second[at[pending]] == wanted[pending, 1]
            found[pending[hit]] = self._order[at[pending[hit]]]
            # Others share the first word only: the next row may be the one.
            pending = pending[~hit]
            at[pending] += 1
        return found


def _scan(hashes: Words, wanted: Words) -> Ints:
    """Row of each hash, found by reading all rows in order; -1 if absent."""
    is_marked = np.zeros(int(_MARK_BITS) + 1, np.bool_)
    is_marked[wanted[:, 0] & _MARK_BITS] = True
    if kernels.COMPILED is not None:
        rows = kernels.COMPILED.find_marked(hashes, is_marked)
    else:
        rows = np.flatnonzero(is_marked[hashes[:, 0] & _MARK_BITS])[::-1]
    held = {_to_pair(pair): row for row, pair in zip(rows.tolist(), hashes[rows], strict=True)}
    return np.array([held.get(_to_pair(pair), -1) for pair in wanted], np.int64)


def _to_pair(words: Iterable[np.uint64]) -> tuple[int, int]:
    first, second = words
    return int(first), int(second)
