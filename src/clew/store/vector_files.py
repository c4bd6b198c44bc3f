"""Vectors by content hash, in two append-only `.npy` files that are read memory-mapped.

`NAME.npy` holds the vectors, `NAME.hash.npy` the 16-byte content hash of each row. A row is valid
only if both headers include it: the vectors are written and synced first, the hashes last, so a
crash can leave an unused tail but never a row without its vector.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from threading import RLock
from tokenize import TokenError
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from clew.errors import StoreError

_HEADER_BYTES = 128  # bytes; fixed, so that the number of rows can be rewritten in place
_HASH_DTYPE = np.dtype("V16")
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

    def repair(self) -> bool:
        """Do nothing: there are no files."""
        return False


class _FileVersion(NamedTuple):
    """Inode and header of a file; equal versions mean that nothing was appended."""

    file: int
    header: bytes


class VectorFile:
    """Vectors in append-only files."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._hash_path = path.with_suffix(".hash.npy")
        self._lock = RLock()  # several threads may append concurrently
        self._version = _FileVersion(0, b"")
        self._row: dict[bytes, int] = {}
        self._count = 0

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
            at = self._count
            if at:
                _check_width(self._path.name, self.matrix().shape[1], block.shape[1])
            with _translate_errors(self._path):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                _append_rows(self._path, block, at)
                _append_rows(self._hash_path, np.frombuffer(b"".join(fresh), _HASH_DTYPE), at)
                self._version = _read_version(self._hash_path)
            known.update((key, at + i) for i, key in enumerate(fresh))
            self._count = at + len(fresh)

    def matrix(self) -> NDArray[np.float32]:
        """All rows, memory-mapped."""
        rows = _count_admitted_rows(self._hash_path, _read_version(self._hash_path).header)
        if rows == 0:
            return np.zeros((0, 0), np.float32)
        try:
            mapped: NDArray[np.float32] = np.load(self._path, mmap_mode="r", allow_pickle=False)
        except (*_READ_ERRORS, FileNotFoundError) as error:
            raise _damage_error(self._path, error) from error
        if len(mapped) < rows:
            raise _damage_error(self._path, f"{len(mapped)} vectors for {rows} hashes")
        return mapped[:rows]

    def count_checked_rows(self) -> int:
        """Number of rows, after checking that both files are readable."""
        self._load_row_numbers()
        return len(self.matrix())

    def repair(self) -> bool:
        """Move unreadable files aside so that they are rebuilt; return whether any were."""
        with self._lock:
            try:
                self.count_checked_rows()
            except DamagedVectors:
                with _translate_errors(self._path):
                    for path in (self._hash_path, self._path):  # the hashes decide: first
                        if path.exists():
                            path.replace(path.with_suffix(".damaged"))
                return True
        return False

    def _load_row_numbers(self) -> dict[bytes, int]:
        """Row numbers by hash, read again if another process has appended."""
        with self._lock:
            version = _read_version(self._hash_path)
            if version != self._version:
                rows = _count_admitted_rows(self._hash_path, version.header)
                try:
                    raw = np.load(self._hash_path, allow_pickle=False).tobytes() if rows else b""
                except _READ_ERRORS as error:
                    raise _damage_error(self._hash_path, error) from error
                self._row = {raw[16 * i : 16 * i + 16]: i for i in range(rows)}
                self._version, self._count = version, rows
            return self._row


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
            f"cannot write vectors to {path.parent}: {error.strerror}; stored vectors are unchanged"
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
    descr = npy.dtype_to_descr(block.dtype)
    fields = {"descr": descr, "fortran_order": False, "shape": (rows, *block.shape[1:])}
    body = repr(fields).encode("latin1")
    magic = npy.magic(1, 0)
    space = _HEADER_BYTES - len(magic) - 2
    body = body.ljust(space - 1) + b"\n"
    return magic + len(body).to_bytes(2, "little") + body
