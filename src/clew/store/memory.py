"""In-memory reference store: keeps the additions and rebuilds everything at every write.

Deliberately slow and simple: it defines what "a fresh build of what remains" means.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np

from clew.kinds import class_of
from clew.store.decisions import RESOLUTION, SENSES, decided, pinned
from clew.store.memory_snapshot import MemorySnapshot
from clew.store.merge import (
    EXACT,
    Mention,
    Saying,
    embedded_text,
    label_code,
    mentions_of,
    merge_entity,
    merge_fact,
    name_forms,
    name_hash,
    sayings_of,
)
from clew.store.merge import (
    Said as SaidFacts,
)
from clew.store.nodes import Things
from clew.store.protocol import (
    Addition,
    Array,
    Change,
    Counts,
    Failure,
    Publish,
    Snapshot,
    Source,
    Tables,
    settled,
)
from clew.store.turn import Turn
from clew.store.vectors import MemoryVectors
from clew.text import digest
from clew.types import LITERALS, Chunk, Entity, Fact, Kind, Participant

_WITH_TREES = ("entity_keys", "chunk_keys", "community_keys", "community_rows")
_MOST = (1 << 63) - 1  # of an integer column
_ROLES = {"subject": 0, "member": 1, "head": 2, "tail": 3}


class MemoryStore:
    """A store in dicts, for tests and tutorials."""

    def __init__(self) -> None:
        self._additions: dict[str, Addition] = {}
        self._names: dict[str, str] = {}
        self._keys: dict[tuple[str, str], int] = {}
        self._memory: dict[tuple[str, str], str] = {}
        self._vectors: dict[tuple[str, Kind], MemoryVectors] = {}
        self._now = MemorySnapshot()
        self._turn = Turn()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Open the newest generation for reading."""
        yield Things(self._now)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Hold the write lock; other tasks wait."""
        async with self._turn.taken():
            yield

    async def counts(self) -> Counts:
        """Count documents and elements."""
        now = self._now
        return Counts(
            documents=len(now.by_id),
            chunks=len(now.chunk_of),
            entities=len(now.arrays.get("entity_keys", now.entity_of)),
            facts=len(now.fact_of),
            communities=len(now.arrays.get("community_keys", ())),
            failed=len(await self.failures()),
            generation=now.generation,
        )

    async def sources(self) -> dict[str, Source]:
        """Map every document name to its document."""
        return {
            name: Source(document, self._additions[document].stamp)
            for name, document in self._names.items()
        }

    async def failures(self) -> list[Failure]:
        """Chunks whose extraction failed, and why."""
        return [
            Failure(key, chunk.id, extraction.failed)
            for key, addition in self._additions.items()
            for chunk, extraction in zip(addition.chunks, addition.extractions, strict=True)
            if extraction.failed
        ]

    async def recall(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored values of these keys."""
        return {key: self._memory[kind, key] for key in keys if (kind, key) in self._memory}

    async def remember(self, kind: str, items: Mapping[str, str]) -> None:
        """Store values by key."""
        self._memory |= {(kind, key): value for key, value in items.items()}

    async def add_up(self, kind: str, key: str, amount: float) -> None:
        """Add to a stored number."""
        self._memory[kind, key] = repr(round(float(self._memory.get((kind, key), 0)) + amount, 9))

    def vectors(self, embedder: str, kind: Kind) -> MemoryVectors:
        """The vectors of one embedder for one kind of element."""
        return self._vectors.setdefault((embedder, kind), MemoryVectors())

    async def close(self) -> None:
        """Do nothing: no resources are held."""

    async def write(self, change: Change, publish: Publish) -> Counts:
        """Apply a change to the additions, then rebuild everything from them."""
        async with self.writing():
            self._write(change, publish)
        return await self.counts()

    # -- internal

    def _write(self, change: Change, publish: Publish) -> None:
        if change.embedder:
            self._memory["manifest", "embedder"] = change.embedder
        added = settled([*change.add, *(change.bulk or ())])
        names = {n: d for n, d in self._names.items() if n not in set(change.remove)}
        names |= {name: a.document.id for a in added for name in a.document.names}
        additions = self._additions | {a.document.id: a for a in added}
        kept = {key: a for key, a in additions.items() if key in names.values()}
        derived, tables = self._derive(kept, names)
        decided_pairs, sense_pins = self._decisions(kept)
        tables = replace(
            tables, decided=decided_pairs, pinned=sense_pins, entity_vectors=self._entity_vectors()
        )
        # Trees exist only as arrays; everything else is rebuilt here on purpose.
        previous = {} if change.afresh else self._now.arrays
        trees = {n: a for n, a in previous.items() if n.startswith("tree_") or n in _WITH_TREES}
        arrays = publish(replace(tables, previous=trees))
        self._names, self._additions = names, kept
        self._now = replace(derived, generation=self._now.generation + 1, arrays=arrays)

    def _derive(
        self, additions: Mapping[str, Addition], names: Mapping[str, str]
    ) -> tuple[MemorySnapshot, Tables]:
        chunk_of: dict[int, Chunk] = {}
        mentions: dict[str, dict[int, Mention]] = defaultdict(dict)
        sayings: dict[str, dict[int, Saying]] = defaultdict(dict)
        members: dict[str, tuple[Participant, ...]] = {}
        for addition in additions.values():
            for chunk, extraction in zip(addition.chunks, addition.extractions, strict=True):
                key = self._key("chunk", chunk.id)
                chunk_of[key] = chunk
                for entity, mention in mentions_of(extraction).items():
                    mentions[entity][key] = mention
                fact_mentions: SaidFacts = sayings_of(extraction)
                for fact, (participants, fact_mention) in fact_mentions.items():
                    members[fact] = participants
                    sayings[fact][key] = fact_mention
        snapshot = MemorySnapshot(
            memory=self._memory,
            by_id={
                key: replace(
                    a.document, names=tuple(sorted(n for n, d in names.items() if d == key))
                )
                for key, a in additions.items()
            },
            chunk_of=chunk_of,
            entity_of={
                self._key("entity", e): merge_entity(e, list(m.values()))
                for e, m in mentions.items()
            },
            fact_of={
                self._key("fact", f): merge_fact(f, members[f], list(s.values()))
                for f, s in sayings.items()
            },
            mentions_of={self._key("entity", e): m for e, m in mentions.items()},
            sayings={self._key("fact", f): s for f, s in sayings.items()},
        )
        return snapshot, self._tables(snapshot)

    def _decisions(self, additions: Mapping[str, Addition]) -> tuple[Array, Array]:
        """Merge decisions and sense pins as key columns."""
        chunks = {
            key: [self._key("chunk", chunk.id) for chunk in a.chunks]
            for key, a in additions.items()
        }
        entities = {name: key for (kind, name), key in self._keys.items() if kind == "entity"}
        held, pins = (
            {key: value for (of, key), value in self._memory.items() if of == kind}
            for kind in (RESOLUTION, SENSES)
        )
        return decided(held, entities), pinned(pins, entities, chunks)

    def _entity_vectors(self) -> Array | None:
        embedder = self._memory.get(("manifest", "embedder"), "")
        return self.vectors(embedder, "entity").matrix() if embedder else None

    def _key(self, kind: str, element: str) -> int:
        return self._keys.setdefault((kind, element), len(self._keys) + 1)

    def _tables(self, now: MemorySnapshot) -> Tables:
        return Tables(
            chunks=_table([(k, self._row("chunk", c)) for k, c in now.chunk_of.items()], 2),
            entities=_table([self._entity_cells(k, e) for k, e in now.entity_of.items()], 8),
            facts=_table([self._fact_cells(k, f) for k, f in now.fact_of.items()], 5),
            mentions=_table(
                [
                    (key, chunk, len(m.spans), round(m.about * 1000), class_of(m.type))
                    for key, many in now.mentions_of.items()
                    for chunk, m in many.items()
                ],
                5,
            ),
            participants=_table(
                [
                    (key, self._key("entity", p.entity), _ROLES.get(p.role, 1))
                    for key, fact in now.fact_of.items()
                    for p in fact.participants
                ],
                3,
            ),
            supports=_table(
                [
                    (key, chunk, s.span[0] - now.chunk_of[chunk].start)
                    for key, many in now.sayings.items()
                    for chunk, s in many.items()
                ],
                3,
            ),
            forms=_table(
                [(k, *form) for k, e in now.entity_of.items() for form in name_forms(e)], 4
            ),
            texts={key: embedded_text(chunk) for key, chunk in sorted(now.chunk_of.items())},
        )

    def _entity_cells(self, key: int, entity: Entity) -> tuple[int, ...]:
        return (
            *(key, self._row("entity", entity), name_hash(entity.name), entity.type in LITERALS),
            *(label_code(entity.type), label_code(entity.id), len(entity.description)),
            entity.id.startswith(EXACT),
        )

    def _fact_cells(self, key: int, fact: Fact) -> tuple[int, ...]:
        return (
            *(key, self._row("fact", fact), label_code(fact.relation)),
            *(round(max(-_MOST, min(fact.weight * 1000, _MOST))), len(fact.description)),
        )

    def _row(self, kind: Kind, element: Chunk | Entity | Fact) -> int:
        embedder = self._memory.get(("manifest", "embedder"), "")
        return int(self.vectors(embedder, kind).rows([digest(embedded_text(element))])[0])


def _table(rows: Sequence[tuple[int, ...]], width: int) -> Array:
    return np.array(sorted(rows), np.int64).reshape(-1, width)
