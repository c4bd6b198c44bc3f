"""From paths to documents: what is found, read, and visibly left out."""

import asyncio
import os
import stat
import threading
import unicodedata
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import groupby
from pathlib import Path

from clew.errors import InputError
from clew.ingest.readers import OTHERWISE, PARSED, READERS
from clew.ingest.readers.source import (
    BUDGET,
    Budget,
    RowNames,
    Skipped,
    Source,
    document,
)
from clew.text import clean
from clew.types import Document

__all__ = ["BUDGET", "Budget", "RowNames", "Skipped", "Source", "document", "find", "read"]

Item = Document | Skipped

_BATCH = 256  # documents per trip to the reading thread …
_BATCH_CHARACTERS = 4_000_000  # … or as many as hold this much text
_GRACE = 5.0  # seconds after a parser's budget until it is left behind


async def read(
    paths: Sequence[str | Path],
    *,
    row_names: RowNames = "path",
    budget: Budget = BUDGET,
) -> AsyncIterator[Item]:
    """Read files, and folders with all below them, in sorted order; skips are handed out too."""
    found = await asyncio.to_thread(find, paths, row_names)
    for parsed, group in groupby(found, _needs_clock):
        if parsed:
            for source in group:
                assert isinstance(source, Source)
                for item in await _against_clock(source, budget):
                    yield item
        else:
            items = _items(list(group), budget)
            while batch := await asyncio.to_thread(_batch, items):
                for item in batch:
                    yield item


def find(paths: Sequence[str | Path], row_names: RowNames = "path") -> list[Source | Skipped]:
    """List what there is to read; a missing path or an empty folder is an error at once."""
    found: dict[str, Source | Skipped] = {}  # by name: what is asked for twice is read once
    for path in map(Path, paths):
        if not os.path.exists(path):
            raise InputError(f"{path}: there is no such file or folder; check the path.")
        below = list(_walk(path, path.resolve())) if os.path.isdir(path) else [_entry(path)]
        if not below:
            raise InputError(f"{path}: the folder is empty; name one that holds documents.")
        for item in below:
            name = name_of(item if isinstance(item, Path) else Path(item.name))
            found.setdefault(
                name,
                Source(item, name, row_names)
                if isinstance(item, Path)
                else Skipped(name, item.reason),
            )
    return list(found.values())


def _walk(folder: Path, root: Path) -> Iterator[Path | Skipped]:
    """Go through a folder by name; links are followed to files, and only within `root`."""
    pending = [folder]
    while pending:
        path = pending.pop()
        if path != folder and (path.name.startswith(".") or os.path.islink(path)):
            refused = _refused(path, root)
            if refused:
                yield Skipped(str(path), refused)
                continue
        if os.path.isdir(path):
            try:
                pending += sorted(path.iterdir(), key=lambda child: child.name, reverse=True)
            except OSError as error:
                yield Skipped(str(path), f"cannot be opened ({error.strerror})")
        else:
            yield _entry(path)


def _refused(path: Path, root: Path) -> str:
    """Say why a hidden path or a link is not read, or nothing if it may be."""
    if path.name.startswith("."):
        return "is hidden; name it to read it"
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


def _needs_clock(item: Source | Skipped) -> bool:
    return isinstance(item, Source) and item.path.suffix.lower() in PARSED


def _items(found: Iterable[Source | Skipped], budget: Budget) -> Iterator[Item]:
    for item in found:
        if isinstance(item, Skipped):
            yield item
            continue
        reader = READERS.get(item.path.suffix.lower(), OTHERWISE)
        silent = True
        try:
            for result in reader(item, budget):
                silent = False
                yield result
            if silent:
                yield Skipped(item.name, "holds no rows")
        except InputError as error:
            yield Skipped(item.name, str(error))
        except OSError as error:
            yield Skipped(item.name, f"cannot be read ({error.strerror or error})")


def _batch(items: Iterator[Item]) -> list[Item]:
    batch: list[Item] = []
    size = 0
    for item in items:
        batch.append(item)
        size += len(item.text) if isinstance(item, Document) else 0
        if len(batch) >= _BATCH or size > _BATCH_CHARACTERS:
            break
    return batch


async def _against_clock(source: Source, budget: Budget) -> list[Item]:
    """Parse in a thread that is left behind when it overruns: Python cannot stop one."""
    done: Future[list[Item]] = Future()
    done.set_running_or_notify_cancel()  # from here on nobody but the thread settles it

    def work() -> None:
        try:
            done.set_result(list(_items([source], budget)))
        except BaseException as error:  # noqa: BLE001  (a thread's edge: raised where it is awaited)
            done.set_exception(error)

    threading.Thread(target=work, name=f"read {source.name}", daemon=True).start()
    try:
        async with asyncio.timeout(budget.seconds + _GRACE):
            return await asyncio.wrap_future(done)
    except TimeoutError:
        return [Skipped(source.name, f"takes longer than {budget.seconds:g} s to read")]
