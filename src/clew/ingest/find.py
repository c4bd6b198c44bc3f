"""Finds the files to read below the given paths, names them, and reports those left out."""

import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from clew.errors import InputError
from clew.ingest.readers.source import RowNames, Skipped, SourceFile
from clew.text import clean

_SETTINGS_FILE = "clew.toml"
_DATABASE_FILE = "kb.sqlite"  # a folder with this file is a knowledge base …
_KB_ENTRIES = frozenset(  # … with these entries
    {_DATABASE_FILE, f"{_DATABASE_FILE}-wal", f"{_DATABASE_FILE}-shm", "writer.lock"}
    | {"arrays", "vectors", "encoder"}
)


def find_files(
    paths: Sequence[str | Path], row_names: RowNames = "path"
) -> list[SourceFile | Skipped]:
    """List the files to read; raise for a missing path or an empty folder."""
    found: dict[str, SourceFile | Skipped] = {}  # by name: a file given twice is read once
    lookalikes: list[Skipped] = []
    for path in map(Path, paths):
        if not os.path.exists(path):
            raise InputError(f"{path}: there is no such file or folder; check the path.")
        items = (
            list(_walk_folder(path, path.resolve())) if os.path.isdir(path) else [_check_file(path)]
        )
        if not items:
            raise InputError(f"{path}: the folder is empty; name one that holds documents.")
        for item in items:
            name = document_name(item if isinstance(item, Path) else Path(item.name))
            if isinstance(item, Skipped):
                found.setdefault(name, Skipped(name, item.reason))
            elif _is_other_file(found.setdefault(name, SourceFile(item, name, row_names)), item):
                lookalikes.append(
                    Skipped(
                        name,
                        "is called as another file is, but for letters that "
                        "look the same or cannot be shown; rename it",
                    )
                )
    return [*found.values(), *lookalikes]


def _is_other_file(held: SourceFile | Skipped, path: Path) -> bool:
    """Return whether the entry held under a path's name is another file."""
    if isinstance(held, Skipped) or held.path == path:
        return False
    try:
        return not os.path.samefile(held.path, path)
    except OSError:
        return True


def _walk_folder(folder: Path, root: Path) -> Iterator[Path | Skipped]:
    """Walk a folder in name order; links are followed to files only, and only within `root`."""
    kb_entries = _KB_ENTRIES if (folder / _DATABASE_FILE).exists() else frozenset()
    pending = [folder]
    while pending:
        path = pending.pop()
        if path != folder:
            refused = _refusal_reason(path, root)
            if path.parent == folder and path.name in kb_entries:
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
            if path != folder and any(child.name == _DATABASE_FILE for child in inside):
                yield Skipped(str(path), "is a knowledge base")
            else:
                pending += inside
        else:
            yield _check_file(path)


def _refusal_reason(path: Path, root: Path) -> str:
    """Return why a path below a folder is not read, or "" if it may be."""
    if path.name.startswith("."):
        return "is hidden; name it to read it"
    if path.name == _SETTINGS_FILE:
        return "holds settings, and maybe keys; name it to read it"
    if not os.path.islink(path):
        return ""
    target = Path(os.path.realpath(path))
    if not target.is_relative_to(root):
        return "is a link to a place outside the folder that was asked for"
    if not target.exists():
        return "is a link to nothing"
    return "is a link to a folder that is read anyway" if target.is_dir() else ""


def _check_file(path: Path) -> Path | Skipped:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return Skipped(str(path), f"cannot be opened ({error.strerror})")
    # Opening a pipe or a device could block for ever.
    return path if stat.S_ISREG(mode) else Skipped(str(path), "is not a regular file")


def document_name(path: Path) -> str:
    """Return a path as a document name: slashes, NFC, no control characters."""
    name = clean(path.as_posix())
    return "".join("\ufffd" if unicodedata.category(c) == "Cc" else c for c in name)
