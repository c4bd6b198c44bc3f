"""A generation's derived arrays: a folder of `.npy` files, read memory-mapped.

Of an array that changed since its file was written, the changes lie beside it
(`clew.store.array_changes`): it is put together in memory when it is first used.
"""

import hashlib
import json
import mmap
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import reduce
from io import BytesIO
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.lib import format as npy

from clew.errors import DamagedArrays
from clew.out_of_core import WorkingMemory, release_maps
from clew.store.array_changes import ChangesFile, apply_edits, read_edits
from clew.store.checked_files import CheckedFiles
from clew.store.checksums import FileSum, is_sound, sum_file
from clew.store.edited_rows import EditedRows, is_edited
from clew.store.protocol import Array, Arrays
from clew.store.row_edits import Edits, Splice

_MAX_READ_BYTES = 1 << 18  # smaller files are read at once: a mapped one keeps a handle open
_MAX_KEPT_BYTES = 1 << 26  # of an array that was just saved
_COMPARED_ROWS = 1 << 16  # compared at once, so that a difference is found early
_MAX_HEADER_BYTES = 1 << 14
_PLAIN_HEADER_BYTES = 256  # a longer one is left to numpy
_HEADER_START = 10  # bytes before the text of a header of version 1.0
_PLAIN_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<size>..)\{'descr': '(?P<type>[<|][biuf][1-8])', "
    rb"'fortran_order': False, 'shape': \((?P<shape>[0-9, ]*)\), \} *\n",
    re.DOTALL,
)
SUMS_FILE = "sums.json"  # sizes and checksums of the other files
MAX_CHECKED_BYTES = 1 << 26  # larger files are checked by `clew verify`, not when they are used
_DAMAGED = "{} is damaged ({}); `clew verify --repair` derives it again"
_CHANGES = "/changes"  # among the sums, which are by array: no array has this name
_CHANGES_SEAL = b"changes"  # earlier versions find that a seal with it is not that of the files


class SavedArray(NamedTuple):
    """The file of an array, and the numbers of files with what changed in it since."""

    file: FileSum
    changes: tuple[int, ...] = ()


def changes_file(number: int) -> str:
    """The name of a file of changes."""
    return f"changes-{number}.bin"


class MappedArrays(Mapping[str, Array]):
    """Opens all files of a generation at once; checks and parses each array on first access.

    A writer removes the files two generations later; they stay readable here.
    """

    def __init__(self, folder: Path, seal: str = "", *, just_saved: Arrays | None = None) -> None:
        """`seal` is what `save_arrays` returned; without one (version 0.1) nothing is checked.

        Neither is it if this process has `just_saved` them, and so has just read all of them.
        """
        self.folder = folder
        self._is_checked = just_saved is not None
        self._checked_files = CheckedFiles(folder)
        self.saved, sums = _load_sums(folder, seal)
        names = self.saved or dict.fromkeys(sorted(path.stem for path in folder.glob("*.npy")))
        if not names:
            raise FileNotFoundError(folder)
        try:
            self._bytes = {
                name: load_bytes(os.path.join(folder, f"{name}.npy"), held and held.file.size)
                for name, held in names.items()
            }
            self.changes = _load_changes(folder, sums)
        except FileNotFoundError as error:
            if not folder.is_dir():  # removed by a writer while it was opened
                raise
            raise DamagedArrays(_DAMAGED.format(error.filename, "it is missing")) from error
        for name, held in self.saved.items():
            if len(self._bytes[name]) != held.file.size:
                raise DamagedArrays(_DAMAGED.format(f"{name}.npy", "its size is wrong"))
        self._read = self._keep_changed(just_saved or {})
        self.grown: dict[str, Array] = {}
        """Arrays of the next generation whose rows were appended to files of this one."""
        self.spliced: dict[str, Splice] = {}
        """How arrays of the next generation were made of these."""

    def _keep_changed(self, arrays: Arrays) -> dict[str, Array]:
        """Those arrays that would else be put together again, if they are not large."""
        found = {}
        for name, held in self.saved.items():
            if not held.changes or is_edited(name, held.file.size):
                continue
            if name in arrays and arrays[name].nbytes <= _MAX_KEPT_BYTES:
                found[name] = arrays[name].view()
                found[name].flags.writeable = False
        return found

    def __getitem__(self, name: str) -> Array:
        """Return the array, checked and parsed on first access."""
        if name not in self._read:
            raw, held = self._bytes[name], self.saved.get(name)
            if len(raw) <= MAX_CHECKED_BYTES and not self._is_checked:
                self._check_once(name)
            if held is None or not held.changes:
                self._read[name] = _parse_sound(name, raw)
            elif is_edited(name, held.file.size):
                self._read[name] = self._read_edited(name)
            else:
                self._read[name] = self._read_changed(name)
        return self._read[name]

    def _read_edited(self, name: str) -> Array:
        """An array that is stored as an earlier one and what changed, which is not copied."""
        edits, base = reduce(Edits.then, self.read_edits(name)), self._bytes[name]
        try:
            return cast("Array", EditedRows(_parse_sound(name, base), edits).check())
        except DamagedArrays as error:
            raise DamagedArrays(_DAMAGED.format(f"{name}.npy", error)) from error

    def read_edits(self, name: str) -> list[Edits]:
        """What changed in an array since its file was written, by file of changes."""
        try:
            base, used = _parse_sound(name, self._bytes[name]), self.saved[name].changes
            return read_edits(name, base, self.changes, used)
        except DamagedArrays as error:
            raise DamagedArrays(_DAMAGED.format(f"{name}.npy", error)) from error

    def _read_changed(self, name: str) -> Array:
        """An array that is stored as an earlier one and what changed."""
        edits = self.read_edits(name)
        try:
            return apply_edits(name, _parse_sound(name, self._bytes[name]), edits)
        except DamagedArrays as error:
            raise DamagedArrays(_DAMAGED.format(f"{name}.npy", error)) from error

    def find_beginning(self, name: str, array: Array) -> tuple[FileSum, int] | None:
        """Sum of the file that holds the first rows of this array, and their number, or None."""
        if name not in self.saved:
            return None
        held = self[name]
        if held is not array and not begins_with(array, held):
            return None
        return self.saved[name].file, len(held) if held.ndim else 0

    def grow(self, name: str, rows: Array) -> Array | None:
        """An array with further rows, which are appended to its file; None if it is not in one.

        This generation does not read them, and the next write overwrites what is not saved.
        """
        held, saved = self[name], self.saved.get(name)
        if saved is None or saved.changes or not held.ndim or not held.flags.c_contiguous:
            return None
        if held.dtype != rows.dtype or held.shape[1:] != rows.shape[1:] or not held[:1].nbytes:
            return None
        path, size = self.folder / f"{name}.npy", saved.file.size
        with suppress(OSError):  # removed meanwhile, or a disk that is full
            with path.open("r+b", buffering=0) as file:
                file.seek(size)
                np.ascontiguousarray(rows).tofile(file)
            found = _parse_npy(load_bytes(path, size + rows.nbytes))
            if len(found) == len(held) + len(rows):
                self.grown[name] = found
                return found
        return None

    def release(self) -> None:
        """Let go of the pages that were read; they are read again when they are used."""
        release_maps(self._bytes.values())
        release_maps(array.base for array in self.grown.values())

    def forget_next(self) -> None:
        """Let go of arrays of the next generation, which is saved."""
        self.grown.clear()
        self.spliced.clear()

    def check_all(self) -> list[str]:
        """Check every file whole; return one sentence per damaged one."""
        found = []
        for name in self._bytes:
            try:
                self._check(name)
                if name in self.saved and self.saved[name].changes:
                    self._read_changed(name)
                else:
                    self[name]
            except DamagedArrays as error:
                found.append(str(error))
        return found

    def _check_once(self, name: str) -> None:
        """Check a file unless it is as it was when it was checked by this or another process."""
        held = self.saved.get(name)
        if held is not None and not self._checked_files.is_checked(name, held.file):
            self._check(name)
            self._checked_files.mark(name, self.saved[name].file)

    def _check(self, name: str) -> None:
        if name not in self.saved:
            return
        held, found = self.saved[name].file, sum_file(self._bytes[name])
        if found.checksum != held.checksum and not is_sound(self._bytes[name], held.checksum):
            raise DamagedArrays(_DAMAGED.format(f"{name}.npy", "its checksum is wrong"))
        # The next generation has today's sum of a linked file.
        self.saved[name] = self.saved[name]._replace(file=found)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._bytes)

    def __len__(self) -> int:
        """Number of arrays."""
        return len(self._bytes)


def begins_with(array: Array, held: Array) -> bool:
    """Whether an array is `held`, perhaps with further rows."""
    if array.dtype != held.dtype or array.ndim != held.ndim:
        return False
    if array.shape != held.shape:
        same_rows = held.ndim and array.shape[1:] == held.shape[1:] and len(array) > len(held)
        if not same_rows or not array.flags.c_contiguous or not held.flags.c_contiguous:
            return False
    elif array.flags.f_contiguous != held.flags.f_contiguous:
        return False
    if not held.ndim:
        return bool(array == held)
    return all(
        np.array_equal(
            held[at : at + _COMPARED_ROWS], array[at : at + _COMPARED_ROWS][: len(held) - at]
        )
        for at in range(0, len(held), _COMPARED_ROWS)
    )


def load_bytes(path: Path | str, size: int | None = None) -> bytes | mmap.mmap:
    """Read or map a file, or its beginning; the bytes stay valid even if the file is removed."""
    with open(path, "rb", buffering=0) as file:
        there = os.fstat(file.fileno()).st_size
        wanted = there if size is None else min(size, there)
        if wanted <= _MAX_READ_BYTES:
            return file.read(wanted)
        return mmap.mmap(file.fileno(), wanted, access=mmap.ACCESS_READ)


def _load_changes(folder: Path, sums: Mapping[int, int]) -> dict[int, ChangesFile]:
    """The files of changes that arrays of a generation are read with, by number."""
    return {
        number: ChangesFile(
            changes_file(number), (folder / changes_file(number)).read_bytes(), held
        )
        for number, held in sums.items()
    }


def _parse_sound(name: str, raw: bytes | mmap.mmap) -> Array:
    try:
        return _parse_npy(raw)
    except (ValueError, TypeError, EOFError, SyntaxError, TokenError) as error:
        raise DamagedArrays(_DAMAGED.format(f"{name}.npy", error)) from error


def _parse_npy(raw: bytes | mmap.mmap) -> Array:
    """View the bytes of a `.npy` file as an array, without a copy."""
    plain = _PLAIN_HEADER.match(raw[:_PLAIN_HEADER_BYTES])
    if plain and plain.end() == _HEADER_START + int.from_bytes(plain["size"], "little"):
        # As this version writes it; numpy takes longer to read a header than to map a file.
        shape = tuple(int(part) for part in plain["shape"].split(b",") if part.strip())
        begin, fortran_order, dtype = plain.end(), False, np.dtype(plain["type"].decode())
    else:
        shape, fortran_order, dtype, begin = _read_header(raw)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if shape and not fortran_order and (width := dtype.itemsize * prod(shape[1:])):
        # Further rows may have been appended.
        shape = max(shape[0], (len(raw) - begin) // width), *shape[1:]
    return np.ndarray(shape, dtype, raw, begin, order="F" if fortran_order else "C")


def _read_header(raw: bytes | mmap.mmap) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, order, type and end of any header that numpy writes."""
    head = BytesIO(raw[:_MAX_HEADER_BYTES])
    read = (
        npy.read_array_header_1_0 if npy.read_magic(head) == (1, 0) else npy.read_array_header_2_0
    )
    shape, fortran_order, dtype = read(head)
    return shape, fortran_order, dtype, head.tell()


def _load_sums(folder: Path, seal: str) -> tuple[dict[str, SavedArray], dict[int, int]]:
    """Sums of the files of a generation, and of files of changes; none for one of version 0.1."""
    if not seal:
        return {}, {}
    try:
        raw = (folder / SUMS_FILE).read_bytes()
    except FileNotFoundError as error:
        if not folder.is_dir():
            raise
        raise DamagedArrays(_DAMAGED.format(SUMS_FILE, "it is missing")) from error
    if seal not in (make_seal(raw), make_seal(raw, has_changes=True)):
        raise DamagedArrays(_DAMAGED.format(SUMS_FILE, "it is not that of this generation"))
    sums = json.loads(raw)
    changes = {int(number): held for number, held in sums.pop(_CHANGES, {}).items()}
    return {
        name: SavedArray(FileSum(*held[:3]), tuple(*held[3:])) for name, held in sums.items()
    }, changes


def format_sums(saved: Mapping[str, SavedArray], changes: Mapping[int, int]) -> str:
    """The sums as they are stored; of arrays without changes as earlier versions did."""
    sums: dict[str, Any] = {
        name: [*held.file, held.changes] if held.changes else [*held.file]
        for name, held in saved.items()
    }
    return json.dumps(sums | ({_CHANGES: changes} if changes else {}))


def load_sound_arrays(folder: Path, seal: str) -> dict[str, Array]:
    """Those arrays of a damaged generation that are as they were written."""
    found: dict[str, Array] = {}
    try:
        saved, sums = _load_sums(folder, seal)
    except (DamagedArrays, FileNotFoundError):
        return {}
    for name, expected in saved.items():
        with suppress(FileNotFoundError, DamagedArrays):
            raw = load_bytes(folder / f"{name}.npy", expected.file.size)
            if len(raw) != expected.file.size or not is_sound(raw, expected.file.checksum):
                continue
            base, used = _parse_npy(raw), expected.changes
            changes = _load_changes(folder, {number: sums[number] for number in used})
            edits = read_edits(name, base, changes, used)
            found[name] = apply_edits(name, base, edits) if edits else base
    return found


def make_seal(raw: bytes, *, has_changes: bool = False) -> str:
    """What is stored elsewhere to know the sums; of changes one that earlier versions refuse."""
    person = _CHANGES_SEAL if has_changes else b""
    return hashlib.blake2b(raw, digest_size=16, person=person).hexdigest()


def open_memory(limit: int | None, folder: Path, held: Arrays) -> WorkingMemory:
    """Return the memory of a write, which lets go of the pages of the generation before, too."""
    memory = WorkingMemory(limit, folder)
    if isinstance(held, MappedArrays):
        memory.watch(held.release)
    return memory
