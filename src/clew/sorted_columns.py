"""Binary search in a column of a table, of which numpy would make a copy first."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew import kernels

Ints = NDArray[np.int64]
Places = tuple[Ints, Ints]
_NARROW, _WIDE = np.dtype(np.int32), np.dtype(np.int64)


def bisect_column(
    column: NDArray[np.integer],
    wanted: NDArray[np.integer],
    within: Places | None = None,
    *,
    right: bool = False,
) -> Ints:
    """The same as np.searchsorted for a few values.

    `within` says for each value between which places it is looked for.
    """
    if not isinstance(column, np.ndarray):  # rows that are not put together find places themselves
        found: Ints = column.bisect(wanted, right=right)
        return found
    first, last = within or (np.zeros(1, np.int64), np.full(1, len(column)))
    first, last = (np.broadcast_to(edge, wanted.shape) for edge in (first, last))
    compiled = kernels.COMPILED
    if compiled is not None and column.dtype in (_NARROW, _WIDE) and wanted.dtype.kind == "i":
        sought = np.ascontiguousarray(wanted, np.int64)
        return compiled.bisect(column, sought, (first, last), right=right)
    return _bisect_at_once(column, wanted, (first.copy(), last.copy()), right=right)


def _bisect_at_once(
    column: NDArray[np.integer], wanted: NDArray[np.integer], within: Places, *, right: bool
) -> Ints:
    """The same for all values at once, step by step."""
    first, last = within
    while (open_ := np.flatnonzero(first < last)).size:
        middle = (first[open_] + last[open_]) // 2
        held, sought = column[middle], wanted[open_]
        before = held <= sought if right else held < sought
        first[open_[before]] = middle[before] + 1
        last[open_[~before]] = middle[~before]
    return first


def bisect_pieces(
    sources: Sequence[NDArray[Any]],
    pieces: tuple[Ints, Ints, Ints],
    highest: NDArray[np.integer],
    wanted: NDArray[np.integer],
    *,
    right: bool = False,
) -> Ints:
    """The same in an ascending column of pieces of two others.

    `pieces` are the starts of each (below 0: in the second source, as ~start), its length, and
    where it ends in the whole; no piece is empty. `highest` is the last value of each.
    """
    starts, lengths, ends = pieces
    found = np.full(len(wanted), int(ends[-1]) if len(ends) else 0, np.int64)
    piece = np.searchsorted(highest, wanted, "right" if right else "left")
    for number, source in enumerate(sources):
        mine = np.flatnonzero(piece < len(ends))
        own = starts[piece[mine]] < 0
        mine = mine[own if number else ~own]
        at = piece[mine]
        begin = ~starts[at] if number else starts[at]
        place = bisect_column(source, wanted[mine], (begin, begin + lengths[at]), right=right)
        found[mine] = place - begin + ends[at] - lengths[at]
    return found
