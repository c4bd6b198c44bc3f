"""Snapshot of one generation: an open transaction (repeatable read) and the arrays."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString, TypeVar

from clew.errors import StoreError
from clew.kb_address import DatabaseAddress
from clew.store.checksums import checksum_cells
from clew.store.merge import compute_fact_id
from clew.store.postgres.connections import Connection, translate_errors
from clew.store.postgres.keyvalue import DAMAGED_ROW, select_values
from clew.store.protocol import Arrays
from clew.store.resolved_entities import ChunkMention
from clew.store.sqlite import rows
from clew.store.sqlite.tables import COLUMN_PREFIX
from clew.types import Chunk, Document, Entity, Fact, Kind, Participant, Support

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class PostgresSnapshot:
    """Reads by key, in threads; the open transaction keeps the generation unchanged."""

    db: Connection
    generation: int
    arrays: Arrays
    address: DatabaseAddress

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Documents by content id."""
        names = await self.names(ids)
        found = await self._select_checked(
            "SELECT checksum, id, title, text, metadata, pages, stamp FROM documents "
            "WHERE id = ANY(%s::text[]) ORDER BY key",
            ids,
        )
        return {row[0]: rows.row_to_document(row[:5], names.get(row[0], ())) for row in found}

    async def names(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The names of documents, without their text."""
        names: dict[str, list[str]] = defaultdict(list)
        for name, _, key in await self._select_checked(
            "SELECT s.checksum, s.name, s.document, d.id FROM documents d "
            "LEFT JOIN sources s ON d.key = s.document "
            "WHERE d.id = ANY(%s::text[]) ORDER BY s.name",
            ids,
            beside=1,
        ):
            if name is None:
                raise StoreError(DAMAGED_ROW)  # every document has a name
            names[key].append(name)
        return {key: tuple(many) for key, many in names.items()}

    async def chunks(self, keys: Sequence[int]) -> dict[int, Chunk]:
        """Chunks by key."""
        found = await self._select_checked(
            "SELECT c.checksum, c.id, d.id, c.start, c.stop, c.text, d.title, c.heading, c.page, "
            "c.failed, c.key FROM chunks c JOIN documents d ON d.key = c.document "
            "WHERE c.key = ANY(%s::bigint[]) ORDER BY c.key",
            keys,
            beside=1,
        )
        return self._require_all("chunks", keys, {row[-1]: Chunk(*row[:-2]) for row in found})

    async def entities(self, keys: Sequence[int]) -> dict[int, Entity]:
        """Entities by key."""
        found = await self._select_checked(
            "SELECT checksum, id, name, name_hash, type, description, aliases, attributes, support,"
            " key FROM entities WHERE key = ANY(%s::bigint[]) ORDER BY key",
            keys,
            beside=1,
        )
        entities = {row[-1]: rows.row_to_entity((*row[:2], *row[3:-1])) for row in found}
        return self._require_all("entities", keys, entities)

    async def facts(self, keys: Sequence[int]) -> dict[int, Fact]:
        """Facts by key."""
        members: dict[int, list[Participant]] = defaultdict(list)
        for key, entity, role in await self._select(
            "SELECT p.fact, e.id, p.role FROM participants p JOIN entities e ON e.key = p.entity "
            "WHERE p.fact = ANY(%s::bigint[]) ORDER BY p.fact, p.ordinal",
            keys,
        ):
            members[key].append(Participant(entity, role))
        found = await self._select_checked(
            "SELECT checksum, id, text, relation, keywords, description, weight, support, key "
            "FROM facts WHERE key = ANY(%s::bigint[]) ORDER BY key",
            keys,
            beside=1,
        )
        facts = {row[-1]: rows.row_to_fact(row[:-1], members[row[-1]]) for row in found}
        if any(fact.id != compute_fact_id(fact) for fact in facts.values()):
            raise StoreError(DAMAGED_ROW)  # a participant is another one
        return self._require_all("facts", keys, facts)

    async def members(self, keys: Sequence[int]) -> dict[int, list[tuple[int, str]]]:
        """Participants of facts: entity key and role, in order."""
        found: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for key, entity, role in await self._select(
            "SELECT fact, entity, role FROM participants "
            "WHERE fact = ANY(%s::bigint[]) ORDER BY fact, ordinal",
            keys,
        ):
            found[key].append((entity, role))
        return dict(found)

    async def get(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored values of these keys."""
        with translate_errors(self.address):
            return await asyncio.to_thread(select_values, self.db, kind, keys)

    async def mentions(self, keys: Sequence[int]) -> dict[int, list[ChunkMention]]:
        """Mentions of each name, with their chunks."""
        found: dict[int, list[ChunkMention]] = defaultdict(list)
        for name, key, chunk, spans, *row in await self._select(
            "SELECT m.entity, c.key, c.id, m.spans, m.surface, m.type, m.description, m.about, "
            "m.aliases, m.attributes FROM mentions m JOIN chunks c ON c.key = m.chunk "
            "WHERE m.entity = ANY(%s::bigint[]) ORDER BY m.entity, m.chunk",
            keys,
        ):
            mention = rows.row_to_mention(tuple(row))._replace(spans=rows.unpack_spans(spans))
            found[name].append((key, chunk, mention))
        return self._require_all("entities", keys, dict(found))

    async def supports(self, kind: Kind, keys: Sequence[int]) -> dict[int, list[Support]]:
        """Spans of each entity or fact; a mention without a span covers its chunk."""
        found: dict[int, list[Support]] = defaultdict(list)
        if kind == "fact":
            for key, *stated in await self._select(
                "SELECT s.fact, c.id, s.start, s.stop FROM sayings s JOIN chunks c "
                "ON c.key = s.chunk WHERE s.fact = ANY(%s::bigint[]) ORDER BY s.fact, s.chunk",
                keys,
            ):
                found[key].append(Support(*stated))
            return dict(found)
        for key, chunk, start, end, packed in await self._select(
            "SELECT m.entity, c.id, c.start, c.stop, m.spans FROM mentions m JOIN chunks c "
            "ON c.key = m.chunk WHERE m.entity = ANY(%s::bigint[]) ORDER BY m.entity, m.chunk",
            keys,
        ):
            for span in rows.unpack_spans(packed) or ((start, end),):
                found[key].append(Support(chunk, *span))
        return dict(found)

    def _require_all(
        self, table: str, keys: Sequence[int], found: dict[int, _Found]
    ) -> dict[int, _Found]:
        """Raise if a key that this generation was derived from is no longer in its table."""
        missing = {int(key) for key in keys} - found.keys()
        if missing and (columns := self.arrays.get(COLUMN_PREFIX + table)) is not None:
            if not missing.isdisjoint(columns[:, 0].tolist()):
                raise StoreError(DAMAGED_ROW)
        return found

    async def _select(
        self, statement: LiteralString, keys: Sequence[str] | Sequence[int]
    ) -> list[rows.Row]:
        # NumPy integers are not adapted.
        listed = [key if isinstance(key, str) else int(key) for key in keys]
        if not listed:
            return []
        with translate_errors(self.address):
            return await asyncio.to_thread(lambda: self.db.execute(statement, (listed,)).fetchall())

    async def _select_checked(
        self, statement: LiteralString, keys: Sequence[str] | Sequence[int], beside: int = 0
    ) -> list[rows.Row]:
        """Select rows that begin with their checksum; the last `beside` cells are not in it."""
        found = []
        for checksum, *cells in await self._select(statement, keys):
            if checksum not in (None, checksum_cells(*cells[: len(cells) - beside])):
                raise StoreError(DAMAGED_ROW)
            found.append(tuple(cells))
        return found
