"""Vectors by content hash, kept in two append-only `.npy` files that are read memory-mapped.

`NAME.npy` holds the vectors, `NAME.hash.npy` the 16-byte content hash of each row. A row counts
only when both headers admit it: the vectors are written and synced first, the hashes last, so a
crash can leave an unused tail but never a row without its vector.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from clew.errors import StoreError

_HEADER = 128  # bytes; fixed, so that the number of rows can be rewritten in place
_HASH = np.dtype("V16")


class MemoryVectors:
    """The reference: a dict and a list."""

    def __init__(self) -> None:
        self._row: dict[str, int] = {}
        self._vectors: list[NDArray[np.float32]] = []

    def rows(self, hashes: Sequence[str]) -> NDArray[np.int64]:
        """Say in which row each hash is; -1 where it is not."""
        return np.array([self._row.get(key, -1) for key in hashes], np.int64)

    def append(self, hashes: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Keep new vectors."""
        for key, vector in zip(hashes, vectors, strict=True):
            if key not in self._row:
                self._row[key] = len(self._vectors)
                self._vectors.append(np.asarray(vector, np.float32))

    def matrix(self) -> NDArray[np.float32]:
        """All rows."""
        return np.stack(self._vectors) if self._vectors else np.zeros((0, 0), np.float32)


class VectorFile:
    """The same on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._hash_path = path.with_suffix(".hash.npy")
        self._row: dict[bytes, int] | None = None

    def rows(self, hashes: Sequence[str]) -> NDArray[np.int64]:
        """Say in which row each hash is; -1 where it is not."""
        known = self._known()
        return np.array([known.get(bytes.fromhex(key), -1) for key in hashes], np.int64)

    def append(self, hashes: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Keep new vectors, durably; hashes already here are passed over."""
        known = self._known()
        fresh = {bytes.fromhex(h): i for i, h in enumerate(hashes)}
        fresh = {key: i for key, i in fresh.items() if key not in known}
        if not fresh:
            return
        block = np.ascontiguousarray(vectors[list(fresh.values())], np.float32)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        at = len(known)
        _append(self._path, block, at)
        _append(self._hash_path, np.frombuffer(b"".join(fresh), _HASH), at)
        known.update((key, at + i) for i, key in enumerate(fresh))

    def matrix(self) -> NDArray[np.float32]:
        """All rows, memory-mapped."""
        rows = _count(self._hash_path)
        if rows == 0:
            return np.zeros((0, 0), np.float32)
        mapped: NDArray[np.float32] = np.load(self._path, mmap_mode="r", allow_pickle=False)
        return mapped[:rows]

    def _known(self) -> dict[bytes, int]:
        if self._row is None:
            rows = _count(self._hash_path)
            raw = np.load(self._hash_path, allow_pickle=False).tobytes() if rows else b""
            self._row = {raw[16 * i : 16 * i + 16]: i for i in range(rows)}
        return self._row


def _count(path: Path) -> int:
    """How many rows the header admits; 0 when there is no file, or one that was just begun."""
    if not _begun(path):
        return 0
    with path.open("rb") as file:
        return _shape(file, path)[0]


def _begun(path: Path) -> bool:
    """Whether there is a file with a header: a kill can come between the two."""
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def _shape(file: BinaryIO, path: Path) -> tuple[int, ...]:
    try:
        npy.read_magic(file)
        return npy.read_array_header_1_0(file)[0]
    except ValueError as error:
        raise StoreError(
            f"{path.name} is damaged ({error}); `clew reembed` writes it anew"
        ) from error


def _append(path: Path, block: NDArray[np.generic], at: int) -> None:
    """Write `block` from row `at` on; the header that admits it is written last."""
    begun = _begun(path)
    with path.open("r+b" if begun else "w+b") as file:
        if not begun:
            file.write(_header(block, 0))
        file.seek(_HEADER + at * block[:1].nbytes)
        file.write(block.tobytes())
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        file.write(_header(block, at + len(block)))
        file.flush()
        os.fsync(file.fileno())


def _header(block: NDArray[np.generic], rows: int) -> bytes:
    """A version 1.0 `.npy` header padded to a fixed length."""
    descr = npy.dtype_to_descr(block.dtype)
    fields = {"descr": descr, "fortran_order": False, "shape": (rows, *block.shape[1:])}
    body = repr(fields).encode("latin1")
    magic = npy.magic(1, 0)
    room = _HEADER - len(magic) - 2
    body = body.ljust(room - 1) + b"\n"
    return magic + len(body).to_bytes(2, "little") + body
