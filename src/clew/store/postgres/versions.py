"""Rows have the generations that they belong to, so that a short transaction publishes a change.

A write adds rows of the next generation and ends rows of the current one, in a transaction of its
own: readers, who see the tables by views of the published generation, notice neither. Then arrays
are derived, without a transaction. Publishing changes one number. What a killed writer has left is
undone by the next one.
"""

import json
from collections.abc import Sequence
from typing import Any, LiteralString, NamedTuple
from uuid import uuid4

from clew.errors import StoreError
from clew.store.postgres.connections import Connection, Row

VERSIONED_TABLES: tuple[LiteralString, ...] = (
    *("documents", "sources", "chunks", "entities", "forms", "facts", "participants"),
    *("mentions", "sayings"),
)
SELECT_GENERATION: LiteralString = (
    "SELECT key, value FROM meta WHERE key IN ('generation', 'arrays')"
)
_FOREVER: LiteralString = "9223372036854775807"
_UNFINISHED: LiteralString = "unfinished"  # in `meta`: the write that has begun
_LOST: LiteralString = (
    "the number of the newest generation is missing from the table meta; `clew restore FILE` "
    "restores a backup"
)


class UnpublishedWrite(NamedTuple):
    """A write that has begun: the generation that it makes, and the number of the write."""

    generation: int
    token: str


def read_generation(db: Connection) -> tuple[int, str]:
    """The number of the newest generation and the seal of its arrays."""
    return parse_generation(db.execute(SELECT_GENERATION).fetchall())


def parse_generation(rows: Sequence[Row]) -> tuple[int, str]:
    """The same from the rows of `SELECT_GENERATION`."""
    held = {str(key): str(value) for key, value in rows}
    if not held.get("generation", "").isdecimal():
        raise StoreError(_LOST)
    return int(held["generation"]), held.get("arrays", "")


def show_generation(db: Connection, generation: int) -> None:
    """Let the rest of a transaction see, and write, the rows of a generation."""
    db.execute("SELECT set_config('clew.generation', %s, true)", (str(generation),))


def begin_write(db: Connection) -> UnpublishedWrite:
    """Begin the next generation within the caller's transaction; undo one that was left."""
    # Two writers can never make the same generation, even if one has lost its lock.
    db.execute("SELECT 1 FROM meta WHERE key = 'generation' FOR UPDATE")
    undo_write(db)
    made = UnpublishedWrite(read_generation(db)[0] + 1, uuid4().hex)
    counters: dict[str, int] = dict(db.execute("SELECT name, last FROM counters").fetchall())
    told = {**made._asdict(), "counters": counters}
    db.execute("INSERT INTO meta VALUES (%s, %s)", (_UNFINISHED, json.dumps(told)))
    show_generation(db, made.generation)
    return made


def undo_write(db: Connection, token: str = "") -> None:
    """Undo the rows of a write that was not published: of this one, or of any."""
    told = _read_unfinished(db)
    if not told or (token and told["token"] != token):
        return
    made = int(told["generation"])
    for table in VERSIONED_TABLES:
        db.execute(f"DELETE FROM {table}_versions WHERE since = %s", (made,))  # noqa: S608
        db.execute(
            f"UPDATE {table}_versions SET until = {_FOREVER} WHERE until = %s",  # noqa: S608
            (made,),
        )
    for name, last in told["counters"].items():
        db.execute("UPDATE counters SET last = %s WHERE name = %s", (last, name))
    db.execute("DELETE FROM meta WHERE key = %s", (_UNFINISHED,))


def finish_write(db: Connection, write: UnpublishedWrite) -> None:
    """Make a write publishable within the caller's transaction: remove the rows that it ended.

    Raises if another writer has begun since: then its rows were undone.
    """
    db.execute("SELECT 1 FROM meta WHERE key = 'generation' FOR UPDATE")
    told = _read_unfinished(db)
    if told.get("token") != write.token or read_generation(db)[0] + 1 != write.generation:
        raise StoreError("another process has begun to write meanwhile; nothing was changed")
    for table in VERSIONED_TABLES:
        db.execute(f"DELETE FROM {table}_versions WHERE until <= %s", (write.generation,))  # noqa: S608
    db.execute("DELETE FROM meta WHERE key = %s", (_UNFINISHED,))


def _read_unfinished(db: Connection) -> dict[str, Any]:
    row = db.execute("SELECT value FROM meta WHERE key = %s", (_UNFINISHED,)).fetchone()
    return dict(json.loads(row[0])) if row else {}


def end_rows(
    db: Connection,
    table: LiteralString,
    column: LiteralString,
    values: Sequence[int] | Sequence[str],
    returned: LiteralString = "",
) -> list[int]:
    """End the rows with these values, for the generation being written; return a column of them.

    Rows of that generation itself are deleted: nobody has seen them.
    """
    if not values:
        return []
    kind: LiteralString = "text" if isinstance(values[0], str) else "bigint"
    mine: LiteralString = f"WHERE {column} = ANY(%s::{kind}[]) AND since"
    now: LiteralString = "(SELECT current_setting('clew.generation')::bigint)"
    shown: LiteralString = returned or column
    found = db.execute(
        f"WITH fresh AS (DELETE FROM {table}_versions {mine} = {now} RETURNING {shown}), "  # noqa: S608
        f"ended AS (UPDATE {table}_versions SET until = {now} {mine} < {now} "
        f"AND until = {_FOREVER} RETURNING {shown}) TABLE fresh UNION ALL TABLE ended",
        (list(values), list(values)),
    ).fetchall()
    return [int(row[0]) for row in found] if returned else []
