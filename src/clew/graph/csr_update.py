"""Update a CSR matrix: rows and columns that moved or are gone, and edges that were added.

Copying what stays is many times faster than sorting all edges again, and gives the same matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew import kernels
from clew.graph.csr import Csr, Ints, Mask, argsort_numbers, isin_sorted
from clew.sorted_columns import bisect_column
from clew.splice import splice

GONE = -1
SpliceRows = Callable[[str, NDArray[Any], Ints, Ints, NDArray[Any]], NDArray[Any]]
"""Does the same as `splice` for a part of a CSR, and may note it. Of `starts` rows are dropped and
inserted, the latter with the given sizes."""


def find_places(old: Ints, new: Ints) -> Ints:
    """Return the new position of each old key, `GONE` if it is not there; both are ascending."""
    if len(old) <= len(new) and np.array_equal(old, new[: len(old)]):
        return np.arange(len(old))
    if not len(new):
        return np.full(len(old), GONE, np.int64)
    at = np.searchsorted(new, old)
    found: Ints = np.where(new[np.minimum(at, len(new) - 1)] == old, at, GONE)
    return found


@dataclass(frozen=True)
class Moves:
    """How elements that were numbered are numbered now: those that stay keep their order."""

    old: int
    """How many there were."""
    new: int
    """How many there are."""
    gone: Ints
    """The old numbers of those that do not stay, ascending."""
    added: Ints
    """The new numbers of those that were not there, ascending."""

    @cached_property
    def all_stay(self) -> bool:
        """Whether everything is where it was."""
        return not len(self.gone) and (not len(self.added) or int(self.added[0]) >= self.old)

    @cached_property
    def places(self) -> Ints:
        """The new number of each, `GONE` if it does not stay."""
        at = np.arange(self.old)
        if self.all_stay:
            return at
        found = self._count_up(at)
        found[self.gone] = GONE
        return found

    @cached_property
    def narrow_places(self) -> NDArray[np.int32]:
        """The same in half the bytes."""
        return self.places.astype(np.int32)

    def _count_up(self, which: Ints) -> Ints:
        rank = which - np.searchsorted(self.gone, which)
        more = np.searchsorted(self.added - np.arange(len(self.added)), rank, "right")
        return rank + more

    def place(self, which: NDArray[np.integer]) -> Ints:
        """The new numbers of some; `GONE` for those that do not stay."""
        if len(which) > self.old >> 3:
            found: Ints = self.places[which]
            return found
        found = self._count_up(which.astype(np.int64))
        found[isin_sorted(which, self.gone)] = GONE
        return found

    def find_old(self, wanted: Ints) -> tuple[Ints, Mask]:
        """What had these new numbers, or else the first that stays after; and whether it was so."""
        before = np.searchsorted(self.added, wanted)
        rank = wanted - before
        found = rank + np.searchsorted(self.gone - np.arange(len(self.gone)), rank, "right")
        return found, ~isin_sorted(wanted, self.added)

    @property
    def at(self) -> Ints:
        """Before which of the old ones each of the added ones is."""
        return self.find_old(self.added)[0]

    def drop(self, which: Ints) -> "Moves":
        """The same if these old ones were gone, and came again."""
        again = self.place(which)
        gone, added = np.union1d(self.gone, which), np.union1d(self.added, again[again != GONE])
        return Moves(self.old, self.new, gone, added)


def find_moves(old: Ints, new: Ints) -> Moves:
    """How ascending keys moved."""
    if len(old) <= len(new) and np.array_equal(old, new[: len(old)]):
        return Moves(len(old), len(new), np.zeros(0, np.int64), np.arange(len(old), len(new)))
    return moves_from_places(find_places(old, new), len(new))


def moves_from_places(places: Ints, count: int) -> Moves:
    """The moves to these places, ascending but for those that are gone, among so many."""
    is_new = np.ones(count, np.bool_)
    is_new[places[places != GONE]] = False
    return Moves(len(places), count, np.flatnonzero(places == GONE), np.flatnonzero(is_new))


@dataclass(frozen=True, slots=True)
class CsrUpdate:
    """The updated rows and columns, and what `carry` needs to update weights in the same way."""

    starts: Ints
    columns: NDArray[np.int32]
    _gone: Ints
    """The old edges that do not stay."""
    _places: Ints
    """Before which of them each added edge is."""
    _order: Ints
    """The order of the added edges."""

    def carry(
        self,
        weights: NDArray[Any],
        added: NDArray[Any],
        part: str = "",
        edit: SpliceRows | None = None,
    ) -> NDArray[Any]:
        """Return the weights of all edges, from those of the old and of the added ones."""
        more = added[self._order].astype(weights.dtype)
        return (edit or _splice_any)(part, weights, self._gone, self._places, more)


def _splice_any(
    part: str, held: NDArray[Any], gone: Ints, at: Ints, added: NDArray[Any]
) -> NDArray[Any]:
    if not len(gone) and not len(at):
        return held
    if part == "starts":
        return np.cumsum(splice(np.diff(held, prepend=0), gone + 1, at + 1, added))
    return splice(held, gone, at, added)


def update_csr(
    old: Csr, moved: tuple[Moves, Moves], added: tuple[Ints, Ints], edit: SpliceRows = _splice_any
) -> CsrUpdate:
    """Move rows and columns to their new places, drop those that are `GONE`, and add edges.

    `moved` says how rows and columns moved; `added` has the new rows and columns of the added
    edges, of which none may be there already. `edit` makes the arrays; of "starts" it is told the
    sizes of rows.
    """
    rows, places = moved
    width = int(added[1].max(initial=0)) + 1
    order = argsort_numbers(added[0] * width + added[1])
    row, column = added[0][order], added[1][order]
    columns = old.columns
    if not places.all_stay:
        columns = _renumber(places.narrow_places, columns)
    gone = _find_gone(old, rows, places, columns)
    first, known = rows.find_old(row)
    begins, ends = old.starts[first], old.starts[np.minimum(first + 1, rows.old)]
    within = begins, np.where(known, ends, begins)
    at = bisect_column(old.columns, places.find_old(column)[0], within)
    starts = _update_starts(old, rows, gone, row, edit)
    found = edit("columns", columns, gone, at, column.astype(np.int32))
    return CsrUpdate(starts, found, gone, at, order)


def _renumber(places: NDArray[np.int32], numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    compiled = kernels.COMPILED
    if compiled is None or numbers.dtype != np.int32:
        return places[numbers]
    return compiled.renumber(places, numbers)


def _update_starts(old: Csr, rows: Moves, gone: Ints, row: Ints, edit: SpliceRows) -> Ints:
    """Where rows start after edges `gone` were dropped and edges of `row` added."""
    lost = rows.place(np.searchsorted(old.starts, gone, "right") - 1)
    lost = lost[lost != GONE]
    changed = np.union1d(rows.added, np.concatenate([lost, row]))
    at, known = rows.find_old(changed)
    before = np.zeros(len(changed), np.int64)
    before[known] = old.degrees_of(at[known])
    sizes = before.copy()
    for some, sign in ((lost, -1), (row, 1)):
        sizes += sign * np.bincount(np.searchsorted(changed, some), minlength=len(changed))
    differs = ~known | (sizes != before)
    at, sizes, known = at[differs], sizes[differs], known[differs]
    return edit("starts", old.starts, np.union1d(rows.gone, at[known]), at, sizes)


def stays(places: NDArray[np.integer]) -> bool:
    """Whether everything is where it was."""
    return bool((places == np.arange(len(places))).all())


def _find_gone(old: Csr, rows: Moves, places: Moves, columns: NDArray[np.int32]) -> Ints:
    """Return which old edges do not stay, ascending; `columns` has their new places."""
    lost = old.edges_of(rows.gone)[1]
    if not len(places.gone):
        return lost
    return np.union1d(lost, np.flatnonzero(columns == GONE))
