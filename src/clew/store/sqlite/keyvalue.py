"""Key-value table in SQLite; model replies are deferred while another process holds the lock.

Replies are paid for, and another process may write for minutes: the question continues, and
pending values are written with the next write, or on close.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock

from clew.errors import Locked, StoreError
from clew.store.checksums import checksum_cells
from clew.store.sqlite.connections import (
    BUSY_TIMEOUT,
    DAMAGED_ROW,
    ConnectionPool,
    busy_timeout,
    transaction,
)

_DEFERRABLE_KINDS = frozenset({"reply"})
"""Kinds whose loss only costs a call: all others must be durable before continuing."""
FIRST_TIMEOUT = 1.0  # seconds to wait for another writer before deferring
NEXT_TIMEOUT = 0.05  # the same while writes are already deferred
_KindAndKey = tuple[str, str]
_UPSERT_TEXT = "INSERT OR REPLACE INTO memory VALUES (?1,?2,?3,checksum(?1,?2,?3))"
_UPSERT_SUM = (
    "INSERT INTO memory VALUES (?1,?2,CAST(round(?3, 9) AS TEXT),"
    "checksum(?1,?2,CAST(round(?3, 9) AS TEXT))) ON CONFLICT(kind, key) "
    "DO UPDATE SET value = CAST(round(CAST(value AS REAL) + ?3, 9) AS TEXT), "
    "checksum = checksum(kind, key, CAST(round(CAST(value AS REAL) + ?3, 9) AS TEXT))"
)


def select_values(db: sqlite3.Connection, kind: str, keys: Sequence[str]) -> dict[str, str]:
    """The stored values of these keys; raise if one is not as it was written."""
    found = {}
    for key, value, checksum in db.execute(
        "SELECT key, value, checksum FROM memory WHERE kind = ? "
        "AND key IN (SELECT value FROM json_each(?))",
        (kind, json.dumps(list(keys))),
    ):
        if checksum not in (None, checksum_cells(kind, key, value)):
            raise StoreError(DAMAGED_ROW)
        found[key] = value
    return found


def store_values(db: sqlite3.Connection, values: Mapping[str, Mapping[str, str]]) -> None:
    """Store values by kind and key within the caller's transaction."""
    for kind, items in values.items():
        db.executemany(_UPSERT_TEXT, [(kind, key, value) for key, value in items.items()])


class SqliteKeyValueStore:
    """The key-value table, and values not written yet."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._pending_texts: dict[_KindAndKey, str] = {}
        self._pending_sums: dict[_KindAndKey, float] = {}
        self._guard = Lock()  # guards the two dicts; not held during disk access

    def get(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored or pending values of these keys."""
        with self._guard:
            pending = {
                key: self._pending_texts[kind, key]
                for key in keys
                if (kind, key) in self._pending_texts
            }
        with self._pool.connection() as db:
            return select_values(db, kind, keys) | pending

    def set(self, kind: str, items: Mapping[str, str]) -> None:
        """Store values by key; deferrable kinds stay in memory while the database is locked."""
        texts = {(kind, key): value for key, value in items.items()}
        if kind not in _DEFERRABLE_KINDS:
            self._write(texts, {}, BUSY_TIMEOUT)
            return
        try:
            self._write(texts, {}, self._timeout())
        except Locked:
            for value in items.values():
                value.encode()  # raises now: text SQLite rejects would block all pending values
            with self._guard:
                self._pending_texts |= texts

    def increment(self, kind: str, key: str, amount: float) -> None:
        """Add to a stored number atomically; in memory while the database is locked."""
        try:
            self._write({}, {(kind, key): amount}, self._timeout())
        except Locked:
            with self._guard:
                _add_amounts(self._pending_sums, {(kind, key): amount})

    def flush(self, seconds: float) -> None:
        """Write pending values; they are lost if the database stays locked longer than this."""
        if self._pending_texts or self._pending_sums:
            with suppress(Locked):
                self._write({}, {}, seconds)

    def _timeout(self) -> float:
        return NEXT_TIMEOUT if self._pending_texts or self._pending_sums else FIRST_TIMEOUT

    def _write(
        self, texts: Mapping[_KindAndKey, str], sums: Mapping[_KindAndKey, float], seconds: float
    ) -> None:
        """Write these and all pending values in one transaction."""
        with self._guard:
            pending = dict(self._pending_texts)
            # Removed first: two concurrent writers must not both add them.
            taken, self._pending_sums = self._pending_sums, {}
        try:
            if not self._pool.writable:
                raise Locked("the knowledge base cannot be written to; copy it to where it can")
            with self._pool.connection() as db, busy_timeout(db, seconds), transaction(db):
                db.executemany(
                    _UPSERT_TEXT, [(*at, value) for at, value in {**pending, **texts}.items()]
                )
                for amounts in (taken, sums):
                    db.executemany(_UPSERT_SUM, [(*at, amount) for at, amount in amounts.items()])
        except BaseException:
            with self._guard:
                _add_amounts(self._pending_sums, taken)
            raise
        with self._guard:
            for at, value in pending.items():
                if self._pending_texts.get(at) == value:
                    del self._pending_texts[at]


def _add_amounts(sums: dict[_KindAndKey, float], more: Mapping[_KindAndKey, float]) -> None:
    for at, amount in more.items():
        sums[at] = sums.get(at, 0.0) + amount
