"""Read all rows of a schema by a cursor, and replace them by those of another store by COPY."""

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg import sql

from clew.store.postgres.connections import Connection
from clew.store.postgres.insert import (
    ENTITY_COLUMNS,
    FACT_COLUMNS,
    MENTION_COLUMNS,
    make_entity_row,
    make_fact_row,
    make_mention_row,
)
from clew.store.postgres.tables import Row, copy_in, copy_out
from clew.store.postgres.versions import VERSIONED_TABLES
from clew.store.protocol import COPIED_COLUMNS, Arrays, TableRows
from clew.store.sqlite.store import SqliteStore

_RENAMED = {"end": "stop", "row": "vector_row"}  # `end` is a keyword here


@dataclass(frozen=True)
class PostgresRows:
    """All rows, as an open transaction sees them."""

    db: Connection
    generation: int
    arrays: Arrays

    @property
    def last_keys(self) -> dict[str, int]:
        """The last key given, by table."""
        found = self.db.execute("SELECT name, last FROM counters")
        return {str(name): int(last) for name, last in found}

    def rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a table."""
        yield from copy_out(self.db, table, _own_names(table))


def replace_all_rows(db: Connection, found: TableRows) -> None:
    """Replace all rows within the caller's transaction."""
    for table in COPIED_COLUMNS:
        held = f"{table}_versions" if table in VERSIONED_TABLES else table
        db.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(held)))
        columns, convert = _CONVERTERS.get(table, (_own_names(table), tuple))
        copy_in(db, table, columns, map(convert, found.rows(table)))
    db.execute("UPDATE counters SET last = 0")
    for table, last in found.last_keys.items():
        db.execute("UPDATE counters SET last = %s WHERE name = %s", (last, table))


def _own_names(table: str) -> tuple[str, ...]:
    return tuple(_RENAMED.get(name, name) for name in COPIED_COLUMNS[table])


def _entity_row(row: Row) -> Row:
    key, identity, *cells, vector_row, checksum = row
    return _keep_checksum(make_entity_row(key, identity, tuple(cells), vector_row), 10, checksum)


def _fact_row(row: Row) -> Row:
    key, identity, *cells, vector_row, checksum = row
    return _keep_checksum(make_fact_row(key, identity, tuple(cells), vector_row), 9, checksum)


def _keep_checksum(row: Row, at: int, checksum: int | None) -> Row:
    """With the checksum of the source: a damaged row stays one, also in the copy."""
    return (*row[:at], checksum, *row[at + 1 :])


def _mention_row(row: Row) -> Row:
    return make_mention_row(row[0], row[1], row[2:])


_CONVERTERS: dict[str, tuple[tuple[str, ...], Callable[[Row], Row]]] = {
    "entities": (ENTITY_COLUMNS, _entity_row),
    "facts": (FACT_COLUMNS, _fact_row),
    "mentions": (MENTION_COLUMNS, _mention_row),
}


async def back_up_as_folder(found: TableRows, file: Path) -> int:
    """Write the file that `clew backup` would write of a copy in a folder; return its size."""
    with tempfile.TemporaryDirectory(prefix="clew-backup-") as folder:
        store = SqliteStore(Path(folder) / "kb", create=True, durable=False)
        try:
            await asyncio.to_thread(store.replace_rows, found)
            return await store.backup(file)
        finally:
            await store.close()
