"""Update a CSR matrix: rows and columns that moved or are gone, and edges that were added.

Copying what stays is many times faster than sorting all edges again, and gives the same matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, Ints, Mask, argsort_numbers, bisect_column

GONE = -1
SpliceRows = Callable[[str, NDArray[Any], Ints, Ints, NDArray[Any]], NDArray[Any]]
"""Does the same as `splice` for a part of a CSR, and may note it. Of `starts` rows are dropped and
inserted, the latter with the given sizes."""
_MAX_SPLICED = 20_000  # rows dropped and inserted; of more, rows are selected one by one


def find_places(old: Ints, new: Ints) -> Ints:
    """Return the new position of each old key, `GONE` if it is not there; both are ascending."""
    if len(old) <= len(new) and np.array_equal(old, new[: len(old)]):
        return np.arange(len(old))
    if not len(new):
        return np.full(len(old), GONE, np.int64)
    at = np.searchsorted(new, old)
    found: Ints = np.where(new[np.minimum(at, len(new) - 1)] == old, at, GONE)
    return found


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
    old: Csr,
    count: int,
    moved: tuple[Ints, Ints],
    added: tuple[Ints, Ints],
    edit: SpliceRows = _splice_any,
) -> CsrUpdate:
    """Move rows and columns to their new places, drop those that are `GONE`, and add edges.

    `moved` has the new places of the old rows and columns, ascending but for those that are gone;
    `added` the new rows and columns of the added edges, of which none may be there already. The new
    matrix has `count` rows. `edit` makes the arrays; of "starts" it is told the sizes of rows.
    """
    rows, places = moved
    width = int(added[1].max(initial=0)) + 1
    order = argsort_numbers(added[0] * width + added[1])
    row, column = added[0][order], added[1][order]
    rows_stay, columns_stay = stays(rows), stays(places)
    columns = old.columns if columns_stay else places.astype(np.int32)[old.columns]
    gone = _find_gone(old, rows, places, columns)
    first, known = _find_old(rows, row, rows_stay)
    begins, ends = old.starts[first], old.starts[np.minimum(first + 1, len(rows))]
    sought = _find_old(places, column, columns_stay)[0]
    at = bisect_column(old.columns, sought, (begins, np.where(known, ends, begins)))
    starts = _update_starts(old, count, (rows, rows_stay), gone, row, edit)
    found = edit("columns", columns, gone, at, column.astype(np.int32))
    return CsrUpdate(starts, found, gone, at, order)


def _find_old(places: Ints, wanted: Ints, all_stay: bool) -> tuple[Ints, Mask]:
    """Return what was at some new places, or the first that stays after them; and whether it was.

    `all_stay` says that everything is where it was.
    """
    if all_stay:
        return np.minimum(wanted, len(places)), wanted < len(places)
    kept = np.flatnonzero(places != GONE)
    at = np.searchsorted(places[kept], wanted)
    known = np.append(places[kept], GONE)[at] == wanted
    found: Ints = np.append(kept, len(places))[at]
    return found, known


def _update_starts(
    old: Csr, count: int, moved: tuple[Ints, bool], gone: Ints, row: Ints, edit: SpliceRows
) -> Ints:
    """Where rows start after edges `gone` were dropped and edges of `row` added."""
    rows, all_stay = moved
    is_new = np.ones(count, np.bool_)
    is_new[rows[rows != GONE]] = False
    lost = rows[np.searchsorted(old.starts, gone, "right") - 1]
    changed = np.union1d(np.flatnonzero(is_new), np.concatenate([lost[lost != GONE], row]))
    at, known = _find_old(rows, changed, all_stay)
    sizes = np.zeros(len(changed), np.int64)
    sizes[known] = old.degrees_of(at[known])
    for some, sign in ((lost[lost != GONE], -1), (row, 1)):
        sizes += sign * np.bincount(np.searchsorted(changed, some), minlength=len(changed))
    same = known.copy()
    same[known] = sizes[known] == old.degrees_of(at[known])
    at, sizes, known = at[~same], sizes[~same], known[~same]
    dropped = np.union1d(np.flatnonzero(rows == GONE), at[known])
    return edit("starts", old.starts, dropped, at, sizes)


def stays(places: NDArray[np.integer]) -> bool:
    """Whether everything is where it was."""
    return bool((places == np.arange(len(places))).all())


def _find_gone(old: Csr, rows: Ints, places: Ints, columns: NDArray[np.int32]) -> Ints:
    """Return which old edges do not stay, ascending; `columns` has their new places."""
    lost = old.edges_of(np.flatnonzero(rows == GONE))[1]
    if not (places == GONE).any():
        return lost
    return np.union1d(lost, np.flatnonzero(columns == GONE))


def splice(held: NDArray[Any], gone: Ints, at: Ints, added: NDArray[Any]) -> NDArray[Any]:
    """Drop the rows `gone` and insert others before the places `at`; all ascend.

    Whole stretches are copied, which is several times faster than to select what stays.
    """
    if len(gone) + len(at) > _MAX_SPLICED:
        kept = np.ones(len(held), np.bool_)
        kept[gone] = False
        return np.insert(held[kept], at - np.searchsorted(gone, at), added, axis=0)
    edges = np.union1d(gone, at)
    last = np.searchsorted(at, edges, "right").tolist()
    is_gone = np.isin(edges, gone).tolist()
    pieces, done, taken = [], 0, 0
    for edge, end, drop in zip(edges.tolist(), last, is_gone, strict=True):
        pieces += [held[done:edge], added[taken:end]]
        done, taken = edge + drop, end
    return np.concatenate([*pieces, held[done:]])
