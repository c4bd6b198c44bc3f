"""The server's own database: keys, jobs, uploads, spending and the audit log.

Every worker process opens it; SQLite's locks keep them apart. Knowledge bases are elsewhere.
"""

import errno
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clew.errors import StoreError
from clew.serve.core.folders import make_private
from clew.store.sqlite.connections import transaction as write_transaction

_VERSION = 1
_WAIT = 10.0  # seconds to wait for another process that writes
_SHORT_WAIT = 0.02  # … on an event loop, where everybody would wait
LEAST_FREE = 1_000_000  # bytes; with less SQLite says "disk I/O error", as for a broken disk
_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys(
    id TEXT PRIMARY KEY, name TEXT NOT NULL, hash TEXT NOT NULL UNIQUE,
    old_hash TEXT, old_until REAL, grants TEXT NOT NULL, labels TEXT, limits TEXT NOT NULL,
    created REAL NOT NULL, expires REAL, revoked REAL, used REAL);
CREATE INDEX IF NOT EXISTS keys_by_old_hash ON keys(old_hash);
CREATE TABLE IF NOT EXISTS jobs(
    id TEXT PRIMARY KEY, workspace TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
    owner TEXT NOT NULL, request TEXT NOT NULL, result TEXT NOT NULL DEFAULT 'null',
    error TEXT NOT NULL DEFAULT '', attempts INTEGER NOT NULL DEFAULT 0,
    cancel INTEGER NOT NULL DEFAULT 0, created REAL NOT NULL, started REAL, finished REAL);
CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs(state, created);
CREATE UNIQUE INDEX IF NOT EXISTS one_build ON jobs(workspace)
    WHERE kind = 'build' AND state IN ('queued', 'running');
CREATE TABLE IF NOT EXISTS job_events(
    job TEXT NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY(job, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS uploads(
    workspace TEXT NOT NULL, name TEXT NOT NULL, hash TEXT NOT NULL, bytes INTEGER NOT NULL,
    labels TEXT NOT NULL, owner TEXT NOT NULL, state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '', created REAL NOT NULL, PRIMARY KEY(workspace, name));
CREATE TABLE IF NOT EXISTS originals(
    workspace TEXT NOT NULL, name TEXT NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY(workspace, name, document)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spending(
    key TEXT NOT NULL, day TEXT NOT NULL, calls INTEGER NOT NULL, money REAL NOT NULL,
    PRIMARY KEY(key, day)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS audit(
    time REAL NOT NULL, key TEXT NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL,
    status INTEGER NOT NULL, request TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS audit_by_time ON audit(time);
"""


class ServerDatabase:
    """One connection per thread to the server's database file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "server.sqlite"
        self._local = threading.local()
        try:
            make_private(folder)
            folder.chmod(0o700)  # it may have been made by an earlier version
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))  # its log has its mode
        except OSError as error:
            way = "free some space" if error.errno == errno.ENOSPC else "check its owner"
            raise StoreError(f"cannot use {folder}: {error.strerror}; {way}") from error
        try:
            self._create_tables()
        except sqlite3.Error as error:
            if shutil.disk_usage(folder).free < LEAST_FREE:
                raise StoreError(
                    f"cannot use {self.path}: the disk is full; free some space and start again"
                ) from error
            raise StoreError(
                f"cannot use {self.path}: {error}; it holds keys, jobs and uploads, not documents: "
                "restore it, or move it away and make new keys"
            ) from error

    def _create_tables(self) -> None:
        with self.transaction() as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > _VERSION:
                raise StoreError(f"{self.path} was written by a newer Clew; update this one")
            for statement in _SCHEMA.split(";\n"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {_VERSION}")

    def connect(self) -> sqlite3.Connection:
        """Return this thread's connection."""
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            wait = getattr(self._local, "wait", _WAIT)
            db = sqlite3.connect(self.path, timeout=wait, isolation_level=None)
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            self._local.db = db
        return db

    def wait_briefly(self) -> None:
        """Let this thread, which runs an event loop, fail soon where the database is locked."""
        self.close()
        self._local.wait = _SHORT_WAIT

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run statements as one transaction, which other processes wait for.

        One within another is a part of it.
        """
        db = self.connect()
        if db.in_transaction:
            yield db
            return
        with write_transaction(db):
            yield db

    def rows(self, statement: str, *values: Any) -> list[sqlite3.Row]:
        """Return the rows of a query."""
        return self.connect().execute(statement, values).fetchall()

    def row(self, statement: str, *values: Any) -> sqlite3.Row | None:
        """Return the first row of a query, if there is one."""
        found: sqlite3.Row | None = self.connect().execute(statement, values).fetchone()
        return found

    def change(self, statement: str, *values: Any) -> int:
        """Run one statement; return how many rows it changed."""
        return self.connect().execute(statement, values).rowcount

    def close(self) -> None:
        """Close this thread's connection."""
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is not None:
            db.close()
            self._local.db = None
