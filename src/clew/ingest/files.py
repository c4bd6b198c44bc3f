"""Finds the files below the given paths, and reads them into documents by their suffix.

Whatever is left out or cannot be read is reported as skipped.
"""

import asyncio
import os
import re
import stat
import threading
import time
import unicodedata
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from itertools import groupby
from pathlib import Path
from typing import Protocol

from clew.errors import InputError
from clew.ingest.parse_process import MAX_WAIT_FACTOR, parse_file
from clew.ingest.parse_process import ReadItem as ReadItem
from clew.ingest.readers.databases import read_parquet, read_sqlite
from clew.ingest.readers.docx import read_docx
from clew.ingest.readers.epub import read_epub
from clew.ingest.readers.html import read_html
from clew.ingest.readers.latex import read_latex
from clew.ingest.readers.mail import MailReader
from clew.ingest.readers.manpage import read_manpage
from clew.ingest.readers.notebook import read_notebook
from clew.ingest.readers.pdf import read_pdf
from clew.ingest.readers.plain import read_plain_text
from clew.ingest.readers.pptx import read_pptx
from clew.ingest.readers.records import read_json, read_json_lines, read_table
from clew.ingest.readers.rst import read_rst
from clew.ingest.readers.source import (
    DEFAULT_BUDGET,
    DocumentReader,
    FileEnd,
    ReadBudget,
    RowNames,
    Skipped,
    SourceFile,
    content_suffix,
)
from clew.ingest.readers.text import read_code, read_markdown, read_unknown
from clew.ingest.readers.trace import trace_items
from clew.ingest.readers.workbook import read_xlsx
from clew.ingest.site_lines import leave_out_site_lines
from clew.text.code_outline import CODE_SUFFIXES
from clew.text.unicode import clean
from clew.types import Document

_SETTINGS_FILE = "clew.toml"
_DATABASE_FILE = "kb.sqlite"  # a folder with this file is a knowledge base …
_KB_ENTRIES = frozenset(  # … with these entries
    {_DATABASE_FILE, f"{_DATABASE_FILE}-wal", f"{_DATABASE_FILE}-shm", "writer.lock"}
    | {"arrays", "vectors", "encoder", "extracted.jsonl"}
)
READERS: dict[str, DocumentReader] = {
    "": read_plain_text,
    ".txt": read_plain_text,
    ".text": read_plain_text,
    ".rst": read_rst,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json,
    ".csv": read_table,
    ".tsv": read_table,
    ".xlsx": read_xlsx,
    ".parquet": read_parquet,
    ".sqlite": read_sqlite,
    ".sqlite3": read_sqlite,
    ".db": read_sqlite,
    ".pdf": read_pdf,
    ".docx": read_docx,
    ".pptx": read_pptx,
    ".epub": read_epub,
    ".ipynb": read_notebook,
    ".tex": read_latex,
    ".ltx": read_latex,
    ".man": read_manpage,
}
_MAIL = MailReader(READERS)
READERS |= {".eml": _MAIL.read_eml, ".mbox": _MAIL.read_mbox}
DEFAULT_READER: DocumentReader = read_unknown
_MANUAL_SUFFIX = re.compile(r"\.[1-9][a-z]{0,4}")  # of manual pages: `git.1`, `printf.3posix`
ROW_FORMATS = frozenset(
    ".jsonl .ndjson .json .csv .tsv .mbox .xlsx .parquet .sqlite .sqlite3 .db".split()
)
"""Formats with many documents per file."""
_UNPACKED_FORMATS = ROW_FORMATS - {".mbox"} | {".docx", ".pptx", ".epub"}
"""Formats that are read from the file itself, so that it may not be compressed as a whole."""
PARSED_FORMATS = frozenset(
    ".html .htm .xhtml .pdf .docx .pptx .epub .ipynb .eml .mbox .tex .ltx .rst .man".split()
)
"""Formats whose parser a hostile file can slow down: read one at a time, in another process."""


class ParseElsewhere(Protocol):
    """Parses files in other processes, on this machine or on others."""

    @property
    def at_once(self) -> int:
        """How many files are worth sending at once."""

    async def __call__(self, source: SourceFile, budget: ReadBudget) -> list[ReadItem]:
        """Parse one file."""


_BATCH = 256  # items per call to the reading thread …
_BATCH_CHARACTERS = 4_000_000  # … or as many as reach this many characters
_POLL_SECONDS = 0.25


def find_files(
    paths: Sequence[str | Path], row_names: RowNames = "path"
) -> list[SourceFile | Skipped]:
    """List the files to read; raise for a missing path or an empty folder."""
    found: dict[str, SourceFile | Skipped] = {}  # by name: a file given twice is read once
    lookalikes: list[Skipped] = []
    for path in map(Path, paths):
        if not os.path.exists(path):
            raise InputError(f"{path}: no such file or folder; check the path.")
        items = (
            list(_walk_folder(path, path.resolve())) if os.path.isdir(path) else [_check_file(path)]
        )
        if not items:
            raise InputError(f"{path}: the folder is empty; name one with documents.")
        for item in items:
            name = document_name(item if isinstance(item, Path) else Path(item.name))
            if isinstance(item, Skipped):
                found.setdefault(name, Skipped(name, item.reason))
            elif _is_other_file(found.setdefault(name, SourceFile(item, name, row_names)), item):
                lookalikes.append(
                    Skipped(
                        name,
                        "has the same name as another file, except for characters that "
                        "look alike or are invisible; rename it",
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
        return "is hidden; name it explicitly to read it"
    if path.name == _SETTINGS_FILE:
        return "may contain API keys; name it explicitly to read it"
    if not os.path.islink(path):
        return ""
    target = Path(os.path.realpath(path))
    if not target.is_relative_to(root):
        return "is a link to a path outside the given folder"
    if not target.exists():
        return "is a broken link"
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


async def read(
    paths: Sequence[str | Path],
    *,
    row_names: RowNames = "path",
    budget: ReadBudget = DEFAULT_BUDGET,
) -> AsyncGenerator[Document | Skipped]:
    """Read files, and folders recursively, in sorted order; skipped items are yielded too."""
    found = await asyncio.to_thread(find_files, paths, row_names)
    async with aclosing(read_files(found, budget)) as items:
        async for item in leave_out_site_lines(items, {}):
            if not isinstance(item, FileEnd):
                yield item


async def read_files(
    found: Iterable[SourceFile | Skipped],
    budget: ReadBudget = DEFAULT_BUDGET,
    elsewhere: ParseElsewhere | None = None,
) -> AsyncGenerator[ReadItem]:
    """Read the files found; a `FileEnd` follows each file of rows that was read to its end.

    Files with a parser are parsed `elsewhere`, several at once, where that is possible.
    """
    for parsed, group in groupby(found, _needs_parser):
        if parsed:
            async with aclosing(_parse_all(group, budget, elsewhere)) as parsed_items:
                async for item in parsed_items:
                    yield item
        else:
            items = _read_sources(list(group), budget)
            while batch := await asyncio.to_thread(_next_batch, items):
                for item in batch:
                    yield item


async def _parse_all(
    sources: Iterable[SourceFile | Skipped], budget: ReadBudget, elsewhere: ParseElsewhere | None
) -> AsyncGenerator[ReadItem]:
    """Parse files in order; elsewhere, the next ones are under way while one is waited for."""
    ahead = elsewhere.at_once if elsewhere else 1
    waiting: deque[asyncio.Task[list[ReadItem]]] = deque()
    try:
        for source in sources:
            assert isinstance(source, SourceFile)
            waiting.append(asyncio.create_task(_parse(source, budget, elsewhere)))
            if len(waiting) >= ahead:
                for item in await waiting.popleft():
                    yield item
        while waiting:
            for item in await waiting.popleft():
                yield item
    finally:
        for task in waiting:
            task.cancel()


def _needs_parser(item: SourceFile | Skipped) -> bool:
    """Whether it is a file with a parser that a hostile file can slow down."""
    if isinstance(item, Skipped):
        return False
    suffix = content_suffix(item.path)
    return suffix in PARSED_FORMATS or _MANUAL_SUFFIX.fullmatch(suffix) is not None


def known_suffix(name: str) -> str:
    """Return the end of a name that a reader is chosen by (`.html`, `.1.gz`), or ""."""
    path = Path(name)
    inner = content_suffix(path)
    known = inner in READERS or inner in CODE_SUFFIXES or _MANUAL_SUFFIX.fullmatch(inner)
    return inner + (".gz" if path.suffix.lower() == ".gz" else "") if known else ""


def _choose_reader(path: Path) -> DocumentReader:
    """Return the reader for a file's suffix; that of a compressed file is its inner one."""
    suffix = content_suffix(path)
    if suffix != path.suffix.lower() and suffix in _UNPACKED_FORMATS:
        raise InputError(f"is a compressed {suffix} file; unpack it first")
    if _MANUAL_SUFFIX.fullmatch(suffix):
        return read_manpage
    return READERS.get(suffix, read_code if suffix in CODE_SUFFIXES else DEFAULT_READER)


def _read_sources(found: Iterable[SourceFile | Skipped], budget: ReadBudget) -> Iterator[ReadItem]:
    for item in found:
        if isinstance(item, Skipped):
            yield item
            continue
        suffix = content_suffix(item.path)
        empty, has_document, broken = True, False, False
        try:
            for result in trace_items(_choose_reader(item.path)(item, budget), item, budget):
                empty = False
                has_document = has_document or isinstance(result, Document)
                broken = broken or (isinstance(result, Skipped) and result.broken)
                yield result
            if empty:
                yield Skipped(item.name, "has no rows")
            # Not where a row could not be parsed (the file may be cut), or none could be read: then
            # it is unknown which rows the file holds.
            elif has_document and not broken and suffix in ROW_FORMATS and item.row_names == "path":
                yield FileEnd(item.name)
        except InputError as error:
            yield Skipped(item.name, str(error))
        except OSError as error:
            yield Skipped(item.name, f"cannot be read ({error.strerror or error})")


def _next_batch(items: Iterator[ReadItem]) -> list[ReadItem]:
    batch: list[ReadItem] = []
    size = 0
    for item in items:
        batch.append(item)
        size += len(item.text) if isinstance(item, Document) else 0
        if len(batch) >= _BATCH or size > _BATCH_CHARACTERS:
            break
    return batch


async def _parse(
    source: SourceFile, budget: ReadBudget, elsewhere: ParseElsewhere | None = None
) -> list[ReadItem]:
    """Parse in a process that can be ended; a reader that was registered, in a thread.

    Only processor time counts, so that a busy machine skips no file.
    """
    reader = READERS.get(content_suffix(source.path), read_manpage)
    is_own = reader.__module__.startswith("clew.ingest.readers.")
    if is_own and elsewhere is not None:
        return await elsewhere(source, budget)
    found = (
        await parse_file(source, budget, __name__, read_source_items.__name__) if is_own else None
    )
    return await _read_with_timeout(source, budget) if found is None else found


def read_source_items(source: SourceFile, budget: ReadBudget) -> list[ReadItem]:
    """Read one file whole, in this thread."""
    return list(_read_sources([source], budget))


async def parse_here(source: SourceFile, budget: ReadBudget) -> list[ReadItem]:
    """Parse one file in a process of this machine."""
    return await _parse(source, budget)


async def _read_with_timeout(source: SourceFile, budget: ReadBudget) -> list[ReadItem]:
    """Parse in a thread that is abandoned at the timeout: Python cannot stop a thread."""
    done: Future[list[ReadItem]] = Future()
    done.set_running_or_notify_cancel()  # from here on only the thread sets its result

    clocks: list[int] = []  # the thread's own clock: what it used is read from outside

    def work() -> None:
        if hasattr(time, "pthread_getcpuclockid"):
            clocks.append(time.pthread_getcpuclockid(threading.get_ident()))
        try:
            done.set_result(read_source_items(source, budget))
        except BaseException as error:  # noqa: BLE001  (thread boundary: raised where it is awaited)
            done.set_exception(error)

    threading.Thread(target=work, name=f"read {source.name}", daemon=True).start()
    result = asyncio.wrap_future(done)
    began = time.monotonic()
    while True:
        finished, _ = await asyncio.wait([result], timeout=_POLL_SECONDS)
        if finished:
            return result.result()
        waited = time.monotonic() - began
        used = _read_clock(clocks[0], waited) if clocks else waited
        if used > budget.seconds or waited > budget.seconds * MAX_WAIT_FACTOR:
            result.cancel()
            return [Skipped(source.name, budget.say_too_slow())]


def _read_clock(clock: int, waited: float) -> float:
    try:
        return time.clock_gettime(clock)
    except OSError:  # the thread has just ended
        return waited
