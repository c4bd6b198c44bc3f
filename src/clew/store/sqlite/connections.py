"""Connection pool, transactions and error translation for one SQLite file."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from weakref import ref

from clew.errors import Locked, StoreError
from clew.store.checksums import checksum_cells
from clew.store.merge import content_code, id_code, label_code, node_code
from clew.text.entity_types import classify_type

BUSY_TIMEOUT = 30.0  # seconds to wait for another process's transaction
_POLL_INTERVAL = 0.02
_CACHE_KILOBYTES = 16_384  # pages that a connection keeps: questions read them again
_EMPTY_LOG_SECONDS = 1.0  # to wait for readers
_PARENT_CONNECTIONS: list[sqlite3.Connection] = []  # kept open, after a fork
MAX_IDLE = 64  # connections of all folders together
DAMAGED_ROW = (
    "a row of kb.sqlite is damaged; `clew verify` says where, `clew restore FILE` restores a backup"
)


class _FrozenConnection(sqlite3.Connection):
    """Reads a file that cannot change, or that nothing can be written to just now."""


class ConnectionPool:
    """Pool of idle connections."""

    def __init__(self, path: Path, *, durable: bool) -> None:
        self._path = path
        self._durable = durable
        self._idle: list[sqlite3.Connection] = []
        self._process = os.getpid()
        self._may_write = not path.exists() or os.access(path.parent, os.W_OK)
        self.writable = self._may_write
        """Whether the newest connection can write; on a full disk it cannot."""

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Borrow a connection; SQLite and OS errors are translated to StoreError."""
        with translate_errors(self._path.parent):
            db = self.acquire()
            try:
                yield db
            finally:
                self.release(db)

    def acquire(self) -> sqlite3.Connection:
        """Take a connection out of the pool, or open one."""
        if self._process != os.getpid():
            # A forked child must not use, nor close, the connections of its parent.
            _PARENT_CONNECTIONS.extend(self._idle)
            self._idle, self._process = [], os.getpid()
        try:
            db = self._idle.pop()  # not checked first: another thread may take the last one
        except IndexError:
            return self._connect()
        _RELEASED.remove(self)
        return db

    def release(self, db: sqlite3.Connection) -> None:
        """Return a connection to the pool, rolling back an open transaction."""
        if db.in_transaction:
            db.rollback()
        if self._may_write and isinstance(db, _FrozenConnection):
            db.close()  # it would not see what is written once there is room again
            return
        self._idle.append(db)
        if (crowded := _RELEASED.add(self)) is not None:
            crowded.close_oldest()

    def close_oldest(self) -> None:
        """Close the connection that has been idle longest."""
        with suppress(IndexError):  # another thread took it meanwhile
            self._idle.pop(0).close()

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()
            _RELEASED.remove(self)

    def _connect(self) -> sqlite3.Connection:
        self.writable = self._may_write
        try:
            return self._open(writable=self._may_write)
        except sqlite3.OperationalError as error:
            # On a full disk the index of the log cannot be made: read as in a read-only folder.
            empty = not self._path.exists() or not self._path.stat().st_size
            if not self._may_write or empty or not _is_unwritable(error) or _has_log(self._path):
                raise
            self.writable = False
            return self._open(writable=False)

    def _open(self, *, writable: bool) -> sqlite3.Connection:
        # Readers need to write too, to the index of the log, unless the file cannot change.
        where = str(self._path) if writable else f"{self._path.absolute().as_uri()}?immutable=1"
        if not writable and _has_log(self._path):
            raise StoreError(
                f"{self._path.parent} cannot be written to, and its last writes are still in "
                "kb.sqlite-wal; open it once where it can be written to"
            )
        db = sqlite3.connect(
            where,
            timeout=BUSY_TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
            factory=sqlite3.Connection if writable else _FrozenConnection,
            uri=not writable,
        )
        if writable:
            try:
                _enable_wal(db)
                _read_once(db)
            except sqlite3.OperationalError:
                db.close()
                raise
        db.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'OFF'}")
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute(f"PRAGMA cache_size = -{_CACHE_KILOBYTES}")
        db.execute("PRAGMA secure_delete = ON")  # what is removed is overwritten, on any system
        db.create_function("label_code", 1, label_code, deterministic=True)
        db.create_function("id_code", 1, id_code, deterministic=True)
        db.create_function("node_code", 2, node_code, deterministic=True)
        db.create_function("content_code", 1, content_code, deterministic=True)
        db.create_function("class_of", 1, classify_type, deterministic=True)
        db.create_function("checksum", -1, checksum_cells, deterministic=True)
        return db


def _read_once(db: sqlite3.Connection) -> None:
    """Read once: the index of the log is made by the first read."""
    db.execute("PRAGMA schema_version").fetchone()


def _is_unwritable(error: sqlite3.Error) -> bool:
    return is_disk_failure(error) or "unable to open" in str(error)


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _enable_wal(db: sqlite3.Connection) -> None:
    """Switch to WAL mode, retrying because SQLite's busy timeout does not apply to it."""
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= deadline:
                raise
        time.sleep(_POLL_INTERVAL)


class _ReleaseOrder:
    """Pools in the order in which their connections became idle: many folders, few handles."""

    def __init__(self) -> None:
        self._pools: list[ref[ConnectionPool]] = []
        self._guard = Lock()

    def add(self, pool: ConnectionPool) -> ConnectionPool | None:
        """Note an idle connection; beyond the limit, return the pool of the oldest."""
        with self._guard:
            self._pools.append(ref(pool))
            return self._pools.pop(0)() if len(self._pools) > MAX_IDLE else None

    def remove(self, pool: ConnectionPool) -> None:
        """Forget an idle connection, which is used or closed."""
        with self._guard, suppress(ValueError):
            self._pools.remove(ref(pool))


_RELEASED = _ReleaseOrder()


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Run the block in one write transaction."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        db.rollback()
        raise


@contextmanager
def reading(db: sqlite3.Connection) -> Iterator[None]:
    """Read one state in this block, whatever others write meanwhile."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.rollback()


@contextmanager
def busy_timeout(db: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Set the busy timeout for this block."""
    db.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")
    try:
        yield
    finally:
        db.execute(f"PRAGMA busy_timeout = {round(BUSY_TIMEOUT * 1000)}")


def empty_log(db: sqlite3.Connection) -> None:
    """Move the log into the database and cut it to nothing, so that no removed text stays in it.

    If somebody reads for longer than a moment, it is left to a later write.
    """
    with busy_timeout(db, _EMPTY_LOG_SECONDS):
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def is_disk_failure(error: sqlite3.Error) -> bool:
    """Whether the disk is full or cannot be written to."""
    return "disk is full" in str(error) or "disk I/O" in str(error)


@contextmanager
def translate_errors(folder: Path) -> Iterator[None]:
    """Translate SQLite and OS errors to StoreError."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            raise Locked(
                f"another process has kept {folder} locked for too long; try again later"
            ) from error
        if is_disk_failure(error) or "readonly database" in str(error):
            reason = f"cannot write to {folder} ({error}); nothing was changed; is the disk full?"
        elif "not a database" in str(error) or "malformed" in str(error):
            reason = f"{folder / 'kb.sqlite'} is not a knowledge base, or is damaged ({error})"
        else:
            reason = f"{folder / 'kb.sqlite'}: {error}"
        raise StoreError(reason) from error
    except UnicodeDecodeError as error:  # in a message of SQLite's that quotes a damaged schema
        raise StoreError(f"{folder / 'kb.sqlite'} is damaged ({error.reason})") from error
    except OSError as error:
        raise StoreError(
            f"cannot write to {folder}: {error.strerror or error}; nothing was changed"
        ) from error
