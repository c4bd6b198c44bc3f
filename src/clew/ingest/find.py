"""From paths to files: what there is to read, what it is called, and what is left alone."""

import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from clew.errors import InputError
from clew.ingest.readers.source import RowNames, Skipped, Source
from clew.text import clean

_SETTINGS = "clew.toml"
_TRUTH = "kb.sqlite"  # the file that makes a folder a knowledge base …
_BESIDE = frozenset(  # … and what lies beside it
    {_TRUTH, f"{_TRUTH}-wal", f"{_TRUTH}-shm", "writer.lock"} | {"arrays", "vectors", "encoder"}
)


def find(paths: Sequence[str | Path], row_names: RowNames = "path") -> list[Source | Skipped]:
    """List what there is to read; a missing path or an empty folder is an error at once."""
    found: dict[str, Source | Skipped] = {}  # by name: what is asked for twice is read once
    doubtful: list[Skipped] = []
    for path in map(Path, paths):
        if not os.path.exists(path):
            raise InputError(f"{path}: there is no such file or folder; check the path.")
        below = list(_walk(path, path.resolve())) if os.path.isdir(path) else [_entry(path)]
        if not below:
            raise InputError(f"{path}: the folder is empty; name one that holds documents.")
        for item in below:
            name = name_of(item if isinstance(item, Path) else Path(item.name))
            if isinstance(item, Skipped):
                found.setdefault(name, Skipped(name, item.reason))
            elif _is_another(found.setdefault(name, Source(item, name, row_names)), item):
                doubtful.append(
                    Skipped(
                        name,
                        "is called as another file is, but for letters that "
                        "look the same or cannot be shown; rename it",
                    )
                )
    return [*found.values(), *doubtful]


def _is_another(held: Source | Skipped, path: Path) -> bool:
    """Whether what is held under a file's name is another file."""
    if isinstance(held, Skipped) or held.path == path:
        return False
    try:
        return not os.path.samefile(held.path, path)
    except OSError:
        return True


def _walk(folder: Path, root: Path) -> Iterator[Path | Skipped]:
    """Go through a folder by name; links are followed to files, and only within `root`."""
    ours = _BESIDE if (folder / _TRUTH).exists() else frozenset()
    pending = [folder]
    while pending:
        path = pending.pop()
        if path != folder:
            refused = _refused(path, root)
            if path.parent == folder and path.name in ours:
                refused = "is a part of a knowledge base"
            if refused:
                yield Skipped(str(path), refused)
                continue
        if os.path.isdir(path):
            try:
                inside = sorted(path.iterdir(), key=lambda child: child.name, reverse=True)
            except OSError as error:
                yield Skipped(str(path), f"cannot be opened ({error.strerror})")
                continue
            if path != folder and any(child.name == _TRUTH for child in inside):
                yield Skipped(str(path), "is a knowledge base")
            else:
                pending += inside
        else:
            yield _entry(path)


def _refused(path: Path, root: Path) -> str:
    """Say why a path below a folder is not read, or nothing if it may be."""
    if path.name.startswith("."):
        return "is hidden; name it to read it"
    if path.name == _SETTINGS:
        return "holds settings, and maybe keys; name it to read it"
    if not os.path.islink(path):
        return ""
    target = Path(os.path.realpath(path))
    if not target.is_relative_to(root):
        return "is a link to a place outside the folder that was asked for"
    if not target.exists():
        return "is a link to nothing"
    return "is a link to a folder that is read anyway" if target.is_dir() else ""


def _entry(path: Path) -> Path | Skipped:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return Skipped(str(path), f"cannot be opened ({error.strerror})")
    # Opening a pipe or a device could wait for ever.
    return path if stat.S_ISREG(mode) else Skipped(str(path), "is not a regular file")


def name_of(path: Path) -> str:
    """Write a path as a name: with slashes, NFC, and nothing that could steer a terminal."""
    name = clean(path.as_posix())
    return "".join("\ufffd" if unicodedata.category(c) == "Cc" else c for c in name)
