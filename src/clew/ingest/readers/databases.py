"""Reads tables out of SQLite files and Parquet files."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

from clew.errors import InputError
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile
from clew.ingest.readers.tables import TableFile, TableRow
from clew.types import Document
from clew.version import pip_install_command

_BATCH = 1_000
_VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\s+TABLE\b", re.IGNORECASE)
_CONTENT_ELSEWHERE = re.compile(r"\bcontent\s*=", re.IGNORECASE)  # of a table that is indexed


def read_sqlite(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read every table of a SQLite file; nothing is written to it."""
    file = TableFile(source, budget)
    address = f"file:{quote(str(source.path.resolve()))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            database.text_factory = lambda raw: raw.decode("utf-8", "replace")
            tables = _list_tables(database)
            if not tables:
                raise InputError("holds no tables")
            for name in tables:
                yield from file.add(name if len(tables) > 1 else "", _select_rows(database, name))
            yield from file.finish()
    except (sqlite3.Error, UnicodeDecodeError) as error:  # also of a column's name, or a message
        raise InputError(f"is not a readable SQLite file ({error})") from error


def _list_tables(database: sqlite3.Connection) -> list[str]:
    """Return the tables that hold data: no index for searching, and none of the parts of one."""
    found = database.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        " ORDER BY name"
    ).fetchall()
    virtual = {name: sql for name, sql in found if _VIRTUAL.match(sql or "")}
    parts = tuple(f"{name}_" for name in virtual)
    copies = {name for name, sql in virtual.items() if _CONTENT_ELSEWHERE.search(sql)}
    return [name for name, _ in found if name not in copies and not name.startswith(parts)]


def _select_rows(database: sqlite3.Connection, name: str) -> Iterator[TableRow]:
    quoted = '"' + name.replace('"', '""') + '"'
    found = database.execute("SELECT * FROM " + quoted)  # noqa: S608  (an identifier, quoted)
    columns = [one[0] for one in found.description]
    declared = database.execute(f"PRAGMA table_info({quoted})").fetchall()
    truths = {one[1] for one in declared if str(one[2]).upper().startswith("BOOL")}
    for number, row in enumerate(found, start=1):
        cells = zip(columns, row, strict=True)
        yield number, {c: bool(v) if c in truths and v in (0, 1) else v for c, v in cells}


def read_parquet(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a Parquet file in batches."""
    table = TableFile(source, budget)
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        needed = pip_install_command("parquet")
        raise InputError(f"needs pyarrow to be read; `{needed}` installs it") from error
    try:
        with ParquetFile(source.path) as file:
            yield from table.add("", _iter_parquet(file))
            yield from table.finish()
    # Values that Python does not hold: text that is not UTF-8, dates before the year 1.
    except (ArrowException, OSError, ValueError, OverflowError) as error:
        raise InputError(
            f"is not a readable Parquet file ({str(error).splitlines()[0]})"
        ) from error


def _iter_parquet(file: Any) -> Iterator[TableRow]:
    number = 0
    for batch in file.iter_batches(batch_size=_BATCH):
        for row in batch.to_pylist():
            number += 1
            yield number, row
