"""Key-value table in SQLite; model replies are deferred while another process holds the lock.

Replies are paid for, and another process may write for minutes: the question continues, and
pending values are written with the next write, or on close.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock

from clew.errors import Locked
from clew.store.sqlite_pool import PATIENCE, Connections, patient, transaction

_CAN_WAIT = frozenset({"reply"})
"""Kinds whose loss only costs a call: all others must be durable before continuing."""
_SHORTLY = 1.0  # seconds to wait for another writer before deferring
_AT_ONCE = 0.05  # the same while writes are already deferred

_Place = tuple[str, str]
"""Kind and key."""


class SqliteMemory:
    """The key-value table, and values not written yet."""

    def __init__(self, pool: Connections) -> None:
        self._pool = pool
        self._texts: dict[_Place, str] = {}
        self._sums: dict[_Place, float] = {}
        self._guard = Lock()  # guards the two dicts; not held during disk access

    def recall(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored or pending values of these keys."""
        with self._guard:
            pending = {key: self._texts[kind, key] for key in keys if (kind, key) in self._texts}
        with self._pool.one() as db:
            found = db.execute(
                "SELECT key, value FROM memory WHERE kind = ? "
                "AND key IN (SELECT value FROM json_each(?))",
                (kind, json.dumps(list(keys))),
            )
            return dict(found.fetchall()) | pending

    def remember(self, kind: str, items: Mapping[str, str]) -> None:
        """Store values by key; deferrable kinds stay in memory while the database is locked."""
        texts = {(kind, key): value for key, value in items.items()}
        if kind not in _CAN_WAIT:
            self._write(texts, {}, PATIENCE)
            return
        try:
            self._write(texts, {}, self._patience())
        except Locked:
            for value in items.values():
                value.encode()  # raises now: text SQLite rejects would block all pending values
            with self._guard:
                self._texts |= texts

    def add_up(self, kind: str, key: str, amount: float) -> None:
        """Add to a stored number atomically; in memory while the database is locked."""
        try:
            self._write({}, {(kind, key): amount}, self._patience())
        except Locked:
            with self._guard:
                _add(self._sums, {(kind, key): amount})

    def settle(self, seconds: float) -> None:
        """Write pending values; they are lost if the database stays locked longer than this."""
        if self._texts or self._sums:
            with suppress(Locked):
                self._write({}, {}, seconds)

    def _patience(self) -> float:
        return _AT_ONCE if self._texts or self._sums else _SHORTLY

    def _write(
        self, texts: Mapping[_Place, str], sums: Mapping[_Place, float], seconds: float
    ) -> None:
        """Write these and all pending values in one transaction."""
        with self._guard:
            pending = dict(self._texts)
            # Removed first: two concurrent writers must not both add them.
            taken, self._sums = self._sums, {}
        try:
            with self._pool.one() as db, patient(db, seconds), transaction(db):
                db.executemany(_KEEP, [(*at, value) for at, value in {**pending, **texts}.items()])
                for amounts in (taken, sums):
                    db.executemany(_ADD, [(*at, amount) for at, amount in amounts.items()])
        except BaseException:
            with self._guard:
                _add(self._sums, taken)
            raise
        with self._guard:
            for at, value in pending.items():
                if self._texts.get(at) == value:
                    del self._texts[at]


def _add(sums: dict[_Place, float], more: Mapping[_Place, float]) -> None:
    for at, amount in more.items():
        sums[at] = sums.get(at, 0.0) + amount


_KEEP = "INSERT OR REPLACE INTO memory VALUES (?,?,?)"
_ADD = (
    "INSERT INTO memory VALUES (?1,?2,CAST(round(?3, 9) AS TEXT)) ON CONFLICT(kind, key) "
    "DO UPDATE SET value = CAST(round(CAST(value AS REAL) + ?3, 9) AS TEXT)"
)
