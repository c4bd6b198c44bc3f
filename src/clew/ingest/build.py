"""The add story: documents → chunks → extractions → vectors → one write.

All that costs time or money (extraction, embedding) happens before the write and is remembered by
content, so a killed run that is started again repeats nothing; the write itself is one transaction.
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

_INCOMPLETE = "!"  # ends the stamp of a document with failed chunks
_AT_ONCE = 128  # documents whose chunks are being extracted; the chat's own limit bounds the calls
_WRITE_BLOCK = 10_000  # documents per transaction: bounds memory on large corpora

Hear = Callable[[Addition], None]
Chunker = Callable[[Document], list[Chunk]]


def _idle() -> None:
    """Does nothing."""


def _all(*heard: Hear) -> Hear:
    def hear(addition: Addition) -> None:
        for one in heard:
            one(addition)

    return hear


@dataclass
class _Tally:
    """How much text was extracted from."""

    characters: int = 0

    def take(self, addition: Addition) -> None:
        self.characters += sum(len(chunk.text) for chunk in addition.chunks)


class Extract(Protocol):
    """Finds entities and facts; its `repr` is part of a document's stamp."""

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk, in order."""
        ...


@dataclass(frozen=True)
class Added:
    """What an add did."""

    counts: Counts
    added: int = 0
    unchanged: int = 0
    updated: int = 0
    skipped: tuple[Skipped, ...] = ()
    characters: int = 0
    """Length of the chunks that were extracted from."""
    usage: Usage = Usage()
    """What the models' answers cost."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """What was left out of the models' answers, by reason."""
    removed: int = 0
    """Rows that are no longer in the file they were read from."""


@dataclass(frozen=True)
class Build:
    """The parts that the add story needs."""

    store: Store
    chunk: Chunker
    extract: Extract
    embed: Embed | None = None
    again: Extract | None = None
    """When given: takes up chunks again from which nothing could be extracted."""
    progress: Progress = field(default=lambda stage, done, total: None, repr=False)

    async def add(self, found: AsyncIterator[Item]) -> Added:
        """Take in what is new or changed; what is known and unchanged costs nothing."""
        async with self.store.writing():
            await check_embedder(self.store, self.embed)
            intake = await self.intake()
            fresh: list[Document] = []
            characters = 0
            async for item in found:
                document = intake.take(item)
                self.progress("read", intake.met.total(), 0)
                if document is not None:
                    fresh.append(document)
                if len(fresh) >= _WRITE_BLOCK:
                    characters += await self._write(fresh)
                    fresh = []
            if fresh:
                characters += await self._write(fresh)
            # A run that is killed before this finds the same rows gone when it is repeated.
            if gone := await intake.gone(self.store):
                await self.store.write(removal(gone), arrays_of)
            counts = await self.store.counts()
        met = intake.met
        return Added(
            *(counts, met["added"], met["unchanged"], met["updated"]),
            skipped=tuple(intake.skipped),
            characters=characters,
            removed=len(gone),
        )

    async def intake(self) -> Intake:
        """What tells the documents of one add apart."""
        known = await self.store.sources()
        return Intake(known, lambda document: self.status(document, known))

    def status(self, document: Document, known: dict[str, Source]) -> str:
        """Whether a document is added, updated, or unchanged."""
        held = [known.get(name) for name in document.names]
        stamp = self._stamp(document)
        good = {stamp} if self.again else {stamp, stamp + _INCOMPLETE}
        if all(one and one.document == document.id and one.stamp in good for one in held):
            return "unchanged"
        return "updated" if any(held) else "added"

    def _stamp(self, document: Document) -> str:
        """How this document would be made now."""
        return digest(document.id, *self._way)

    @cached_property
    def _way(self) -> tuple[str, str]:
        return repr(self.chunk), repr(self.extract)

    async def _write(self, documents: Sequence[Document]) -> int:
        tally = _Tally()
        async with self._scribe(len(documents)) as scribe:
            additions = await self._prepared(documents, tally, scribe)
            self.progress("write", 0, 1)
            written = scribe is not None and await scribe.write()
        if not written:
            if scribe is not None:  # the additions went with it; what made them is remembered
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
        self, documents: Sequence[Document], tally: "_Tally", scribe: Scribe | None = None
    ) -> list[Addition]:
        """Extract, and embed what was extracted while the next is being waited for.

        What a scribe was told is not kept here too.
        """
        kept: list[Addition] = []
        hear = _all(tally.take, scribe.take if scribe else kept.append)
        if self.embed is None:
            await self.extracted(documents, hear)
            return kept
        embedding = Embedding(
            self.store, self.embed, self.progress, scribe.begin if scribe else _idle
        )
        try:
            async with asyncio.TaskGroup() as group:
                # One that cannot answer is found out at once; for one that can nobody waits.
                group.create_task(check_embedder(self.store, self.embed, claim=True))
                group.create_task(embedding.run())
                await self.extracted(documents, _all(embedding.take, hear))
                embedding.close()
        except* ClewError as many:
            raise many.exceptions[0] from None
        return kept

    async def _said(self, document: Document, chunks: Sequence[Chunk]) -> tuple[Extraction, ...]:
        """One extraction per chunk; those that fail have a second chance when one is asked for."""
        said = list(await self.extract(document, chunks))
        failed = [at for at, one in enumerate(said) if one.failed]
        if failed and self.again is not None:
            anew = await self.again(document, [chunks[at] for at in failed])
            for at, one in zip(failed, anew, strict=True):
                said[at] = one
        return tuple(said)

    async def extracted(self, documents: Sequence[Document], hear: Hear) -> None:
        """Chunk and extract, several documents at once; told in their order."""
        made: dict[int, Addition] = {}
        told = 0
        waiting = iter(enumerate(documents))

        async def work() -> None:
            nonlocal told
            for at, document in waiting:
                chunks = self.chunk(document)
                said = await self._said(document, chunks)
                mark = _INCOMPLETE if any(one.failed for one in said) else ""
                made[at] = Addition(document, tuple(chunks), said, self._stamp(document) + mark)
                while told in made:
                    hear(made.pop(told))
                    told += 1
                self.progress("extract", told + len(made), len(documents))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(_AT_ONCE, len(documents))):
                    group.create_task(work())
        except* ClewError as many:
            # One sentence says it: the first error stopped the others.
            raise many.exceptions[0] from None
