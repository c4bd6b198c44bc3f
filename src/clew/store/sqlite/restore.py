"""Restore a backup, or the rows of another store: all rows are replaced in one transaction."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.errors import StoreError
from clew.store.protocol import COPIED_COLUMNS, Arrays, TableRows
from clew.store.sqlite.connections import (
    ConnectionPool,
    is_disk_failure,
    reading,
    transaction,
    translate_errors,
)
from clew.store.sqlite.keyvalue import (
    count_all_values,
    find_lost_settings,
    find_lost_values,
    seal_meta,
    select_values,
)
from clew.store.sqlite.migrations import migrate, read_version
from clew.store.sqlite.verify import find_lost_writes
from clew.store.sqlite.verify_rows import find_row_problems
from clew.store.write_lock import WriterLock

_COPY = "restore.sqlite"
_LAST_KEYS = "SELECT name, seq FROM sqlite_sequence"
_NO_FILE = "{}: no such file; name one that `clew backup` wrote"
_NO_BACKUP = "{} is not a backup of a knowledge base; name another file"
UNFINISHED = (
    "the restore of {} was not finished; run `clew restore FILE` again, or `clew verify --repair`; "
    "with another embedder `clew reembed`"
)
SELECT_UNFINISHED = "SELECT value FROM meta WHERE key = 'restoring'"
_MARK_UNFINISHED = "INSERT OR REPLACE INTO meta VALUES ('restoring', '1')"
MARK_FINISHED = "DELETE FROM meta WHERE key = 'restoring'"
# The vectors beside the database may be others than those it was backed up with.
_FORGET_ROWS = (
    "UPDATE chunks SET row = -1",
    "UPDATE entities SET row = -1",
    "UPDATE facts SET row = -1",
    "DELETE FROM meta WHERE key = 'arrays'",
)


def restore_database(folder: Path, file: Path, patience: float) -> None:
    """Replace the database by a backup, and mark it until vectors and arrays are rebuilt.

    A kill leaves the old database, or the restored one with its mark; neither is used by mistake.
    """
    if not file.is_file():
        raise StoreError(_NO_FILE.format(file))
    with translate_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    copy = folder / _COPY
    with WriterLock(folder / "writer.lock", patience), translate_errors(folder):
        try:
            _prepare_copy(file, copy)
            with closing(sqlite3.connect(copy)) as source, _open_target(folder) as target:
                source.backup(target)  # one transaction of the target
            # Not before: until then the old database is in use, with its arrays and trees.
            shutil.rmtree(folder / "arrays", ignore_errors=True)
        finally:
            for path in folder.glob(f"{_COPY}*"):
                path.unlink()


def refuse_losses(
    db: sqlite3.Connection, folder: Path, read_generation: Callable[[], int], *, restoring: bool
) -> None:
    """Raise if writes or settings were lost, or if a restore was not finished."""
    with reading(db):
        lost = find_lost_writes(folder, read_generation)
        unfinished = db.execute(SELECT_UNFINISHED).fetchone()
        if unfinished and not restoring:
            lost = [UNFINISHED.format(folder)]
        lost += [] if unfinished else find_lost_settings(db)
    if lost:
        raise StoreError(lost[0])


def read_backup_embedder(file: Path) -> str:
    """The embedder of the vectors that a backup was made with; empty if there is none."""
    if not file.is_file():
        raise StoreError(_NO_FILE.format(file))
    with (
        translate_errors(file.parent),
        _translate_damage(file),
        closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as source,
    ):
        if not read_version(source):
            raise StoreError(_NO_BACKUP.format(file))
        return select_values(source, "manifest", ["embedder"]).get("embedder", "")


def _prepare_copy(file: Path, copy: Path) -> None:
    """Copy the backup, bring it up to date, check it, and forget what lies beside it."""
    copy.unlink(missing_ok=True)
    with _translate_damage(file), closing(sqlite3.connect(copy)) as target:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as source:
            if not read_version(source):
                raise StoreError(_NO_BACKUP.format(file))
            source.backup(target)
    pool = ConnectionPool(copy, durable=True)
    try:
        with pool.connection() as db:
            migrate(db, str(file))
            problems = find_row_problems(db) + find_lost_values(db)
            if problems:
                raise StoreError(f"{file} is damaged ({problems[0]}); name another backup")
            with transaction(db):
                for statement in (*_FORGET_ROWS, _MARK_UNFINISHED):
                    db.execute(statement)
                seal_meta(db)
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        pool.close()


@contextmanager
def _translate_damage(file: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        if is_disk_failure(error):
            raise  # of the disk that is written to
        raise StoreError(f"{file} is not a backup of a knowledge base ({error})") from error


@contextmanager
def _open_target(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the database to be replaced; one that is not a database is removed."""
    path = folder / "kb.sqlite"
    db = sqlite3.connect(path, timeout=30)
    try:
        db.execute("PRAGMA schema_version").fetchone()
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError:
        db.close()
        for old in (path, path.with_name("kb.sqlite-wal"), path.with_name("kb.sqlite-shm")):
            old.unlink(missing_ok=True)
        db = sqlite3.connect(path)
    try:
        yield db
    finally:
        db.close()


@dataclass(frozen=True)
class SqliteRows:
    """All rows, as an open transaction sees them."""

    db: sqlite3.Connection
    generation: int
    arrays: Arrays

    @property
    def last_keys(self) -> dict[str, int]:
        """The last key given, by table."""
        return {str(name): int(last) for name, last in self.db.execute(_LAST_KEYS)}

    def rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a table."""
        columns = ", ".join(f'"{name}"' for name in COPIED_COLUMNS[table])
        found = self.db.execute(
            f"SELECT {columns} FROM {table} ORDER BY 1, 2"  # noqa: S608  (our own names)
        )
        # Not `yield from`: it closes the cursor of a copy that failed, maybe after its database.
        for row in found:  # noqa: UP028
            yield row


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
    count_all_values(db)
    for table, last in found.last_keys.items():
        db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        if last:
            db.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, last))
