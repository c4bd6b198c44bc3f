"""Arrays of the next generation that are made of those before by dropping and inserting rows.

What was dropped and inserted is noted, so that saving does not have to look for it; and rows that
come after all others are appended to the file of the array, which is not copied.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.splice import splice
from clew.store.edited_rows import edit_rows
from clew.store.mapped_arrays import MappedArrays
from clew.store.protocol import Array, Arrays
from clew.store.row_edits import Splice

Ints = NDArray[np.int64]


def splice_rows(
    previous: Arrays, name: str, base: Array, gone: Ints, at: Ints, rows: Array
) -> Array:
    """Drop rows of an array and insert others before the given places; all ascend.

    `base` is the array of the previous generation, perhaps with elements numbered as they are now.
    """
    held = previous[name]
    rows = np.ascontiguousarray(rows, base.dtype)
    if not len(gone) and not len(rows):
        return base
    if not isinstance(previous, MappedArrays):
        return splice(np.asarray(base), gone, at, rows)
    if base is held and not len(gone) and int(at[0]) == len(held):
        found = previous.grow(name, rows)
        if found is not None:
            previous.spliced[name] = Splice(found, gone, at, rows)
            return found
    edited = edit_rows(name, base, gone, at, rows)
    found = splice(np.asarray(base), gone, at, rows) if edited is None else edited
    previous.spliced[name] = Splice(found, gone, at, rows)
    return found


def splice_offsets(
    previous: Arrays, name: str, held: Array, gone: Ints, at: Ints, sizes: Ints
) -> Array:
    """Offsets of rows, of which some are dropped and others, of these sizes, inserted."""
    if not len(gone) and not len(at):
        return held
    if not len(gone) and int(at[0]) == len(held) - 1:
        ends = held[-1] + np.cumsum(sizes)
        return splice_rows(previous, name, held, gone, np.full(len(ends), len(held)), ends)
    sizes = np.ascontiguousarray(sizes, held.dtype)
    differences = splice(np.diff(held, prepend=held[:1]), gone + 1, at + 1, sizes)
    found = np.cumsum(differences, dtype=held.dtype, out=differences)
    note_splice(previous, name, Splice(found, gone + 1, at + 1, sizes, by_difference=True))
    return found


def splice_part(previous: Arrays, name: str, part: str, *given: Any) -> Array:
    """Drop and insert rows of a part of a CSR matrix; of `starts`, rows of given sizes."""
    edit = splice_offsets if part == "starts" else splice_rows
    return edit(previous, f"{name}_{part}", *given)


def note_splice(previous: Arrays, name: str, made: Splice) -> None:
    """Note how an array that was made otherwise differs from the previous one."""
    if isinstance(previous, MappedArrays):
        previous.spliced[name] = made


def append_rows(previous: Arrays, name: str, rows: Array) -> Array:
    """An array of the previous generation with further rows."""
    held, none = previous[name], np.zeros(0, np.int64)
    return splice_rows(previous, name, held, none, np.full(len(rows), len(held)), rows)


def find_splice(previous: Arrays, name: str, array: Array) -> Splice | None:
    """How an array was made of the previous one, if that was noted."""
    if name not in previous or not isinstance(previous, MappedArrays):
        return None
    if array is previous[name]:
        none = np.zeros(0, np.int64)
        return Splice(array, none, none, array[:0])
    noted = previous.spliced.get(name)
    return noted if noted is not None and noted.array is array else None
