"""Connections to one schema: a pool, transactions, the writer's lock and error translation.

Nothing depends on the session beyond a transaction, so a pooler that gives every transaction
another session (pgbouncer) is enough; only notifications need a session of their own.
"""

import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from clew.errors import Locked, NotPermitted, StoreError
from clew.kb_address import DatabaseAddress
from clew.text.unicode import hash64, to_signed

Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "application_name": "clew",
    "client_encoding": "UTF8",
    # A dead connection is noticed within a minute, not after two hours.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
READ: LiteralString = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE: LiteralString = "ISOLATION LEVEL READ COMMITTED"
POLL_INTERVAL = 0.05  # seconds between two attempts to take the lock
_PARENT_CONNECTIONS: list[Connection] = []  # kept open, after a fork
_HOLDER = (
    "SELECT a.pid, coalesce(host(a.client_addr), 'this server') FROM pg_locks l "
    "JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted "
    "AND l.objsubid = 1 AND (l.classid::bigint << 32 | l.objid::bigint) = %s"
)


class Database:
    """A pool of connections to one schema; each transaction sets its own search path."""

    def __init__(self, address: DatabaseAddress) -> None:
        self.address = address
        self._idle: list[Connection] = []
        self._process = os.getpid()
        self.lock_key = to_signed(hash64(f"clew writer {address.schema}"))
        self.channel = f"clew_{hash64(address.schema):016x}"

    def connect(self) -> Connection:
        """Open a connection of its own, outside the pool."""
        with translate_errors(self.address):
            given = conninfo_to_dict(self.address.url)
            return psycopg.connect(
                "", autocommit=True, prepare_threshold=None, **{**_DEFAULTS, **given}
            )

    @contextmanager
    def transaction(self, mode: LiteralString = WRITE, shared: str = "") -> Iterator[Connection]:
        """Run the block in a transaction; errors of the database become StoreError.

        `shared` names a snapshot that another connection has exported, to see the same rows.
        """
        with translate_errors(self.address):
            db = self.begin(mode, shared)
            try:
                yield db
                db.execute("COMMIT")
            finally:
                self.release(db)

    def begin(self, mode: LiteralString, shared: str = "") -> Connection:
        """Begin a transaction on a pooled connection; one that has died is replaced."""
        return self._begin(mode, shared)[0]

    def begin_with(self, mode: LiteralString, first: LiteralString) -> tuple[Connection, list[Row]]:
        """Begin a transaction with a first statement, in one trip; return its rows, too."""
        db, cursor = self._begin(mode, "", first)
        while cursor.nextset():
            pass
        return db, cursor.fetchall()

    def _begin(
        self, mode: LiteralString, shared: str, first: LiteralString = ""
    ) -> tuple[Connection, psycopg.Cursor[Row]]:
        same = sql.SQL("SET TRANSACTION SNAPSHOT {};").format(shared) if shared else sql.SQL("")
        start = sql.SQL(
            "BEGIN {}; {} SET LOCAL search_path TO {}; SET LOCAL statement_timeout = 0; "
            "SET LOCAL idle_in_transaction_session_timeout = 0; {}"
        ).format(sql.SQL(mode), same, sql.Identifier(self.address.schema), sql.SQL(first))
        db, fresh = self._acquire()
        try:
            return db, db.execute(start)
        except psycopg.OperationalError:
            db.close()
            if fresh:
                raise
            self.close()  # the others have most likely died with it
            db = self.connect()
            return db, db.execute(start)
        except psycopg.Error:
            self.release(db)
            raise

    def release(self, db: Connection) -> None:
        """Return a connection to the pool, rolling back an open transaction."""
        try:
            if not db.closed and db.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                db.execute("ROLLBACK")
        except psycopg.Error:
            db.close()
        if db.closed or db.broken:
            db.close()
        else:
            self._idle.append(db)

    def _acquire(self) -> tuple[Connection, bool]:
        """A connection, and whether it is new."""
        if self._process != os.getpid():
            # A forked child must not use, nor close, the connections of its parent.
            _PARENT_CONNECTIONS.extend(self._idle)
            self._idle, self._process = [], os.getpid()
        try:
            return self._idle.pop(), False  # not checked first: another thread may take the last
        except IndexError:
            return self.connect(), True

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()

    # -- the one writer

    def try_writer_lock(self, patience: float) -> Generator[None, None, Connection]:
        """Try to take the writer's lock, once per step; return the connection that holds it.

        The lock belongs to a transaction without any change, which holds back no clean-up: it is
        given back when the connection ends, however it ends.
        """
        deadline = time.monotonic() + patience
        with translate_errors(self.address):
            db = self.begin(WRITE)
            try:
                while not _fetch(db, "SELECT pg_try_advisory_xact_lock(%s)", self.lock_key)[0]:
                    if time.monotonic() >= deadline:
                        raise Locked(self._holder_message(db))
                    yield
                # A statement with parameters keeps its snapshot until the next one: that would hold
                # back `VACUUM` as long as the lock is held.
                db.execute("SELECT 1")
            except BaseException:
                self.release(db)
                raise
        return db

    def _holder_message(self, db: Connection) -> str:
        row = db.execute(_HOLDER, (self.lock_key,)).fetchone()
        who = f"a process at {row[1]} (session {row[0]})" if row else "another process"
        return (
            f"{who} is writing to {self.address}; wait for it to end, or set a longer `wait` in "
            "clew.toml"
        )

    def is_there(self) -> bool:
        """Whether the schema holds a knowledge base."""
        with self.transaction(READ) as db:
            return bool(_fetch(db, "SELECT to_regclass('meta') IS NOT NULL")[0])


def _fetch(db: Connection, statement: LiteralString, *values: object) -> tuple[Any, ...]:
    row = db.execute(statement, values or None).fetchone()
    if row is None:
        raise StoreError(f"no row for {statement}")
    return row


@contextmanager
def translate_errors(address: DatabaseAddress) -> Iterator[None]:
    """Translate errors of the database to StoreError."""
    try:
        yield
    except psycopg.errors.LockNotAvailable as error:
        raise Locked(f"{address} has been locked for too long; try again later") from error
    except psycopg.errors.InsufficientPrivilege as error:
        told = _first_line(error)
        needs = (
            "CREATE on the database, or a schema of its own"
            if "for database" in told
            else "to own the schema, or be granted what it is to do there"
        )
        raise NotPermitted(f"{address}: {told}; the user needs {needs}") from error
    except psycopg.OperationalError as error:
        raise StoreError(
            f"the connection to {address} failed ({_first_line(error)}); nothing was changed that "
            "was not finished; try again"
        ) from error
    except (psycopg.Error, UnicodeEncodeError) as error:
        raise StoreError(f"{address}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
