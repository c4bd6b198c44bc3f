"""Consistency checks: tables against each other, arrays and vectors against the tables."""

import sqlite3
from collections.abc import Mapping

from clew.store.protocol import DETAIL_PREFIX, PARTLY_EMBEDDED, SENSE_STRIDE, Array, Arrays
from clew.types import Kind

# Each query counts rows that must not exist; its key describes such a row.
_VIOLATION_QUERIES = {
    "chunks whose text differs from their document at that span": (
        "SELECT count(*) FROM chunks c JOIN documents d ON d.key = c.document "
        "WHERE substr(d.text, c.start + 1, c.end - c.start) != c.text"
    ),
    "chunks without a document": (
        "SELECT count(*) FROM chunks WHERE document NOT IN (SELECT key FROM documents)"
    ),
    "documents without a name": (
        "SELECT count(*) FROM documents WHERE key NOT IN (SELECT document FROM sources)"
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
    "participants that are unknown entities": (
        "SELECT count(*) FROM participants WHERE entity NOT IN (SELECT key FROM entities)"
    ),
}
_KEY_QUERIES: dict[Kind, str] = {
    "chunk": "SELECT key FROM chunks ORDER BY key",
    "entity": "SELECT key FROM entities ORDER BY key",
    "fact": "SELECT key FROM facts ORDER BY key",
}


def find_problems(db: sqlite3.Connection, arrays: Arrays, vectors: Mapping[Kind, int]) -> list[str]:
    """Return one sentence per problem; `vectors` is the number of vectors of each kind."""
    partly = db.execute(
        "SELECT value FROM memory WHERE kind = 'manifest' AND key = ?", (PARTLY_EMBEDDED,)
    ).fetchone()
    found = [str(row[0]) for row in db.execute("PRAGMA integrity_check") if row[0] != "ok"]
    for meaning, statement in _VIOLATION_QUERIES.items():
        count = db.execute(statement).fetchone()[0]
        if count:
            found.append(f"{count} {meaning}")
    for kind, statement in _KEY_QUERIES.items():
        found += _find_array_problems(
            kind, [row[0] for row in db.execute(statement)], arrays, vectors
        )
        if kind not in (partly[0].split() if partly else ()):
            found += _find_missing_vectors(kind, arrays, vectors)
    return found + _find_detail_problems(arrays, vectors)


def _find_detail_problems(arrays: Arrays, vectors: Mapping[Kind, int]) -> list[str]:
    """Find vectors of descriptions and attributes that the arrays refer to and no file holds."""
    found = []
    rows: dict[Kind, str] = {"description": "entity_rows", "attribute": "attribute_values"}
    for kind, name in rows.items():
        held: Array | None = arrays.get(DETAIL_PREFIX + name)
        missing = int((held >= vectors[kind]).sum()) if held is not None and kind in vectors else 0
        if missing:
            found.append(f"{missing} {kind} vectors are missing")
    return found


def _table_keys(kind: Kind, held: Array, arrays: Arrays) -> list[int]:
    """Table keys that the arrays refer to; resolved entities are expanded to their names."""
    if kind != "entity":
        return list(held.tolist())
    merged = arrays["merged"][:, 0] if "merged" in arrays else held[:0]
    return sorted({int(key) % SENSE_STRIDE for key in (*held.tolist(), *merged.tolist())})


def _find_array_problems(
    kind: Kind, keys: list[int], arrays: Arrays, vectors: Mapping[Kind, int]
) -> list[str]:
    held: Array | None = arrays.get(f"{kind}_keys")
    if held is None:
        return [f"the {kind} arrays are missing"] if keys else []
    if _table_keys(kind, held, arrays) != keys:
        return [f"the {kind} arrays do not match the tables"]
    if kind not in vectors:
        return []
    missing = int((arrays[f"{kind}_rows"] >= vectors[kind]).sum())
    return [f"{missing} {kind} vectors are missing"] if missing else []


def _find_missing_vectors(kind: Kind, arrays: Arrays, vectors: Mapping[Kind, int]) -> list[str]:
    rows: Array | None = arrays.get(f"{kind}_rows")
    if rows is None or kind not in vectors:
        return []
    bare = rows < 0
    if kind == "entity" and "entity_literal" in arrays:
        bare = bare & ~arrays["entity_literal"]
    missing = int(bare.sum())
    return [f"{missing} of {len(rows)} {kind} elements have no vector"] if missing else []
