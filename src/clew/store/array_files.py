"""A generation's derived arrays: a folder of `.npy` files, read memory-mapped.

Generations share files. A file whose array only got longer has the further rows appended: each
generation reads as many bytes as its own list of sizes says, so an earlier one never sees them, and
neither does anybody see what an interrupted write left. The number of rows in such a file's header
is that of its first generation. Of an array in which few rows changed only these are written
(`clew.store.array_changes`), until they are many.
"""

import hashlib
import json
import mmap
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from clew.errors import DamagedArrays
from clew.out_of_core import UNBOUNDED, WorkingMemory, write_npy
from clew.store.array_changes import (
    MAX_CHANGES_SHARE,
    MAX_FILES,
    MAX_PIECES,
    MIN_CHANGED_BYTES,
    ChangedArrays,
    ChangesFile,
    apply_edits,
    read_edits,
)
from clew.store.checksums import FileSum, is_sound, sum_file
from clew.store.protocol import Array, Arrays
from clew.store.row_edits import Edits

_MAX_READ_BYTES = 1 << 18  # smaller files are read at once: a mapped one keeps a handle open
_COMPARED_ROWS = 1 << 16  # compared at once, so that a difference is found early
_MAX_HEADER_BYTES = 1 << 14
_HEADER_START = 10  # bytes before the text of a header of version 1.0
_PLAIN_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?P<size>..)\{'descr': '(?P<type>[<|][biuf][1-8])', "
    rb"'fortran_order': False, 'shape': \((?P<shape>[0-9, ]*)\), \} *\n",
    re.DOTALL,
)
_REMOVED_SUFFIX = ".gone"
_KEPT_SUFFIX, _SEAL_SUFFIX = ".kept", ".seal"
_LASTING = "lasting"  # the folder of what is brought up to date and not made again
_OTHER_SIGNS = re.compile(r"[^A-Za-z0-9.]+")
SUMS_FILE = "sums.json"  # sizes and checksums of the other files
MAX_CHECKED_BYTES = 1 << 26  # larger files are checked by `clew verify`, not when they are used
_DAMAGED = "{} is damaged ({}); `clew verify --repair` derives it again"
_CHANGES_FILE = "changes-{}.bin"
_CHANGES_SEAL = b"changes"  # earlier versions find that a seal with it is not that of the files


class SavedArray(NamedTuple):
    """The file of an array, and if it changed since, its checksum now and the files of changes."""

    file: FileSum
    checksum: int = 0
    changes: tuple[int, ...] = ()

    def to_json(self) -> list[Any]:
        """As it is stored; of an array without changes as earlier versions do."""
        return [*self.file, self.checksum, self.changes] if self.changes else [*self.file]


class MappedArrays(Mapping[str, Array]):
    """Opens all files of a generation at once; checks and parses each array on first access.

    A writer removes the files two generations later; they stay readable here.
    """

    def __init__(self, folder: Path, seal: str = "", *, just_saved: bool = False) -> None:
        """`seal` is what `save_arrays` returned; without one (version 0.1) nothing is checked.

        Neither is it if this process has `just_saved` them, and so has just read all of them.
        """
        self.folder = folder
        self._is_checked = just_saved
        self.saved = _load_sums(folder, seal)
        names = self.saved or dict.fromkeys(sorted(path.stem for path in folder.glob("*.npy")))
        if not names:
            raise FileNotFoundError(folder)
        try:
            self._bytes = {
                name: _load_bytes(folder / f"{name}.npy", held and held.file.size)
                for name, held in names.items()
            }
            self._changes = _load_changes(folder, self.saved)
        except FileNotFoundError as error:
            if not folder.is_dir():  # removed by a writer while it was opened
                raise
            raise DamagedArrays(_DAMAGED.format(error.filename, "it is missing")) from error
        for name, held in self.saved.items():
            if len(self._bytes[name]) != held.file.size:
                raise DamagedArrays(_DAMAGED.format(f"{name}.npy", "its size is wrong"))
        self._read: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        """Return the array, checked and parsed on first access."""
        if name not in self._read:
            raw, held = self._bytes[name], self.saved.get(name)
            if held is not None and held.changes:
                self._read[name] = self._read_changed(name, held)
                return self._read[name]
            if len(raw) <= MAX_CHECKED_BYTES and not self._is_checked:
                self._check(name)
            self._read[name] = _parse_sound(name, raw)
        return self._read[name]

    def read_edits(self, name: str) -> Edits | None:
        """What changed in an array since its file was written; None if nothing did."""
        if name not in self.saved or not (used := self.saved[name].changes):
            return None
        base = _parse_sound(name, self._bytes[name])
        try:
            return read_edits(name, base, self._changes, used)
        except DamagedArrays as error:
            raise DamagedArrays(_DAMAGED.format(f"{name}.npy", error)) from error

    def _read_changed(self, name: str, held: SavedArray) -> Array:
        """An array that is stored as an earlier one and what changed."""
        edits, base = self.read_edits(name), _parse_sound(name, self._bytes[name])
        try:
            found = base if edits is None else apply_edits(name, base, edits)
        except DamagedArrays as error:
            raise DamagedArrays(_DAMAGED.format(f"{name}.npy", error)) from error
        if not self._is_checked and sum_file(found.data).checksum != held.checksum:
            raise DamagedArrays(_DAMAGED.format(f"{name}.npy", "its checksum is wrong"))
        return found

    def find_beginning(self, name: str, array: Array) -> tuple[FileSum, int] | None:
        """Sum of the file that holds the first rows of this array, and their number, or None."""
        if name not in self.saved:
            return None
        held = self[name]
        if held is not array and not _begins_with(array, held):
            return None
        return self.saved[name].file, len(held) if held.ndim else 0

    def check_all(self) -> list[str]:
        """Check every file whole; return one sentence per damaged one."""
        found = []
        for name in self._bytes:
            try:
                if name in self.saved and self.saved[name].changes:
                    self._read_changed(name, self.saved[name])
                    continue
                self._check(name)
                self[name]
            except DamagedArrays as error:
                found.append(str(error))
        return found

    def _check(self, name: str) -> None:
        if name not in self.saved:
            return
        held, found = self.saved[name].file, sum_file(self._bytes[name])
        if found.checksum != held.checksum and not is_sound(self._bytes[name], held.checksum):
            raise DamagedArrays(_DAMAGED.format(f"{name}.npy", "its checksum is wrong"))
        self.saved[name] = SavedArray(found)  # the next generation has today's sum of a linked file

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._bytes)

    def __len__(self) -> int:
        """Number of arrays."""
        return len(self._bytes)


def _begins_with(array: Array, held: Array) -> bool:
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


def _load_bytes(path: Path, size: int | None = None) -> bytes | mmap.mmap:
    """Read or map a file, or its beginning; the bytes stay valid even if the file is removed."""
    with path.open("rb", buffering=0) as file:
        there = os.fstat(file.fileno()).st_size
        wanted = there if size is None else min(size, there)
        if wanted <= _MAX_READ_BYTES:
            return file.read(wanted)
        return mmap.mmap(file.fileno(), wanted, access=mmap.ACCESS_READ)


def _load_changes(folder: Path, saved: Mapping[str, SavedArray]) -> dict[int, ChangesFile]:
    """The files of changes that arrays of a generation are read with."""
    used = {number for held in saved.values() for number in held.changes}
    names = {number: _CHANGES_FILE.format(number) for number in sorted(used)}
    return {
        number: ChangesFile(name, (folder / name).read_bytes()) for number, name in names.items()
    }


def _parse_sound(name: str, raw: bytes | mmap.mmap) -> Array:
    try:
        return _parse_npy(raw)
    except (ValueError, TypeError, EOFError, SyntaxError, TokenError) as error:
        raise DamagedArrays(_DAMAGED.format(f"{name}.npy", error)) from error


def _parse_npy(raw: bytes | mmap.mmap) -> Array:
    """View the bytes of a `.npy` file as an array, without a copy."""
    plain = _PLAIN_HEADER.match(raw[:_MAX_HEADER_BYTES])
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


def _load_sums(folder: Path, seal: str) -> dict[str, SavedArray]:
    """Sizes and checksums of the files of a generation; none for one of version 0.1."""
    if not seal:
        return {}
    try:
        raw = (folder / SUMS_FILE).read_bytes()
    except FileNotFoundError as error:
        if not folder.is_dir():
            raise
        raise DamagedArrays(_DAMAGED.format(SUMS_FILE, "it is missing")) from error
    if seal not in (_make_seal(raw), _make_seal(raw, _CHANGES_SEAL)):
        raise DamagedArrays(_DAMAGED.format(SUMS_FILE, "it is not that of this generation"))
    return {
        name: SavedArray(FileSum(*held[:3]), *(held[3:4]), *map(tuple, held[4:]))
        for name, held in json.loads(raw).items()
    }


def load_sound_arrays(folder: Path, seal: str) -> dict[str, Array]:
    """Those arrays of a damaged generation that are as they were written."""
    found = {}
    try:
        sums = _load_sums(folder, seal)
    except (DamagedArrays, FileNotFoundError):
        return {}
    for name, expected in sums.items():
        with suppress(FileNotFoundError, DamagedArrays):
            raw = _load_bytes(folder / f"{name}.npy", expected.file.size)
            if expected.changes:
                changes = _load_changes(folder, {name: expected})
                base = _parse_sound(name, raw)
                edits = read_edits(name, base, changes, expected.changes)
                array = apply_edits(name, base, edits)
                if sum_file(array.data).checksum == expected.checksum:
                    found[name] = array
            elif len(raw) == expected.file.size and is_sound(raw, expected.file.checksum):
                found[name] = _parse_npy(raw)
    return found


def _make_seal(raw: bytes, person: bytes = b"") -> str:
    return hashlib.blake2b(raw, digest_size=16, person=person).hexdigest()


def save_arrays(
    folder: Path,
    arrays: Arrays,
    *,
    durable: bool = True,
    previous: Arrays | None = None,
    memory: WorkingMemory = UNBOUNDED,
) -> str:
    """Write all arrays to a temporary folder, then rename it to `folder`; return their seal.

    An array that is as in the `previous` generation, begins with it or has few other rows, shares
    its file.
    """
    temporary = folder.with_name(folder.name + ".new")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    saving = _Saving(temporary, arrays, previous, memory)
    sums = {name: saving.save(name) for name in sorted(arrays)}
    saving.finish({number for held in sums.values() for number in held.changes})
    raw = json.dumps({name: held.to_json() for name, held in sums.items()})
    (temporary / SUMS_FILE).write_text(raw)
    if durable:
        # Synced in parallel after all are written: the disk then needs few commits, not forty.
        _do_in_threads(sync_to_disk, [temporary / SUMS_FILE, temporary, *saving.written])
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)
    has_changes = any(held.changes for held in sums.values())
    return _make_seal(raw.encode(), _CHANGES_SEAL if has_changes else b"")


class _Saving:
    """Writes the arrays of one generation, or what changed in them, to a folder."""

    def __init__(
        self, folder: Path, arrays: Arrays, previous: Arrays | None, memory: WorkingMemory
    ) -> None:
        self._folder, self._arrays, self._memory = folder, arrays, memory
        self._previous = previous if isinstance(previous, MappedArrays) else None
        self.written: list[Path] = []
        self._linked = self._link_changes()
        self._changed = ChangedArrays(self._previous or {}, arrays)
        self._number = max(self._linked, default=0) + 1
        self._merges = len(self._linked) >= MAX_FILES

    def _link_changes(self) -> set[int]:
        """Link the files of changes of the previous generation; return their numbers."""
        if self._previous is None:
            return set()
        found = {number for held in self._previous.saved.values() for number in held.changes}
        try:
            for name in map(_CHANGES_FILE.format, found):
                (self._folder / name).hardlink_to(self._previous.folder / name)
        except OSError:  # removed meanwhile, or a file system without links: all is written
            self._previous = None
        return found

    def save(self, name: str) -> SavedArray:
        """Write an array, or share the file of an earlier one."""
        path, array = self._folder / f"{name}.npy", self._arrays[name]
        if self._previous is not None and name in self._previous.saved:
            # Removed meanwhile, damaged, or a file system without links: it is written.
            with suppress(OSError, DamagedArrays):
                if (shared := self._share(path, array, self._previous)) is not None:
                    return shared
            path.unlink(missing_ok=True)
        write_npy(path, array, self._memory)
        self.written.append(path)
        return SavedArray(_sum_in_pieces(path, self._memory))

    def finish(self, used: set[int]) -> None:
        """Write what changed, and remove links to changes that no array needs any more."""
        for number in self._linked - used:
            (self._folder / _CHANGES_FILE.format(number)).unlink(missing_ok=True)
        if self._changed:
            path = self._folder / _CHANGES_FILE.format(self._number)
            path.write_bytes(self._changed.to_bytes())
            self.written.append(path)

    def _share(self, path: Path, array: Array, previous: MappedArrays) -> SavedArray | None:
        """Link the file of an earlier array, if this one is not much different; or None."""
        held = previous.saved[path.stem]
        if not held.changes and (begin := previous.find_beginning(path.stem, array)) is not None:
            path.hardlink_to(previous.folder / path.name)
            return self._append(path, array, *begin)
        if held.changes and _is_same(array, previous[path.stem]):
            path.hardlink_to(previous.folder / path.name)
            edits = previous.read_edits(path.stem) if self._merges else None
            if edits is None:
                return held
            self._changed.add(path.stem, edits)
            return held._replace(changes=(self._number,))
        return self._change(path, array, previous)

    def _append(self, path: Path, array: Array, held: FileSum, rows: int) -> SavedArray:
        """Append the further rows of an array to its linked file."""
        self._memory.release()
        if not array.ndim or rows == len(array):
            return SavedArray(held)
        with path.open("r+b", buffering=0) as file:
            file.truncate(held.size)  # of what an interrupted write appended
            file.seek(held.size)
            array[rows:].tofile(file)
        self.written.append(path)
        return SavedArray(sum_file(_load_bytes(path), held))

    def _change(self, path: Path, array: Array, previous: MappedArrays) -> SavedArray | None:
        """Note what changed in an array; None if it is too much, or the array too large."""
        if not MIN_CHANGED_BYTES <= array.nbytes <= MAX_CHECKED_BYTES:
            return None
        if not self._memory.holds(array.nbytes):  # what changed is put together in memory
            return None
        edits, before = self._changed.find(path.stem), previous.read_edits(path.stem)
        if edits is None:
            return None
        size, pieces = edits.nbytes, len(edits.starts)
        if before is not None:
            size, pieces = size + before.nbytes, pieces + len(before.starts)
        if size > MAX_CHANGES_SHARE * array.nbytes or pieces > MAX_PIECES:
            return None
        path.hardlink_to(previous.folder / path.name)
        held = previous.saved[path.stem]
        used = (*held.changes, self._number)
        if before is not None and self._merges:
            edits, used = before.then(edits), (self._number,)
        self._changed.add(path.stem, edits)
        return SavedArray(held.file, sum_file(array.data).checksum, used)


def _is_same(array: Array, held: Array) -> bool:
    return array is held or (array.shape == held.shape and _begins_with(array, held))


def _sum_in_pieces(path: Path, memory: WorkingMemory) -> FileSum:
    """Checksum of a file, of which a piece is in memory at a time."""
    size, found = path.stat().st_size, None
    for some in memory.blocks(size, 2):
        found = sum_file(_load_bytes(path, some.stop), found)
    return found or sum_file(_load_bytes(path))


def _do_in_threads(work: Callable[[Path], None], paths: Sequence[Path]) -> None:
    """Do for each file what may be done twice; one by one where memory is short of threads."""
    with ThreadPoolExecutor(8) as pool:
        try:
            list(pool.map(work, paths))
        except RuntimeError:  # a thread cannot be started
            for path in paths:
                work(path)


def sync_to_disk(path: Path) -> None:
    """Wait until a file or folder is durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_old_generations(parent: Path, keep: set[int]) -> None:
    """Remove the folders of other generations; failures are retried at the next write."""
    kept = {_LASTING, *(str(number) for number in keep)}
    for folder in [path for path in parent.iterdir() if path.name not in kept and path.is_dir()]:
        renamed = folder.with_name(folder.name.removesuffix(_REMOVED_SUFFIX) + _REMOVED_SUFFIX)
        with suppress(OSError):
            # Renamed first: a reader that is opening it must find all files or none.
            folder.rename(renamed)
            _do_in_threads(lambda path: path.unlink(missing_ok=True), list(renamed.iterdir()))
        shutil.rmtree(renamed, ignore_errors=True)


# -- what a search derives from a generation, kept beside it for the next process: the next write
# -- removes it, so that what is derived of another generation is never read. What is `lasting`
# -- stays, and says itself what it was derived from.


def load_kept(arrays: Arrays, name: str, *, lasting: bool = False) -> Arrays | None:
    """Arrays that were kept under a name for this generation; None if there are none."""
    folder = _find_folder(arrays, name, lasting)
    if folder is None:
        return None
    with suppress(OSError, DamagedArrays, ValueError):
        seal = folder.with_name(folder.name + _SEAL_SUFFIX).read_text(encoding="ascii")
        kept = MappedArrays(folder, seal)
        return {part: kept[part] for part in kept}
    return None


def keep_arrays(
    arrays: Arrays, name: str, kept: dict[str, Array], *, lasting: bool = False
) -> None:
    """Keep arrays under a name for as long as this generation is the last one, or longer."""
    folder = _find_folder(arrays, name, lasting)
    if folder is None:
        return
    with suppress(OSError):  # a folder that is read-only, or gone with its generation
        seal = save_arrays(folder, kept, durable=False)
        written = folder.with_name(folder.name + ".new")
        written.write_text(seal, encoding="ascii")
        written.replace(folder.with_name(folder.name + _SEAL_SUFFIX))


def _find_folder(arrays: Arrays, name: str, lasting: bool) -> Path | None:
    """Where arrays with this name are kept; None for a generation that is in no folder."""
    if not isinstance(arrays, MappedArrays) or not arrays.folder.is_dir():
        return None
    own = arrays.folder
    parent = own.with_name(_LASTING if lasting else own.name + _KEPT_SUFFIX)
    return parent / _OTHER_SIGNS.sub("-", name)
