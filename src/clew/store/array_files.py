"""A generation's derived arrays: a folder of `.npy` files, read memory-mapped."""

import hashlib
import json
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

from clew.errors import DamagedArrays
from clew.store.checksums import checksum_bytes, is_sound
from clew.store.protocol import Array, Arrays

_MAX_READ_BYTES = 1 << 18  # smaller files are read at once: a mapped one keeps a handle open
_MAX_HEADER_BYTES = 1 << 14
_REMOVED_SUFFIX = ".gone"
SUMS_FILE = "sums.json"  # sizes and checksums of the other files
MAX_CHECKED_BYTES = 1 << 26  # larger files are checked by `clew verify`, not when they are used
_DAMAGED = "{} is damaged ({}); `clew verify --repair` derives it again"


class MappedArrays(Mapping[str, Array]):
    """Opens all files of a generation at once; checks and parses each array on first access.

    A writer removes the files two generations later; they stay readable here.
    """

    def __init__(self, folder: Path, seal: str = "") -> None:
        """`seal` is what `save_arrays` returned; without one (version 0.1) nothing is checked."""
        self.folder = folder
        self._sums = _load_sums(folder, seal)
        names = self._sums or sorted(path.stem for path in folder.glob("*.npy"))
        if not names:
            raise FileNotFoundError(folder)
        try:
            self._bytes = {name: _load_bytes(folder / f"{name}.npy") for name in names}
        except FileNotFoundError as error:
            if not folder.is_dir():  # removed by a writer while it was opened
                raise
            raise DamagedArrays(_DAMAGED.format(error.filename, "it is missing")) from error
        for name, (size, _) in self._sums.items():
            if len(self._bytes[name]) != size:
                raise DamagedArrays(_DAMAGED.format(f"{name}.npy", "its size is wrong"))
        self._read: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        """Return the array, checked and parsed on first access."""
        if name not in self._read:
            raw = self._bytes[name]
            if len(raw) <= MAX_CHECKED_BYTES:
                self._check(name)
            try:
                self._read[name] = _parse_npy(raw)
            except (ValueError, TypeError, EOFError, SyntaxError, TokenError) as error:
                raise DamagedArrays(_DAMAGED.format(f"{name}.npy", error)) from error
        return self._read[name]

    def find_equal(self, name: str, array: Array) -> tuple[int, int] | None:
        """Size and checksum of the file that already holds this array; None without one."""
        if name not in self._sums:
            return None
        held = self[name]
        same = held is array or (
            (held.dtype, held.shape, held.flags.f_contiguous)
            == (array.dtype, array.shape, array.flags.f_contiguous)
            and bool(np.array_equal(held, array))
        )
        return self._sums[name] if same else None

    def check_all(self) -> list[str]:
        """Check every file whole; return one sentence per damaged one."""
        found = []
        for name in self._bytes:
            try:
                self._check(name)
                self[name]
            except DamagedArrays as error:
                found.append(str(error))
        return found

    def _check(self, name: str) -> None:
        if name not in self._sums:
            return
        size, held = self._sums[name]
        found = checksum_bytes(self._bytes[name])
        if found != held and not is_sound(self._bytes[name], held):
            raise DamagedArrays(_DAMAGED.format(f"{name}.npy", "its checksum is wrong"))
        self._sums[name] = size, found  # the next generation has today's sum of a linked file

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


def _load_sums(folder: Path, seal: str) -> dict[str, tuple[int, int]]:
    """Sizes and checksums of the files of a generation; none for one of version 0.1."""
    if not seal:
        return {}
    try:
        raw = (folder / SUMS_FILE).read_bytes()
    except FileNotFoundError as error:
        if not folder.is_dir():
            raise
        raise DamagedArrays(_DAMAGED.format(SUMS_FILE, "it is missing")) from error
    if _make_seal(raw) != seal:
        raise DamagedArrays(_DAMAGED.format(SUMS_FILE, "it is not that of this generation"))
    return {name: (size, checksum) for name, (size, checksum) in json.loads(raw).items()}


def load_sound_arrays(folder: Path, seal: str) -> dict[str, Array]:
    """Those arrays of a damaged generation that are as they were written."""
    found = {}
    try:
        sums = _load_sums(folder, seal)
    except (DamagedArrays, FileNotFoundError):
        return {}
    for name, expected in sums.items():
        with suppress(FileNotFoundError):
            raw = _load_bytes(folder / f"{name}.npy")
            if len(raw) == expected[0] and is_sound(raw, expected[1]):
                found[name] = _parse_npy(raw)
    return found


def _make_seal(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def save_arrays(
    folder: Path, arrays: Arrays, *, durable: bool = True, previous: Arrays | None = None
) -> str:
    """Write all arrays to a temporary folder, then rename it to `folder`; return their seal.

    An array that is as in the `previous` generation shares its file.
    """
    temporary = folder.with_name(folder.name + ".new")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    written, sums = [temporary / SUMS_FILE, temporary], {}
    for name in sorted(arrays):
        path = temporary / f"{name}.npy"
        held = _link_equal(path, arrays[name], previous)
        if held is None:
            np.save(path, arrays[name], allow_pickle=False)
            written.append(path)
        sums[name] = held or _measure(path)
    raw = json.dumps(sums)
    (temporary / SUMS_FILE).write_text(raw)
    if durable:
        # Synced in parallel after all are written: the disk then needs few commits, not forty.
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(sync_to_disk, written))
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)
    return _make_seal(raw.encode())


def _link_equal(path: Path, array: Array, previous: Arrays | None) -> tuple[int, int] | None:
    """Link the file of an unchanged array; return its size and checksum, None if there is none."""
    if not isinstance(previous, MappedArrays):
        return None
    try:
        held = previous.find_equal(path.stem, array)
        if held is not None:
            path.hardlink_to(previous.folder / path.name)
    except (OSError, DamagedArrays):
        return None  # removed meanwhile, damaged, or a file system without links: it is written
    return held


def _measure(path: Path) -> tuple[int, int]:
    raw = _load_bytes(path)
    return len(raw), checksum_bytes(raw)


def sync_to_disk(path: Path) -> None:
    """Wait until a file or folder is durable."""
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
