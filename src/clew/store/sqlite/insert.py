"""Batched inserts of documents, chunks, entities and facts.

New elements are merged in memory and written once. `PreparedAdditions` computes the rows that do
not depend on the database while documents still arrive.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import NamedTuple

from clew.store.bm25 import precount_words
from clew.store.checksums import checksum_cells
from clew.store.merge import (
    FactMention,
    FactMentions,
    Mention,
    embedded_text,
    entity_form_rows,
    group_fact_mentions,
    group_mentions,
    label_code,
    merge_entity,
    merge_fact,
    name_form_rows,
    name_hash,
)
from clew.store.protocol import Addition, Array
from clew.store.sqlite import rows
from clew.store.sqlite.rows import Row, pack
from clew.text.unicode import digest
from clew.types import LITERAL_TYPES, Chunk, Entity, Extraction, Fact, Kind

FindVectorRows = Callable[[Kind, Sequence[str]], Array]
ChunkRow = tuple[int, Chunk, str, int]
"""A chunk's key, the chunk, why its extraction failed, and its document's key."""


@dataclass(frozen=True, slots=True)
class NewEntities:
    """Keys of all mentioned entities, and the new entities, complete except for vector rows."""

    keys: dict[str, int]
    entities: list[Entity]

    def insert(self, db: sqlite3.Connection, vector_rows: FindVectorRows) -> None:
        """Insert the new ones, each with its vector row."""
        at = vector_rows("entity", [digest(one.name) for one in self.entities]).tolist()
        db.executemany(
            "INSERT INTO entities(key,id,name,name_hash,type,description,aliases,attributes,"
            "support,row,checksum) "
            "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,checksum(?2,?3,?4,?5,?6,?7,?8,?9))",
            [
                (self.keys[one.id], one.id, *entity_to_cells(one), row)
                for one, row in zip(self.entities, at, strict=True)
            ],
        )


def merge_new_entities(
    db: sqlite3.Connection, mentions: Sequence[Mapping[str, Mention]]
) -> NewEntities:
    """Merge the new entities and insert their name forms."""
    by_id: dict[str, list[Mention]] = defaultdict(list)
    for found in mentions:
        for key, mention in found.items():
            by_id[key].append(mention)
    known = _find_keys(db, "entities", by_id)
    made = [merge_entity(key, by_id[key]) for key in sorted(by_id.keys() - known.keys())]
    new = {entity.id: key for key, entity in enumerate(made, next_key(db, "entities"))}
    db.executemany(
        "INSERT INTO forms VALUES (?,?,?,?)",
        [(new[entity.id], *form) for entity in made for form in entity_form_rows(entity)],
    )
    return NewEntities(known | new, made)


def entity_to_cells(entity: Entity) -> Row:
    """Cells: name, hash, type, description, aliases, attributes, support."""
    aliases, attributes = pack(entity.aliases), pack(entity.attributes)
    merged = (entity.type, entity.description, aliases, attributes)
    return (entity.name, name_hash(entity.name), *merged, entity.support)


@dataclass(frozen=True, slots=True)
class NewFacts:
    """The same for facts."""

    keys: dict[str, int]
    facts: list[Fact]

    def insert(self, db: sqlite3.Connection, vector_rows: FindVectorRows) -> None:
        """Insert the new ones, each with its vector row."""
        at = vector_rows("fact", [digest(one.text) for one in self.facts]).tolist()
        db.executemany(
            "INSERT INTO facts"
            "(key,id,text,relation,keywords,description,weight,support,row,checksum) "
            "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,checksum(?2,?3,?4,?5,?6,?7,?8))",
            [
                (self.keys[one.id], one.id, *fact_to_cells(one), row)
                for one, row in zip(self.facts, at, strict=True)
            ],
        )


def merge_new_facts(db: sqlite3.Connection, mentions: Sequence[FactMentions]) -> NewFacts:
    """Merge the new facts."""
    by_id: dict[str, list[FactMention]] = defaultdict(list)
    for found in mentions:
        for key, (_, mention) in found.items():
            by_id[key].append(mention)
    known = _find_keys(db, "facts", by_id)
    made = [merge_fact(key, (), by_id[key]) for key in sorted(by_id.keys() - known.keys())]
    new = {fact.id: key for key, fact in enumerate(made, next_key(db, "facts"))}
    return NewFacts(known | new, made)


def fact_to_cells(fact: Fact) -> Row:
    """Cells: text, relation, keywords, description, weight, support."""
    keywords = pack(fact.keywords)
    weight = float(fact.weight)  # as SQLite returns it
    return (fact.text, fact.relation, keywords, fact.description, weight, fact.support)


def next_key(db: sqlite3.Connection, table: str) -> int:
    """Key of the table's next row; keys are never reused."""
    held = db.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    used = db.execute(f"SELECT max(key) FROM {table}").fetchone()  # noqa: S608  (a table of ours)
    return max(held[0] or 0, used[0] or 0) + 1


def raise_next_keys(db: sqlite3.Connection) -> None:
    """Make the next key of each table one that no row has."""
    for table in ("documents", "chunks", "entities", "facts"):
        last = next_key(db, table) - 1
        db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        db.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, last))


def _find_keys(db: sqlite3.Connection, table: str, ids: Iterable[str]) -> dict[str, int]:
    return dict(
        db.execute(
            f"SELECT id, key FROM {table} WHERE id IN (SELECT value FROM json_each(?))",  # noqa: S608
            (json.dumps(list(ids)),),
        )
    )


def find_documents(
    db: sqlite3.Connection, additions: Sequence[Addition]
) -> dict[str, tuple[int, str]]:
    """Key and stamp, by id, of the documents that are already stored."""
    found = db.execute(
        "SELECT id, key, stamp FROM documents WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps([a.document.id for a in additions]),),
    )
    return {name: (key, stamp) for name, key, stamp in found}


def insert_documents(
    db: sqlite3.Connection, additions: Sequence[Addition]
) -> tuple[list[Addition], list[ChunkRow]]:
    """Insert documents and names; return those without chunks, and their future chunk rows."""
    db.executemany(
        "INSERT OR IGNORE INTO documents(id,title,text,metadata,pages,stamp,checksum) "
        "VALUES (?1,?2,?3,?4,?5,?6,checksum(?1,?2,?3,?4,?5,?6))",
        [rows.document_to_row(a.document, a.stamp) for a in additions],
    )
    stored = find_documents(db, additions)
    keys = {name: key for name, (key, _) in stored.items()}
    db.executemany(
        "INSERT OR REPLACE INTO sources VALUES (?1,?2,checksum(?1,?2))",
        [(name, keys[a.document.id]) for a in additions for name in a.document.names],
    )
    db.executemany(
        "UPDATE documents SET stamp = ?1, checksum = checksum(id,title,text,metadata,pages,?1) "
        "WHERE key = ?2",
        [(a.stamp, keys[a.document.id]) for a in additions if a.stamp != stored[a.document.id][1]],
    )
    fresh = _filter_without_chunks(db, additions, keys)
    numbers = count(next_key(db, "chunks"))
    return fresh, [
        (next(numbers), chunk, extraction.failed, keys[a.document.id])
        for a in fresh
        for chunk, extraction in zip(a.chunks, a.extractions, strict=True)
    ]


def _filter_without_chunks(
    db: sqlite3.Connection, additions: Sequence[Addition], keys: dict[str, int]
) -> list[Addition]:
    """Additions whose chunks are not stored; of a repeated document only the first."""
    held = {
        row[0]
        for row in db.execute(
            "SELECT document FROM chunks WHERE document IN (SELECT value FROM json_each(?))",
            (json.dumps(list(keys.values())),),
        )
    }
    return keep_unstored(additions, keys, held)


def keep_unstored(
    additions: Sequence[Addition], keys: Mapping[str, int], held: set[int]
) -> list[Addition]:
    """Additions whose document is not among those that have chunks; a repeated one only once."""
    fresh = []
    for addition in additions:
        key = keys[addition.document.id]
        if key not in held:
            fresh.append(addition)
            if addition.chunks:
                held.add(key)
    return fresh


def insert_chunks(
    db: sqlite3.Connection,
    vector_rows: FindVectorRows,
    many: Sequence[ChunkRow],
    prepared: Iterable["PreparedExtraction"],
) -> None:
    """Insert chunks, each with its vector row and the checksum of what was extracted from it."""
    at = vector_rows("chunk", [digest(embedded_text(chunk)) for _, chunk, _, _ in many]).tolist()
    db.executemany(
        "INSERT INTO chunks"
        "(key,id,document,start,end,text,heading,page,row,failed,checksum,extracted) "
        # Its document's id and title are shown with it: they are in the checksum.
        "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,checksum(?2,?12,?4,?5,?6,?13,?7,?8,?10),?11)",
        [
            (
                *(key, chunk.id, document, chunk.start, chunk.end, chunk.text),
                *(chunk.heading, chunk.page, row, failed, one.checksum),
                *(chunk.document, chunk.title),
            )
            for (key, chunk, failed, document), row, one in zip(many, at, prepared, strict=True)
        ],
    )


class PreparedExtraction(NamedTuple):
    """One extraction as mentions and row cells without keys."""

    mentions: dict[str, Mention]
    mention_cells: list[Row]
    fact_mentions: FactMentions
    fact_mention_cells: list[Row]
    checksum: int


def prepare_extraction(extraction: Extraction) -> PreparedExtraction:
    """Convert an extraction to mentions and row cells."""
    mentions, facts = group_mentions(extraction), group_fact_mentions(extraction)
    mention_cells = [rows.mention_to_cells(mention) for mention in mentions.values()]
    fact_cells = [rows.fact_mention_to_cells(mention) for _, mention in facts.values()]
    # A sum, which does not depend on the order of rows.
    checksum = sum(map(checksum_cells, mentions, *zip(*mention_cells, strict=True)))
    checksum += sum(map(checksum_cells, facts, *zip(*fact_cells, strict=True)))
    return PreparedExtraction(mentions, mention_cells, facts, fact_cells, checksum)


@dataclass(eq=False)
class PreparedAdditions:
    """Additions in order, each prepared on arrival."""

    additions: list[Addition] = field(default_factory=list)
    _prepared: dict[int, PreparedExtraction] = field(default_factory=dict)
    """By the extraction's `id()`, which is stable because `additions` keeps the object alive."""

    def add(self, addition: Addition) -> None:
        """Add one, keeping its prepared rows in place of its extractions."""
        stubs = tuple([Extraction(failed=one.failed) for one in addition.extractions])
        self.additions.append(replace(addition, extractions=stubs))
        for extraction, stub in zip(addition.extractions, stubs, strict=True):
            prepared = prepare_extraction(extraction)
            # Spans are already in the row cells, and merging does not need them.
            bare = {key: mention._replace(spans=()) for key, mention in prepared.mentions.items()}
            self._prepared[id(stub)] = prepared._replace(mentions=bare)
            for mention in prepared.mentions.values():
                # Fills the LRU caches of these functions.
                if mention.type not in LITERAL_TYPES:
                    name_form_rows(mention.surface, mention.aliases)
                name_hash(mention.surface)
            for _, fact_mention in prepared.fact_mentions.values():
                label_code(fact_mention.relation)
        for chunk in addition.chunks:
            precount_words(embedded_text(chunk))

    def __call__(self, extraction: Extraction) -> PreparedExtraction:
        """Return the prepared extraction, preparing it now if necessary."""
        return self._prepared.get(id(extraction)) or prepare_extraction(extraction)
