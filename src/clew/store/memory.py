"""In-memory reference store: keeps the additions and rebuilds everything at every write."""

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clew.errors import StoreError
from clew.store.merge import (
    FactMention,
    Mention,
    content_code,
    embedded_text,
    entity_form_rows,
    group_fact_mentions,
    group_mentions,
    label_code,
    merge_entity,
    merge_fact,
    name_hash,
    node_code,
)
from clew.store.protocol import (
    DETAIL_PREFIX,
    HAS_DETAILS,
    LATE_KINDS,
    Addition,
    Array,
    Arrays,
    BackgroundWriter,
    Change,
    Counts,
    DeriveArrays,
    DocumentSource,
    ElementParts,
    Failure,
    Snapshot,
    Tables,
    resolve_duplicate_names,
)
from clew.store.quotes import open_quotes
from clew.store.resolved_entities import (
    RESOLUTION_KIND,
    SENSES_KIND,
    ChunkMention,
    ResolvedSnapshot,
    parse_decisions,
    parse_sense_pins,
)
from clew.store.row_lookup import parse_hashes
from clew.store.vector_files import check_width
from clew.store.vector_records import STORED
from clew.store.write_lock import TaskLock
from clew.text.entity_types import classify_type
from clew.text.unicode import digest, mark_text
from clew.types import (
    LITERAL_TYPES,
    Chunk,
    Document,
    Entity,
    EntityLabel,
    Fact,
    Kind,
    Participant,
    Support,
)

_TREE_PREFIXES: tuple[str, ...] = ("tree_",)
_TREE_ARRAYS = ("entity_keys", "chunk_keys", "community_keys", "community_rows")
_MAX_INT64 = (1 << 63) - 1  # of an integer column
_ROLE_CODES = {"subject": 0, "member": 1, "head": 2, "tail": 3}


@dataclass(frozen=True)
class MemorySnapshot(ElementParts):
    """One generation of the in-memory store, in dicts by key."""

    generation: int = 0
    arrays: Arrays = field(default_factory=dict)
    document_by_id: Mapping[str, Document] = field(default_factory=dict)
    chunk_by_key: Mapping[int, Chunk] = field(default_factory=dict)
    entity_by_key: Mapping[int, Entity] = field(default_factory=dict)
    fact_by_key: Mapping[int, Fact] = field(default_factory=dict)
    mentions_by_key: Mapping[int, Mapping[int, Mention]] = field(default_factory=dict)
    fact_mentions_by_key: Mapping[int, Mapping[int, FactMention]] = field(default_factory=dict)
    key_values: Mapping[tuple[str, str], str] = field(default_factory=dict)

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Documents by content id."""
        return {key: self.document_by_id[key] for key in ids if key in self.document_by_id}

    async def stored(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that documents have."""
        return set(await self.names(ids))

    async def names(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The names of documents."""
        return {key: self.document_by_id[key].names for key in ids if key in self.document_by_id}

    async def chunks(self, keys: Sequence[int]) -> dict[int, Chunk]:
        """Chunks by key."""
        return {key: self.chunk_by_key[key] for key in keys if key in self.chunk_by_key}

    async def entities(self, keys: Sequence[int]) -> dict[int, Entity]:
        """Entities by key."""
        return {key: self.entity_by_key[key] for key in keys if key in self.entity_by_key}

    async def entity_labels(self, keys: Sequence[int]) -> dict[int, EntityLabel]:
        """Id and name of entities by key."""
        found = await self.entities(keys)
        return {key: EntityLabel(entity.id, entity.name) for key, entity in found.items()}

    async def entity_names(self, keys: Sequence[int]) -> dict[int, str]:
        """Names of entities by key."""
        return {key: entity.name for key, entity in (await self.entities(keys)).items()}

    async def facts(self, keys: Sequence[int]) -> dict[int, Fact]:
        """Facts by key."""
        return {key: self.fact_by_key[key] for key in keys if key in self.fact_by_key}

    async def relations(self, keys: Sequence[int]) -> dict[int, str]:
        """Relations of facts by key."""
        return {key: fact.relation for key, fact in (await self.facts(keys)).items()}

    async def members(self, keys: Sequence[int]) -> dict[int, list[tuple[int, str]]]:
        """Participants of facts: entity key and role, in order."""
        by_id = {entity.id: key for key, entity in self.entity_by_key.items()}
        return {
            key: [(by_id[p.entity], p.role) for p in self.fact_by_key[key].participants]
            for key in keys
            if key in self.fact_by_key
        }

    async def get(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored values of these keys."""
        return {key: self.key_values[kind, key] for key in keys if (kind, key) in self.key_values}

    async def mentions(self, keys: Sequence[int]) -> dict[int, list[ChunkMention]]:
        """Mentions of each name, with their chunks."""
        return {
            key: [
                (c, self.chunk_by_key[c].id, m)
                for c, m in sorted(self.mentions_by_key[key].items())
            ]
            for key in keys
            if key in self.mentions_by_key
        }

    async def supports(self, kind: Kind, keys: Sequence[int]) -> dict[int, list[Support]]:
        """Spans that mention each entity or state each fact."""
        found: dict[int, list[Support]] = defaultdict(list)
        for key in keys:
            if kind == "fact":
                for at, fact_mention in sorted(self.fact_mentions_by_key.get(key, {}).items()):
                    found[key].append(Support(self.chunk_by_key[at].id, *fact_mention.span))
            else:
                for at, mention in sorted(self.mentions_by_key.get(key, {}).items()):
                    chunk = self.chunk_by_key[at]
                    for span in mention.spans or ((chunk.start, chunk.end),):
                        found[key].append(Support(chunk.id, *span))
        return dict(found)


class MemoryVectors:
    """In-memory reference implementation."""

    def __init__(self, kind: str = "chunk") -> None:
        self._precision = STORED
        self._row: dict[str, int] = {}
        self._vectors: list[NDArray[np.float32]] = []

    def find_rows(self, hashes: Sequence[str]) -> NDArray[np.int64]:
        """Row of each hash; -1 if absent."""
        return np.array([self._row.get(key, -1) for key in hashes], np.int64)

    def append(self, hashes: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Append new vectors."""
        fresh = {key: at for at, key in enumerate(hashes) if key not in self._row}
        if fresh and self._vectors:
            check_width("vectors", len(self._vectors[0]), vectors.shape[1])
        for key, at in fresh.items():
            self._row[key] = len(self._vectors)
            rounded = np.asarray(vectors[at], self._precision)
            self._vectors.append(np.asarray(rounded, np.float32))

    def width(self) -> int:
        """Number of dimensions; 0 if there is no row."""
        return len(self._vectors[0]) if self._vectors else 0

    def matrix(self) -> NDArray[np.float32]:
        """All rows."""
        return np.stack(self._vectors) if self._vectors else np.zeros((0, 0), np.float32)

    def read_hashes(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The content hashes of rows, two words each."""
        return parse_hashes([*self._row])[rows]

    def iterate(self) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        """All rows in order."""
        yield list(self._row), self.matrix()

    def find_lost_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the rows in use that hold no vector."""
        return rows[rows >= len(self._vectors)]

    def repair(self) -> bool:
        """Do nothing: there are no files."""
        return False


class MemoryStore:
    """A store in dicts, for tests and tutorials."""

    def __init__(self) -> None:
        self._additions: dict[str, Addition] = {}
        self._names: dict[str, str] = {}
        self._keys: dict[tuple[str, str], int] = {}
        self._key_values: dict[tuple[str, str], str] = {}
        self._vectors: dict[tuple[str, Kind], MemoryVectors] = {}
        self._newest = MemorySnapshot()
        self._task_lock = TaskLock()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Open the newest generation for reading."""
        yield ResolvedSnapshot(self._newest)

    @asynccontextmanager
    async def write_lock(self) -> AsyncIterator[None]:
        """Hold the write lock; other tasks wait."""
        async with self._task_lock.acquire():
            yield

    async def counts(self) -> Counts:
        """Count documents and elements."""
        now = self._newest
        return Counts(
            documents=len(now.document_by_id),
            chunks=len(now.chunk_by_key),
            entities=len(now.arrays.get("entity_keys", now.entity_by_key)),
            facts=len(now.fact_by_key),
            communities=len(now.arrays.get("community_keys", ())),
            failed=len(await self.failures()),
            generation=now.generation,
        )

    async def sources(self, names: Collection[str] | None = None) -> dict[str, DocumentSource]:
        """Map every document name, or those of `names` that there are, to its document."""
        return {
            name: DocumentSource(document, self._additions[document].stamp)
            for name, document in self._names.items()
            if names is None or name in names
        }

    async def failures(self) -> list[Failure]:
        """Chunks whose extraction failed, and why."""
        return [
            Failure(key, chunk.id, extraction.failed)
            for key, addition in self._additions.items()
            for chunk, extraction in zip(addition.chunks, addition.extractions, strict=True)
            if extraction.failed
        ]

    async def get(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored values of these keys."""
        return {key: self._key_values[kind, key] for key in keys if (kind, key) in self._key_values}

    async def set(self, kind: str, items: Mapping[str, str]) -> None:
        """Store values by key."""
        self._key_values |= {(kind, key): value for key, value in items.items()}

    async def increment(self, kind: str, key: str, amount: float) -> None:
        """Add to a stored number."""
        self._key_values[kind, key] = repr(
            round(float(self._key_values.get((kind, key), 0)) + amount, 9)
        )

    def vectors(self, embedder: str, kind: Kind) -> MemoryVectors:
        """The vectors of one embedder for one kind of element."""
        return self._vectors.setdefault((embedder, kind), MemoryVectors(kind))

    def forget_vectors(self, embedder: str) -> None:
        """Remove the vectors of an embedder, which no element may use."""
        self._vectors = {key: held for key, held in self._vectors.items() if key[0] != embedder}

    @asynccontextmanager
    async def background_writer(
        self, derive: DeriveArrays, documents: int
    ) -> AsyncIterator[BackgroundWriter | None]:
        """There is none."""
        del derive, documents
        yield None

    async def follow(self) -> None:
        """Do nothing: every write is made here."""

    async def find_problems(self) -> list[str]:
        """Find nothing: all is rebuilt at every write."""
        return []

    async def find_losses(self, kinds: Collection[str] = ()) -> list[str]:
        """Find nothing: what is in memory is not lost in part."""
        return []

    async def accept_losses(self) -> None:
        """Do nothing: nothing is lost."""

    async def load_sound_arrays(self) -> Arrays:
        """The newest arrays, which cannot be damaged."""
        return self._newest.arrays

    async def backup(self, file: Path) -> int:
        """Refuse: there is no database."""
        raise StoreError(f"a knowledge base in memory cannot be copied to {file}; use a folder")

    async def close(self) -> None:
        """Do nothing: no resources are held."""

    async def write(self, change: Change, derive: DeriveArrays) -> Counts:
        """Apply a change to the additions, then rebuild everything from them."""
        async with self.write_lock():
            self._apply(change, derive)
        return await self.counts()

    # -- internal

    def _apply(self, change: Change, derive: DeriveArrays) -> None:
        for kind, items in change.values.items():
            self._key_values |= {(kind, key): value for key, value in items.items()}
        if change.embedder:
            self._key_values["manifest", "embedder"] = change.embedder
        added = resolve_duplicate_names([*change.add, *(change.bulk or ())])
        names = {n: d for n, d in self._names.items() if n not in set(change.remove)}
        names |= {name: a.document.id for a in added for name in a.document.names}
        additions = self._additions | {a.document.id: a for a in added}
        kept = {key: a for key, a in additions.items() if key in names.values()}
        merged = self._merge_additions(kept, names)
        tables = self._build_tables(merged, *self._parse_decisions(kept))
        # Trees exist only as arrays; everything else is rebuilt here on purpose.
        previous = {} if change.rebuild else self._newest.arrays
        prefixes = _TREE_PREFIXES
        if not (change.add or change.remove or change.bulk is not None or change.embedder):
            # Otherwise not: here a chunk that comes back has its old key.
            prefixes = (*prefixes, DETAIL_PREFIX)
        held = {n: a for n, a in previous.items() if n.startswith(prefixes) or n in _TREE_ARRAYS}
        arrays = derive(replace(tables, previous=held))
        if change.remove and len(kept) < len(additions):
            gone = [a for key, a in additions.items() if key not in kept]
            self._forget_replies({mark_text(c.text) for a in gone for c in a.chunks})
        self._names, self._additions = names, kept
        self._newest = replace(merged, generation=self._newest.generation + 1, arrays=arrays)

    def _forget_replies(self, marks: Collection[str]) -> None:
        """Forget what models replied to questions and to these texts; keep their windows."""
        for kind, key in list(self._key_values):
            kept = key.startswith(("window of ", "of text "))
            if kind == "reply" and (not kept or key[: len(mark_text(""))] in marks):
                del self._key_values[kind, key]

    def _merge_additions(
        self, additions: Mapping[str, Addition], names: Mapping[str, str]
    ) -> MemorySnapshot:
        chunk_of: dict[int, Chunk] = {}
        mentions: dict[str, dict[int, Mention]] = defaultdict(dict)
        fact_mentions: dict[str, dict[int, FactMention]] = defaultdict(dict)
        members: dict[str, tuple[Participant, ...]] = {}
        for addition in additions.values():
            for chunk, extraction in zip(addition.chunks, addition.extractions, strict=True):
                key = self._assign_key("chunk", chunk.id)
                chunk_of[key] = chunk
                for entity, mention in group_mentions(extraction).items():
                    mentions[entity][key] = mention
                for fact, (participants, stated) in group_fact_mentions(extraction).items():
                    members[fact] = participants
                    fact_mentions[fact][key] = stated
        return MemorySnapshot(
            key_values=self._key_values,
            document_by_id={
                key: replace(
                    a.document, names=tuple(sorted(n for n, d in names.items() if d == key))
                )
                for key, a in additions.items()
            },
            chunk_by_key=chunk_of,
            entity_by_key={
                self._assign_key("entity", e): merge_entity(e, list(m.values()))
                for e, m in mentions.items()
            },
            fact_by_key={
                self._assign_key("fact", f): merge_fact(f, members[f], list(s.values()))
                for f, s in fact_mentions.items()
            },
            mentions_by_key={self._assign_key("entity", e): m for e, m in mentions.items()},
            fact_mentions_by_key={self._assign_key("fact", f): s for f, s in fact_mentions.items()},
        )

    def _parse_decisions(self, additions: Mapping[str, Addition]) -> tuple[Array, Array]:
        """Merge decisions and sense pins as key columns."""
        chunks = {
            key: [self._assign_key("chunk", chunk.id) for chunk in a.chunks]
            for key, a in additions.items()
        }
        entities = {name: key for (kind, name), key in self._keys.items() if kind == "entity"}
        held, pins = (
            {key: value for (of, key), value in self._key_values.items() if of == kind}
            for kind in (RESOLUTION_KIND, SENSES_KIND)
        )
        return parse_decisions(held, entities), parse_sense_pins(pins, entities, chunks)

    def _assign_key(self, kind: str, element: str) -> int:
        return self._keys.setdefault((kind, element), len(self._keys) + 1)

    def _build_tables(self, now: MemorySnapshot, decisions: Array, pins: Array) -> Tables:
        embedder = self._key_values.get(("manifest", "embedder"), "")
        held = (self._key_values.get(("manifest", key), "") for key in LATE_KINDS)
        late = " ".join(held).split()
        compared = embedder and "entity" not in late
        return Tables(
            chunks=_to_sorted_array(
                [
                    (key, self._find_vector_row("chunk", c), content_code(c.id), c.start)
                    for key, c in now.chunk_by_key.items()
                ],
                4,
            ),
            entities=_to_sorted_array(
                [self._entity_cells(k, e) for k, e in now.entity_by_key.items()], 8
            ),
            facts=_to_sorted_array([self._fact_cells(k, f) for k, f in now.fact_by_key.items()], 6),
            mentions=_to_sorted_array(
                [
                    (key, chunk, len(m.spans), round(m.about * 1000), classify_type(m.type))
                    for key, many in now.mentions_by_key.items()
                    for chunk, m in many.items()
                ],
                5,
            ),
            participants=_to_sorted_array(
                [
                    (key, self._assign_key("entity", p.entity), _ROLE_CODES.get(p.role, 1))
                    for key, fact in now.fact_by_key.items()
                    for p in fact.participants
                ],
                3,
            ),
            supports=_to_sorted_array(
                [
                    (key, chunk, s.span[0] - now.chunk_by_key[chunk].start)
                    for key, many in now.fact_mentions_by_key.items()
                    for chunk, s in many.items()
                ],
                3,
            ),
            forms=_to_sorted_array(
                [(k, *form) for k, e in now.entity_by_key.items() for form in entity_form_rows(e)],
                4,
            ),
            merge_decisions=decisions,
            sense_pins=pins,
            entity_vectors=self.vectors(embedder, "entity").matrix() if compared else None,
            quotes=open_quotes(self.vectors, embedder, late),
            texts={key: embedded_text(chunk) for key, chunk in sorted(now.chunk_by_key.items())},
        )

    def _entity_cells(self, key: int, entity: Entity) -> tuple[int, ...]:
        return (
            *(key, self._find_vector_row("entity", entity), name_hash(entity.name)),
            *(entity.type in LITERAL_TYPES, label_code(entity.type), label_code(entity.id)),
            len(entity.description) + bool(entity.attributes) * HAS_DETAILS,
            node_code(entity.id, entity.name),
        )

    def _fact_cells(self, key: int, fact: Fact) -> tuple[int, ...]:
        return (
            *(key, self._find_vector_row("fact", fact), label_code(fact.relation)),
            round(max(-_MAX_INT64, min(fact.weight * 1000, _MAX_INT64))),
            len(fact.description) + bool(fact.keywords) * HAS_DETAILS,
            content_code(fact.id),
        )

    def _find_vector_row(self, kind: Kind, element: Chunk | Entity | Fact) -> int:
        embedder = self._key_values.get(("manifest", "embedder"), "")
        return int(self.vectors(embedder, kind).find_rows([digest(embedded_text(element))])[0])


def _to_sorted_array(rows: Sequence[tuple[int, ...]], width: int) -> Array:
    return np.array(sorted(rows), np.int64).reshape(-1, width)
