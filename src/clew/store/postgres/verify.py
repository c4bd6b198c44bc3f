"""Consistency checks: references, checksums, merged elements; then arrays and vectors."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import LiteralString

import numpy as np

from clew.store.checksums import checksum_cells
from clew.store.merge import compute_fact_id, entity_form_rows
from clew.store.postgres.connections import Connection
from clew.store.postgres.tables import read_tables
from clew.store.postgres.vectors import SharedVectors
from clew.store.postgres.write import (
    iterate_content_hashes,
    merge_stored_entities,
    merge_stored_facts,
)
from clew.store.protocol import DEFERRED, DETAIL_ROWS, PARTLY_EMBEDDED, Array, Arrays
from clew.store.sqlite.insert import entity_to_cells, fact_to_cells
from clew.store.sqlite.tables import columns_to_keep
from clew.store.sqlite.verify import find_key_problems, find_missing_vectors, sort_rows
from clew.types import Kind, Participant

_BLOCK = 20_000  # elements compared at once
# Each query counts rows that must not exist; its key describes such a row.
_VIOLATIONS: dict[str, LiteralString] = {
    "chunks without a document": "SELECT count(*) FROM chunks c WHERE NOT EXISTS "
    "(SELECT FROM documents d WHERE d.key = c.document)",
    "documents without a name": "SELECT count(*) FROM documents d WHERE NOT EXISTS "
    "(SELECT FROM sources s WHERE s.document = d.key)",
    "names of unknown documents": "SELECT count(*) FROM sources s WHERE NOT EXISTS "
    "(SELECT FROM documents d WHERE d.key = s.document)",
    "entities without a mention": "SELECT count(*) FROM entities e WHERE NOT EXISTS "
    "(SELECT FROM mentions m WHERE m.entity = e.key)",
    "mentions of unknown entities": "SELECT count(*) FROM mentions m WHERE NOT EXISTS "
    "(SELECT FROM entities e WHERE e.key = m.entity)",
    "mentions in unknown chunks": "SELECT count(*) FROM mentions m WHERE NOT EXISTS "
    "(SELECT FROM chunks c WHERE c.key = m.chunk)",
    "facts without a mention": "SELECT count(*) FROM facts f WHERE NOT EXISTS "
    "(SELECT FROM sayings s WHERE s.fact = f.key)",
    "mentions of unknown facts": "SELECT count(*) FROM sayings s WHERE NOT EXISTS "
    "(SELECT FROM facts f WHERE f.key = s.fact)",
    "statements in unknown chunks": "SELECT count(*) FROM sayings s WHERE NOT EXISTS "
    "(SELECT FROM chunks c WHERE c.key = s.chunk)",
    "participants that are unknown entities": "SELECT count(*) FROM participants p WHERE NOT "
    "EXISTS (SELECT FROM entities e WHERE e.key = p.entity)",
    "participants of unknown facts": "SELECT count(*) FROM participants p WHERE NOT EXISTS "
    "(SELECT FROM facts f WHERE f.key = p.fact)",
    "chunks whose text differs from their document at that span": "SELECT count(*) FROM chunks c "
    "JOIN documents d ON d.key = c.document "
    "WHERE substr(d.text, (c.start + 1)::int, (c.stop - c.start)::int) != c.text",
    "labels that were lost": "SELECT coalesce(sum(greatest(copies - held, 0)), 0) FROM (SELECT "
    "count(*) FILTER (WHERE starts_with(key, chr(31))) AS copies, "
    "count(*) FILTER (WHERE NOT starts_with(key, chr(31))) AS held FROM memory "
    "WHERE kind IN ('label', 'earlier-labels') GROUP BY kind) AS labels",
    "tables whose next key is unknown": "SELECT 4 - count(*) FROM counters",
    "tables whose next key is used already": "SELECT count(*) FROM counters WHERE last < CASE name "
    "WHEN 'documents' THEN (SELECT max(key) FROM documents) "
    "WHEN 'chunks' THEN (SELECT max(key) FROM chunks) "
    "WHEN 'entities' THEN (SELECT max(key) FROM entities) "
    "WHEN 'facts' THEN (SELECT max(key) FROM facts) END",
}
# Rows that begin with their checksum.
_CHECKED: dict[str, LiteralString] = {
    "documents": "SELECT checksum, id, title, text, metadata, pages, stamp FROM documents",
    "chunks": "SELECT c.checksum, c.id, d.id, c.start, c.stop, c.text, d.title, c.heading, c.page, "
    "c.failed FROM chunks c JOIN documents d ON d.key = c.document",
    "entities": "SELECT checksum, id, name, name_hash, type, description, aliases, attributes, "
    "support FROM entities",
    "facts": "SELECT checksum, id, text, relation, keywords, description, weight, support "
    "FROM facts",
    "names": "SELECT checksum, name, document FROM sources",
    "stored values": "SELECT checksum, kind, key, value FROM memory",
}
_EXTRACTED: tuple[LiteralString, ...] = (
    "SELECT m.chunk, e.id, m.surface, m.type, m.description, m.spans, m.times, m.about, m.aliases, "
    "m.attributes FROM mentions m JOIN entities e ON e.key = m.entity",
    "SELECT s.chunk, f.id, s.text, s.relation, s.keywords, s.description, s.weight, s.start, "
    "s.stop FROM sayings s JOIN facts f ON f.key = s.fact",
)
_KEYS: dict[Kind, LiteralString] = {
    "chunk": "SELECT key FROM chunks ORDER BY key",
    "entity": "SELECT key FROM entities ORDER BY key",
    "fact": "SELECT key FROM facts ORDER BY key",
}


def find_problems(
    db: Connection, arrays: Arrays | None, vectors: Mapping[Kind, SharedVectors]
) -> list[str]:
    """Return one sentence per problem; `arrays` is None if they are damaged."""
    counts = {meaning: _count(db, statement) for meaning, statement in _VIOLATIONS.items()}
    for table, statement in _CHECKED.items():
        counts[f"{table} with a wrong checksum"] = sum(
            checksum not in (None, checksum_cells(*cells))
            for checksum, *cells in db.execute(statement)
        )
    counts["chunks with other mentions than were extracted"] = _count_bad_chunks(db)
    counts |= _count_bad_elements(db)
    found = [f"{count} {meaning}" for meaning, count in counts.items() if count]
    return found if arrays is None else found + _find_array_problems(db, arrays, vectors)


def _count(db: Connection, statement: LiteralString) -> int:
    row = db.execute(statement).fetchone()
    return int(row[0]) if row else 0


def _count_bad_chunks(db: Connection) -> int:
    """Chunks whose mentions differ from what was extracted."""
    held: dict[int, int] = defaultdict(int)
    for statement in _EXTRACTED:
        for chunk, *cells in db.execute(statement):
            held[chunk] += checksum_cells(*cells)
    stored = db.execute("SELECT key, extracted FROM chunks WHERE extracted IS NOT NULL")
    return sum(held[key] != checksum for key, checksum in stored)


def _count_bad_elements(db: Connection) -> dict[str, int]:
    """Entities and facts that are not what their mentions merge to, block by block."""
    counts = dict.fromkeys(
        (
            "entities that differ from their mentions",
            "entities with wrong name forms",
            "facts that differ from their mentions",
        ),
        0,
    )
    wrong_entities, wrong_forms, wrong_facts = counts
    for keys in _blocks(db, "entity"):
        entities = dict(merge_stored_entities(db, keys))
        stored = db.execute(
            "SELECT key, name, name_hash, type, description, aliases, attributes, support "
            "FROM entities WHERE key = ANY(%s::bigint[])",
            (keys,),
        )
        counts[wrong_entities] += sum(
            key not in entities or tuple(cells) != entity_to_cells(entities[key])
            for key, *cells in stored
        )
        forms: dict[int, set[tuple[int, ...]]] = defaultdict(set)
        for key, *form in db.execute(
            "SELECT entity, hash, weight, part FROM forms WHERE entity = ANY(%s::bigint[])", (keys,)
        ):
            forms[key].add(tuple(form))
        counts[wrong_forms] += sum(
            forms[key] != {*entity_form_rows(entity)} for key, entity in entities.items()
        )
    for keys in _blocks(db, "fact"):
        counts[wrong_facts] += _count_bad_facts(db, keys)
    return counts


def _count_bad_facts(db: Connection, keys: list[int]) -> int:
    merged = dict(merge_stored_facts(db, keys))
    members = {
        fact: tuple(Participant(entity, role) for _, entity, role in rows)
        for fact, rows in groupby(
            db.execute(
                "SELECT p.fact, e.id, p.role FROM participants p JOIN entities e "
                "ON e.key = p.entity WHERE p.fact = ANY(%s::bigint[]) ORDER BY p.fact, p.ordinal",
                (keys,),
            ),
            itemgetter(0),
        )
    }
    wrong = 0
    for key, name, *cells in db.execute(
        "SELECT key, id, text, relation, keywords, description, weight, support FROM facts "
        "WHERE key = ANY(%s::bigint[])",
        (keys,),
    ):
        fact = merged.get(key)
        wrong += (
            fact is None
            or tuple(cells) != fact_to_cells(fact)
            or name != compute_fact_id(replace(fact, participants=members.get(key, ())))
        )
    return wrong


def _blocks(db: Connection, kind: Kind) -> Iterator[list[int]]:
    keys = [int(row[0]) for row in db.execute(_KEYS[kind])]
    for at in range(0, len(keys), _BLOCK):
        yield keys[at : at + _BLOCK]


def _find_array_problems(
    db: Connection, arrays: Arrays, vectors: Mapping[Kind, SharedVectors]
) -> list[str]:
    left_out = {
        kind
        for (value,) in db.execute(
            "SELECT value FROM memory WHERE kind = 'manifest' AND key IN (%s, %s)",
            (PARTLY_EMBEDDED, DEFERRED),
        )
        for kind in str(value).split()
    }
    found = []
    for kind, statement in _KEYS.items():
        found += find_key_problems(kind, [int(key) for (key,) in db.execute(statement)], arrays)
        if kind in vectors:
            found += _find_wrong_vectors(db, kind, vectors[kind])
            found += [] if kind in left_out else find_missing_vectors(kind, arrays)
    if not found:
        fresh = columns_to_keep(read_tables(db, {}, {}))
        found += [
            f"the column {name} differs from the tables"
            for name, column in fresh.items()
            if name in arrays and not np.array_equal(sort_rows(arrays[name]), sort_rows(column))
        ]
    for kind, name in (("community", "community_rows"), *DETAIL_ROWS.items()):
        rows: Array = arrays.get(name, np.zeros(0, np.int64))
        if kind in vectors and (lost := len(vectors[kind].find_lost_rows(rows))):
            found.append(f"{lost} {kind} vectors are missing")
    return found


def _find_wrong_vectors(db: Connection, kind: Kind, table: SharedVectors) -> list[str]:
    """Compare the content hash of every element with that of its vector row."""
    held = [(row, key) for _, row, key in iterate_content_hashes(db, kind) if row >= 0]
    rows = np.array([row for row, _ in held], np.int64)
    wrong = int(np.count_nonzero(table.find_rows([key for _, key in held]) != rows))
    missing = len(table.find_lost_rows(rows))
    found = [f"{missing} {kind} vectors are missing"] if missing else []
    return found + ([f"{wrong - missing} {kind} vectors are of other texts"] * (wrong > missing))
