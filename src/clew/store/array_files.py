"""A generation's derived arrays: a folder of `.npy` files, read memory-mapped."""

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

_MAX_READ_BYTES = 1 << 18  # smaller files are read at once: a mapped one keeps a handle open
_MAX_HEADER_BYTES = 1 << 14
_REMOVED_SUFFIX = ".gone"


class MappedArrays(Mapping[str, Array]):
    """Opens all files of a generation at once, and parses each array on first access.

    A writer removes the files two generations later; they stay readable here.
    """

    def __init__(self, folder: Path) -> None:
        self._bytes = {path.stem: _load_bytes(path) for path in sorted(folder.glob("*.npy"))}
        if not self._bytes:
            raise FileNotFoundError(folder)
        self._read: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        """Return the array, parsed on first access."""
        if name not in self._read:
            raw = self._bytes[name]
            try:
                self._read[name] = _parse_npy(raw)
            except (ValueError, TypeError, EOFError, SyntaxError, TokenError) as error:
                raise StoreError(
                    f"{name}.npy is damaged ({error}); `clew verify --repair` rebuilds it"
                ) from error
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._bytes)

    def __len__(self) -> int:
        """Number of arrays."""
        return len(self._bytes)


def _load_bytes(path: Path) -> bytes | mmap.mmap:
    """Read or map a file; the bytes stay valid even if the file is removed."""
    with path.open("rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size <= _MAX_READ_BYTES:
            return file.read()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _parse_npy(raw: bytes | mmap.mmap) -> Array:
    """View the bytes of a `.npy` file as an array, without a copy."""
    head = BytesIO(raw[:_MAX_HEADER_BYTES])
    read = (
        npy.read_array_header_1_0 if npy.read_magic(head) == (1, 0) else npy.read_array_header_2_0
    )
    shape, fortran_order, dtype = read(head)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    return np.ndarray(shape, dtype, raw, head.tell(), order="F" if fortran_order else "C")


def save_arrays(folder: Path, arrays: Arrays, *, durable: bool = True) -> None:
    """Write all arrays to a temporary folder, then rename it to `folder`."""
    temporary = folder.with_name(folder.name + ".new")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for name, array in arrays.items():
        np.save(temporary / f"{name}.npy", array, allow_pickle=False)
    if durable:
        # Synced in parallel after all are written: the disk then needs few commits, not forty.
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(_fsync, (*temporary.iterdir(), temporary)))
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_old_generations(parent: Path, keep: set[int]) -> None:
    """Remove the folders of other generations; failures are retried at the next write."""
    kept = {str(number) for number in keep}
    for folder in [path for path in parent.iterdir() if path.name not in kept and path.is_dir()]:
        renamed = folder.with_name(folder.name.removesuffix(_REMOVED_SUFFIX) + _REMOVED_SUFFIX)
        with suppress(OSError):
            # Renamed first: a reader that is opening it must find all files or none.
            folder.rename(renamed)
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda path: path.unlink(missing_ok=True), renamed.iterdir()))
        shutil.rmtree(renamed, ignore_errors=True)
