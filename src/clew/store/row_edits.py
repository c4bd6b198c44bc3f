"""How an array came from an earlier one: stretches of its rows, rows between them, new numbers.

Edits are found by comparing both arrays, so that applying them gives the later one bit for bit.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clew.splice import merge_edges
from clew.store.protocol import Array
from clew.store.steps import Ints, Steps, list_rows, make_steps

Numbers = NDArray[np.unsignedinteger[Any]]
PIECE_BYTES = 16
MAX_EDITS = 4096  # in one array; where there would be more, it is written whole
MAX_SHARE = 0.25  # of an array's bytes, which edits may take
_COMPARED_ROWS = 64  # after a place, to see how it goes on
_NEAR, _WINDOW = 32, 2048  # rows among which to go on is looked for, first by one row
_SOUGHT_ROWS = 8  # and then by so many
_PROPOSED = 3  # places at most that are tried of each kind
_FEW_EDITS, _BYTES_PER_EDIT = 64, 4096  # more edits than these are found in large arrays only
_FIRST_BLOCK, _LAST_BLOCK = 512, 1 << 16  # compared at once


def find_steps(old: Ints, new: Ints) -> Steps | None:
    """How things were numbered anew, by their identities in order; None if they were not."""
    begin = count_equal_rows(old, new)
    if begin == len(old) or not len(new):
        return None
    most = min(len(old), len(new)) - begin
    end = _count_equal(_view_bits(old)[::-1], _view_bits(new)[::-1], most)
    table = np.arange(len(old))
    table[len(old) - end :] += len(new) - len(old)
    middle = slice(begin, len(old) - end)
    table[middle] += _find_moves(old[middle], new[begin : len(new) - end])
    steps = make_steps(table)
    return steps if len(steps.at) <= MAX_EDITS else None


def _find_moves(old: Ints, new: Ints) -> Ints:
    """How far each thing moved; those that are gone as far as the one before."""
    if not len(new) or not len(old):
        return np.zeros(len(old), np.int64)
    order = np.argsort(new, kind="stable")
    place = order[np.minimum(np.searchsorted(new, old, sorter=order), len(new) - 1)]
    kept = np.flatnonzero(new[place] == old)
    before = np.searchsorted(kept, np.arange(len(old)), "right") - 1
    moves = np.append(place[kept] - kept, 0)
    found: Ints = moves[before]
    return found


@dataclass(frozen=True, slots=True)
class Edits:
    """Pieces, each a row of the earlier array from which on so many follow, or `~row` of `rows`."""

    starts: Ints
    lengths: Ints
    rows: Array
    steps: Steps | None = None
    """For numbers of the earlier array; `rows` have the new ones."""

    @property
    def nbytes(self) -> int:
        """About how many bytes they take."""
        steps = 0 if self.steps is None else self.steps.at.nbytes + self.steps.add.nbytes
        return PIECE_BYTES * len(self.starts) + self.rows.nbytes + steps

    def apply(self, old: Array) -> Array:
        """The later array."""
        sources = (old, self.rows)
        pieces = list(zip(self.starts.tolist(), self.lengths.tolist(), strict=True))
        parts = [
            sources[at < 0][(~at if at < 0 else at) : (~at if at < 0 else at) + size]
            for at, size in pieces
        ]
        found: Array = np.concatenate([old[:0], *parts])
        if self.steps is not None:
            ends, own = np.cumsum(self.lengths), self.starts < 0
            rows = list_rows((ends - self.lengths)[own], ends[own])
            new = found[rows]  # they have the new numbers
            found[rows] = 0
            self.steps.renumber(found, found)
            found[rows] = new
        return found

    def then(self, later: "Edits") -> "Edits":
        """These edits and later ones as one."""
        own = np.flatnonzero(later.starts >= 0)
        ends = np.cumsum(self.lengths)
        begins = ends - self.lengths
        low, high = later.starts[own], later.starts[own] + later.lengths[own]
        first = np.searchsorted(ends, low, "right")
        last = np.searchsorted(begins, high, "left")
        which, piece = np.repeat(np.arange(len(own)), last - first), list_rows(first, last)
        low, high = np.maximum(low[which], begins[piece]), np.minimum(high[which], ends[piece])
        shift = low - begins[piece]
        starts = self.starts[piece] + np.where(self.starts[piece] < 0, -shift, shift)
        held = self.rows if later.steps is None else _renumber(self.rows, later.steps)
        # Later rows are numbered after those that were there.
        new = np.flatnonzero(later.starts < 0)
        order = np.argsort(np.concatenate([own[which], new]), kind="stable")
        return replace(
            _gather(
                np.concatenate([starts, later.starts[new] - len(held)])[order],
                np.concatenate([high - low, later.lengths[new]])[order],
                np.concatenate([held, later.rows]),
            ),
            steps=later.steps if self.steps is None else self.steps.then(later.steps),
        )


class Splice(NamedTuple):
    """An array that was made of an earlier one: rows dropped, and others inserted before places."""

    array: Array
    gone: Ints
    at: Ints
    rows: Array
    by_difference: bool = False
    """Whether rows are differences of offsets."""

    def to_edits(self, count: int, steps: Steps | None) -> Edits:
        """The edits; the earlier array had so many rows."""
        edges, is_gone = merge_edges(self.gone, self.at)
        ends = np.searchsorted(self.at, edges, "right")
        after = np.append(0, edges + is_gone)
        source = np.full(2 * len(edges) + 1, -1)
        lengths = np.empty(len(source), np.int64)
        source[::2], lengths[::2] = after, np.append(edges, count) - after
        lengths[1::2] = np.diff(ends, prepend=0)
        return Edits(*_join_pieces(source, lengths), self.rows, steps)

    def to_steps(self, count: int) -> Steps | None:
        """The new number of each of so many earlier rows; None if all have the number they had."""
        breaks = np.unique(np.concatenate([[0], self.at, self.gone + 1]))
        breaks = breaks[breaks < count]
        add = np.searchsorted(self.at, breaks, "right") - np.searchsorted(self.gone, breaks)
        differs = np.append(True, np.diff(add) != 0)[: len(breaks)]
        breaks, add = breaks[differs], add[differs]
        moved = len(breaks) <= MAX_EDITS and (add.any() or len(self.gone))
        return Steps(count, breaks, add) if moved else None


def _renumber(rows: Array, steps: Steps) -> Array:
    return steps.renumber(rows) if len(rows) else rows


def _gather(starts: Ints, lengths: Ints, rows: Array) -> Edits:
    """Edits with those of the rows that a piece has, in their order."""
    listed = np.flatnonzero(starts < 0)
    sizes = lengths[listed]
    used = list_rows(~starts[listed], ~starts[listed] + sizes)
    starts = starts.copy()
    starts[listed] = ~(np.cumsum(sizes) - sizes)
    return Edits(starts, lengths, rows[used])


class EditFinder:
    """Finds edits of several arrays: those whose rows belong together have the same pieces."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], list[Edits]] = {}
        self._failed: set[tuple[int, int]] = set()

    def learn(self, old: Array, new: Array, edits: Edits) -> None:
        """Note the edits of an array, which others may share."""
        self._found.setdefault((len(old), len(new)), []).append(edits)

    def find(self, old: Array, new: Array, steps: Steps | None = None) -> Edits | None:
        """The edits that make `new` of `old`; None if they are too many, or not to be found."""
        if not can_be_edited(old, new):
            return None
        if steps is not None:
            if old.dtype.kind not in "iu" or (old.size and int(old.max()) >= steps.count):
                return None
            old = steps.renumber(old)
        pair = _Pair(old, new)
        found = self._find_alike(pair, old, new)
        if found is None or found.nbytes > MAX_SHARE * new.nbytes:
            return None
        return replace(found, steps=steps)

    def _find_alike(self, pair: "_Pair", old: Array, new: Array) -> Edits | None:
        """Edits with the pieces of other arrays, perhaps with rows replaced within them."""
        known = self._found.setdefault((len(old), len(new)), [])
        for other in known:
            if pair.fits(other):
                return replace(other, rows=pair.take_rows(other))
        size = min(len(old), len(new))
        before = self._found.get((len(old) - 1, len(new) - 1), ())
        # Offsets have a row more than what they are offsets of.
        for pieces in ([(0, size)], *([(0, 1), *_shift(other)] for other in before)):
            if (found := pair.refine(pieces)) is not None:
                return found
        if (len(old), len(new)) in self._failed:  # rows that belong together change together
            return None
        if (found := pair.search()) is not None:
            known.append(found)
        else:
            self._failed.add((len(old), len(new)))
        return found


def _shift(edits: Edits) -> Iterator[tuple[int, int]]:
    """The pieces one row later."""
    for at, size in zip(edits.starts.tolist(), edits.lengths.tolist(), strict=True):
        yield (at + 1 if at >= 0 else at), size


def can_be_edited(old: Array, new: Array) -> bool:
    """Whether two arrays are of one type and nearly of one size."""
    return bool(
        old.dtype == new.dtype
        and old.dtype.kind in "biuf"
        and old.dtype.itemsize in (1, 2, 4, 8)
        and old.ndim
        and old.shape[1:] == new.shape[1:]
        and prod(old.shape[1:])
        and old.flags.c_contiguous
        and new.flags.c_contiguous
        and abs(len(new) - len(old)) <= MAX_SHARE * len(new)
    )


class _Pair:
    """Two arrays that are compared row by row, by their bits."""

    def __init__(self, old: Array, new: Array) -> None:
        self._new = new
        self._width = prod(old.shape[1:])
        self._sizes = len(old), len(new)
        self._a, self._b = _view_bits(old), _view_bits(new)
        self._most = min(MAX_EDITS, int(MAX_SHARE * new.nbytes / (2 * PIECE_BYTES)) + 1)

    def fits(self, edits: Edits) -> bool:
        """Whether all rows that other edits keep are kept here."""
        at, width = 0, self._width
        for start, size in zip(edits.starts.tolist(), edits.lengths.tolist(), strict=True):
            if start >= 0:
                one, other = self._a[start * width :], self._b[at * width :]
                if _count_equal(one, other, size * width) < size * width:
                    return False
            at += size
        return True

    def take_rows(self, edits: Edits) -> Array:
        """The rows of the later array that are not in the earlier one."""
        ends = np.cumsum(edits.lengths)
        own = edits.starts < 0
        return self._new[list_rows((ends - edits.lengths)[own], ends[own])]

    def refine(self, pieces: Iterable[tuple[int, int]]) -> Edits | None:
        """Edits with these pieces, but for rows in them that differ; None if these are many."""
        at = count = 0
        sources: list[Ints] = []
        sizes: list[Ints] = []
        for start, size in pieces:
            kept = np.zeros(0, np.int64) if start < 0 else self._find_differing(start, at, size)
            count += len(kept)
            if count > self._most:
                return None
            source, length = _split_piece(start, size, kept)
            sources.append(source)
            sizes.append(length)
            at += size
        rest = [self._sizes[1] - at]
        starts, lengths = _join_pieces(
            np.concatenate([*sources, [-1]]), np.concatenate([*sizes, rest])
        )
        found = Edits(starts, lengths, self._new[:0])
        return replace(found, rows=self.take_rows(found))

    def _find_differing(self, start: int, at: int, size: int) -> Ints:
        """Which rows of a stretch differ; so many that it is useless if there are too many."""
        found, count = [np.zeros(0, np.int64)], 0
        for first in range(0, size, _LAST_BLOCK):
            some = min(_LAST_BLOCK, size - first)
            one = self._view(self._a, start + first, some)
            differs = one != self._view(self._b, at + first, some)
            if differs.any():
                rows = np.flatnonzero(differs.any(axis=1) if self._width > 1 else differs)
                found.append(rows + first)
                count += len(rows)
                if count > self._most:
                    break
        return np.concatenate(found)

    def search(self) -> Edits | None:
        """Edits that are found row by row; None if they are too many."""
        pieces = self._find_pieces()
        if pieces is None:
            return None
        starts, lengths = (np.array(part, np.int64) for part in zip(*pieces, strict=True))
        found = Edits(starts, lengths, self._new[:0])
        return replace(found, rows=self.take_rows(found))

    def _find_pieces(self) -> list[tuple[int, int]] | None:
        """The pieces of edits; None if they are too many."""
        found: list[tuple[int, int]] = []
        i = j = taken = edits = 0
        ends = self._find_end()
        while True:
            same = self._count_common(i, j)
            if same:
                found.append((i, same))
            i, j = i + same, j + same
            if j >= len(self._new):
                return found or [(0, 0)]
            edits += 1
            if len(found) * PIECE_BYTES > MAX_SHARE * self._new.nbytes:
                return None
            # Of a small array few may be worth it: they are reckoned up sooner.
            if edits > min(_FEW_EDITS, self._most // 2) and self._is_hopeless(edits, j):
                return None
            dropped, added = self._resume(i, j, ends)
            if added:
                if found and found[-1][0] < 0:
                    found[-1] = found[-1][0], found[-1][1] + added
                else:
                    found.append((~taken, added))
                taken += added
            i, j = i + dropped, j + added

    def _is_hopeless(self, edits: int, at: int) -> bool:
        """Whether it is likely that finding all edits takes longer than to write the array."""
        most = min(self._most, max(4 * _FEW_EDITS, self._new.nbytes // _BYTES_PER_EDIT))
        return edits > most or edits * len(self._new) > 2 * most * at

    def _find_end(self) -> tuple[int, int]:
        """Where the rows begin that both arrays end with."""
        most = min(len(self._a), len(self._b))
        same = _count_equal(self._a[::-1], self._b[::-1], most) // self._width
        return self._sizes[0] - same, self._sizes[1] - same

    def _resume(self, i: int, j: int, ends: tuple[int, int]) -> tuple[int, int]:
        """How many rows to drop and to add until both arrays go on alike."""
        left, right = ends[0] - i, ends[1] - j
        if left <= 0 or right <= 0:  # one of them is where both end alike
            more = self._sizes[1] - j - (self._sizes[0] - i)
            return max(-more, 0), max(more, 0)
        best, length = (1, 1), 0
        for dropped, added in self._propose(i, j):
            if dropped > left or added > right:
                continue
            same = self._count_common(i + dropped, j + added, _COMPARED_ROWS)
            if same == _COMPARED_ROWS:
                return dropped, added
            if same - dropped - added > length:
                best, length = (dropped, added), same - dropped - added
        return best

    def _propose(self, i: int, j: int) -> Iterator[tuple[int, int]]:
        """Numbers of rows to drop and to add, the likely ones first."""
        for window, sought in ((_NEAR, 1), (_WINDOW, _SOUGHT_ROWS)):
            old, new = self._view(self._a, i, window), self._view(self._b, j, window)
            for at in _seek(old[:sought], new):
                yield 0, at
            for at in _seek(new[:sought], old):
                yield at, 0
            size = min(len(old), len(new))
            same = _all_equal(old[:size], new[:size]).nonzero()[0][:_PROPOSED]
            yield from ((at, at) for at in same.tolist())

    def _count_common(self, i: int, j: int, most: int | None = None) -> int:
        """How many rows from these on are alike; `most` if they are to the end."""
        rows = min(self._sizes[0] - i, self._sizes[1] - j)
        rows = rows if most is None else min(rows, most)
        if rows <= 0:
            return most or 0
        one, other = self._a[i * self._width :], self._b[j * self._width :]
        same = _count_equal(one, other, rows * self._width) // self._width
        return most if most is not None and same == rows else same

    def _view(self, numbers: Numbers, at: int, size: int) -> Numbers:
        width = self._width
        return numbers[at * width : (at + size) * width].reshape(-1, width)


def _split_piece(start: int, size: int, differing: Ints) -> tuple[Ints, Ints]:
    """Where each part of a piece is in the earlier array (-1: nowhere), and how long it is."""
    if start < 0 or not len(differing):
        return np.array([max(start, -1)]), np.array([size])
    begins = np.append(True, np.diff(differing) > 1)
    first = differing[begins]
    last = differing[np.append(begins[1:], True)] + 1
    edges = np.empty(2 * len(first) + 2, np.int64)
    edges[0], edges[-1], edges[1:-1:2], edges[2:-1:2] = 0, size, first, last
    source = start + edges[:-1]
    source[1::2] = -1
    return source, np.diff(edges)


def _join_pieces(source: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Pieces without empty ones, those that follow each other as one; starts as in `Edits`."""
    real = lengths > 0
    source, lengths = source[real], lengths[real]
    own = source < 0
    follows = (own[1:] & own[:-1]) | (
        ~own[1:] & ~own[:-1] & (source[1:] == source[:-1] + lengths[:-1])
    )
    begins = np.flatnonzero(np.append(True, ~follows)[: len(source)])
    if not len(begins):
        return source, lengths
    lengths, starts = np.add.reduceat(lengths, begins), source[begins]
    literal = starts < 0
    sizes = lengths[literal]
    starts[literal] = ~(np.cumsum(sizes) - sizes)
    return starts, lengths


def _seek(sought: Numbers, window: Numbers) -> list[int]:
    """Where some rows are among others, the first places."""
    last = max(len(window) - len(sought) + 1, 0)
    places = _all_equal(window[:last], sought[0]).nonzero()[0]
    for at in range(1, len(sought)):
        if not len(places):
            break
        places = places[_all_equal(window[places + at], sought[at])]
    found: list[int] = places[:_PROPOSED].tolist()
    return found


def _all_equal(rows: Numbers, others: Numbers) -> NDArray[np.bool_]:
    """Which rows are equal."""
    same = rows == others
    found: NDArray[np.bool_] = same.ravel() if rows.shape[1] == 1 else same.all(axis=1)
    return found


def _view_bits(array: Array) -> Numbers:
    found: Numbers = array.reshape(-1).view(f"u{array.dtype.itemsize}")
    return found


def count_equal_rows(old: Array, new: Array) -> int:
    """How many rows both arrays begin with."""
    width = prod(old.shape[1:])
    most = min(len(old), len(new)) * width
    return _count_equal(_view_bits(old), _view_bits(new), most) // width


def _count_equal(one: Numbers, other: Numbers, most: int) -> int:
    """How many of the first numbers are equal, before the first that is not."""
    at, size = 0, _FIRST_BLOCK
    while at < most:
        end = min(at + size, most)
        differs = one[at:end] != other[at:end]
        first = int(differs.argmax())
        if differs[first]:
            return at + first
        at, size = end, min(4 * size, _LAST_BLOCK)
    return most
