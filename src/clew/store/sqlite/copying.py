"""Read all rows of a folder's database, and replace them by those of another store."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from clew.store.protocol import COPIED_COLUMNS, Arrays, TableRows

_ROW_ORDER = "ORDER BY 1, 2"
LAST_KEYS = "SELECT name, seq FROM sqlite_sequence"


@dataclass(frozen=True)
class SqliteRows:
    """All rows, as an open transaction sees them."""

    db: sqlite3.Connection
    generation: int
    arrays: Arrays

    @property
    def last_keys(self) -> dict[str, int]:
        """The last key given, by table."""
        return {str(name): int(last) for name, last in self.db.execute(LAST_KEYS)}

    def rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a table."""
        columns = ", ".join(f'"{name}"' for name in COPIED_COLUMNS[table])
        yield from self.db.execute(
            f"SELECT {columns} FROM {table} {_ROW_ORDER}"  # noqa: S608  (our own names)
        )


def replace_all_rows(db: sqlite3.Connection, found: TableRows) -> None:
    """Replace all rows within the caller's transaction."""
    for table, names in COPIED_COLUMNS.items():
        columns = ", ".join(f'"{name}"' for name in names)
        marks = ",".join("?" * len(names))
        db.execute(f"DELETE FROM {table}")  # noqa: S608
        db.executemany(
            f"INSERT INTO {table}({columns}) VALUES ({marks})",  # noqa: S608
            found.rows(table),
        )
    for table, last in found.last_keys.items():
        db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        if last:
            db.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, last))
