"""Generations of arrays: in shared files, and mapped copies on this machine."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from threading import Lock

from clew.errors import DamagedArrays
from clew.store.array_files import remove_old_generations, save_arrays
from clew.store.mapped_arrays import MappedArrays
from clew.store.postgres.files import SharedFiles
from clew.store.protocol import Arrays
from clew.store.write_lock import WriterLock

_FETCH_PATIENCE = 600.0  # seconds to wait for another process of this machine that fetches


class Generations:
    """Loads each generation once per machine, and maps it once per process."""

    def __init__(self, files: SharedFiles, copies: Path) -> None:
        self._files = files
        self._copies = copies
        self._newest: tuple[int, str, Arrays] = (0, "", {})
        self._lock = Lock()

    def folder(self, generation: int) -> Path:
        """This machine's copy of a generation."""
        return self._copies / str(generation)

    def load(self, generation: int, seal: str) -> Arrays:
        """The arrays of a generation; FileNotFoundError if it was removed meanwhile."""
        if generation == 0:
            return {}
        if not seal:
            raise FileNotFoundError("no arrays were derived yet")  # after a restore
        with self._lock:
            if self._newest[:2] != (generation, seal):
                self._newest = (generation, seal, self._map(generation, seal))
                remove_old_generations(self._copies, {generation - 1, generation, generation + 1})
            return self._newest[2]

    def check(self, generation: int, seal: str) -> list[str]:
        """Check every array whole; return one sentence per damaged one."""
        if generation == 0:
            return []
        return MappedArrays(self.folder(generation), seal).check_all()

    def save(self, generation: int, arrays: Arrays) -> str:
        """Write a generation for all machines; return its seal."""
        made = self._make_incoming(f"made-{os.getpid()}")
        try:
            seal = save_arrays(made, arrays, durable=False)
            self._files.save_folder(_shared_name(generation, seal), made)
            with suppress(OSError):  # a copy that is there already is replaced on loading
                made.rename(self.folder(generation))
        finally:
            shutil.rmtree(made, ignore_errors=True)
        return seal

    def remove_before(self, generation: int) -> None:
        """Remove the shared files of generations before this one."""
        for name in self._files.list_folder("arrays"):
            if not name.isdecimal() or int(name) < generation:
                self._files.remove(f"arrays/{name}")

    def _map(self, generation: int, seal: str) -> MappedArrays:
        folder = self.folder(generation)
        try:
            return MappedArrays(folder, seal)
        except (FileNotFoundError, DamagedArrays):
            pass  # fetched now, or again
        new = self._make_incoming("fetched")
        with WriterLock(self._copies / "fetch.lock", _FETCH_PATIENCE):
            with suppress(FileNotFoundError, DamagedArrays):  # another process has fetched it
                return MappedArrays(folder, seal)
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            self._files.load_folder(_shared_name(generation, seal), new)
            shutil.rmtree(folder, ignore_errors=True)
            new.rename(folder)
        return MappedArrays(folder, seal)

    def _make_incoming(self, name: str) -> Path:
        """A folder beside the copies, as every unknown folder among them is removed."""
        self._copies.mkdir(parents=True, exist_ok=True)
        incoming = self._copies.parent / "incoming"
        incoming.mkdir(exist_ok=True)
        return incoming / name


def _shared_name(generation: int, seal: str) -> str:
    """With the seal: a write that was rolled back leaves no files that another one may take."""
    return f"arrays/{generation}/{seal[:12]}"
