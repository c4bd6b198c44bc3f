"""The ingestion pipeline: documents → chunks → extractions → vectors → one write.

Extraction and embedding, which cost time or money, happen before the write and are saved as they
are made, so a killed run that is restarted goes on from there; the write is one transaction.
"""

import asyncio
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf
from typing import NamedTuple

from clew.errors import ClewError
from clew.extract.model_calls import hear_chunks
from clew.extract.model_extractors import DocumentExtractor
from clew.graph.parts import HERE, RunParts
from clew.index.derive import derive_arrays
from clew.ingest.arrivals import list_origins, record_arrivals, record_origins
from clew.ingest.chunk import STRUCTURE_VERSION, follows_structure, split_rows
from clew.ingest.document_names import GRAPHS_KIND, LOCATIONS_KIND, possible_files
from clew.ingest.embedding import (
    EMBEDDED_KINDS,
    EmbeddingQueue,
    ProgressCallback,
    check_embedder,
    uses_quotes,
)
from clew.ingest.files import ReadItem
from clew.ingest.readers.source import FileEnd, Skipped
from clew.llm.embed import Embedder
from clew.store.packed import PackedExtractions
from clew.store.protocol import (
    Addition,
    Arrays,
    BackgroundWriter,
    Change,
    Counts,
    DocumentSource,
    KeyValueStore,
    Store,
    Tables,
    make_removal,
    resolve_duplicate_names,
)
from clew.text.tables import TABLES
from clew.text.unicode import digest
from clew.types import Chunk, Document, Extraction, Kind, Usage

_INCOMPLETE_MARK = "!"  # suffix of the stamp of a document with failed chunks …
_BY_RULES_MARK = "!+"  # … and of one whose failed chunks were extracted in another way
_MAX_CONCURRENT_DOCUMENTS = 128  # the chat's own limit bounds the calls
_DOCUMENTS_PER_WRITE = 10_000  # per transaction: bounds memory on large corpora
BYTES_PER_CHARACTER = 100  # that a text takes at most until it is written, with what it says
_FEW_ITEMS = 64  # of so few, only their own names are looked up
TABLES_KEY = "tables"
SAVED_TABLES_KIND = "tables"  # key-value kind: the rows of all tables, as questions read them
"""Manifest key that is set once a knowledge base has had tables, so that others need not look."""
_NAME_TAKEN = "has the same name as another document of this add; give each row its own id"

Chunker = Callable[[Document], list[Chunk]]


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
    note: str = ""
    """What the user should know about how the documents were split."""
    chunks: int = 0
    """Chunks that this add extracted from."""
    failed: int = 0
    """Those of them whose extraction failed."""
    copies: int = 0
    """Files and rows whose text is that of another one: they share one document."""


async def _read_ahead(
    found: AsyncIterator[ReadItem],
) -> tuple[list[ReadItem] | None, AsyncIterator[ReadItem]]:
    """Return the items if they are few, else None; and all of them to be read."""
    first: list[ReadItem] = []
    async for item in found:
        first.append(item)
        if len(first) > _FEW_ITEMS:
            break

    async def replay() -> AsyncIterator[ReadItem]:
        for item in first:
            yield item
        async for item in found:
            yield item

    return (first if len(first) <= _FEW_ITEMS else None), replay()


async def mark_tables_changed(store: Store, *what: str) -> None:
    """Mark, before rows are changed, that what was saved of the tables is out of date; drop it."""
    held = (await store.get("manifest", [TABLES_KEY])).get(TABLES_KEY, "")
    await store.set("manifest", {TABLES_KEY: digest(held, *what)})
    await store.set(SAVED_TABLES_KIND, {"mark": "", "rows": ""})


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
    kinds: Collection[Kind] = EMBEDDED_KINDS
    """What is embedded."""
    parts: RunParts = HERE
    """Computes the parts of a derivation."""
    memory: int | None = None
    """Bytes that the documents of one write may take, with what is found in them."""
    before_write: Callable[[Sequence[Document]], Awaitable[None]] | None = field(
        default=None, repr=False
    )
    """Called with the documents of each write, before they are extracted from."""
    after_write: Callable[[], None] = field(default=lambda: None, repr=False)
    """Called when what was extracted is written."""

    async def add(self, found: AsyncIterator[ReadItem]) -> AddResult:
        """Add new and changed documents; unchanged ones cost nothing."""
        async with self.store.write_lock():
            await check_embedder(self.store, self.embed)
            first, found = await _read_ahead(found)
            classifier = await self.make_classifier(first)
            pending: list[Document] = []
            unchanged: dict[str, str] = {}
            room = self._characters_per_write()
            done = _Tally()
            marked = False
            async for item in found:
                document = classifier.classify(item)
                if document is not None and not marked and TABLES in document.metadata:
                    await mark_tables_changed(self.store, document.id)
                    marked = True
                self.progress("read", classifier.status_counts.total(), 0)
                if document is not None:
                    pending.append(document)
                    room -= len(document.text)
                elif isinstance(item, Document):  # perhaps other markup around the same text
                    unchanged |= list_origins(item)
                    if len(unchanged) >= _DOCUMENTS_PER_WRITE:
                        await record_origins(self.store, unchanged)
                        unchanged = {}
                if len(pending) >= _DOCUMENTS_PER_WRITE or (pending and room <= 0):
                    done += await self._write(pending)
                    pending, room = [], self._characters_per_write()
            if pending:
                done += await self._write(pending)
            if unchanged:
                await record_origins(self.store, unchanged)
            # A run that is killed before this finds the same removed rows when it is repeated.
            if removed := await classifier.find_removed_rows(self.store):
                await mark_tables_changed(self.store, *removed)
                await self.store.write(make_removal(removed), self._derive)
            counts = await self.store.counts()
        by_status = classifier.status_counts
        return AddResult(
            *(counts, by_status["added"], by_status["unchanged"], by_status["updated"]),
            skipped=tuple(classifier.skipped),
            characters=done.characters,
            chunks=done.chunks,
            failed=done.failed,
            removed=len(removed),
            copies=classifier.copies,
        )

    def _characters_per_write(self) -> float:
        return inf if self.memory is None else self.memory / BYTES_PER_CHARACTER

    async def make_classifier(self, items: Sequence[ReadItem] | None = None) -> "ItemClassifier":
        """Return a classifier for the items of one add; if they are few, they may be given.

        What a file no longer has is found among the names of all documents.
        """
        names: set[str] | None = None
        held: set[str] = set()
        if items is not None and not any(isinstance(item, FileEnd) for item in items):
            documents = [one for one in items if isinstance(one, Document)]
            names = {name for one in documents for name in one.names}
            async with self.store.snapshot() as now:
                held = await now.stored([one.id for one in documents])
        known = await self.store.sources(names)
        held |= {source.document for source in known.values()}
        return ItemClassifier(known, self._current_stamps, held=held)

    def _current_stamps(self, document: Document) -> set[str]:
        """Return the stamps under which a stored document counts as unchanged."""
        stamp = self._compute_stamp(document)
        if self.retry_extract:
            return {stamp}
        return {stamp, stamp + _INCOMPLETE_MARK, stamp + _BY_RULES_MARK}

    def _compute_stamp(self, document: Document) -> str:
        """Return the hash of the document and of the current chunker and extractor."""
        size = getattr(self.chunk, "size", 1)
        structure = [STRUCTURE_VERSION] if follows_structure(document, size) else []
        own = getattr(self.extract, "stamp_parts", None)  # of extractors whose rules depend on it
        return digest(
            document.id, *self._pipeline_repr, *structure, *(own(document) if own else ())
        )

    @cached_property
    def _pipeline_repr(self) -> tuple[str, str]:
        return repr(self.chunk), repr(self.extract)

    def _derive(self, tables: Tables) -> Arrays:
        return derive_arrays(tables, self.parts)

    async def _write(self, documents: Sequence[Document]) -> "_Tally":
        """Extract, embed and write; return how much was extracted from."""
        if self.before_write is not None:
            await self.before_write(documents)
        store = self.store
        await record_arrivals(store, [name for one in documents for name in one.names])
        origins = (list_origins(one) for one in documents)
        await record_origins(store, {name: one for held in origins for name, one in held.items()})
        # A cluster derives for this process: one that writes beside it would do so alone.
        many = len(documents) if self.parts.count == 1 else 0
        async with store.background_writer(derive_arrays, many) as writer:
            additions, done = await self._extract_and_embed(documents, writer)
            self.progress("write", 0, 1)
            written = writer is not None and await writer.write()
        if not written:
            if writer is not None:  # its additions are lost, but extractions are cached
                additions, _ = await self._extract_and_embed(documents)
            await store.write(_make_change(additions), self._derive)
        self.after_write()
        self.progress("write", 1, 1)
        return done

    async def _extract_and_embed(
        self, documents: Sequence[Document], writer: BackgroundWriter | None = None
    ) -> tuple[list[Addition], "_Tally"]:
        """Extract, and embed finished documents while others are still being extracted.

        Additions go to the writer process, or are returned; how much it was as well.
        """
        kept: list[Addition] = []
        done = _Tally()
        queue: EmbeddingQueue | None = None

        def on_addition(addition: Addition) -> None:
            nonlocal done
            done += _Tally.of(addition)
            if queue is not None:
                queue.enqueue_addition(addition)
            if writer is not None:
                writer.send(addition)
            else:
                kept.append(addition)

        if self.embed is None:
            await self.extract_documents(documents, on_addition)
            return kept, done
        quoted = await uses_quotes(self.store, self.embed)
        queue = EmbeddingQueue(self.store, self.embed, self.progress, self.kinds, quoted)
        if writer is not None:
            queue.on_last_block = writer.begin_write
        try:
            async with asyncio.TaskGroup() as group:
                # Runs beside extraction: a failing embedder is noticed at once, at no extra wait.
                group.create_task(check_embedder(self.store, self.embed, claim=True))
                group.create_task(queue.run())
                await self.extract_documents(documents, on_addition)
                queue.close()
        except* ClewError as many:
            raise many.exceptions[0] from None
        return kept, done

    async def _extract_with_retry(
        self, document: Document, chunks: Sequence[Chunk]
    ) -> Sequence[Extraction]:
        """Return one extraction per chunk; failed chunks are retried if `retry_extract` is set."""
        found = await self.extract(document, chunks)
        failed = [index for index, extraction in enumerate(found) if extraction.failed]
        if failed and self.retry_extract is not None:
            retried = await self.retry_extract(document, [chunks[index] for index in failed])
            again = dict(zip(failed, retried, strict=True))
            found = [again.get(index, extraction) for index, extraction in enumerate(found)]
        return found if isinstance(found, PackedExtractions) else tuple(found)

    async def extract_documents(
        self, documents: Sequence[Document], on_addition: Callable[[Addition], None]
    ) -> None:
        """Chunk and extract concurrently; `on_addition` gets the additions in input order."""
        self.progress("extract", 0, len(documents))
        passages = _PassageProgress(self.progress, len(documents))
        done: dict[int, Addition] = {}
        passed_on = 0
        remaining = iter(enumerate(documents))

        async def work() -> None:
            nonlocal passed_on
            for at, document in remaining:
                chunks = split_rows(document, self.chunk)
                passages.begin(at, len(chunks))
                with hear_chunks(partial(passages.add, at)):
                    found = await self._extract_with_retry(document, chunks)
                passages.end(at)
                stamp = self._compute_stamp(document) + _choose_mark(found)
                done[at] = Addition(document, tuple(chunks), found, stamp)
                while passed_on in done:
                    on_addition(done.pop(passed_on))
                    passed_on += 1
                self.progress("extract", passed_on + len(done), len(documents))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(_MAX_CONCURRENT_DOCUMENTS, len(documents))):
                    group.create_task(work())
        except* ClewError as many:
            # Report only the first error: it cancelled the others.
            raise many.exceptions[0] from None


@dataclass
class _PassageProgress:
    """Reports the passages that a model is done with, once it is known how many there are.

    So a single long document shows how far it is, too.
    """

    progress: ProgressCallback
    documents: int
    _all: dict[int, int] = field(default_factory=dict)
    _done: dict[int, int] = field(default_factory=dict)

    def begin(self, at: int, chunks: int) -> None:
        """Note how many passages a document has."""
        self._all[at], self._done[at] = chunks, 0

    def add(self, at: int) -> None:
        """Note that a passage is done; one may be asked about again."""
        self._done[at] = min(self._done[at] + 1, self._all[at])
        if len(self._all) == self.documents:
            self.progress("passages", sum(self._done.values()), sum(self._all.values()))

    def end(self, at: int) -> None:
        """Note that a document is done, also where no model was asked."""
        self._done[at] = self._all[at]


def _choose_mark(found: Sequence[Extraction]) -> str:
    """Return the suffix of a document's stamp: whether chunks failed, and were extracted anyway."""
    failed = [one for one in found if one.failed]
    if not failed:
        return ""
    return _BY_RULES_MARK if any(one.entities for one in failed) else _INCOMPLETE_MARK


def _make_change(additions: list[Addition]) -> Change:
    """A write of these additions; with a long document among them, each is let go when written."""
    if not any(isinstance(one.extractions, PackedExtractions) for one in additions):
        return Change(add=additions)
    additions[:] = reversed(resolve_duplicate_names(additions))
    return Change(bulk=_drain(additions), sparing=True)


def _drain(additions: list[Addition]) -> Iterator[Addition]:
    while additions:
        yield additions.pop()


class _Tally(NamedTuple):
    """How much was extracted from."""

    characters: int = 0
    chunks: int = 0
    failed: int = 0

    @classmethod
    def of(cls, addition: Addition) -> "_Tally":
        failed = sum(bool(one.failed) for one in addition.extractions)
        return cls(sum(len(c.text) for c in addition.chunks), len(addition.chunks), failed)

    def __add__(self, other: "_Tally") -> "_Tally":  # type: ignore[override]
        return _Tally(*(one + more for one, more in zip(self, other, strict=True)))


@dataclass
class ItemClassifier:
    """Classifies read items: new, changed or unchanged; skipped; removed from their file.

    Each item takes constant time.
    """

    known: Mapping[str, DocumentSource]
    current_stamps: Callable[[Document], set[str]]
    status_counts: Counter[str] = field(default_factory=Counter)
    skipped: list[Skipped] = field(default_factory=list)
    held: set[str] = field(default_factory=set)
    """Ids of documents that are stored, or were classified."""
    copies: int = 0
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
            self.skipped.append(Skipped(shown, "has no name; set one"))
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
        status = self._document_status(document) if is_new else "unchanged"
        self.status_counts[status] += 1
        if status != "unchanged":
            own = any(self._stored_id(name) == document.id for name in document.names)
            self.copies += document.id in self.held and not own
            self.held.add(document.id)
        return None if status == "unchanged" else document

    def _stored_id(self, name: str) -> str:
        return self.known[name].document if name in self.known else ""

    def _document_status(self, document: Document) -> str:
        stored = [self.known.get(name) for name in document.names]
        current = self.current_stamps(document)
        if all(s and s.document == document.id and s.stamp in current for s in stored):
            return "unchanged"
        return "updated" if any(stored) else "added"

    async def find_removed_rows(self, key_values: KeyValueStore) -> list[str]:
        """Return the names of known rows that are no longer in their fully read files."""
        found = {
            name: self._finished_files.intersection(possible_files(name))
            for name in self._missing_names()
        }
        # Parts of an imported graph are named like rows, but were not read by this add.
        graphs = (
            await key_values.get(GRAPHS_KIND, list(set().union(*found.values()))) if found else {}
        )
        # A file's own name may look like that of a row: `rows.jsonl#note.md`.
        files_themselves = await key_values.get(LOCATIONS_KIND, list(found))
        return [
            name
            for name, files in found.items()
            if not files & graphs.keys() and name not in files_themselves
        ]

    def _missing_names(self) -> Iterator[str]:
        for name in self.known if self._finished_files else ():
            if name not in self._ids_by_name and any(
                file in self._finished_files for file in possible_files(name)
            ):
                yield name
