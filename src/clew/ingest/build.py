"""The ingestion pipeline: documents → chunks → extractions → vectors → one write.

Extraction and embedding, which cost time or money, happen before the write and are cached by
content, so a killed run that is restarted repeats nothing; the write is one transaction.

Classifies the items of an add as new, changed, unchanged, skipped or removed; O(1) per item.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

from clew.errors import ClewError
from clew.index.derive import derive_arrays
from clew.ingest.document_names import GRAPHS_KIND, possible_files
from clew.ingest.embedding import EmbeddingQueue, ProgressCallback, check_embedder, embed_texts
from clew.ingest.files import ReadItem
from clew.ingest.readers.source import FileEnd, Skipped
from clew.llm.embed import Embedder
from clew.store.protocol import (
    Addition,
    Change,
    Counts,
    DocumentSource,
    KeyValueStore,
    Store,
    make_removal,
)
from clew.store.sqlite.store import SqliteStore
from clew.store.sqlite.writer_process import WriterProcess, open_writer_process
from clew.text.unicode import digest
from clew.types import Chunk, Document, Extraction, Usage

_NAME_TAKEN = "has the name of another document of this add; give every row an id of its own"


@dataclass
class ItemClassifier:
    """Classifies read items: new, changed or unchanged; skipped; removed from their file."""

    known: Mapping[str, DocumentSource]
    status: Callable[[Document], str]
    status_counts: Counter[str] = field(default_factory=Counter)
    skipped: list[Skipped] = field(default_factory=list)
    _ids_by_name: dict[str, str] = field(default_factory=dict)  # document ids of this add, by name
    _finished_files: set[str] = field(default_factory=set)

    def classify(self, item: Document | Skipped | FileEnd) -> Document | None:
        """Record an item; return the document if it has to be extracted, else None."""
        if isinstance(item, Skipped):
            self.skipped.append(item)
        elif isinstance(item, FileEnd):
            self._finished_files.add(item.name)
        elif item.names:
            return self._classify_document(item)
        else:
            shown = item.title or item.text[:40].strip()
            self.skipped.append(Skipped(shown, "has no name; give it one"))
        return None

    def _classify_document(self, document: Document) -> Document | None:
        """Classify a document; the first one under a name keeps it, so that reruns agree."""
        is_new = False
        taken = []
        for name in document.names:
            holder = self._ids_by_name.get(name)
            if holder is None:
                self._ids_by_name[name] = document.id
                is_new = True
            elif holder != document.id:
                taken.append(name)
        if taken:
            self.skipped.append(Skipped(taken[0], _NAME_TAKEN))
            free = tuple([name for name in document.names if name not in taken])
            if not free:
                return None
            document = replace(document, names=free)
        status = self.status(document) if is_new else "unchanged"
        self.status_counts[status] += 1
        return None if status == "unchanged" else document

    async def find_removed_rows(self, memory: KeyValueStore) -> list[str]:
        """Return the names of known rows that are no longer in their fully read files."""
        found = {
            name: self._finished_files.intersection(possible_files(name))
            for name in self._missing_names()
        }
        # Parts of an imported graph are named like rows, but were not read by this add.
        graphs = await memory.get(GRAPHS_KIND, list(set().union(*found.values()))) if found else {}
        return [name for name, files in found.items() if not files & graphs.keys()]

    def _missing_names(self) -> Iterator[str]:
        for name in self.known if self._finished_files else ():
            if name not in self._ids_by_name and any(
                file in self._finished_files for file in possible_files(name)
            ):
                yield name


__all__ = [
    "AddResult",
    "IngestPipeline",
    "Chunker",
    "DocumentExtractor",
    "ProgressCallback",
    "check_embedder",
    "embed_texts",
]
_INCOMPLETE_MARK = "!"  # suffix of the stamp of a document with failed chunks
_MAX_CONCURRENT_DOCUMENTS = 128  # the chat's own limit bounds the calls
_DOCUMENTS_PER_WRITE = 10_000  # per transaction: bounds memory on large corpora
AdditionHandler = Callable[[Addition], None]
Chunker = Callable[[Document], list[Chunk]]


def _do_nothing() -> None:
    """Do nothing."""


def _call_each(*handlers: AdditionHandler) -> AdditionHandler:
    def hear(addition: Addition) -> None:
        for handler in handlers:
            handler(addition)

    return hear


@dataclass
class _CharacterCounter:
    """Counts the characters of the chunks that were extracted from."""

    characters: int = 0

    def count(self, addition: Addition) -> None:
        self.characters += sum(len(chunk.text) for chunk in addition.chunks)


class DocumentExtractor(Protocol):
    """Extracts entities and facts from chunks; its `repr` is part of a document's stamp."""

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """Return one extraction per chunk, in order."""
        ...


@dataclass(frozen=True)
class AddResult:
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
class IngestPipeline:
    """Adds documents to a store: classify, chunk, extract, embed, write."""

    store: Store
    chunk: Chunker
    extract: DocumentExtractor
    embed: Embedder | None = None
    retry_extract: DocumentExtractor | None = None
    """If given, extracts again from chunks whose extraction failed."""
    progress: ProgressCallback = field(default=lambda stage, done, total: None, repr=False)

    async def add(self, found: AsyncIterator[ReadItem]) -> AddResult:
        """Add new and changed documents; unchanged ones cost nothing."""
        async with self.store.write_lock():
            await check_embedder(self.store, self.embed)
            classifier = await self.make_classifier()
            pending: list[Document] = []
            characters = 0
            async for item in found:
                document = classifier.classify(item)
                self.progress("read", classifier.status_counts.total(), 0)
                if document is not None:
                    pending.append(document)
                if len(pending) >= _DOCUMENTS_PER_WRITE:
                    characters += await self._write(pending)
                    pending = []
            if pending:
                characters += await self._write(pending)
            # A run that is killed before this finds the same removed rows when it is repeated.
            if removed := await classifier.find_removed_rows(self.store):
                await self.store.write(make_removal(removed), derive_arrays)
            counts = await self.store.counts()
        by_status = classifier.status_counts
        return AddResult(
            *(counts, by_status["added"], by_status["unchanged"], by_status["updated"]),
            skipped=tuple(classifier.skipped),
            characters=characters,
            removed=len(removed),
        )

    async def make_classifier(self) -> ItemClassifier:
        """Return a classifier for the items of one add."""
        known = await self.store.sources()
        return ItemClassifier(known, lambda document: self.document_status(document, known))

    def document_status(self, document: Document, known: dict[str, DocumentSource]) -> str:
        """Return "added", "updated" or "unchanged" for a document."""
        stored = [known.get(name) for name in document.names]
        stamp = self._compute_stamp(document)
        current = {stamp} if self.retry_extract else {stamp, stamp + _INCOMPLETE_MARK}
        if all(s and s.document == document.id and s.stamp in current for s in stored):
            return "unchanged"
        return "updated" if any(stored) else "added"

    def _compute_stamp(self, document: Document) -> str:
        """Return the hash of the document and of the current chunker and extractor."""
        return digest(document.id, *self._pipeline_repr)

    @cached_property
    def _pipeline_repr(self) -> tuple[str, str]:
        return repr(self.chunk), repr(self.extract)

    async def _write(self, documents: Sequence[Document]) -> int:
        tally = _CharacterCounter()
        async with self._open_writer(len(documents)) as writer:
            additions = await self._extract_and_embed(documents, tally, writer)
            self.progress("write", 0, 1)
            written = writer is not None and await writer.write()
        if not written:
            if writer is not None:  # its additions are lost, but extractions are cached
                additions = await self._extract_and_embed(documents, _CharacterCounter())
            await self.store.write(Change(add=additions), derive_arrays)
        self.progress("write", 1, 1)
        return tally.characters

    def _open_writer(self, documents: int) -> AbstractAsyncContextManager[WriterProcess | None]:
        store = self.store
        if not isinstance(store, SqliteStore):
            return nullcontext()
        return open_writer_process(store, derive_arrays, documents)

    async def _extract_and_embed(
        self,
        documents: Sequence[Document],
        tally: "_CharacterCounter",
        writer: WriterProcess | None = None,
    ) -> list[Addition]:
        """Extract, and embed finished documents while others are still being extracted.

        Additions sent to a writer process are not kept in this one.
        """
        kept: list[Addition] = []
        handle = _call_each(tally.count, writer.send if writer else kept.append)
        if self.embed is None:
            await self.extract_documents(documents, handle)
            return kept
        queue = EmbeddingQueue(
            self.store, self.embed, self.progress, writer.begin_write if writer else _do_nothing
        )
        try:
            async with asyncio.TaskGroup() as group:
                # Runs beside extraction: a failing embedder is noticed at once, at no extra wait.
                group.create_task(check_embedder(self.store, self.embed, claim=True))
                group.create_task(queue.run())
                await self.extract_documents(documents, _call_each(queue.enqueue_addition, handle))
                queue.close()
        except* ClewError as many:
            raise many.exceptions[0] from None
        return kept

    async def _extract_with_retry(
        self, document: Document, chunks: Sequence[Chunk]
    ) -> tuple[Extraction, ...]:
        """Return one extraction per chunk; failed chunks are retried if `retry_extract` is set."""
        extractions = list(await self.extract(document, chunks))
        failed = [index for index, extraction in enumerate(extractions) if extraction.failed]
        if failed and self.retry_extract is not None:
            retried = await self.retry_extract(document, [chunks[index] for index in failed])
            for index, extraction in zip(failed, retried, strict=True):
                extractions[index] = extraction
        return tuple(extractions)

    async def extract_documents(self, documents: Sequence[Document], hear: AdditionHandler) -> None:
        """Chunk and extract documents concurrently; `hear` gets the additions in input order."""
        done: dict[int, Addition] = {}
        told = 0
        remaining = iter(enumerate(documents))

        async def work() -> None:
            nonlocal told
            for at, document in remaining:
                chunks = self.chunk(document)
                found = await self._extract_with_retry(document, chunks)
                mark = _INCOMPLETE_MARK if any(e.failed for e in found) else ""
                done[at] = Addition(
                    document, tuple(chunks), found, self._compute_stamp(document) + mark
                )
                while told in done:
                    hear(done.pop(told))
                    told += 1
                self.progress("extract", told + len(done), len(documents))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(_MAX_CONCURRENT_DOCUMENTS, len(documents))):
                    group.create_task(work())
        except* ClewError as many:
            # Report only the first error: it cancelled the others.
            raise many.exceptions[0] from None
