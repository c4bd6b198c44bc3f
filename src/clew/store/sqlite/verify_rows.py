"""Consistency checks of the tables: checksums, references, spans, and merged elements."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

from clew.store.checksums import checksum_cells
from clew.store.merge import compute_fact_id, entity_form_rows
from clew.store.sqlite.insert import entity_to_cells, fact_to_cells
from clew.store.sqlite.write import merge_stored_entities, merge_stored_facts
from clew.types import Entity, Participant

# Each query counts rows that must not exist; its key describes such a row.
_VIOLATION_QUERIES = {
    "chunks without a document": (
        "SELECT count(*) FROM chunks WHERE document NOT IN (SELECT key FROM documents)"
    ),
    "documents without a name": (
        "SELECT count(*) FROM documents WHERE key NOT IN (SELECT document FROM sources)"
    ),
    "names of unknown documents": (
        "SELECT count(*) FROM sources WHERE document NOT IN (SELECT key FROM documents)"
    ),
    "entities without a mention": (
        "SELECT count(*) FROM entities WHERE key NOT IN (SELECT entity FROM mentions)"
    ),
    "mentions of unknown entities": (
        "SELECT count(*) FROM mentions WHERE entity NOT IN (SELECT key FROM entities)"
    ),
    "mentions in unknown chunks": (
        "SELECT count(*) FROM mentions WHERE chunk NOT IN (SELECT key FROM chunks)"
    ),
    "facts without a mention": (
        "SELECT count(*) FROM facts WHERE key NOT IN (SELECT fact FROM sayings)"
    ),
    "mentions of unknown facts": (
        "SELECT count(*) FROM sayings WHERE fact NOT IN (SELECT key FROM facts)"
    ),
    "statements in unknown chunks": (
        "SELECT count(*) FROM sayings WHERE chunk NOT IN (SELECT key FROM chunks)"
    ),
    "participants that are unknown entities": (
        "SELECT count(*) FROM participants WHERE entity NOT IN (SELECT key FROM entities)"
    ),
    "participants of unknown facts": (
        "SELECT count(*) FROM participants WHERE fact NOT IN (SELECT key FROM facts)"
    ),
    "documents with a wrong checksum": (
        "SELECT count(*) FROM documents "
        "WHERE checksum != checksum(id, title, text, metadata, pages, stamp)"
    ),
    "chunks with a wrong checksum": (
        "SELECT count(*) FROM chunks c JOIN documents d ON d.key = c.document WHERE c.checksum != "
        "checksum(c.id, d.id, c.start, c.end, c.text, d.title, c.heading, c.page, c.failed)"
    ),
    "entities with a wrong checksum": (
        "SELECT count(*) FROM entities WHERE checksum != "
        "checksum(id, name, name_hash, type, description, aliases, attributes, support)"
    ),
    "facts with a wrong checksum": (
        "SELECT count(*) FROM facts WHERE checksum != "
        "checksum(id, text, relation, keywords, description, weight, support)"
    ),
    "names with a wrong checksum": (
        "SELECT count(*) FROM sources WHERE checksum != checksum(name, document)"
    ),
    "stored values with a wrong checksum": (
        "SELECT count(*) FROM memory WHERE checksum != checksum(kind, key, value)"
    ),
    "labels that were lost": (  # of which only the copy is left
        "SELECT coalesce(sum(max(copies - held, 0)), 0) FROM (SELECT sum(key GLOB char(31) || '*') "
        "AS copies, sum(key NOT GLOB char(31) || '*') AS held FROM memory "
        "WHERE kind IN ('label', 'earlier-labels') GROUP BY kind)"
    ),
    "tables whose next key is used already": (
        "SELECT count(*) FROM (SELECT 'documents' AS name, max(key) AS used FROM documents "
        "UNION SELECT 'chunks', max(key) FROM chunks "
        "UNION SELECT 'entities', max(key) FROM entities "
        "UNION SELECT 'facts', max(key) FROM facts) LEFT JOIN sqlite_sequence USING (name) "
        "WHERE used > coalesce(seq, 0)"
    ),
}
_MENTION_CELLS = (
    "SELECT m.chunk, e.id, m.surface, m.type, m.description, m.spans, m.times, m.about, m.aliases, "
    "m.attributes FROM mentions m JOIN entities e ON e.key = m.entity"
)
_FACT_MENTION_CELLS = (
    "SELECT s.chunk, f.id, s.text, s.relation, s.keywords, s.description, s.weight, s.start, s.end "
    "FROM sayings s JOIN facts f ON f.key = s.fact"
)
_EXTRACTED_SUMS = "SELECT key, extracted FROM chunks WHERE extracted IS NOT NULL"


def find_row_problems(db: sqlite3.Connection) -> list[str]:
    """Return one sentence per problem of the tables."""
    try:
        found = [str(row[0]) for row in db.execute("PRAGMA integrity_check") if row[0] != "ok"]
        if found:  # what cannot be read cannot be checked further
            return found
        counts = {
            meaning: int(db.execute(statement).fetchone()[0])
            for meaning, statement in _VIOLATION_QUERIES.items()
        }
        counts["chunks whose text differs from their document at that span"] = _count_bad_spans(db)
        counts["chunks with other mentions than were extracted"] = _count_bad_chunks(db)
        merged = dict(merge_stored_entities(db))
        counts["entities that differ from their mentions"] = _count_bad_entities(db, merged)
        counts["entities with wrong name forms"] = _count_bad_forms(db, merged)
        counts["facts that differ from their mentions"] = _count_bad_facts(db)
    except (sqlite3.DatabaseError, UnicodeDecodeError, ValueError, TypeError) as error:
        return [f"the tables cannot be read ({error})"]
    return [f"{count} {meaning}" for meaning, count in counts.items() if count]


def _count_bad_spans(db: sqlite3.Connection) -> int:
    """Chunks that differ from their document; each document is read once, however long it is."""
    wrong, key, text = 0, 0, ""
    for document, start, end, chunk in db.execute(
        "SELECT document, start, end, text FROM chunks ORDER BY document"
    ):
        if document != key:
            row = db.execute("SELECT text FROM documents WHERE key = ?", (document,)).fetchone()
            key, text = document, row[0] if row else ""
        wrong += text[start:end] != chunk
    return wrong


def _count_bad_chunks(db: sqlite3.Connection) -> int:
    """Chunks whose mentions differ from what was extracted."""
    held: dict[int, int] = defaultdict(int)
    for statement in (_MENTION_CELLS, _FACT_MENTION_CELLS):
        for chunk, *cells in db.execute(statement):
            held[chunk] += checksum_cells(*cells)
    return sum(held[key] != checksum for key, checksum in db.execute(_EXTRACTED_SUMS))


def _count_bad_entities(db: sqlite3.Connection, merged: Mapping[int, Entity]) -> int:
    """Entities that are not what their mentions merge to."""
    stored = db.execute(
        "SELECT key, name, name_hash, type, description, aliases, attributes, support FROM entities"
    )
    return sum(
        key not in merged or tuple(cells) != entity_to_cells(merged[key]) for key, *cells in stored
    )


def _count_bad_forms(db: sqlite3.Connection, merged: Mapping[int, Entity]) -> int:
    """Entities whose short names and tokens are not those of their name."""
    unseen = dict(merged)
    forms = db.execute("SELECT entity, hash, weight, part FROM forms ORDER BY entity")
    wrong = 0
    for key, rows in groupby(forms, itemgetter(0)):
        entity = unseen.pop(key, None)
        wrong += entity is None or {row[1:] for row in rows} != {*entity_form_rows(entity)}
    return wrong + sum(bool(entity_form_rows(entity)) for entity in unseen.values())


def _count_bad_facts(db: sqlite3.Connection) -> int:
    """Facts that are not what their mentions merge to, or whose participants are others."""
    merged = dict(merge_stored_facts(db))
    members = dict(_list_members(db))
    stored = db.execute(
        "SELECT key, id, text, relation, keywords, description, weight, support FROM facts"
    )
    wrong = 0
    for key, name, *cells in stored:
        fact = merged.get(key)
        wrong += (
            fact is None
            or tuple(cells) != fact_to_cells(fact)
            or name != compute_fact_id(replace(fact, participants=members.get(key, ())))
        )
    return wrong


def _list_members(db: sqlite3.Connection) -> Iterator[tuple[int, tuple[Participant, ...]]]:
    found = db.execute(
        "SELECT p.fact, e.id, p.role FROM participants p "
        "JOIN entities e ON e.key = p.entity ORDER BY p.fact, p.ordinal"
    )
    for fact, rows in groupby(found, itemgetter(0)):
        yield fact, tuple(Participant(entity, role) for _, entity, role in rows)
