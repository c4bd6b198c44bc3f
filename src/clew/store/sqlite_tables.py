"""The graph as integer columns, read whole once and afterwards only where it was touched."""

import json
import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.store.protocol import Array, Arrays, Tables

KEPT = "raw_"  # prefix of the columns that a generation's folder keeps for the next one


@dataclass(frozen=True)
class _Query:
    """One table: its columns, and the first of them as the thing that is touched."""

    columns: str
    source: str
    key: str
    width: int

    def all(self, db: sqlite3.Connection) -> Array:
        return self._read(db.execute(f"SELECT {self.columns} FROM {self.source}"))  # noqa: S608

    def some(self, db: sqlite3.Connection, keys: Collection[int]) -> Array:
        return self._read(
            db.execute(
                f"SELECT {self.columns} FROM {self.source} "  # noqa: S608  (our own constants)
                f"WHERE {self.key} IN (SELECT value FROM json_each(?))",
                (json.dumps(sorted(keys)),),
            )
        )

    def _read(self, cursor: sqlite3.Cursor) -> Array:
        flat = [cell for row in cursor for cell in row]
        return np.array(flat, np.int64).reshape(-1, self.width)


_ROLE = (
    "CASE p.role WHEN 'subject' THEN 0 WHEN 'member' THEN 1 WHEN 'head' THEN 2 "
    "WHEN 'tail' THEN 3 ELSE 1 END"
)
_QUERIES = {
    "chunks": _Query("key, row", "chunks", "key", 2),
    "entities": _Query(
        "key, row, name_hash, type IN ('date', 'number'), label_code(type)", "entities", "key", 5
    ),
    "facts": _Query(
        "key, row, label_code(relation), CAST(round(weight * 1000) AS INTEGER)", "facts", "key", 4
    ),
    "mentions": _Query(
        "entity, chunk, times, CAST(round(about * 1000) AS INTEGER)", "mentions", "entity", 4
    ),
    "participants": _Query(f"p.fact, p.entity, {_ROLE}", "participants p", "p.fact", 3),
    "supports": _Query(
        "s.fact, s.chunk, s.start - c.start",
        "sayings s JOIN chunks c ON c.key = s.chunk",
        "s.fact",
        3,
    ),
    "forms": _Query("entity, hash, weight, part", "forms", "entity", 4),
}
_TOUCHED_BY = {
    "chunks": "chunks",
    "entities": "entities",
    "mentions": "entities",
    "forms": "entities",
    "facts": "facts",
    "participants": "facts",
    "supports": "facts",
}


def read_tables(
    db: sqlite3.Connection, previous: Arrays, touched: Mapping[str, Collection[int]]
) -> Tables:
    """Take the previous columns, put the touched rows in anew; without previous ones, read all."""
    found: dict[str, Array] = {}
    for name, query in _QUERIES.items():
        held = previous.get(KEPT + name)
        keys = touched[_TOUCHED_BY[name]]
        if held is None:
            table = query.all(db)
        else:
            stays = ~_among(held[:, 0], keys)
            table = np.concatenate([held[stays], query.some(db, keys)])
        # Stable and nearly in order already, which makes this cheap.
        found[name] = table[np.argsort(table[:, 0], kind="stable")]
    return Tables(
        found["chunks"],
        found["entities"],
        found["facts"],
        found["mentions"],
        found["participants"],
        found["supports"],
        found["forms"],
    )


def _among(column: Array, keys: Collection[int]) -> NDArray[np.bool_]:
    """Which values are among the keys; both are small positive numbers."""
    if not keys or not len(column):
        return np.zeros(len(column), np.bool_)
    marked = np.zeros(max(int(column.max()), max(keys)) + 1, np.bool_)
    marked[list(keys)] = True
    found: NDArray[np.bool_] = marked[column]
    return found


def kept_columns(tables: Tables) -> dict[str, Array]:
    """The columns as named arrays, for the generation's folder."""
    return {KEPT + name: getattr(tables, name) for name in _QUERIES}
