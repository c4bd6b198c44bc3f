"""A table as an earlier one with some rows dropped and others inserted: nothing is copied.

A write adds some rows to tables of millions, and looks at few of them. What asks for rows by number
is told these; whatever else is done with such a table puts it together first, as numpy needs it.
"""

from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from clew.errors import DamagedArrays
from clew.sorted_columns import bisect_pieces
from clew.store.protocol import COLUMN_PREFIX, Array
from clew.store.row_edits import MAX_EDITS, Edits, Splice
from clew.store.steps import Ints

LOOKED_INTO = frozenset(
    COLUMN_PREFIX + name for name in ("facts", "forms", "mentions", "participants", "supports")
)
"""Tables of which a write looks at few rows; those of passages and names are read as a whole."""
MIN_EDITED_BYTES = 1 << 20  # smaller ones are put together in no time


class EditedRows(NDArrayOperatorsMixin):
    """Rows of an array and others between them, in order; numpy takes it for an array."""

    def __init__(self, base: Array, edits: Edits) -> None:
        """`base` is the earlier array; the edits may not renumber what is in it."""
        self._base, self._edits = base, edits
        self._ends = np.cumsum(edits.lengths)
        self._columns: dict[int, EditedRows] = {}
        self.shape: tuple[int, ...] = (int(edits.lengths.sum()), *base.shape[1:])
        self.dtype, self.ndim = base.dtype, base.ndim

    def check(self) -> "EditedRows":
        """Raise if the edits ask for rows that are not there."""
        starts, lengths, rows = self._edits.starts, self._edits.lengths, self._edits.rows
        last = np.where(starts < 0, ~starts, starts) + lengths
        most = np.where(starts < 0, len(rows), len(self._base))
        if (lengths < 0).any() or (last > most).any() or self._edits.steps is not None:
            raise DamagedArrays("changes of rows that are not there")
        return self

    def splice(self, gone: Ints, at: Ints, rows: Array) -> "EditedRows":
        """The same with some rows dropped and others inserted before places; all ascend."""
        made = Splice(cast("Array", self), gone, at, rows).to_edits(len(self), None)
        return EditedRows(self._base, self._edits.then(made))

    def bisect(self, wanted: Array, *, right: bool = False) -> Ints:
        """Where a few numbers are in an ascending column, or would be."""
        sources = self._base, self._edits.rows
        return bisect_pieces(sources, *self._pieces, wanted, right=right)

    def __len__(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """The bytes of all rows, if they were put together."""
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def __getitem__(self, key: Any) -> Any:
        """Rows by number, a stretch of rows, or a column; all else of the whole array."""
        if isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], int):
            column = self._take_column(key[1])
            return column if _is_all(key[0]) else column[key[0]]
        if isinstance(key, np.ndarray) and key.ndim == 1 and key.dtype.kind in "iu":
            return self._take(key)
        if isinstance(key, int | np.integer):
            return self._take(np.array([key]))[0]
        if isinstance(key, slice) and key.step in (None, 1):
            return self._cut(*key.indices(len(self))[:2])
        return self._whole[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The array put together."""
        del copy  # it is a copy of what is stored, or of this one if the type differs
        return self._whole if dtype is None else np.asarray(self._whole, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **options: Any) -> Any:
        """Compute with the array put together."""
        whole = [one._whole if isinstance(one, EditedRows) else one for one in given]
        return getattr(ufunc, method)(*whole, **options)

    def __getattr__(self, name: str) -> Any:
        """What else an array has."""
        if name.startswith("__"):  # protocols that numpy asks for first
            raise AttributeError(name)
        return getattr(self._whole, name)

    @cached_property
    def _whole(self) -> Array:
        found = self._cut(0, len(self))
        found.flags.writeable = False
        return found

    @cached_property
    def _pieces(self) -> tuple[tuple[Ints, Ints, Ints], Array]:
        """Start, length and end of each piece that is not empty, and its last row."""
        real = self._edits.lengths > 0
        ends = self._ends[real]
        return (self._edits.starts[real], self._edits.lengths[real], ends), self._take(ends - 1)

    def _take_column(self, column: int) -> "EditedRows":
        if column not in self._columns:  # it is asked for again, and knows its last rows then
            edits = replace(self._edits, rows=self._edits.rows[:, column])
            self._columns[column] = EditedRows(self._base[:, column], edits)
        return self._columns[column]

    def _take(self, wanted: Array) -> Array:
        """The rows with these numbers."""
        if len(wanted) and not -len(self) <= int(wanted.min()) <= int(wanted.max()) < len(self):
            raise IndexError(f"rows outside of {len(self)}")
        wanted = np.where(wanted < 0, wanted + len(self), wanted)
        piece = np.searchsorted(self._ends, wanted, "right")
        start, lengths = self._edits.starts[piece], self._edits.lengths[piece]
        within = wanted - (self._ends[piece] - lengths)
        found = np.empty((len(wanted), *self.shape[1:]), self.dtype)
        held = start >= 0
        found[held] = self._base[start[held] + within[held]]
        found[~held] = self._edits.rows[~start[~held] + within[~held]]
        return found

    def _cut(self, first: int, last: int) -> Array:
        """The rows of a stretch."""
        parts = [self._edits.rows[:0]]
        begin = int(np.searchsorted(self._ends, first, "right"))
        end = int(np.searchsorted(self._ends, last))
        starts, lengths = self._edits.starts.tolist(), self._edits.lengths.tolist()
        for piece in range(begin, min(end + 1, len(starts)) if first < last else begin):
            start, size = starts[piece], lengths[piece]
            before = int(self._ends[piece]) - size
            low, high = max(first - before, 0), min(last - before, size)
            source, at = (self._edits.rows, ~start) if start < 0 else (self._base, start)
            parts.append(source[at + low : at + high])
        return np.concatenate(parts)


def _is_all(rows: Any) -> bool:
    return isinstance(rows, slice) and rows == slice(None)


def is_edited(name: str, size: int) -> bool:
    """Whether an array of so many bytes is not put together when a few of its rows change."""
    return name in LOOKED_INTO and size >= MIN_EDITED_BYTES


def edit_rows(name: str, base: Array, gone: Ints, at: Ints, rows: Array) -> Array | None:
    """An array with rows dropped and inserted that is not put together; None if it should be."""
    if not is_edited(name, base.nbytes) or len(gone) + len(at) > MAX_EDITS:
        return None
    if isinstance(base, EditedRows):
        return cast("Array", base.splice(gone, at, rows))
    edits = Splice(base, gone, at, rows).to_edits(len(base), None)
    return cast("Array", EditedRows(base, edits))
