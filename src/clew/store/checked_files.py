"""Which files of a generation were checked already, so that not every process sums them again.

A mark says how the file was when its checksum was right: its size, its inode, and when it was last
changed in any way. It holds as long as all of these stay, and for the same checksum. So a file that
is written to, replaced or restored is checked again; what a disk loses by itself is found by
`clew verify`, which goes by no marks. They lie beside the generation and are gone with it; a note
of one other file lies beside that.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from time import time_ns

from clew.store.checksums import FileSum

KEPT_SUFFIX = ".kept"  # of the folder with what is derived from a generation
_MARKS_FILE = "checked.json"
_MIN_MARKED_BYTES = 1 << 17  # smaller files are summed in no time
_SETTLED_NS = 2_000_000_000  # later than this after a change, another one has another time

Mark = list[int]


class CheckedFiles:
    """The marks of one folder of arrays."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder.with_name(folder.name + KEPT_SUFFIX) / _MARKS_FILE
        self._marks: dict[str, Mark] | None = None

    def is_checked(self, name: str, held: FileSum) -> bool:
        """Whether the file of an array is as it was when it had this checksum."""
        if held.size < _MIN_MARKED_BYTES or held.blocks is None:
            return False
        found = self._describe(name, held)
        return found is not None and self._load().get(name) == found

    def mark(self, name: str, held: FileSum) -> None:
        """Note that the file of an array, as it is now, has this checksum."""
        if held.size < _MIN_MARKED_BYTES or (found := self._describe(name, held)) is None:
            return
        self._load()[name] = found
        with suppress(OSError):  # a folder that is read-only, or gone with its generation
            self._file.parent.mkdir(exist_ok=True)
            _replace_json(self._file, self._load())

    def _describe(self, name: str, held: FileSum) -> Mark | None:
        """What a mark says of a file; None if it is missing or was changed just now."""
        now = _describe_file(os.path.join(self._folder, f"{name}.npy"))
        return None if now is None else [*now, held.size, held.checksum]

    def _load(self) -> dict[str, Mark]:
        if self._marks is None:
            self._marks = {}
            with suppress(OSError, ValueError, TypeError):
                self._marks = dict(json.loads(self._file.read_text(encoding="ascii")))
        return self._marks


class FileNote:
    """A note beside a file: that something was found of all of it, and of others, as they are."""

    def __init__(self, path: Path, found: str, *others: Path) -> None:
        self._paths, self._note = (path, *others), path.with_name(f"{path.name}.{found}")

    def holds(self) -> bool:
        """Whether the files are as they were when the note was written."""
        with suppress(OSError, ValueError):
            noted = json.loads(self._note.read_text("ascii"))
            return noted is not None and bool(noted == self.describe())
        return False

    def remove(self) -> None:
        """Remove the note: it is to be found out again."""
        with suppress(OSError):
            self._note.unlink(missing_ok=True)

    def write(self, described: Mark | None) -> None:
        """Note it of the files as they were before it was found out, unless they are small."""
        if described is None or described[0] < _MIN_MARKED_BYTES:
            return
        with suppress(OSError):  # a folder that is read-only
            _replace_json(self._note, described)

    def describe(self) -> Mark | None:
        """How the files are; None if one of them is missing or was changed just now."""
        found: Mark = []
        for path in self._paths:
            if (one := _describe_file(path)) is None:
                return None
            found += one
        return found


def _replace_json(path: Path, value: dict[str, Mark] | Mark) -> None:
    """Write a file at once, so that no reader sees half of it."""
    written = path.with_name(f"{path.name}.{os.getpid()}.new")
    written.write_text(json.dumps(value), encoding="ascii")
    written.replace(path)


def _describe_file(path: Path | str) -> Mark | None:
    """How a file is; None if it is missing or was changed just now."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    if time_ns() - found.st_ctime_ns < _SETTLED_NS:
        return None
    return [found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns]
