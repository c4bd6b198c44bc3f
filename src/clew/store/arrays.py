"""A generation's derived arrays: one folder of plain `.npy` files, read memory-mapped."""

import mmap
import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tokenize import TokenError

import numpy as np
from numpy.lib import format as npy

from clew.errors import StoreError
from clew.store.protocol import Array, Arrays

_SMALL = 1 << 18  # bytes up to which a file is read at once: a mapped one keeps a handle open
_LONGEST_HEADER = 1 << 14
_GONE = ".gone"


class MappedArrays(Mapping[str, Array]):
    """Holds every file of a generation from the start, and reads each when it is asked for.

    Two generations later a writer removes the files; whoever holds them goes on reading them.
    """

    def __init__(self, folder: Path) -> None:
        self._bytes = {path.stem: _held(path) for path in sorted(folder.glob("*.npy"))}
        if not self._bytes:
            raise FileNotFoundError(folder)
        self._read: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        """See the array in its file's bytes."""
        if name not in self._read:
            held = self._bytes[name]
            try:
                self._read[name] = _array(held)
            except (ValueError, TypeError, EOFError, SyntaxError, TokenError) as error:
                raise StoreError(
                    f"{name}.npy is damaged ({error}); `clew verify --repair` derives it anew"
                ) from error
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._bytes)

    def __len__(self) -> int:
        """How many arrays there are."""
        return len(self._bytes)


def _held(path: Path) -> bytes | mmap.mmap:
    """A file's bytes, there for as long as they are held, whatever becomes of the file."""
    with path.open("rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size <= _SMALL:
            return file.read()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _array(held: bytes | mmap.mmap) -> Array:
    """The array that a file's bytes are, without a copy."""
    head = BytesIO(held[:_LONGEST_HEADER])
    read = (
        npy.read_array_header_1_0 if npy.read_magic(head) == (1, 0) else npy.read_array_header_2_0
    )
    shape, by_column, dtype = read(head)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    return np.ndarray(shape, dtype, held, head.tell(), order="F" if by_column else "C")


def save_arrays(folder: Path, arrays: Arrays, *, durable: bool = True) -> None:
    """Write all arrays beside `folder`, then move them into place in one step."""
    fresh = folder.with_name(folder.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for name, array in arrays.items():
        np.save(fresh / f"{name}.npy", array, allow_pickle=False)
    if durable:
        # Synced side by side, after all are written: the disk then needs few commits, not forty.
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(_sync, (*fresh.iterdir(), fresh)))
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def drop_others(parent: Path, keep: set[int]) -> None:
    """Remove the folders of other generations; what cannot be removed now is left for later."""
    kept = {str(number) for number in keep}
    for folder in [path for path in parent.iterdir() if path.name not in kept and path.is_dir()]:
        gone = folder.with_name(folder.name.removesuffix(_GONE) + _GONE)
        with suppress(OSError):
            # Moved first: a reader who is just opening it must find all of it or nothing.
            folder.rename(gone)
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda path: path.unlink(missing_ok=True), gone.iterdir()))
        shutil.rmtree(gone, ignore_errors=True)
