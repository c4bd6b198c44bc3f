"""Snapshot of one generation: reads rows by key, within an open transaction, and has the arrays.

The same for a folder and for a database: statements are written once, and `SqlDialect` says what
the two write differently.
"""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from string import Template
from typing import TypeVar

from clew.errors import StoreError
from clew.store.checksums import checksum_cells
from clew.store.merge import compute_fact_id
from clew.store.protocol import COLUMN_PREFIX, Arrays, DocumentSource
from clew.store.resolved_entities import ChunkMention
from clew.store.sqlite import rows
from clew.store.sqlite.connections import DAMAGED_ROW, translate_errors
from clew.store.sqlite.keyvalue import select_values
from clew.types import (
    Chunk,
    Document,
    Entity,
    EntityLabel,
    Fact,
    FactText,
    Kind,
    Participant,
    Support,
)

_Found = TypeVar("_Found")
Keys = Sequence[str] | Sequence[int]
SelectRows = Callable[[str, Sequence[str | int]], Awaitable[list[rows.Row]]]
"""Selects rows by a statement with one list of keys, integers or texts."""
GetValues = Callable[[str, Sequence[str]], Awaitable[dict[str, str]]]
SELECT_SOURCES = (
    "SELECT s.name, d.id, d.stamp FROM sources s JOIN documents d ON d.key = s.document"
)
COUNT_QUERIES = {
    "documents": "SELECT count(*) FROM documents",
    "chunks": "SELECT count(*) FROM chunks",
    "entities": "SELECT count(*) FROM entities",
    "facts": "SELECT count(*) FROM facts",
    "failed": "SELECT count(*) FROM chunks WHERE failed != ''",
}
_AMONG_NAMES = " WHERE s.name IN (SELECT value FROM json_each(?))"


def select_sources(
    db: sqlite3.Connection, names: Collection[str] | None
) -> dict[str, DocumentSource]:
    """Map document names, all of them or those given, to their documents."""
    if names is None:
        found = db.execute(SELECT_SOURCES)
    else:
        found = db.execute(SELECT_SOURCES + _AMONG_NAMES, (json.dumps(sorted(names)),))
    return {name: DocumentSource(document, stamp) for name, document, stamp in found}


@dataclass(frozen=True)
class SqlDialect:
    """What a statement of `TableSnapshot` means by its marks."""

    keys: str
    """That a column is one of the integers given."""
    ids: str
    """That a column is one of the texts given."""
    end: str
    """The column with the end of a span."""
    scan: str
    """That no index is used: it may be what is damaged."""

    def write(self, statement: str) -> str:
        """The statement without marks."""
        return _write(self, statement)


@cache
def _write(dialect: SqlDialect, statement: str) -> str:
    marks = {"keys": dialect.keys, "ids": dialect.ids, "end": dialect.end, "scan": dialect.scan}
    return Template(statement).substitute(marks)


def _with_list(listed: str) -> SqlDialect:
    return SqlDialect(f"IN ({listed})", f"IN ({listed})", "end", "NOT INDEXED")


_SQLITE = _with_list("SELECT value FROM json_each(?)")
# For few keys, as most questions have, a mark for each: twice as quick for one of them.
_SIZES = (1, 2, 4, 8, 16, 32)
_OF_FEW = {size: _with_list(",".join("?" * size)) for size in _SIZES}


def _write_select(statement: str, keys: Sequence[str | int]) -> tuple[str, Sequence[str | int]]:
    """A statement and what it is given; the last of few numbers is repeated: few texts differ."""
    for size in _SIZES:
        if len(keys) <= size and isinstance(keys[0], int):
            return _OF_FEW[size].write(statement), [*keys, *[keys[-1]] * (size - len(keys))]
    return _SQLITE.write(statement), (json.dumps(list(keys)),)


def open_snapshot(
    db: sqlite3.Connection, generation: int, arrays: Arrays, folder: Path, checked: set[int]
) -> "TableSnapshot":
    """The snapshot of an open transaction on the database of a folder."""

    async def select(statement: str, keys: Sequence[str | int]) -> list[rows.Row]:
        with translate_errors(folder):
            return db.execute(*_write_select(statement, keys)).fetchall()

    async def get(kind: str, keys: Sequence[str]) -> dict[str, str]:
        with translate_errors(folder):
            return select_values(db, kind, keys)

    return TableSnapshot(generation, arrays, select, get, checked)


# What was extracted from chunks; their sums are those of `PreparedExtraction`.
_EXTRACTED = (
    "SELECT m.chunk, e.id, m.surface, m.type, m.description, m.spans, m.times, m.about, m.aliases, "
    "m.attributes FROM mentions m JOIN entities e ON e.key = m.entity WHERE m.chunk $keys",
    "SELECT s.chunk, f.id, s.text, s.relation, s.keywords, s.description, s.weight, s.start, "
    "s.$end FROM sayings s JOIN facts f ON f.key = s.fact WHERE s.chunk $keys",
)
_ENTITIES = (
    "SELECT checksum, id, name, name_hash, type, description, aliases, attributes, support, key "
    "FROM entities WHERE key $keys ORDER BY key"
)
# What chunks say of elements; an element of which nothing is left has a row without a chunk.
_SAYINGS = (
    "SELECT f.support, c.extracted, f.key, c.key, c.id, s.start, s.$end FROM facts f "
    "LEFT JOIN sayings s ON s.fact = f.key LEFT JOIN chunks c ON c.key = s.chunk "
    "WHERE f.key $keys ORDER BY f.key, s.chunk"
)
_SPANS = (
    "SELECT s.fact, c.id, s.start, s.$end FROM sayings s JOIN chunks c ON c.key = s.chunk "
    "WHERE s.fact $keys ORDER BY s.fact, s.chunk"
)
_OF_MENTIONS = (
    "FROM entities e LEFT JOIN mentions m ON m.entity = e.key LEFT JOIN chunks c "
    "ON c.key = m.chunk WHERE e.key $keys ORDER BY e.key, m.chunk"
)
_MENTIONED = (
    f"SELECT e.support, c.extracted, e.key, c.key, c.id, c.start, c.$end, m.spans {_OF_MENTIONS}"
)
_MENTIONS = (
    "SELECT e.support, c.extracted, e.key, c.key, c.id, m.spans, m.surface, m.type, m.description, "
    f"m.about, m.aliases, m.attributes {_OF_MENTIONS}"
)


@dataclass(frozen=True)
class TableSnapshot:
    """Reads by key; the open transaction keeps the generation unchanged."""

    generation: int
    arrays: Arrays
    select: SelectRows
    get_values: GetValues
    checked: set[int] = field(default_factory=set)
    """Chunks whose mentions were compared with what was extracted; they never change."""
    named: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of documents that were read before; a generation has always the same."""
    participants: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    """Participants of facts that were read before: entity key and role, in order."""

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Documents by content id."""
        names = await self.names(ids)
        found = await self._select_checked(
            "SELECT checksum, id, title, text, metadata, pages, stamp FROM documents "
            "WHERE id $ids ORDER BY key",
            ids,
        )
        return {row[0]: rows.row_to_document(row[:5], names.get(row[0], ())) for row in found}

    async def stored(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that documents have."""
        return {key for (key,) in await self._select("SELECT id FROM documents WHERE id $ids", ids)}

    async def names(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The names of documents, without their text."""
        self.named.update(await self._read_names([key for key in ids if key not in self.named]))
        return {key: self.named[key] for key in ids if key in self.named}

    async def _read_names(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        names: dict[str, list[str]] = defaultdict(list)
        for name, _, key in await self._select_checked(
            "SELECT s.checksum, s.name, s.document, d.id FROM documents d "
            "LEFT JOIN sources s ON d.key = s.document "
            "WHERE d.id $ids ORDER BY s.name",
            ids,
            beside=1,
        ):
            if name is None:
                raise StoreError(DAMAGED_ROW)  # every document has a name
            names[key].append(name)
        missing = [key for key in ids if key not in names]
        if await self._select("SELECT 1 FROM documents $scan WHERE id $ids", missing):
            raise StoreError(DAMAGED_ROW)
        return {key: tuple(many) for key, many in names.items()}

    async def chunks(self, keys: Sequence[int]) -> dict[int, Chunk]:
        """Chunks by key."""
        found = await self._select_checked(
            "SELECT c.checksum, c.id, d.id, c.start, c.$end, c.text, d.title, c.heading, c.page, "
            "c.failed, c.key FROM chunks c JOIN documents d ON d.key = c.document "
            "WHERE c.key $keys ORDER BY c.key",
            keys,
            beside=1,
        )
        chunks = {row[-1]: Chunk(*row[:-2]) for row in found}
        return self._require_all("chunks", keys, chunks)

    async def chunk_documents(self, keys: Sequence[int]) -> dict[int, str]:
        """Ids of the documents of chunks by key, not compared with the checksums of chunks."""
        found = await self._select(
            "SELECT c.key, d.id FROM chunks c JOIN documents d ON d.key = c.document "
            "WHERE c.key $keys",
            keys,
        )
        return self._require_all("chunks", keys, dict(found))

    async def entity_labels(self, keys: Sequence[int]) -> dict[int, EntityLabel]:
        """Id and name of entities by key."""
        found = await self._select_checked(_ENTITIES, keys, beside=1)
        return self._require_all(
            "entities", keys, {row[-1]: EntityLabel(*row[:2]) for row in found}
        )

    async def entity_names(self, keys: Sequence[int]) -> dict[int, str]:
        """Names of entities by key, not compared with their checksums."""
        return dict(await self._select("SELECT key, name FROM entities WHERE key $keys", keys))

    async def entities(self, keys: Sequence[int]) -> dict[int, Entity]:
        """Entities by key."""
        found = await self._select_checked(_ENTITIES, keys, beside=1)
        entities = {row[-1]: rows.row_to_entity((*row[:2], *row[3:-1])) for row in found}
        return self._require_all("entities", keys, entities)

    async def facts(self, keys: Sequence[int]) -> dict[int, Fact]:
        """Facts by key."""
        members: dict[int, list[Participant]] = defaultdict(list)
        read: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for key, name, entity, role in await self._select(
            "SELECT p.fact, p.entity, e.id, p.role FROM participants p "
            "JOIN entities e ON e.key = p.entity WHERE p.fact $keys ORDER BY p.fact, p.ordinal",
            keys,
        ):
            members[key].append(Participant(entity, role))
            read[key].append((name, role))
        found = await self._select_checked(
            "SELECT checksum, id, text, relation, keywords, description, weight, support, key "
            "FROM facts WHERE key $keys ORDER BY key",
            keys,
            beside=1,
        )
        facts = {row[-1]: rows.row_to_fact(row[:-1], members[row[-1]]) for row in found}
        if any(fact.id != compute_fact_id(fact) for fact in facts.values()):
            raise StoreError(DAMAGED_ROW)  # a participant is another one
        self.participants.update(read)
        return self._require_all("facts", keys, facts)

    async def fact_texts(self, keys: Sequence[int]) -> dict[int, FactText]:
        """What facts say by key."""
        found = await self._select_checked(
            "SELECT checksum, id, text, relation, keywords, description, weight, support, key "
            "FROM facts WHERE key $keys ORDER BY key",
            keys,
            beside=1,
        )
        texts = {
            key: FactText(fact, text, relation, rows.unpack(keywords), description)
            for fact, text, relation, keywords, description, _, _, key in found
        }
        return self._require_all("facts", keys, texts)

    async def fact_spans(self, keys: Sequence[int]) -> dict[int, list[Support]]:
        """Spans that state each fact, not compared with what was extracted."""
        found: dict[int, list[Support]] = defaultdict(list)
        for key, *place in await self._select(_SPANS, keys):
            found[key].append(Support(*place))
        return dict(found)

    async def relations(self, keys: Sequence[int]) -> dict[int, str]:
        """Relations of facts by key; the whole rows are checked where the facts are read."""
        found = await self._select("SELECT key, relation FROM facts WHERE key $keys", keys)
        return self._require_all("facts", keys, dict(found))

    async def members(self, keys: Sequence[int]) -> dict[int, list[tuple[int, str]]]:
        """Participants of facts: entity key and role, in order."""
        found: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for key, entity, role in await self._select(
            "SELECT fact, entity, role FROM participants WHERE fact $keys ORDER BY fact, ordinal",
            [key for key in keys if key not in self.participants],
        ):
            found[key].append((entity, role))
        self.participants.update(found)
        return {key: self.participants[key] for key in keys if key in self.participants}

    async def get(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored values of these keys."""
        return await self.get_values(kind, keys)

    async def mentions(self, keys: Sequence[int]) -> dict[int, list[ChunkMention]]:
        """Mentions of each name, with their chunks."""
        found: dict[int, list[ChunkMention]] = defaultdict(list)
        stated = await self._select_stated(_MENTIONS, keys)
        for name, key, chunk, spans, *row in stated:
            mention = rows.row_to_mention(tuple(row))._replace(spans=rows.unpack_spans(spans))
            found[name].append((key, chunk, mention))
        return self._require_all("entities", keys, dict(found))

    async def supports(self, kind: Kind, keys: Sequence[int]) -> dict[int, list[Support]]:
        """Spans of each entity or fact; a mention without a span covers its chunk."""
        found: dict[int, list[Support]] = defaultdict(list)
        if kind == "fact":
            for key, _, *place in await self._select_stated(_SAYINGS, keys):
                found[key].append(Support(*place))
            return dict(found)
        for key, _, chunk, start, end, packed in await self._select_stated(_MENTIONED, keys):
            for span in rows.unpack_spans(packed) or ((start, end),):
                found[key].append(Support(chunk, *span))
        return dict(found)

    async def _select_stated(self, statement: str, keys: Sequence[int]) -> list[rows.Row]:
        """Select what chunks say of elements, each row with the element, the chunk, and the rest.

        Raise if some of it was lost, which the element's own row tells, or is not what was
        extracted from its chunk.
        """
        found, sums, left = [], dict[int, int | None](), Counter[int]()
        for support, extracted, key, chunk, *rest in await self._select(statement, keys):
            left[key] += (0 if key in left else support) - (chunk is not None)
            if chunk is not None:
                sums[chunk] = extracted
                found.append((key, chunk, *rest))
        if any(left.values()):
            raise StoreError(DAMAGED_ROW)
        await self._check_extracted(sums)
        return found

    async def _check_extracted(self, sums: Mapping[int, int | None]) -> None:
        """Raise if what is stored of these chunks is not what was extracted from them."""
        unchecked = sorted(sums.keys() - self.checked)
        held: Counter[int] = Counter()
        for statement in _EXTRACTED:
            for chunk, *cells in await self._select(statement, unchecked):
                held[chunk] += checksum_cells(*cells)
        if any(sums[chunk] not in (None, held[chunk]) for chunk in unchecked):
            raise StoreError(DAMAGED_ROW)
        self.checked.update(unchecked)

    def _require_all(
        self, table: str, keys: Sequence[int], found: dict[int, _Found]
    ) -> dict[int, _Found]:
        """Raise if a key that this generation was derived from is no longer in its table."""
        missing = {int(key) for key in keys} - found.keys()
        if missing and (columns := self.arrays.get(COLUMN_PREFIX + table)) is not None:
            if not missing.isdisjoint(columns[:, 0].tolist()):
                raise StoreError(DAMAGED_ROW)
        return found

    async def _select(self, statement: str, keys: Keys) -> list[rows.Row]:
        # NumPy integers can be sent to neither.
        listed = [key if isinstance(key, str) else int(key) for key in keys]
        return await self.select(statement, listed) if listed else []

    async def _select_checked(self, statement: str, keys: Keys, beside: int = 0) -> list[rows.Row]:
        """Select rows that begin with their checksum; the last `beside` cells are not in it."""
        found = []
        for checksum, *cells in await self._select(statement, keys):
            if checksum not in (None, checksum_cells(*cells[: len(cells) - beside])):
                raise StoreError(DAMAGED_ROW)
            found.append(tuple(cells))
        return found
