"""A generation's derived arrays: one folder of plain `.npy` files, read memory-mapped."""

import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from clew.errors import StoreError
from clew.store.protocol import Array, Arrays


class MappedArrays(Mapping[str, Array]):
    """Opens each array when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names = sorted(path.stem for path in folder.glob("*.npy"))
        if not self._names:
            raise FileNotFoundError(folder)
        self._open: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        """Map the array into memory."""
        if name not in self._open:
            if name not in self._names:
                raise KeyError(name)
            path = self._folder / f"{name}.npy"
            try:
                # np.asarray drops the memmap subclass, whose views cost time in every operation.
                self._open[name] = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
            except ValueError as error:
                raise StoreError(
                    f"{path.name} is damaged ({error}); `clew verify --repair` derives it anew"
                ) from error
        return self._open[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._names)

    def __len__(self) -> int:
        """How many arrays there are."""
        return len(self._names)


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
    """Remove the folders of generations that nobody opens any more."""
    kept = {str(number) for number in keep}
    for folder in [path for path in parent.iterdir() if path.name not in kept]:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda path: path.unlink(missing_ok=True), folder.iterdir()))
        shutil.rmtree(folder, ignore_errors=True)
