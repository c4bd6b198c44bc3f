"""What a store must do. `clew.testing.contracts.StoreContract` holds the behaviour."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clew.types import Chunk, Document, Entity, Extraction, Fact, Kind, Support

Array = NDArray[Any]

# A name that is several things has one key for each: its own, moved up by the sense's number.
SENSE = 1 << 40
STATED = 1000  # weight of a form that is not derived from a name but was said to be one
Arrays = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Addition:
    """One document with its chunks and what was extracted from each of them."""

    document: Document
    chunks: tuple[Chunk, ...]
    extractions: tuple[Extraction, ...]
    stamp: str = ""
    """How it was made: another chunker or extractor gives another stamp."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a name stands for: a document's content id, and how it was made."""

    document: str
    stamp: str


@dataclass(frozen=True, slots=True)
class Change:
    """What one write does, all of it or nothing: first `remove`, then `add`."""

    add: Sequence[Addition] = ()
    remove: Sequence[str] = ()
    """Names of documents; a document goes when its last name goes."""
    embedder: str = ""
    """When given: from now on this embedder's vectors count, and every row is looked up anew."""
    bulk: Iterable[Addition] | None = None
    """More to add, as a stream that need not fit into memory; each name at most once."""
    afresh: bool = False
    """Derive all arrays from the truth, trusting none of the previous generation."""


_MANY = 100  # documents from which on a removal is made as a stream is written


def removal(names: Sequence[str]) -> Change:
    """A change that removes documents; many of them set by set, in bounded memory."""
    return Change(remove=names, bulk=() if len(names) > _MANY else None)


@dataclass(frozen=True, slots=True)
class Tables:
    """The graph as integer columns, ready to become arrays. Keys are ascending.

    As the store gives them, an entity is a name; `clew.resolution` makes things of names.
    """

    chunks: Array  # key, vector row
    entities: Array  # key, vector row, name hash, 1 for values, codes of type and id, length told,
    # and 1 for an id that the user's own graph gave: no two of those are ever one
    facts: Array  # key, vector row, code of the relation (or 0), weight (thousandths), length told
    mentions: Array  # entity key, chunk key, spans, about (in thousandths), class of the type
    participants: Array  # fact key, entity key, role code (0 subject, 1 member, 2 head, 3 tail)
    supports: Array  # fact key, chunk key, start within the chunk
    forms: Array  # entity key, hash of a form, weight (in thousandths), kind (see clew.names)
    decided: Array = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    """What users and models said of pairs: two entity keys, 1 for the same, 1 for a model."""
    pinned: Array = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    """Mentions that a user set apart: entity key, chunk key, number of the sense."""
    entity_vectors: Array | None = None
    """Vectors of names, by row; none when there is no embedder."""
    texts: Mapping[int, str] = field(default_factory=dict)
    """Searchable text of the chunks that the previous generation did not have."""
    previous: Arrays = field(default_factory=dict)


def settled(additions: Sequence[Addition]) -> list[Addition]:
    """A name given twice means its last document; a document left without a name is not added."""
    owner = {name: a.document.id for a in additions for name in a.document.names}
    found = []
    for addition in additions:
        document = addition.document
        names = tuple([name for name in document.names if owner[name] == document.id])
        if names == document.names and names:
            found.append(addition)
        elif names:
            found.append(replace(addition, document=replace(document, names=names)))
    return found


Publish = Callable[[Tables], Arrays]
"""Turns the tables into the arrays of the next generation."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A chunk that an extractor could not read, the document it is in, and why."""

    document: str
    chunk: str
    reason: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is."""

    documents: int = 0
    chunks: int = 0
    entities: int = 0
    facts: int = 0
    communities: int = 0
    failed: int = 0
    """Chunks from which nothing could be extracted."""
    generation: int = 0
    bytes: int = 0


class VectorTable(Protocol):
    """Vectors by content hash, append-only: nothing is embedded twice."""

    def rows(self, hashes: Sequence[str]) -> NDArray[np.int64]:
        """Say in which row each hash is; -1 where it is not."""
        ...

    def append(self, hashes: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Keep new vectors, durably; those of another length are refused."""
        ...

    def matrix(self) -> NDArray[np.float32]:
        """All rows."""
        ...

    def mend(self) -> bool:
        """Put away what cannot be read, so that it is made anew; whether that was needed."""
        ...


class Snapshot(Protocol):
    """One generation, unchanged for as long as it is held. Unknown keys are left out."""

    @property
    def generation(self) -> int:
        """Which one."""
        ...

    @property
    def arrays(self) -> Arrays:
        """The derived arrays of this generation."""
        ...

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Documents by content id."""
        ...

    async def names(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The names of documents, without their text."""
        ...

    async def chunks(self, keys: Sequence[int]) -> dict[int, Chunk]:
        """Chunks by key."""
        ...

    async def entities(self, keys: Sequence[int]) -> dict[int, Entity]:
        """Entities by key."""
        ...

    async def facts(self, keys: Sequence[int]) -> dict[int, Fact]:
        """Facts by key."""
        ...

    async def supports(self, kind: Kind, keys: Sequence[int]) -> dict[int, list[Support]]:
        """Where each entity or fact is said."""
        ...


class Memory(Protocol):
    """Texts by key: model replies, embedder manifest, whatever must not be paid for twice."""

    async def recall(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """What was remembered under these keys."""
        ...

    async def remember(self, kind: str, items: Mapping[str, str]) -> None:
        """Keep texts by key, durably, at once.

        Model replies (kind `reply`) may wait in memory while another process has the store locked.
        """
        ...

    async def add_up(self, kind: str, key: str, amount: float) -> None:
        """Add to a number in one step, since others may add to it too; it may wait like a reply."""
        ...


class Store(Memory, Protocol):
    """The truth and its derived arrays."""

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """Hold the newest generation for reading."""
        ...

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Be the one writer, for as long as it is held.

        It may be entered again from within, by tasks begun within too; other tasks wait.
        """
        ...

    async def counts(self) -> Counts:
        """How much there is."""
        ...

    async def sources(self) -> dict[str, Source]:
        """Every document by each of its names."""
        ...

    async def failures(self) -> list[Failure]:
        """Chunks from which nothing could be extracted, and why."""
        ...

    async def write(self, change: Change, publish: Publish) -> Counts:
        """Apply a change, derive the arrays and make both visible at once."""
        ...

    def vectors(self, embedder: str, kind: Kind) -> VectorTable:
        """The vectors of one embedder for one kind of element."""
        ...

    async def close(self) -> None:
        """Let go of files and locks."""
        ...
