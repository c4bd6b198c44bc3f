"""Overwrite rows of a file in place, and give their space back where the file system can."""

import ctypes
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # of linux/falloc.h
_PIECE_BYTES = 1 << 20  # of zeros that are written at a time


def erase_rows(path: Path, begin: int, size: int, rows: NDArray[np.int64]) -> None:
    """Make the bytes of some rows (ascending) zeros; rows of `size` bytes start at `begin`.

    No other row moves, so whoever has the file mapped finds it as it was.
    """
    with path.open("r+b", buffering=0) as file:
        for first, last in _find_runs(rows):
            place, count = begin + first * size, (last - first) * size
            if not _punch(file.fileno(), place, count):
                _overwrite(file, place, count)
        os.fsync(file.fileno())


def _find_runs(rows: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield the first row and the one after the last of rows that follow each other."""
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    for run in np.split(rows, breaks) if len(rows) else ():
        yield int(run[0]), int(run[-1]) + 1


def _overwrite(file: Any, place: int, count: int) -> None:
    file.seek(place)
    for done in range(0, count, _PIECE_BYTES):
        file.write(bytes(min(_PIECE_BYTES, count - done)))


def _punch(handle: int, place: int, count: int) -> bool:
    """Make a hole, which reads as zeros and takes no space; False where that cannot be done."""
    fallocate = find_fallocate()
    return fallocate is not None and not fallocate(
        handle, _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_int64(place), ctypes.c_int64(count)
    )


@cache
def find_fallocate() -> Any:
    """The function of the C library that makes holes; None where there is none."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        found = ctypes.CDLL(None).fallocate
    except (OSError, AttributeError):
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    found.restype = ctypes.c_int
    return found
