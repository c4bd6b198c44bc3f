"""Save a generation's derived arrays: all, or what differs from the generation before.

Generations share files. A file whose array only got longer has the further rows appended: each
generation reads as many bytes as its own list of sizes says, so an earlier one never sees them, and
neither does anybody see what an interrupted write left. The number of rows in such a file's header
is that of its first generation. Of an array in which few rows changed only these are written
(`clew.store.array_changes`), until they are many; then it is written whole.
"""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import reduce
from pathlib import Path
from zlib import crc32

from clew.errors import DamagedArrays
from clew.out_of_core import UNBOUNDED, WorkingMemory, write_npy
from clew.store.array_changes import (
    MAX_PIECES,
    MIN_CHANGED_BYTES,
    OFFSETS,
    ChangedArrays,
    first_merged,
)
from clew.store.checked_files import KEPT_SUFFIX
from clew.store.checksums import FileSum, sum_file
from clew.store.edited_rows import is_edited
from clew.store.mapped_arrays import (
    MAX_CHECKED_BYTES,
    SUMS_FILE,
    MappedArrays,
    SavedArray,
    begins_with,
    changes_file,
    format_sums,
    load_bytes,
    make_seal,
)
from clew.store.protocol import Array, Arrays
from clew.store.row_edits import MAX_SHARE, Edits

MAX_NOTED_BYTES = 1 << 30  # of an array of which it is known what changed; larger ones are written
_REMOVED_SUFFIX = ".gone"
_SEAL_SUFFIX = ".seal"
_LASTING = "lasting"  # the folder of what is brought up to date and not made again
_OTHER_SIGNS = re.compile(r"[^A-Za-z0-9.]+")


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
    # Offsets last: what they are offsets of tells which rows came and went.
    saved = {}
    for name in sorted(arrays, key=lambda one: one.endswith(OFFSETS)):
        saved[name] = saving.save(name)
        memory.release()
    sums = {name: saved[name] for name in sorted(saved)}
    changes = saving.finish({number for held in sums.values() for number in held.changes})
    raw = format_sums(sums, changes)
    (temporary / SUMS_FILE).write_text(raw)
    if durable:
        # Synced in parallel after all are written: the disk then needs few commits, not forty.
        _do_in_threads(sync_to_disk, [temporary / SUMS_FILE, temporary, *saving.written])
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)
    if isinstance(previous, MappedArrays):
        previous.forget_next()
    return make_seal(raw.encode(), has_changes=bool(changes))


class _Saving:
    """Writes the arrays of one generation, or what changed in them, to a folder."""

    def __init__(
        self, folder: Path, arrays: Arrays, previous: Arrays | None, memory: WorkingMemory
    ) -> None:
        self._folder, self._arrays, self._memory = folder, arrays, memory
        self._previous = previous if isinstance(previous, MappedArrays) else None
        self.written: list[Path] = []
        self._linked = self._link_changes()
        spliced = self._previous.spliced if self._previous is not None else {}
        self._changed = ChangedArrays(self._previous or {}, arrays, spliced)
        self._number = max(self._linked, default=0) + 1
        self._merged = first_merged(self._number)

    def _link_changes(self) -> dict[int, int]:
        """Link the files of changes of the previous generation; return their numbers and sums."""
        if self._previous is None:
            return {}
        found = {number: held.checksum for number, held in self._previous.changes.items()}
        try:
            for name in map(changes_file, found):
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

    def finish(self, used: set[int]) -> dict[int, int]:
        """Write what changed; return the numbers and sums of the files of changes."""
        for number in self._linked.keys() - used:  # links to changes that no array needs any more
            (self._folder / changes_file(number)).unlink(missing_ok=True)
        found = {number: held for number, held in self._linked.items() if number in used}
        if self._number in used:
            path, raw = self._folder / changes_file(self._number), self._changed.to_bytes()
            path.write_bytes(raw)
            self.written.append(path)
            found[self._number] = crc32(raw)
        return found

    def _share(self, path: Path, array: Array, previous: MappedArrays) -> SavedArray | None:
        """Link the file of an earlier array, if this one is not much different; or None."""
        held = previous.saved[path.stem]
        if previous.grown.get(path.stem) is array:  # its rows are in the file already
            path.hardlink_to(previous.folder / path.name)
            self.written.append(path)
            size = held.file.size + array.nbytes - previous[path.stem].nbytes
            return SavedArray(sum_file(load_bytes(path, size), held.file))
        noted = previous.spliced.get(path.stem)
        if noted is not None and noted.array is array:
            return self._change(path, array, previous)
        if not held.changes and (begin := previous.find_beginning(path.stem, array)) is not None:
            path.hardlink_to(previous.folder / path.name)
            return self._append(path, array, *begin)
        if held.changes and _is_same(array, previous[path.stem]):
            path.hardlink_to(previous.folder / path.name)
            if held.changes[-1] < self._merged:
                return held
            return self._note(path.stem, previous.read_edits(path.stem), held)
        return self._change(path, array, previous)

    def _note(self, name: str, edits: list[Edits], held: SavedArray) -> SavedArray:
        """Note the last edits of an array, with those of earlier files that are merged into one."""
        stays = [number for number in held.changes if number < self._merged]
        self._changed.add(name, reduce(Edits.then, edits[len(stays) :]))
        return held._replace(changes=(*stays, self._number))

    def _append(self, path: Path, array: Array, held: FileSum, rows: int) -> SavedArray:
        """Append the further rows of an array to its linked file."""
        if not array.ndim or rows == len(array):
            return SavedArray(held)
        with path.open("r+b", buffering=0) as file:
            file.truncate(held.size)  # of what an interrupted write appended
            file.seek(held.size)
            array[rows:].tofile(file)
        self.written.append(path)
        return SavedArray(sum_file(load_bytes(path), held))

    def _change(self, path: Path, array: Array, previous: MappedArrays) -> SavedArray | None:
        """Note what changed in an array; None if it is too much, or the array too large."""
        noted = previous.spliced.get(path.stem)
        if noted is not None and noted.array is not array:
            noted = None
        # To compare large arrays would take longer than to write them.
        largest = MAX_CHECKED_BYTES if noted is None else MAX_NOTED_BYTES
        if not MIN_CHANGED_BYTES <= array.nbytes <= largest:
            return None
        put_together = not is_edited(path.stem, array.nbytes)  # in memory, when it is read
        if put_together and not self._memory.holds(array.nbytes):
            return None
        changed = self._changed
        found = changed.find(path.stem) if noted is None else changed.use(path.stem, noted)
        if found is None:
            return None
        edits = [*previous.read_edits(path.stem), found]
        if sum(one.nbytes for one in edits) > MAX_SHARE * array.nbytes:
            return None
        if sum(len(one.starts) for one in edits) > MAX_PIECES:
            return None
        path.hardlink_to(previous.folder / path.name)
        return self._note(path.stem, edits, previous.saved[path.stem])


def _is_same(array: Array, held: Array) -> bool:
    return array is held or (array.shape == held.shape and begins_with(array, held))


def _sum_in_pieces(path: Path, memory: WorkingMemory) -> FileSum:
    """Checksum of a file, of which a piece is in memory at a time."""
    size, found = path.stat().st_size, None
    for some in memory.blocks(size, 2):
        found = sum_file(load_bytes(path, some.stop), found)
    return found or sum_file(load_bytes(path))


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


def remove_old_generations(parent: Path, keep: set[int], *, lasting: bool = True) -> None:
    """Remove the folders of other generations; failures are retried at the next write.

    What is `lasting` is kept, or removed as well.
    """
    kept = {_LASTING} if lasting else set()
    kept |= {str(number) for number in keep}
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
        if (kept := _map_kept(folder)) is not None:
            return {part: kept[part] for part in kept}
    return None


def _map_kept(folder: Path) -> MappedArrays | None:
    """What is kept in a folder; None if nothing is, or not what was written last."""
    with suppress(OSError, DamagedArrays, ValueError):
        seal = folder.with_name(folder.name + _SEAL_SUFFIX).read_text(encoding="ascii")
        return MappedArrays(folder, seal)
    return None


def keep_arrays(
    arrays: Arrays, name: str, kept: dict[str, Array], *, lasting: bool = False
) -> None:
    """Keep arrays under a name for as long as this generation is the last one, or longer."""
    folder = _find_folder(arrays, name, lasting)
    if folder is None:
        return
    with suppress(OSError):  # a folder that is read-only, or gone with its generation
        seal = save_arrays(folder, kept, durable=False, previous=_map_kept(folder))
        written = folder.with_name(folder.name + ".new")
        written.write_text(seal, encoding="ascii")
        written.replace(folder.with_name(folder.name + _SEAL_SUFFIX))


def _find_folder(arrays: Arrays, name: str, lasting: bool) -> Path | None:
    """Where arrays with this name are kept; None for a generation that is in no folder."""
    if not isinstance(arrays, MappedArrays) or not arrays.folder.is_dir():
        return None
    own = arrays.folder
    parent = own.with_name(_LASTING if lasting else own.name + KEPT_SUFFIX)
    return parent / _OTHER_SIGNS.sub("-", name)
