"""Update a CSR matrix: rows and columns that moved or are gone, and edges that were added.

Copying what stays is many times faster than sorting all edges again, and gives the same matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, Ints, argsort_numbers, bisect_column

GONE = -1
SpliceRows = Callable[[str, NDArray[Any], Ints, Ints, NDArray[Any]], NDArray[Any]]
"""Does the same as `splice` for an array with a name, and may note it."""
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
    _: str, held: NDArray[Any], gone: Ints, at: Ints, added: NDArray[Any]
) -> NDArray[Any]:
    return splice(held, gone, at, added) if len(gone) or len(at) else held


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
    matrix has `count` rows. `edit` makes the arrays.
    """
    rows, places = moved
    width = int(added[1].max(initial=0)) + 1
    order = argsort_numbers(added[0] * width + added[1])
    row, column = added[0][order], added[1][order].astype(np.int32)
    columns = old.columns if stays(places) else places.astype(np.int32)[old.columns]
    gone = _find_gone(old, rows, places, columns)
    if stays(rows) and not len(gone) and (not len(row) or int(row[0]) >= len(rows)):
        ends = old.starts[-1] + np.cumsum(np.bincount(row - len(rows), minlength=count - len(rows)))
        starts = edit("starts", old.starts, gone, np.full(len(ends), len(old.starts)), ends)
        at = np.full(len(row), len(columns))
        return CsrUpdate(starts, edit("columns", columns, gone, at, column), gone, at, order)
    held = old.starts - np.searchsorted(gone, old.starts) if len(gone) else old.starts
    degrees = np.zeros(count, np.int64)
    if stays(rows):
        degrees[: len(rows)] = np.diff(held)
    else:
        kept = np.flatnonzero(rows != GONE)
        degrees[rows[kept]] = np.diff(held)[kept]
    at = _find_slots(columns, gone, np.append(0, np.cumsum(degrees)), row, column)
    np.add.at(degrees, row, 1)
    starts = np.append(0, np.cumsum(degrees))
    return CsrUpdate(starts, edit("columns", columns, gone, at, column), gone, at, order)


def _find_slots(
    columns: NDArray[np.int32], gone: Ints, starts: Ints, row: Ints, column: NDArray[np.int32]
) -> Ints:
    """Return before which of the old edges each added one is; `starts` are those of what stays."""
    if not len(row):
        return row
    left = splice(columns, gone, gone[:0], columns[:0]) if len(gone) else columns
    at = bisect_column(left, column, (starts[row], starts[row + 1]), right=True)
    return at + np.searchsorted(gone - np.arange(len(gone)), at, "right")


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
