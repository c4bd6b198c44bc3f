"""Vectors by content hash, in two append-only `.npy` files that are read memory-mapped.

`NAME.npy` holds the vectors, `NAME.hash.npy` the 16-byte content hash and the checksum of each row.
A row is valid only if both headers include it: the vectors are written and synced first, the hashes
last, so a crash can leave an unused tail but never a row without its vector. A hash of zeros marks
a row whose vector was lost to damage, or erased with its text. `NAME.signs.npy`
and `NAME.ivf`, of many vectors, are indexes over them.

Vectors are 16-bit numbers (docs/decisions/0018-smaller-vectors.md). A file of earlier versions,
which had 32 bits, is read as it is, and rewritten before it grows.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from clew import kernels
from clew.errors import StoreError
from clew.store.append_files import (
    HEADER_BYTES,
    READ_ERRORS,
    UNREAD,
    FileVersion,
    append_rows,
    read_header,
    read_version,
)
from clew.store.checked_files import FileNote
from clew.store.erased_rows import erase_rows
from clew.store.ivf_index import MIN_IVF_ROWS, IvfFile, IvfIndex, has_faiss
from clew.store.row_lookup import RowLookup, parse_hashes
from clew.store.sign_bits import SignBits, SignFile
from clew.store.vector_records import (
    HALF,
    HASH_DTYPE,
    NO_RECORDS,
    RECORD_BYTES,
    RECORD_DTYPE,
    SINGLE,
    STORED,
    DamagedVectors,
    Records,
    Shape,
    Stored,
    damage_error,
    have_sums,
    is_right,
    is_unused,
    load_records,
    make_records,
    map_file,
    salvage,
    say_something,
    say_something_at,
    view_words,
)

MIN_SIGNED_ROWS = 1 << 14  # fewer vectors are all compared, so their sign bits are not stored
_ITERATED_ROWS = 8192  # per block of all rows
MAX_WIDE_ROWS = 1 << 17  # so many 16-bit vectors are held as 32-bit numbers once they are read
MAX_CHECKED_BYTES = 1 << 26  # more vectors than this are checked by `clew verify`, not when used


class VectorFile:
    """Vectors in append-only files; a row, once given, is never given to another text."""

    def __init__(self, path: Path, shape_in_use: Callable[[], Shape] = lambda: (0, 0)) -> None:
        """`shape_in_use` tells how many rows the tables refer to, should the files be lost."""
        self._path = path
        self._hash_path = path.with_suffix(".hash.npy")
        self._full_note = FileNote(self._hash_path, "full")  # no row of it is unused
        self._right_note = FileNote(path, "right", self._hash_path)  # all checksums are right
        self._sign_file = SignFile(path.with_suffix(".signs.npy"))
        self._ivf_file = IvfFile(path.with_suffix(".ivf"))
        self._shape_in_use = shape_in_use
        self._lock = RLock()  # several threads may append concurrently
        self._version = FileVersion(0, b"")
        self._lookup: RowLookup | None = None  # made when a hash is first looked for
        self._records = NO_RECORDS
        self._room = NO_RECORDS  # where the records lie while rows are appended, and space for more
        self._is_present_format = False  # known of the rows that were read or appended
        self._checked = 0  # rows whose checksums were found right
        self._precision = STORED
        self._wide = np.zeros((0, 0), np.float32)  # the first rows of a file, as 32-bit numbers
        self._wide_file = 0

    def find_rows(self, hashes: Sequence[str]) -> NDArray[np.int64]:
        """Row of each hash; -1 if absent."""
        with self._lock:
            return self._load_lookup().find(parse_hashes(hashes))

    def append(self, hashes: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Append new vectors durably; known hashes are skipped."""
        with self._lock:
            lookup = self._load_lookup()
            known = lookup.find(parse_hashes(hashes)).tolist()
            fresh = {h: i for i, (h, row) in enumerate(zip(hashes, known, strict=True)) if row < 0}
            if not fresh:
                return
            block = np.ascontiguousarray(vectors[list(fresh.values())], self._precision)
            added = parse_hashes(list(fresh))
            at = len(self._records)
            if at:
                check_width(self._path.name, self._map_rows(at).shape[1], block.shape[1])
            with _translate_errors(self._path):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._rewrite_earlier_format()
                append_rows(self._path, block, at)
                records = make_records(self._path, added.view(HASH_DTYPE).reshape(-1), block)
                append_rows(self._hash_path, records, at)
                self._version = read_version(self._hash_path)
            self._lookup = lookup if lookup.extend(added) else None
            self._hold_appended(records)

    def matrix(self) -> Stored:
        """All rows; those of 16 bits are memory-mapped as they are stored, few perhaps widened.

        Those of an earlier version are rounded as they would be stored now.
        """
        with self._lock:
            stored = self._read_stored()
            # The compiled loops read 16-bit numbers as they are, without loss and in less time.
            as_stored = kernels.COMPILED is not None and stored.dtype == self._precision
            if as_stored or self._precision == SINGLE or len(stored) > MAX_WIDE_ROWS:
                return stored
            if self._wide_file != self._version.file:
                self._wide_file, self._wide = self._version.file, np.zeros((0, 0), np.float32)
            if len(self._wide) < len(stored):
                rounded = stored[len(self._wide) :].astype(self._precision, copy=False)
                fresh = rounded.astype(np.float32)
                self._wide = np.concatenate([self._wide, fresh]) if len(self._wide) else fresh
                self._wide.flags.writeable = False
            return self._wide[: len(stored)]

    def _read_stored(self) -> Stored:
        """All rows as they are stored; those read for the first time are checked, if not many."""
        self._load_records()
        version = self._version
        try:
            stored = self._map_rows(len(self._records))
            if stored[self._checked :].nbytes <= MAX_CHECKED_BYTES:
                self._check_unless_noted(stored)
        except DamagedVectors:
            self._load_records()
            if self._version == version:
                raise
            return self._read_stored()  # another process rewrote the files meanwhile
        return stored

    def count_rows(self) -> int:
        """Number of rows."""
        with self._lock:
            self._load_records()
            return len(self._records)

    def width(self) -> int:
        """Number of dimensions; 0 if there is no row."""
        with self._lock:
            self._load_records()
            return int(self._map_rows(len(self._records)).shape[1])

    def row_index(self) -> SignBits | IvfIndex:
        """The index over all rows; what its files lack is computed once."""
        with self._lock:
            mapped = self._read_stored()
            lists = self._ivf_file.load(mapped) if len(mapped) >= MIN_IVF_ROWS else None
            return lists or self._sign_file.load(mapped)

    def save_index(self) -> None:
        """Write the index of rows that are not in it yet, so that readers need not make it."""
        with self._lock, _translate_errors(self._path):
            self._load_records()
            mapped = self._map_rows(len(self._records))
            if self._sign_file.lacks_blocks(mapped):
                self._sign_file.extend(self._read_stored())
            if len(mapped) >= MIN_IVF_ROWS:
                self._ivf_file.update(mapped)

    def has_right_indexes(self) -> bool:
        """Whether the indexes, if there are any, are those of the vectors."""
        with self._lock:
            stored = self._read_stored()
            return self._sign_file.is_right(stored) and self._ivf_file.is_right(stored)

    def describe_index(self) -> str:
        """What is to be said about an index that is missing, or older than the vectors."""
        with self._lock:
            self._load_records()
            mapped = self._map_rows(len(self._records))
            if len(mapped) < MIN_SIGNED_ROWS:
                return ""
            if len(mapped) >= MIN_IVF_ROWS and has_faiss() and not self._ivf_file.is_used(mapped):
                return "the inverted lists are missing or of other vectors"
            if self._sign_file.lacks_blocks(mapped):
                return "the sign bits are missing, or older than the vectors"
            return ""

    def read_hashes(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The content hashes of rows, two words each; zeros for a lost one."""
        with self._lock:
            self._load_records()
            held = rows < len(self._records)
            found = np.zeros((len(rows), 2), np.uint64)
            found[held] = view_words(self._records[rows[held]])
            return found

    def iterate(self) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        """All rows in order, as blocks of hashes and vectors; the hash of a lost one is zeros."""
        with self._lock:
            matrix = self._read_stored()
        for at in range(0, len(matrix), _ITERATED_ROWS):
            hashes = np.ascontiguousarray(self._records["hash"][at : at + _ITERATED_ROWS])
            raw = hashes.tobytes().hex()
            listed = [raw[i : i + 32] for i in range(0, len(raw), 32)]
            yield listed, np.asarray(matrix[at : at + _ITERATED_ROWS], np.float32)

    def count_checked_rows(self) -> int:
        """Number of rows, after checking all of both files."""
        with self._lock:
            self._full_note.remove()
            self._right_note.remove()
            self._version, self._checked = UNREAD, 0
            self._load_records()
            stored = self._map_rows(len(self._records))
            self._check_content(stored)
            empty = np.count_nonzero(~(say_something(stored) | is_unused(self._records)))
            if empty:
                raise damage_error(self._path, f"{empty} vectors are of zeros or no numbers")
            return len(self._records)

    def find_lost_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the rows in use that hold no vector: beyond the end, or lost to damage."""
        with self._lock:
            self._load_records()
            if int(rows.max(initial=-1)) >= len(self._records):
                return rows[rows >= len(self._records)]
            if self._full_note.holds():
                return rows[:0]
            described = self._full_note.describe()
            if (unused := is_unused(self._records)).any():
                return rows[(rows >= 0) & unused[rows]]
            self._full_note.write(described)
            return rows[:0]

    def repair(self) -> bool:
        """Drop damaged vectors, to be computed again; return whether there were any.

        All other rows stay where they are, so whoever refers to them finds them at any moment;
        the dropped rows are never given to another text.
        """
        with self._lock:
            try:
                self.count_checked_rows()
            except DamagedVectors:
                with _translate_errors(self._path):
                    self._replace_files()
                return True
            self.drop_wrong_indexes()
        return False

    def erase_unused(self, used: NDArray[np.int64], least: float) -> int:
        """Erase all rows but those in use, if they are a larger share; return how many.

        The hashes go first, in a new file: whoever kept them reads them again, and takes none of
        these rows for a text. A run that is killed in between is continued by the next one.
        """
        with self._lock, _translate_errors(self._path):
            self._load_records()
            is_used = np.zeros(len(self._records), np.bool_)
            is_used[used[(used >= 0) & (used < len(is_used))]] = True
            known = ~is_unused(self._records)
            fresh = known & ~is_used
            if least and np.count_nonzero(fresh) <= least * np.count_nonzero(known):
                return 0
            if fresh.any():
                self._full_note.remove()
                kept = np.where(fresh, np.zeros(1, RECORD_DTYPE), self._records)
                _replace_rows(self._hash_path, kept)
            stored = self._map_rows(len(is_used))
            empty = np.flatnonzero(~is_used)
            said = empty[say_something_at(stored, empty)]
            if not len(said):
                return 0
            erase_rows(self._path, HEADER_BYTES, stored[:1].nbytes, said)
            self._sign_file.remove()
            self._ivf_file.remove()
            self._version, self._lookup = UNREAD, None
            if len(is_used) >= MIN_SIGNED_ROWS:
                self.save_index()
            return len(said)

    def drop_wrong_indexes(self) -> None:
        """Remove indexes that are not those of the vectors; the next write makes them again."""
        with self._lock:
            if not self.has_right_indexes():
                self._sign_file.remove()
                self._ivf_file.remove()

    def _replace_files(self) -> None:
        """Write both files again, with the rows that are right; the hashes last."""
        vectors, records = salvage(self._path, self._hash_path, self._shape_in_use())
        for path, rows in ((self._path, vectors), (self._hash_path, records)):
            if len(rows):
                _replace_rows(path, rows)
            else:
                path.unlink(missing_ok=True)
        self._sign_file.remove()
        self._ivf_file.remove()
        self._version = UNREAD

    def _load_lookup(self) -> RowLookup:
        """Row numbers by hash."""
        self._load_records()
        if self._lookup is None:
            self._lookup = RowLookup(view_words(self._records))
        return self._lookup

    def _load_records(self) -> None:
        """Read the hashes, again if another process has appended."""
        version = read_version(self._hash_path)
        if version != self._version:
            rows = _count_admitted_rows(self._hash_path, version.header)
            self._records = load_records(self._hash_path)[:rows] if rows else NO_RECORDS
            self._lookup, self._is_present_format = None, False
            self._checked = self._checked if version.file == self._version.file else 0
            self._version = version

    def _hold_appended(self, records: Records) -> None:
        """Add records to those held; all are copied only when the space for more is used up."""
        held, rows = self._records, len(self._records) + len(records)
        if rows > len(self._room) or held.base is not self._room:
            self._room = np.empty(rows + rows // 8, RECORD_DTYPE)
            self._room[: len(held)] = held
        self._room[len(held) : rows] = records
        self._records = self._room[:rows]

    def _map_rows(self, rows: int) -> Stored:
        if rows == 0:
            return np.zeros((0, 0), np.float32)
        try:
            mapped: Stored = map_file(self._path)
        except (*READ_ERRORS, FileNotFoundError) as error:
            raise damage_error(self._path, error) from error
        known = mapped.dtype in (HALF, SINGLE)
        if not known or mapped.ndim != 2 or not mapped.flags.c_contiguous:
            raise damage_error(self._path, "its header is not that of vectors")
        if len(mapped) < rows:
            raise damage_error(self._path, f"{len(mapped)} vectors for {rows} hashes")
        return mapped[:rows]

    def _check_unless_noted(self, mapped: Stored) -> None:
        """Compare checksums, unless all were right before and the files are as they were then."""
        if self._checked == len(mapped):
            return
        if not self._checked and self._right_note.holds():
            self._checked = len(mapped)
            return
        described = None if self._checked else self._right_note.describe()
        self._check_content(mapped)
        self._right_note.write(described)

    def _check_content(self, mapped: Stored) -> None:
        """Compare the checksums of rows not checked yet."""
        new = slice(self._checked, None)
        wrong = np.count_nonzero(~is_right(self._path, self._records[new], mapped[new]))
        if wrong:
            raise damage_error(self._path, f"{wrong} vectors have another checksum")
        self._checked = len(mapped)

    def _rewrite_earlier_format(self) -> None:
        """Rewrite files without checksums, or with more bits than needed, before they grow.

        Checksums are dropped before the vectors change, and added last: a run that is killed leaves
        files that can be read.
        """
        if not self._version.header or self._is_present_format:
            return
        stored = self._map_rows(len(self._records))
        if stored.dtype != self._precision:
            self._check_content(stored)
            bare = self._records.copy()
            bare["sum"] = 0
            _replace_rows(self._hash_path, bare)
            stored = np.ascontiguousarray(stored, self._precision)
            _replace_rows(self._path, stored)
            self._sign_file.remove()
            self._ivf_file.remove()
        elif _has_checksums(self._version.header) and have_sums(self._records):
            self._is_present_format = True
            return
        self._records = make_records(self._path, self._records["hash"].copy(), stored)
        _replace_rows(self._hash_path, self._records)


def _replace_rows(path: Path, rows: NDArray[np.generic]) -> None:
    """Replace a file in one step."""
    beside = path.with_name(f"{path.name}.new")
    beside.unlink(missing_ok=True)
    append_rows(beside, rows, 0)
    beside.replace(path)


def check_width(name: str, held: int, given: int) -> None:
    """Raise if new vectors have another number of dimensions than those of a file."""
    if held != given:
        raise StoreError(
            f"{name}: stored vectors have {held} dimensions, new ones {given}; another model now "
            "has the embedder's name, so restore [embed] in clew.toml"
        )


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write vectors to {path.parent}: {error.strerror or error}; "
            "stored vectors are unchanged"
        ) from error


def _count_admitted_rows(path: Path, header: bytes) -> int:
    if not header:
        return 0
    try:
        return int(read_header(header)[0][0])
    except (*READ_ERRORS, IndexError) as error:
        raise damage_error(path, error) from error


def _has_checksums(header: bytes) -> bool:
    return bool(read_header(header)[1] == RECORD_BYTES)
