"""Vectors by content hash, in two append-only `.npy` files that are read memory-mapped.

`NAME.npy` holds the vectors, `NAME.hash.npy` the 16-byte content hash and the checksum of each row.
A row is valid only if both headers include it: the vectors are written and synced first, the hashes
last, so a crash can leave an unused tail but never a row without its vector. A hash of zeros marks
a row whose vector was lost to damage.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from threading import RLock
from tokenize import TokenError
from typing import Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from clew.errors import StoreError
from clew.store.checksums import checksum_vectors
from clew.text.unicode import hash64

Records = NDArray[np.void]
Shape = tuple[int, int]
_HEADER_BYTES = 128  # bytes; fixed, so that the number of rows can be rewritten in place
_HASH_DTYPE = np.dtype("V16")
_RECORD_DTYPE = np.dtype([("hash", _HASH_DTYPE), ("sum", np.uint64)])
_RECORD_BYTES = np.dtype("V24")  # how a record is declared in the file
_NO_RECORDS: Records = np.zeros(0, _RECORD_DTYPE)
_UNUSED = bytes(16)
_ITERATED_ROWS = 8192  # per block of all rows
_MAX_READ_BYTES = 1 << 18
MAX_CHECKED_BYTES = 1 << 26  # more vectors than this are checked by `clew verify`, not when used
_READ_ERRORS = (ValueError, EOFError, SyntaxError, TokenError)  # raised by numpy for invalid files


class DamagedVectors(StoreError):  # noqa: N818  (reads as what happened)
    """The vector files cannot be read; the vectors can be computed again."""


class MemoryVectors:
    """In-memory reference implementation."""

    def __init__(self) -> None:
        self._row: dict[str, int] = {}
        self._vectors: list[NDArray[np.float32]] = []

    def find_rows(self, hashes: Sequence[str]) -> NDArray[np.int64]:
        """Row of each hash; -1 if absent."""
        return np.array([self._row.get(key, -1) for key in hashes], np.int64)

    def append(self, hashes: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Append new vectors."""
        fresh = {key: at for at, key in enumerate(hashes) if key not in self._row}
        if fresh and self._vectors:
            _check_width("vectors", len(self._vectors[0]), vectors.shape[1])
        for key, at in fresh.items():
            self._row[key] = len(self._vectors)
            self._vectors.append(np.asarray(vectors[at], np.float32))

    def matrix(self) -> NDArray[np.float32]:
        """All rows."""
        return np.stack(self._vectors) if self._vectors else np.zeros((0, 0), np.float32)

    def iterate(self) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        """All rows in order."""
        yield list(self._row), self.matrix()

    def find_lost_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the rows in use that hold no vector."""
        return rows[rows >= len(self._vectors)]

    def repair(self) -> bool:
        """Do nothing: there are no files."""
        return False


class _FileVersion(NamedTuple):
    """Inode and header of a file; equal versions mean that nothing was appended."""

    file: int
    header: bytes


_UNREAD = _FileVersion(-1, b"")  # unlike that of any file, also of one that is missing


class VectorFile:
    """Vectors in append-only files; a row, once given, belongs to its text for ever."""

    def __init__(self, path: Path, shape_in_use: Callable[[], Shape] = lambda: (0, 0)) -> None:
        """`shape_in_use` tells how many rows the tables refer to, should the files be lost."""
        self._path = path
        self._hash_path = path.with_suffix(".hash.npy")
        self._shape_in_use = shape_in_use
        self._lock = RLock()  # several threads may append concurrently
        self._version = _FileVersion(0, b"")
        self._row: dict[bytes, int] = {}
        self._records = _NO_RECORDS
        self._checked = 0  # rows whose checksums were found right

    def find_rows(self, hashes: Sequence[str]) -> NDArray[np.int64]:
        """Row of each hash; -1 if absent."""
        known = self._load_row_numbers()
        return np.array([known.get(bytes.fromhex(key), -1) for key in hashes], np.int64)

    def append(self, hashes: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Append new vectors durably; known hashes are skipped."""
        with self._lock:
            known = self._load_row_numbers()
            fresh = {bytes.fromhex(h): i for i, h in enumerate(hashes)}
            fresh = {key: i for key, i in fresh.items() if key not in known}
            if not fresh:
                return
            block = np.ascontiguousarray(vectors[list(fresh.values())], np.float32)
            at = len(self._records)
            if at:
                _check_width(self._path.name, self._map_rows(at).shape[1], block.shape[1])
            with _translate_errors(self._path):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._add_checksums()
                _append_rows(self._path, block, at)
                records = _make_records(
                    self._path, np.frombuffer(b"".join(fresh), _HASH_DTYPE), block
                )
                _append_rows(self._hash_path, records, at)
                self._version = _read_version(self._hash_path)
            known.update((key, at + i) for i, key in enumerate(fresh))
            self._records = np.concatenate([self._records, records])

    def matrix(self) -> NDArray[np.float32]:
        """All rows, memory-mapped; those read for the first time are checked, if not too many."""
        with self._lock:
            self._load_row_numbers()
            mapped = self._map_rows(len(self._records))
            if mapped[self._checked :].nbytes <= MAX_CHECKED_BYTES:
                self._check_content(mapped)
            return mapped

    def iterate(self) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        """All rows in order, as blocks of hashes and vectors; the hash of a lost one is zeros."""
        matrix = self.matrix()
        for at in range(0, len(matrix), _ITERATED_ROWS):
            hashes = np.ascontiguousarray(self._records["hash"][at : at + _ITERATED_ROWS])
            raw = hashes.tobytes().hex()
            listed = [raw[i : i + 32] for i in range(0, len(raw), 32)]
            yield listed, matrix[at : at + _ITERATED_ROWS]

    def count_checked_rows(self) -> int:
        """Number of rows, after checking all of both files."""
        with self._lock:
            self._version, self._checked = _UNREAD, 0
            self._load_row_numbers()
            self._check_content(self._map_rows(len(self._records)))
            return len(self._records)

    def find_lost_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the rows in use that hold no vector: beyond the end, or lost to damage."""
        with self._lock:
            self._load_row_numbers()
            rows = rows[rows >= 0]
            if len(self._records) == 0 or int(rows.max(initial=-1)) >= len(self._records):
                return rows[rows >= len(self._records)]
            return rows[_is_unused(self._records)[rows]] if _UNUSED in self._row else rows[:0]

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
        return False

    def _replace_files(self) -> None:
        """Write both files again, with the rows that are right; the hashes last."""
        vectors, records = _salvage(self._path, self._hash_path, self._shape_in_use())
        for path, rows in ((self._path, vectors), (self._hash_path, records)):
            beside = path.with_name(f"{path.name}.new")
            beside.unlink(missing_ok=True)
            if len(rows):
                _append_rows(beside, rows, 0)
                beside.replace(path)
            else:
                path.unlink(missing_ok=True)
        self._version = _UNREAD

    def _load_row_numbers(self) -> dict[bytes, int]:
        """Row numbers by hash, read again if another process has appended."""
        with self._lock:
            version = _read_version(self._hash_path)
            if version != self._version:
                rows = _count_admitted_rows(self._hash_path, version.header)
                self._records = _load_records(self._hash_path)[:rows] if rows else _NO_RECORDS
                raw = np.ascontiguousarray(self._records["hash"]).tobytes()
                self._row = {raw[16 * i : 16 * i + 16]: i for i in range(rows)}
                self._checked = self._checked if version.file == self._version.file else 0
                self._version = version
            return self._row

    def _map_rows(self, rows: int) -> NDArray[np.float32]:
        if rows == 0:
            return np.zeros((0, 0), np.float32)
        try:
            # A mapped file keeps a handle open; a small one is read.
            how: Literal["r"] | None = "r" if self._path.stat().st_size > _MAX_READ_BYTES else None
            mapped: NDArray[np.float32] = np.load(self._path, mmap_mode=how, allow_pickle=False)
        except (*_READ_ERRORS, FileNotFoundError) as error:
            raise _damage_error(self._path, error) from error
        if mapped.dtype != np.float32 or mapped.ndim != 2 or not mapped.flags.c_contiguous:
            raise _damage_error(self._path, "its header is not that of vectors")
        if len(mapped) < rows:
            raise _damage_error(self._path, f"{len(mapped)} vectors for {rows} hashes")
        return mapped[:rows]

    def _check_content(self, mapped: NDArray[np.float32]) -> None:
        """Compare the checksums of rows not checked yet."""
        new = slice(self._checked, None)
        wrong = np.count_nonzero(~_is_right(self._path, self._records[new], mapped[new]))
        if wrong:
            raise _damage_error(self._path, f"{wrong} vectors have another checksum")
        self._checked = len(mapped)

    def _add_checksums(self) -> None:
        """Rewrite a file of version 0.1, which holds hashes only, before it grows."""
        if not self._version.header or _has_checksums(self._version.header):
            return
        self._records = _make_records(
            self._path, self._records["hash"].copy(), self._map_rows(len(self._records))
        )
        beside = self._hash_path.with_name(f"{self._hash_path.name}.new")
        beside.unlink(missing_ok=True)
        _append_rows(beside, self._records, 0)
        beside.replace(self._hash_path)


def _load_records(path: Path) -> Records:
    """The rows of a hash file; those of version 0.1 have no checksum, which is 0."""
    try:
        held = np.load(path, allow_pickle=False)
    except _READ_ERRORS as error:
        raise _damage_error(path, error) from error
    if held.ndim == 1 and held.dtype == _RECORD_BYTES:
        records: Records = np.frombuffer(held.tobytes(), _RECORD_DTYPE)
        return records
    if held.ndim != 1 or held.dtype != _HASH_DTYPE:
        raise _damage_error(path, "its header is not that of hashes")
    records = np.zeros(len(held), _RECORD_DTYPE)
    records["hash"] = held
    return records


def _make_records(path: Path, hashes: NDArray[np.void], vectors: NDArray[np.float32]) -> Records:
    records: Records = np.zeros(len(hashes), _RECORD_DTYPE)
    records["hash"] = hashes
    records["sum"] = np.where(_is_unused(records), 0, _compute_sums(path, records, vectors))
    return records


def _compute_sums(path: Path, records: Records, vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Checksums by row; they depend on the file's name, so that files cannot be swapped."""
    seed = np.uint64(hash64(f"{path.parent.name}/{path.name}"))
    sums = checksum_vectors(_to_words(records), np.ascontiguousarray(vectors)) ^ seed
    return np.where(sums == 0, np.uint64(1), sums)  # 0 says that there is none


def _is_right(path: Path, records: Records, vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Whether each row has its checksum, or none."""
    if not len(records):
        return np.zeros(0, np.bool_)
    held = records["sum"]
    right: NDArray[np.bool_] = (held == _compute_sums(path, records, vectors)) | (held == 0)
    return right


def _to_words(records: Records) -> NDArray[np.uint64]:
    return np.ascontiguousarray(records["hash"]).view(np.uint64).reshape(-1, 2)


def _is_unused(records: Records) -> NDArray[np.bool_]:
    unused: NDArray[np.bool_] = (_to_words(records) == 0).all(axis=1)
    return unused


def _salvage(path: Path, hash_path: Path, used: Shape) -> tuple[NDArray[np.float32], Records]:
    """What is right of two damaged files, at its old rows; the other rows are unused."""
    try:
        records = _load_records(hash_path)
    except (DamagedVectors, FileNotFoundError):
        records = _NO_RECORDS
    vectors = _read_vectors(path)
    rows, width = max(used[0], len(records), len(vectors)), vectors.shape[1] or used[1]
    if not width:
        return np.zeros((0, 0), np.float32), _NO_RECORDS
    both = min(len(records), len(vectors))
    vectors = vectors if len(vectors) else np.zeros((0, width), np.float32)
    right = _is_right(path, records[:both], vectors[:both]) & (records["sum"][:both] != 0)
    kept = np.zeros((rows, width), np.float32)
    kept[:both][right] = vectors[:both][right]
    found: Records = np.zeros(rows, _RECORD_DTYPE)
    found[:both][right] = records[:both][right]
    return kept, found


def _read_vectors(path: Path) -> NDArray[np.float32]:
    """All vectors of a file that its length and header allow."""
    nothing = np.zeros((0, 0), np.float32)
    try:
        raw = path.read_bytes()
        file = BytesIO(raw)
        npy.read_magic(file)
        shape, fortran, dtype = npy.read_array_header_1_0(file)
    except (*_READ_ERRORS, FileNotFoundError):
        return nothing
    if len(shape) != 2 or fortran or dtype != np.float32 or not shape[1]:
        return nothing
    rows = min(shape[0], (len(raw) - _HEADER_BYTES) // (4 * shape[1]))
    return np.frombuffer(raw, np.float32, max(rows, 0) * shape[1], _HEADER_BYTES).reshape(
        -1, shape[1]
    )


def _check_width(name: str, held: int, given: int) -> None:
    if held != given:
        raise StoreError(
            f"{name}: stored vectors have {held} dimensions, new ones {given}; another model now "
            "has the embedder's name, so restore [embed] in clew.toml"
        )


def _damage_error(path: Path, why: object) -> DamagedVectors:
    return DamagedVectors(f"{path.name} is damaged ({why}); `clew reembed` rebuilds it")


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write vectors to {path.parent}: {error.strerror or error}; "
            "stored vectors are unchanged"
        ) from error


def _read_version(path: Path) -> _FileVersion:
    """The version of a file; its header is empty if the file is missing or empty."""
    try:
        with path.open("rb") as file:
            return _FileVersion(os.fstat(file.fileno()).st_ino, file.read(_HEADER_BYTES))
    except FileNotFoundError:
        return _FileVersion(0, b"")


def _count_admitted_rows(path: Path, header: bytes) -> int:
    if not header:
        return 0
    file = BytesIO(header)
    try:
        npy.read_magic(file)
        return int(npy.read_array_header_1_0(file)[0][0])
    except (*_READ_ERRORS, IndexError) as error:
        raise _damage_error(path, error) from error


def _has_checksums(header: bytes) -> bool:
    file = BytesIO(header)
    npy.read_magic(file)
    return bool(npy.read_array_header_1_0(file)[2] == _RECORD_BYTES)


def _append_rows(path: Path, block: NDArray[np.generic], at: int) -> None:
    """Write `block` from row `at` on; the header that includes it is written last."""
    exists = bool(_read_version(path).header)
    with path.open("r+b" if exists else "w+b") as file:
        if not exists:
            file.write(_make_header(block, 0))
        file.seek(_HEADER_BYTES + at * block[:1].nbytes)
        file.write(block.tobytes())
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        file.write(_make_header(block, at + len(block)))
        file.flush()
        os.fsync(file.fileno())


def _make_header(block: NDArray[np.generic], rows: int) -> bytes:
    """A version 1.0 `.npy` header padded to a fixed length."""
    descr = npy.dtype_to_descr(_RECORD_BYTES if block.dtype == _RECORD_DTYPE else block.dtype)
    fields = {"descr": descr, "fortran_order": False, "shape": (rows, *block.shape[1:])}
    body = repr(fields).encode("latin1")
    magic = npy.magic(1, 0)
    space = _HEADER_BYTES - len(magic) - 2
    body = body.ljust(space - 1) + b"\n"
    return magic + len(body).to_bytes(2, "little") + body
