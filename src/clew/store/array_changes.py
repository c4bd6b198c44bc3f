"""What a write changed in the arrays of a generation: a small file beside the larger, older ones.

An array is read from the file of an earlier generation and the changes since. Offsets are compared
by their differences, and positions of elements as they are numbered now, so that a document that
comes or goes changes few rows although it moves many.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from clew.errors import DamagedArrays
from clew.store.protocol import Array, Arrays
from clew.store.row_edits import (
    MAX_EDITS,
    MAX_SHARE,
    EditFinder,
    Edits,
    Splice,
    count_equal_rows,
    find_steps,
)
from clew.store.steps import Ints, Steps

MIN_CHANGED_BYTES = 1024  # smaller arrays are written whole: they take a block of the disk anyway
MAX_PIECES = 8192  # of an array that is read with changes; with more it is written whole
OFFSETS = "_starts"  # how the names of arrays of offsets end
_LEVEL = 1  # of compression: most bytes of row numbers are 0
_HEADER_BYTES = 8
_NUMBERED_BY = {
    "chunk_entity_columns": ("entity_keys",),
    "chunk_fact_columns": ("fact_keys",),
    "claim_columns": ("chunk_keys",),
    "entity_chunk_columns": ("chunk_keys",),
    "entity_fact_columns": ("fact_keys",),
    "entity_same": ("entity_keys",),
    "fact_chunk_columns": ("chunk_keys",),
    "fact_entity_columns": ("entity_keys",),
    "name_entities": ("entity_keys",),
    "owned_columns": ("chunk_keys",),
    "owners_columns": ("chunk_keys",),
    "text_chunks": ("text_keys", "chunk_keys"),
    "text_more_chunks": ("text_more_keys",),
    "tree_chunks_columns": ("chunk_keys",),
    "tree_entities_columns": ("entity_keys",),
    "word_entities": ("entity_keys",),
    "word_names_columns": ("word_entities",),
    "word_tokens_columns": ("word_codes",),
}
"""Arrays of positions, and the array of what is at these positions (the first that is there)."""


def to_rows(name: str, array: Array) -> Array:
    """An array as it is compared with an earlier one: offsets by their differences."""
    if not name.endswith(OFFSETS) or array.ndim != 1 or array.dtype.kind not in "iu":
        return array
    return np.diff(array, prepend=array.dtype.type(0)) if len(array) else array


def from_rows(name: str, rows: Array) -> Array:
    """The array whose rows are compared."""
    if not name.endswith(OFFSETS) or rows.ndim != 1 or rows.dtype.kind not in "iu":
        return rows
    return np.cumsum(rows, dtype=rows.dtype, out=rows)


def first_merged(number: int) -> int:
    """From which file of changes on those before this one are merged into it.

    The second file replaces the first, the fourth all three before it, as a binary counter carries:
    few files are read, and what changed is written again as often as the logarithm of the number.
    """
    return number - (number & -number) + 1


class ChangedArrays:
    """Finds what changed in the arrays of a generation, and packs it."""

    def __init__(
        self, previous: Arrays, arrays: Arrays, spliced: Mapping[str, Splice] | None = None
    ) -> None:
        """`spliced` says of some arrays how they were made of the previous ones."""
        self._previous, self._arrays, self._spliced = previous, arrays, spliced or {}
        self._finder = EditFinder()
        self._steps: dict[str, Steps | None] = {}
        self._records: dict[str, dict[str, Any]] = {}
        self._packed: dict[bytes, int] = {}
        self._size = 0

    def find(self, name: str) -> Edits | None:
        """What changed in one array since the previous generation; None if it is too much."""
        old, new = (to_rows(name, held[name]) for held in (self._previous, self._arrays))
        for numbered in _NUMBERED_BY.get(name, ()):
            if numbered in self._previous and numbered in self._arrays:
                return self._finder.find(old, new, self._find_steps(numbered))
        return self._finder.find(old, new)

    def use(self, name: str, splice: Splice) -> Edits | None:
        """The same for an array of which it is known how it was made of the previous one."""
        old, steps = self._previous[name], None
        for numbered in _NUMBERED_BY.get(name, ()):
            if numbered in self._previous and numbered in self._arrays:
                steps = self._find_steps(numbered)
                if steps is None and not self._is_prefix(numbered):
                    return self.find(name)
                break
        if name.endswith(OFFSETS) and not splice.by_difference:
            if len(splice.gone) or int(splice.at[0]) < len(old) or not len(old):
                return self.find(name)
            splice = splice._replace(rows=np.diff(splice.rows, prepend=old[-1:]))
        found = splice.to_edits(len(old), steps)
        if len(found.starts) > MAX_EDITS or found.nbytes > MAX_SHARE * splice.array.nbytes:
            return None
        self._finder.learn(old, splice.array, found)
        return found

    def _is_prefix(self, numbered: str) -> bool:
        """Whether everything has the number it had."""
        old, new = (_identities(numbered, held) for held in (self._previous, self._arrays))
        return len(old) <= len(new) and count_equal_rows(old, new) == len(old)

    def add(self, name: str, edits: Edits) -> None:
        """Add the edits of one array to the file."""
        self._records[name] = {
            "pieces": [self._pack(edits.starts), self._pack(edits.lengths), len(edits.starts)],
            "rows": [self._pack(edits.rows), len(edits.rows)],
            "steps": None
            if (steps := edits.steps) is None
            else [self._pack(steps.at), self._pack(steps.add), len(steps.at), steps.count],
        }

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._records)

    def to_bytes(self) -> bytes:
        """The file."""
        head = json.dumps(self._records).encode()
        body = [len(head).to_bytes(_HEADER_BYTES, "little"), head, *self._packed]
        return zlib.compress(b"".join(body), _LEVEL)

    def _pack(self, numbers: Array) -> int:
        """Where the bytes of an array are; the same ones are there once."""
        raw = np.ascontiguousarray(numbers).tobytes()
        if raw not in self._packed:
            self._packed[raw] = self._size
            self._size += len(raw)
        return self._packed[raw]

    def _find_steps(self, numbered: str) -> Steps | None:
        if numbered not in self._steps:
            made = self._spliced.get(numbered)
            if made is not None and made.array is self._arrays[numbered]:
                self._steps[numbered] = made.to_steps(len(self._previous[numbered]))
            else:
                old, new = (_identities(numbered, held) for held in (self._previous, self._arrays))
                self._steps[numbered] = find_steps(old, new)
        return self._steps[numbered]


def _identities(numbered: str, arrays: Arrays) -> Ints:
    """What is at each position, by numbers that stay the same."""
    if numbered == "word_entities":
        found: Ints = arrays["entity_keys"][arrays[numbered]]
        return found
    held: Ints = arrays[numbered]
    return held


class ChangesFile:
    """A file of changes, unpacked when the first array is read."""

    def __init__(self, name: str, raw: bytes, checksum: int) -> None:
        self._name, self._raw, self.checksum = name, raw, checksum
        self._opened: tuple[dict[str, Any], bytes] | None = None

    def read(self, name: str, base: Array) -> Edits:
        """The edits of one array, of which `base` is an earlier state."""
        try:
            records, body = self._open()
            record = records[name]
            starts, lengths, count = record["pieces"]
            at, rows = record["rows"]
            width = int(np.prod(base.shape[1:], dtype=np.int64))
            held = np.frombuffer(body, base.dtype, rows * width, at)
            steps = None
            if record["steps"] is not None:
                where, add, size, total = record["steps"]
                steps = Steps(total, _numbers(body, where, size), _numbers(body, add, size))
            return Edits(
                _numbers(body, starts, count),
                _numbers(body, lengths, count),
                held.reshape(rows, *base.shape[1:]),
                steps,
            )
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            raise DamagedArrays(f"{self._name}: {error!r}") from error

    def _open(self) -> tuple[dict[str, Any], bytes]:
        if self._opened is None:
            if zlib.crc32(self._raw) != self.checksum:
                raise ValueError("its checksum is wrong")
            raw = zlib.decompress(self._raw)
            end = _HEADER_BYTES + int.from_bytes(raw[:_HEADER_BYTES], "little")
            self._opened = json.loads(raw[_HEADER_BYTES:end]), raw[end:]
        return self._opened


def _numbers(raw: bytes, at: int, count: int) -> Ints:
    return np.frombuffer(raw, np.int64, count, at)


def read_edits(
    name: str, base: Array, files: Mapping[int, ChangesFile], used: Sequence[int]
) -> list[Edits]:
    """The edits of one array since its file was written."""
    rows = to_rows(name, base[:0])
    return [files[number].read(name, rows) for number in used]


def apply_edits(name: str, base: Array, edits: Sequence[Edits]) -> Array:
    """An array as its file and the edits since say."""
    try:
        found = from_rows(name, reduce(Edits.then, edits).apply(to_rows(name, base)))
    except (ValueError, IndexError) as error:
        raise DamagedArrays(repr(error)) from error
    found.flags.writeable = False
    return found
