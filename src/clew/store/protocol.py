"""The Store protocol and its data types; `clew.testing.contracts.StoreContract` tests it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, LiteralString, Protocol

import numpy as np
from numpy.typing import NDArray

from clew.out_of_core import UNBOUNDED, WorkingMemory
from clew.types import (
    Chunk,
    Document,
    Entity,
    EntityLabel,
    Extraction,
    Fact,
    FactText,
    Kind,
    Support,
)

Array = NDArray[Any]
Arrays = Mapping[str, Array]
# A name with several senses has one key per sense: its own key + sense number * this.
SENSE_STRIDE = 1 << 40
COLUMN_PREFIX = "raw_"  # prefix of column files that a generation's folder keeps for the next one
DETAIL_PREFIX = "detail_"  # of the arrays with vector rows of descriptions, keywords, attributes
DETAIL_ROWS: dict[Kind, str] = {
    "description": f"{DETAIL_PREFIX}entity_rows",
    "attribute": f"{DETAIL_PREFIX}attribute_values",
}
"""The arrays that refer to the vectors of descriptions and of attributes."""
# Added to the length of a description if the element also has attributes or keywords.
HAS_DETAILS = 1 << 32
STATED_WEIGHT = 1000  # weight of a name form that was stated as an alias, not derived
PARTLY_EMBEDDED = "partly_embedded"
"""Manifest key: kinds of which an import deliberately left elements without a vector."""
DEFERRED = "deferred"
"""Manifest key: kinds whose vectors are made when a recipe first reads them."""
MADE_LATER = "made_later"
"""Manifest key: those of them that have been made since. They decide nothing about which names are
the same, so that a question of one recipe does not change what others find."""
QUOTED = "quoted"
"""Manifest key: set to `fact` if the vectors of sentences are those of quotes."""
LATE_KINDS = (DEFERRED, MADE_LATER, QUOTED)
_BULK_REMOVAL_MIN = 100  # removals of more documents use the bulk path


@dataclass(frozen=True, slots=True)
class Addition:
    """One document with its chunks and what was extracted from each of them."""

    document: Document
    chunks: tuple[Chunk, ...]
    extractions: Sequence[Extraction]
    stamp: str = ""
    """Hash of chunker and extractor settings: a document with another stamp is rebuilt."""


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """A document's content id and stamp, by one of its names."""

    document: str
    stamp: str


def ignore_phase(phase: str, done: int, total: int) -> None:
    """Ignore how far a write is."""


@dataclass(frozen=True, slots=True)
class Change:
    """One atomic write: first `remove`, then `add`."""

    add: Sequence[Addition] = ()
    remove: Sequence[str] = ()
    """Names of documents; a document is removed with its last name."""
    embedder: str = ""
    """If given: switch to this embedder's vectors and look up every vector row again."""
    kinds: Collection[str] = ()
    """With the embedder that is in use: look up only the vector rows of these kinds."""
    bulk: Iterable[Addition] | None = None
    """More additions, as a stream that need not fit into memory; each name at most once."""
    sparing: bool = False
    """Write `bulk` with little memory, rather than fast."""
    rebuild: bool = False
    """Derive all arrays from the tables, reusing none of the previous generation."""
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Values to store, by kind and key, such as the decisions that the arrays depend on."""
    progress: Callable[[str, int, int], None] = ignore_phase
    """Told how far the joining (`join`) and merging (`merge`) of the rows of `bulk` are."""


# A reply may quote any document that was in its prompt; the windows of models are kept with them.
# What was made from one text (`mark_text`) is forgotten with that text only.
FORGET_REPLIES: LiteralString = (
    "DELETE FROM memory WHERE kind = 'reply' AND substr(key, 1, 8) NOT IN ('window o', 'of text ')"
)


def make_removal(names: Sequence[str]) -> Change:
    """A change that removes documents; many of them in bounded memory."""
    return Change(remove=names, bulk=() if len(names) > _BULK_REMOVAL_MIN else None)


def resolve_duplicate_names(additions: Sequence[Addition]) -> list[Addition]:
    """Assign a repeated name to its last document, and drop documents without a name."""
    owner = {name: a.document.id for a in additions for name in a.document.names}
    found = []
    for addition in additions:
        document = addition.document
        names = tuple([name for name in document.names if owner[name] == document.id])
        if names != document.names:
            addition = replace(addition, document=replace(document, names=names))
        if names:
            found.append(addition)
    return found


class FindsQuotes(Protocol):
    """Finds the vectors of facts that are embedded within their passages."""

    def find(self, chunk_rows: Array, fact_codes: Array) -> Array:
        """Row of each fact as the chunk with this vector row quotes it; -1 if it does not."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The graph as integer columns, input of the derived arrays. Keys are ascending.

    Numbers have 64 bits; those of mentions, participants and supports 32 where all of them fit.
    In the store's tables an entity is a name; entity resolution merges and splits names.
    """

    chunks: Array  # key, vector row, code of the id, start within the document
    entities: Array  # key, vector row, name hash, 1 for values, codes of type and id, description
    # length; and 1 for a node of an imported graph, which is never merged, with twice the number
    # of how its name is written (see clew.text.small_names)
    facts: Array  # key, vector row, relation code or 0, weight (thousandths), description length,
    # code of the id
    # Description lengths hold HAS_DETAILS, too, if there are attributes or keywords.
    mentions: Array  # entity key, chunk key, spans, about (in thousandths), class of the type
    participants: Array  # fact key, entity key, role code (0 subject, 1 member, 2 head, 3 tail)
    supports: Array  # fact key, chunk key, start within the chunk
    forms: Array  # entity key, hash of a form, weight (in thousandths), kind (see clew.text.names)
    merge_decisions: Array = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    """Merge decisions: two entity keys, same (0/1), decided by a model (0/1)."""
    sense_pins: Array = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    """Mentions that a user assigned to a sense: entity key, chunk key, sense number."""
    entity_vectors: Array | None = None
    """Vectors of entity names, by row; None without an embedder."""
    quotes: FindsQuotes | None = None
    """Finds the vector rows of facts that passages quote; None if they have own vectors."""
    texts: Mapping[int, str] = field(default_factory=dict)
    """Searchable text of chunks that are new in this generation."""
    previous: Arrays = field(default_factory=dict)
    """The arrays of the previous generation."""
    touched_names: Array | None = None
    """Keys (ascending) of entities of which rows may differ from those that `previous` was derived
    from, or that are gone; None if it is not known."""
    memory: WorkingMemory = UNBOUNDED
    """How much memory a derivation may use; what is derived does not depend on it."""


DeriveArrays = Callable[[Tables], Arrays]
"""Derives the arrays of the next generation from the tables."""


BY_RULES = "; extracted without a model meanwhile"
"""Ends the reason of a failure where rules extracted instead."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A chunk whose extraction failed, its document, and the reason."""

    document: str
    chunk: str
    reason: str

    @property
    def by_rules(self) -> bool:
        """Whether rules extracted what the model failed on."""
        return self.reason.endswith(BY_RULES)


@dataclass(frozen=True, slots=True)
class Counts:
    """Number of documents and elements, and size on disk."""

    documents: int = 0
    chunks: int = 0
    entities: int = 0
    facts: int = 0
    communities: int = 0
    failed: int = 0
    """Chunks whose extraction failed."""
    generation: int = 0
    bytes: int = 0


class VectorTable(Protocol):
    """Append-only vectors by content hash, so that nothing is embedded twice."""

    def find_rows(self, hashes: Sequence[str]) -> NDArray[np.int64]:
        """Row of each hash; -1 if absent."""

    def append(self, hashes: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Append new vectors durably; another dimension is an error."""

    def width(self) -> int:
        """Number of dimensions; 0 if there is no row."""

    def matrix(self) -> NDArray[np.floating]:
        """All rows."""

    def read_hashes(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The content hashes of rows, two words each."""

    def iterate(self) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        """All rows in order, as blocks of hashes and vectors."""

    def find_lost_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the rows in use (negative ones are not) that hold no vector."""

    def repair(self) -> bool:
        """Drop damaged vectors, to be computed again; return whether there were any."""


class Snapshot(Protocol):
    """One immutable generation. Results leave out unknown keys."""

    @property
    def generation(self) -> int:
        """Number of this generation."""

    @property
    def arrays(self) -> Arrays:
        """The derived arrays of this generation."""

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Documents by content id."""

    async def stored(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that documents have."""

    async def names(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The names of documents, without their text."""

    async def chunks(self, keys: Sequence[int]) -> dict[int, Chunk]:
        """Chunks by key."""

    async def chunk_documents(self, keys: Sequence[int]) -> dict[int, str]:
        """Ids of the documents of chunks by key; damaged ones are not told."""

    async def entities(self, keys: Sequence[int]) -> dict[int, Entity]:
        """Entities by key."""

    async def entity_labels(self, keys: Sequence[int]) -> dict[int, EntityLabel]:
        """Id and name of entities by key, without what was said about them."""

    async def entity_names(self, keys: Sequence[int]) -> dict[int, str]:
        """Names of entities by key, to look through very many; damaged ones are not told."""

    async def facts(self, keys: Sequence[int]) -> dict[int, Fact]:
        """Facts by key."""

    async def fact_texts(self, keys: Sequence[int]) -> dict[int, FactText]:
        """What facts say by key; who takes part in them the arrays tell."""

    async def fact_spans(self, keys: Sequence[int]) -> dict[int, list[Support]]:
        """Spans that state each fact; unlike `supports`, damaged ones are not told.

        Whoever compares what stands there with the fact's text need not know.
        """

    async def relations(self, keys: Sequence[int]) -> dict[int, str]:
        """Relations of facts by key, without the rest of the facts."""

    async def supports(self, kind: Kind, keys: Sequence[int]) -> dict[int, list[Support]]:
        """Spans that mention each entity or state each fact."""


class ElementParts:
    """Parts of whole elements; a store that reads less for them answers by itself."""

    async def chunk_documents(self: Snapshot, keys: Sequence[int]) -> dict[int, str]:
        """Ids of the documents of chunks by key."""
        return {key: chunk.document for key, chunk in (await self.chunks(keys)).items()}

    async def fact_texts(self: Snapshot, keys: Sequence[int]) -> dict[int, FactText]:
        """What facts say by key."""
        return {
            key: FactText(one.id, one.text, one.relation, one.keywords, one.description)
            for key, one in (await self.facts(keys)).items()
        }

    async def fact_spans(self: Snapshot, keys: Sequence[int]) -> dict[int, list[Support]]:
        """Spans that state each fact."""
        return await self.supports("fact", keys)


class KeyValueStore(Protocol):
    """Durable key-value storage: model replies, the manifest, summaries and decisions."""

    async def get(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored values of these keys."""

    async def set(self, kind: str, items: Mapping[str, str]) -> None:
        """Store values by key, durably.

        Model replies (kind `reply`) may wait in memory while another process holds the lock.
        """

    async def increment(self, kind: str, key: str, amount: float) -> None:
        """Add to a stored number atomically; may be deferred like a reply."""

    async def find_losses(self, kinds: Collection[str] = ()) -> list[str]:
        """What was lost and cannot be derived; one sentence each.

        With `kinds`, only stored values of these kinds are looked at.
        """


class BackgroundWriter(Protocol):
    """Prepares additions while more are extracted, and writes all of them in one go."""

    def send(self, addition: Addition) -> None:
        """Send an addition; they are written in this order."""

    def begin_write(self) -> None:
        """Start writing what needs no vectors."""

    async def write(self) -> bool:
        """Write everything; return False if it failed and the caller has to write."""


class TableRows(Protocol):
    """All rows of all tables as one moment has them, with columns as `COPIED_COLUMNS` names."""

    @property
    def generation(self) -> int:
        """The newest generation."""

    @property
    def arrays(self) -> Arrays:
        """The arrays of that generation."""

    @property
    def last_keys(self) -> Mapping[str, int]:
        """The last key given, by table: keys are never given twice."""

    def rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a table, in the order of their keys."""


COPIED_COLUMNS: dict[str, tuple[str, ...]] = {
    "documents": ("key", "id", "title", "text", "metadata", "pages", "stamp", "checksum"),
    "sources": ("name", "document", "checksum"),
    "chunks": (
        *("key", "id", "document", "start", "end", "text", "heading", "page", "row", "failed"),
        *("checksum", "extracted"),
    ),
    "entities": (
        *("key", "id", "name", "name_hash", "type", "description", "aliases", "attributes"),
        *("support", "row", "checksum"),
    ),
    "forms": ("entity", "hash", "weight", "part"),
    "facts": (
        *("key", "id", "text", "relation", "keywords", "description", "weight", "support"),
        *("row", "checksum"),
    ),
    "participants": ("fact", "ordinal", "entity", "role"),
    "mentions": (
        *("entity", "chunk", "surface", "type", "description", "spans", "times", "about"),
        *("aliases", "attributes"),
    ),
    "sayings": (
        *("fact", "chunk", "text", "relation", "keywords", "description", "weight", "start"),
        "end",
    ),
    "memory": ("kind", "key", "value", "checksum"),
}
"""The tables of every store that can be copied to another one."""


class CopiedStore(Protocol):
    """A store whose tables can be read and replaced as a whole."""

    def read_rows(self) -> AbstractContextManager[TableRows]:
        """Open all rows for reading, unchanged until closed."""

    def replace_rows(self, found: TableRows) -> None:
        """Replace all tables and arrays by these, in one transaction."""


class Store(KeyValueStore, Protocol):
    """The tables of a knowledge base and its derived arrays."""

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """Open the newest generation for reading."""

    def write_lock(self) -> AbstractAsyncContextManager[None]:
        """Hold the write lock.

        Reentrant, also for tasks started while it is held; other tasks wait.
        """

    async def counts(self) -> Counts:
        """Count documents and elements."""

    async def sources(self, names: Collection[str] | None = None) -> dict[str, DocumentSource]:
        """Map every document name, or those of `names` that there are, to its document."""

    async def failures(self) -> list[Failure]:
        """Chunks whose extraction failed, and why."""

    async def write(self, change: Change, derive: DeriveArrays) -> Counts:
        """Apply a change, derive the arrays, and publish both atomically."""

    def background_writer(
        self, derive: DeriveArrays, documents: int
    ) -> AbstractAsyncContextManager[BackgroundWriter | None]:
        """Open a writer for so many documents, with the lock held; None if none is worthwhile."""

    def vectors(self, embedder: str, kind: Kind) -> VectorTable:
        """The vectors of one embedder for one kind of element."""

    def forget_vectors(self, embedder: str) -> None:
        """Remove the vectors of an embedder, which no element may use."""

    async def follow(self) -> None:
        """Stay up to date in the background, for a reader that stays open."""

    async def find_problems(self) -> list[str]:
        """Check consistency; return one sentence per problem."""

    async def accept_losses(self) -> None:
        """Take the stored values there are now as whole."""

    async def load_sound_arrays(self) -> Arrays:
        """Those arrays of a damaged generation that are as they were written."""

    async def backup(self, file: Path) -> int:
        """Copy the tables to a file while others read and write; return its size."""

    async def close(self) -> None:
        """Close files and release locks."""
