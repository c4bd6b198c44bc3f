"""Reads files into documents; whatever cannot be read is reported as skipped."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from itertools import groupby
from pathlib import Path

from clew.errors import InputError
from clew.ingest.find import document_name, find_files
from clew.ingest.readers import DEFAULT_READER, PARSED_FORMATS, READERS, ROW_FORMATS
from clew.ingest.readers.source import (
    DEFAULT_BUDGET,
    FileEnd,
    ReadBudget,
    RowNames,
    Skipped,
    SourceFile,
    make_document,
)
from clew.types import Document

__all__ = [
    "DEFAULT_BUDGET",
    "ReadBudget",
    "FileEnd",
    "ReadItem",
    "RowNames",
    "Skipped",
    "SourceFile",
    "make_document",
    "find_files",
    "document_name",
    "read",
    "read_files",
]

ReadItem = Document | Skipped | FileEnd

_BATCH = 256  # items per call to the reading thread …
_BATCH_CHARACTERS = 4_000_000  # … or as many as reach this many characters
_GRACE = 5.0  # seconds after a parser's budget until its thread is abandoned


async def read(
    paths: Sequence[str | Path],
    *,
    row_names: RowNames = "path",
    budget: ReadBudget = DEFAULT_BUDGET,
) -> AsyncIterator[Document | Skipped]:
    """Read files, and folders recursively, in sorted order; skipped items are yielded too."""
    found = await asyncio.to_thread(find_files, paths, row_names)
    async with aclosing(read_files(found, budget)) as items:
        async for item in items:
            if not isinstance(item, FileEnd):
                yield item


async def read_files(
    found: Iterable[SourceFile | Skipped], budget: ReadBudget = DEFAULT_BUDGET
) -> AsyncGenerator[ReadItem]:
    """Read the files found; a `FileEnd` follows each file of rows that was read to its end."""
    for parsed, group in groupby(found, _needs_timeout):
        if parsed:
            for source in group:
                assert isinstance(source, SourceFile)
                for item in await _read_with_timeout(source, budget):
                    yield item
        else:
            items = _read_sources(list(group), budget)
            while batch := await asyncio.to_thread(_next_batch, items):
                for item in batch:
                    yield item


def _needs_timeout(item: SourceFile | Skipped) -> bool:
    return isinstance(item, SourceFile) and item.path.suffix.lower() in PARSED_FORMATS


def _read_sources(found: Iterable[SourceFile | Skipped], budget: ReadBudget) -> Iterator[ReadItem]:
    for item in found:
        if isinstance(item, Skipped):
            yield item
            continue
        suffix = item.path.suffix.lower()
        reader = READERS.get(suffix, DEFAULT_READER)
        empty, has_document = True, False
        try:
            for result in reader(item, budget):
                empty = False
                has_document = has_document or isinstance(result, Document)
                yield result
            if empty:
                yield Skipped(item.name, "holds no rows")
            # Not where no row could be read: then nothing is known about what the file holds.
            elif has_document and suffix in ROW_FORMATS and item.row_names == "path":
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


async def _read_with_timeout(source: SourceFile, budget: ReadBudget) -> list[ReadItem]:
    """Parse in a thread that is abandoned at the timeout: Python cannot stop a thread."""
    done: Future[list[ReadItem]] = Future()
    done.set_running_or_notify_cancel()  # from here on only the thread sets its result

    def work() -> None:
        try:
            done.set_result(list(_read_sources([source], budget)))
        except BaseException as error:  # noqa: BLE001  (thread boundary: raised where it is awaited)
            done.set_exception(error)

    threading.Thread(target=work, name=f"read {source.name}", daemon=True).start()
    try:
        async with asyncio.timeout(budget.seconds + _GRACE):
            return await asyncio.wrap_future(done)
    except TimeoutError:
        return [Skipped(source.name, f"takes longer than {budget.seconds:g} s to read")]
