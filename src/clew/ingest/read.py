"""Reads files into documents; whatever cannot be read is reported as skipped."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from itertools import groupby
from pathlib import Path

from clew.errors import InputError
from clew.ingest.find import find, name_of
from clew.ingest.readers import OTHERWISE, PARSED, READERS, ROWS
from clew.ingest.readers.source import (
    BUDGET,
    Budget,
    Ended,
    RowNames,
    Skipped,
    Source,
    document,
)
from clew.types import Document

__all__ = [
    "BUDGET",
    "Budget",
    "Ended",
    "Item",
    "RowNames",
    "Skipped",
    "Source",
    "document",
    "find",
    "name_of",
    "read",
    "read_found",
]

Item = Document | Skipped | Ended

_BATCH = 256  # items per call to the reading thread …
_BATCH_CHARACTERS = 4_000_000  # … or as many as reach this many characters
_GRACE = 5.0  # seconds after a parser's budget until its thread is abandoned


async def read(
    paths: Sequence[str | Path],
    *,
    row_names: RowNames = "path",
    budget: Budget = BUDGET,
) -> AsyncIterator[Document | Skipped]:
    """Read files, and folders recursively, in sorted order; skipped items are yielded too."""
    found = await asyncio.to_thread(find, paths, row_names)
    async with aclosing(read_found(found, budget)) as items:
        async for item in items:
            if not isinstance(item, Ended):
                yield item


async def read_found(
    found: Iterable[Source | Skipped], budget: Budget = BUDGET
) -> AsyncGenerator[Item]:
    """Read the files found; a `FileEnd` follows each file of rows that was read to its end."""
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


def _needs_clock(item: Source | Skipped) -> bool:
    return isinstance(item, Source) and item.path.suffix.lower() in PARSED


def _items(found: Iterable[Source | Skipped], budget: Budget) -> Iterator[Item]:
    for item in found:
        if isinstance(item, Skipped):
            yield item
            continue
        suffix = item.path.suffix.lower()
        reader = READERS.get(suffix, OTHERWISE)
        empty, has_document = True, False
        try:
            for result in reader(item, budget):
                empty = False
                has_document = has_document or isinstance(result, Document)
                yield result
            if empty:
                yield Skipped(item.name, "holds no rows")
            # Not where no row could be read: then nothing is known about what the file holds.
            elif has_document and suffix in ROWS and item.row_names == "path":
                yield Ended(item.name)
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
    """Parse in a thread that is abandoned at the timeout: Python cannot stop a thread."""
    done: Future[list[Item]] = Future()
    done.set_running_or_notify_cancel()  # from here on only the thread sets its result

    def work() -> None:
        try:
            done.set_result(list(_items([source], budget)))
        except BaseException as error:  # noqa: BLE001  (thread boundary: raised where it is awaited)
            done.set_exception(error)

    threading.Thread(target=work, name=f"read {source.name}", daemon=True).start()
    try:
        async with asyncio.timeout(budget.seconds + _GRACE):
            return await asyncio.wrap_future(done)
    except TimeoutError:
        return [Skipped(source.name, f"takes longer than {budget.seconds:g} s to read")]
