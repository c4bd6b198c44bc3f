"""Append-only `.npy` files: rows are written and synced before the header that admits them.

A reader sees the rows that the header counts, so an interrupted append leaves only an unused tail.
"""

import os
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

HEADER_BYTES = 128  # fixed, so that the number of rows can be rewritten in place
READ_ERRORS = (ValueError, EOFError, SyntaxError, TokenError)  # raised by numpy for invalid files


class FileVersion(NamedTuple):
    """Inode and header of a file; equal versions mean that nothing was appended."""

    file: int
    header: bytes


UNREAD = FileVersion(-1, b"")
"""Unlike the version of any file, also of one that is missing."""


def read_version(path: Path) -> FileVersion:
    """The version of a file; its header is empty if the file is missing or empty."""
    try:
        with path.open("rb") as file:
            return FileVersion(os.fstat(file.fileno()).st_ino, file.read(HEADER_BYTES))
    except FileNotFoundError:
        return FileVersion(0, b"")


def read_header(header: bytes) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type that a header declares; one of `READ_ERRORS` if it is invalid."""
    file = BytesIO(header)
    npy.read_magic(file)
    shape, _, dtype = npy.read_array_header_1_0(file)
    return shape, dtype


def append_rows(path: Path, block: NDArray[np.generic], at: int) -> None:
    """Write `block` from row `at` on; the header that includes it is written last."""
    exists = bool(read_version(path).header)
    with path.open("r+b" if exists else "w+b") as file:
        if not exists:
            file.write(_make_header(block, 0))
        file.seek(HEADER_BYTES + at * block[:1].nbytes)
        file.write(block.tobytes())
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        file.write(_make_header(block, at + len(block)))
        file.flush()
        os.fsync(file.fileno())


def _make_header(block: NDArray[np.generic], rows: int) -> bytes:
    """A version 1.0 `.npy` header padded to a fixed length; records are declared as bytes."""
    dtype = np.dtype(f"V{block.dtype.itemsize}") if block.dtype.fields else block.dtype
    descr = npy.dtype_to_descr(dtype)
    fields = {"descr": descr, "fortran_order": False, "shape": (rows, *block.shape[1:])}
    body = repr(fields).encode("latin1")
    magic = npy.magic(1, 0)
    space = HEADER_BYTES - len(magic) - 2
    body = body.ljust(space - 1) + b"\n"
    return magic + len(body).to_bytes(2, "little") + body
