"""The ingestion pipeline: documents → chunks → extractions → vectors → one write.

Extraction and embedding, which cost time or money, happen before the write and are cached by
content, so a killed run that is restarted repeats nothing; the write is one transaction.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from clew.arrays import arrays_of
from clew.errors import ClewError
from clew.ingest.embedding import Embedding, Progress, check_embedder, embed_texts
from clew.ingest.intake import Intake
from clew.ingest.read import Item, Skipped
from clew.llm.embed import Embed
from clew.store.protocol import Addition, Change, Counts, Source, Store, removal
from clew.store.scribe import Scribe, scribe_for
from clew.store.sqlite import SqliteStore
from clew.text import digest
from clew.types import Chunk, Document, Extraction, Usage

__all__ = ["Added", "Build", "Chunker", "Extract", "Progress", "check_embedder", "embed_texts"]

_INCOMPLETE = "!"  # suffix of the stamp of a document with failed chunks
_AT_ONCE = 128  # the chat's own limit bounds the calls
_WRITE_BLOCK = 10_000  # per transaction: bounds memory on large corpora

Hear = Callable[[Addition], None]
Chunker = Callable[[Document], list[Chunk]]


def _idle() -> None:
    """Do nothing."""


def _all(*handlers: Hear) -> Hear:
    def hear(addition: Addition) -> None:
        for handler in handlers:
            handler(addition)

    return hear


@dataclass
class _Tally:
    """Counts the characters of the chunks that were extracted from."""

    characters: int = 0

    def take(self, addition: Addition) -> None:
        self.characters += sum(len(chunk.text) for chunk in addition.chunks)


class Extract(Protocol):
    """Extracts entities and facts from chunks; its `repr` is part of a document's stamp."""

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """Return one extraction per chunk, in order."""
        ...


@dataclass(frozen=True)
class Added:
    """Result of an add: counts by status, skipped items, usage."""

    counts: Counts
    added: int = 0
    unchanged: int = 0
    updated: int = 0
    skipped: tuple[Skipped, ...] = ()
    characters: int = 0
    """Length of the chunks that were extracted from."""
    usage: Usage = Usage()
    """Model usage of this add."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Number of items discarded from model replies, by reason."""
    removed: int = 0
    """Rows that are no longer in the file they were read from."""


@dataclass(frozen=True)
class Build:
    """Adds documents to a store: classify, chunk, extract, embed, write."""

    store: Store
    chunk: Chunker
    extract: Extract
    embed: Embed | None = None
    again: Extract | None = None
    """If given, extracts again from chunks whose extraction failed."""
    progress: Progress = field(default=lambda stage, done, total: None, repr=False)

    async def add(self, found: AsyncIterator[Item]) -> Added:
        """Add new and changed documents; unchanged ones cost nothing."""
        async with self.store.writing():
            await check_embedder(self.store, self.embed)
            classifier = await self.intake()
            pending: list[Document] = []
            characters = 0
            async for item in found:
                document = classifier.take(item)
                self.progress("read", classifier.met.total(), 0)
                if document is not None:
                    pending.append(document)
                if len(pending) >= _WRITE_BLOCK:
                    characters += await self._write(pending)
                    pending = []
            if pending:
                characters += await self._write(pending)
            # A run that is killed before this finds the same removed rows when it is repeated.
            if removed := await classifier.gone(self.store):
                await self.store.write(removal(removed), arrays_of)
            counts = await self.store.counts()
        by_status = classifier.met
        return Added(
            *(counts, by_status["added"], by_status["unchanged"], by_status["updated"]),
            skipped=tuple(classifier.skipped),
            characters=characters,
            removed=len(removed),
        )

    async def intake(self) -> Intake:
        """Return a classifier for the items of one add."""
        known = await self.store.sources()
        return Intake(known, lambda document: self.status(document, known))

    def status(self, document: Document, known: dict[str, Source]) -> str:
        """Return "added", "updated" or "unchanged" for a document."""
        stored = [known.get(name) for name in document.names]
        stamp = self._stamp(document)
        current = {stamp} if self.again else {stamp, stamp + _INCOMPLETE}
        if all(s and s.document == document.id and s.stamp in current for s in stored):
            return "unchanged"
        return "updated" if any(stored) else "added"

    def _stamp(self, document: Document) -> str:
        """Return the hash of the document and of the current chunker and extractor."""
        return digest(document.id, *self._way)

    @cached_property
    def _way(self) -> tuple[str, str]:
        return repr(self.chunk), repr(self.extract)

    async def _write(self, documents: Sequence[Document]) -> int:
        tally = _Tally()
        async with self._scribe(len(documents)) as writer:
            additions = await self._prepared(documents, tally, writer)
            self.progress("write", 0, 1)
            written = writer is not None and await writer.write()
        if not written:
            if writer is not None:  # its additions are lost, but extractions are cached
                additions = await self._prepared(documents, _Tally())
            await self.store.write(Change(add=additions), arrays_of)
        self.progress("write", 1, 1)
        return tally.characters

    def _scribe(self, documents: int) -> AbstractAsyncContextManager[Scribe | None]:
        store = self.store
        if not isinstance(store, SqliteStore):
            return nullcontext()
        return scribe_for(store, arrays_of, documents)

    async def _prepared(
        self, documents: Sequence[Document], tally: "_Tally", writer: Scribe | None = None
    ) -> list[Addition]:
        """Extract, and embed finished documents while others are still being extracted.

        Additions sent to a writer process are not kept in this one.
        """
        kept: list[Addition] = []
        handle = _all(tally.take, writer.take if writer else kept.append)
        if self.embed is None:
            await self.extracted(documents, handle)
            return kept
        queue = Embedding(self.store, self.embed, self.progress, writer.begin if writer else _idle)
        try:
            async with asyncio.TaskGroup() as group:
                # Runs beside extraction: a failing embedder is noticed at once, at no extra wait.
                group.create_task(check_embedder(self.store, self.embed, claim=True))
                group.create_task(queue.run())
                await self.extracted(documents, _all(queue.take, handle))
                queue.close()
        except* ClewError as many:
            raise many.exceptions[0] from None
        return kept

    async def _said(self, document: Document, chunks: Sequence[Chunk]) -> tuple[Extraction, ...]:
        """Return one extraction per chunk; failed chunks are retried if `retry_extract` is set."""
        extractions = list(await self.extract(document, chunks))
        failed = [index for index, extraction in enumerate(extractions) if extraction.failed]
        if failed and self.again is not None:
            retried = await self.again(document, [chunks[index] for index in failed])
            for index, extraction in zip(failed, retried, strict=True):
                extractions[index] = extraction
        return tuple(extractions)

    async def extracted(self, documents: Sequence[Document], hear: Hear) -> None:
        """Chunk and extract documents concurrently; `hear` gets the additions in input order."""
        done: dict[int, Addition] = {}
        told = 0
        remaining = iter(enumerate(documents))

        async def work() -> None:
            nonlocal told
            for at, document in remaining:
                chunks = self.chunk(document)
                found = await self._said(document, chunks)
                mark = _INCOMPLETE if any(e.failed for e in found) else ""
                done[at] = Addition(document, tuple(chunks), found, self._stamp(document) + mark)
                while told in done:
                    hear(done.pop(told))
                    told += 1
                self.progress("extract", told + len(done), len(documents))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(_AT_ONCE, len(documents))):
                    group.create_task(work())
        except* ClewError as many:
            # Report only the first error: it cancelled the others.
            raise many.exceptions[0] from None
