"""Consistency checks of what is derived: arrays and vectors against the tables."""

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from clew.store.protocol import (
    COLUMN_PREFIX,
    DEFERRED,
    DETAIL_ROWS,
    PARTLY_EMBEDDED,
    SENSE_STRIDE,
    Array,
    Arrays,
)
from clew.store.sqlite.tables import columns_to_keep, read_tables
from clew.store.sqlite.write import iterate_content_hashes
from clew.store.vector_files import VectorFile
from clew.types import Kind

_KEY_QUERIES: dict[Kind, str] = {
    "chunk": "SELECT key FROM chunks ORDER BY key",
    "entity": "SELECT key FROM entities ORDER BY key",
    "fact": "SELECT key FROM facts ORDER BY key",
}
COMMITTED_FILE = "committed"  # in the arrays' folder: their generation was committed
_LOST_WRITES = (
    "kb.sqlite in {} holds generation {}, but generation {} was written (was kb.sqlite-wal "
    "removed?); `clew restore FILE` restores a backup, `clew verify --repair` accepts the loss"
)


def find_lost_writes(folder: Path, read_generation: Callable[[], int]) -> list[str]:
    """One sentence if a later generation was committed than the database holds, else none."""
    found = folder.glob(f"arrays/*/{COMMITTED_FILE}")
    newest = max((int(f.parent.name) for f in found if f.parent.name.isdigit()), default=0)
    held = read_generation() if newest else 0
    return [_LOST_WRITES.format(folder, held, newest)] if newest > held else []


def find_array_problems(
    db: sqlite3.Connection, arrays: Arrays, vectors: Mapping[Kind, VectorFile]
) -> list[str]:
    """Return one sentence per problem; `vectors` are the readable vector files."""
    left_out = {
        kind
        for (value,) in db.execute(
            "SELECT value FROM memory WHERE kind = 'manifest' AND key IN (?, ?)",
            (PARTLY_EMBEDDED, DEFERRED),
        )
        for kind in value.split()
    }
    found = []
    for kind, statement in _KEY_QUERIES.items():
        found += find_key_problems(kind, [row[0] for row in db.execute(statement)], arrays)
        if kind in vectors:
            found += _find_wrong_vectors(db, kind, vectors[kind])
            if kind not in left_out:
                found += find_missing_vectors(kind, arrays)
    if not found:
        found += _find_stale_columns(db, arrays)
    for kind, name in (("community", "community_rows"), *DETAIL_ROWS.items()):
        rows: Array = arrays.get(name, np.zeros(0, np.int64))
        if kind in vectors and (lost := len(vectors[kind].find_lost_rows(rows))):
            found.append(f"{lost} {kind} vectors are missing")
    return found


def _table_keys(kind: Kind, held: Array, arrays: Arrays) -> list[int]:
    """Table keys that the arrays refer to; resolved entities are expanded to their names."""
    if kind != "entity":
        return list(held.tolist())
    merged = arrays["merged"][:, 0] if "merged" in arrays else held[:0]
    return sorted({int(key) % SENSE_STRIDE for key in (*held.tolist(), *merged.tolist())})


def find_key_problems(kind: Kind, keys: list[int], arrays: Arrays) -> list[str]:
    """Compare the keys of the arrays with those of the tables."""
    held: Array | None = arrays.get(f"{kind}_keys")
    if held is None:
        return [f"the {kind} arrays are missing"] if keys else []
    if _table_keys(kind, held, arrays) != keys:
        return [f"the {kind} arrays do not match the tables"]
    return []


def _find_wrong_vectors(db: sqlite3.Connection, kind: Kind, table: VectorFile) -> list[str]:
    """Compare the content hash of every element with that of its vector row."""
    held = [(row, key) for _, row, key in iterate_content_hashes(db, kind) if row >= 0]
    rows = np.array([row for row, _ in held], np.int64)
    wrong = int(np.count_nonzero(table.find_rows([key for _, key in held]) != rows))
    missing = len(table.find_lost_rows(rows))
    found = [f"{missing} {kind} vectors are missing"] if missing else []
    return found + ([f"{wrong - missing} {kind} vectors are of other texts"] * (wrong > missing))


def find_missing_vectors(kind: Kind, arrays: Arrays) -> list[str]:
    """Count elements that should have a vector and have none."""
    rows: Array | None = arrays.get(f"{kind}_rows")
    if rows is None:
        return []
    bare = rows < 0
    if kind == "entity" and "entity_literal" in arrays:
        bare = bare & ~arrays["entity_literal"]
    missing = int(bare.sum())
    return [f"{missing} of {len(rows)} {kind} elements have no vector"] if missing else []


def _find_stale_columns(db: sqlite3.Connection, arrays: Arrays) -> list[str]:
    """Compare the columns kept with the arrays with the tables they were read from."""
    fresh = columns_to_keep(read_tables(db, {}, {}))
    if "entity_small" not in arrays:  # an earlier version did not tell how names are written
        fresh[f"{COLUMN_PREFIX}entities"][:, 7] %= 2
    return [
        f"the column {name} differs from the tables"
        for name, column in fresh.items()
        if name in arrays and not np.array_equal(sort_rows(arrays[name]), sort_rows(column))
    ]


def sort_rows(column: Array) -> Array:
    """The rows in an order that depends on their cells alone."""
    return column[np.lexsort(column.T[::-1])] if len(column) else column
