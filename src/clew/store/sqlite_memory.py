"""What a knowledge base remembers by key; model replies wait in memory while it is locked.

A question's replies are paid for, and another process may write for minutes: the question goes on,
and what it could not write is written with whatever is remembered next, or at the end.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock

from clew.errors import Locked
from clew.store.sqlite_pool import PATIENCE, Connections, patient, transaction

_CAN_WAIT = frozenset({"reply"})
"""Kinds that only save a call: all else must be on the disk before anyone goes on."""
_SHORTLY = 1.0  # seconds that a question waits for a writer before it goes on
_AT_ONCE = 0.05  # and when that has been in vain before

_Place = tuple[str, str]
"""Kind and key."""


class SqliteMemory:
    """The table of remembered texts, and what is not in it yet."""

    def __init__(self, pool: Connections) -> None:
        self._pool = pool
        self._texts: dict[_Place, str] = {}
        self._sums: dict[_Place, float] = {}
        self._guard = Lock()  # of these two; not held while the disk works

    def recall(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """What was remembered under these keys."""
        with self._guard:
            waiting = {key: self._texts[kind, key] for key in keys if (kind, key) in self._texts}
        with self._pool.one() as db:
            found = db.execute(
                "SELECT key, value FROM memory WHERE kind = ? "
                "AND key IN (SELECT value FROM json_each(?))",
                (kind, json.dumps(list(keys))),
            )
            return dict(found.fetchall()) | waiting

    def remember(self, kind: str, items: Mapping[str, str]) -> None:
        """Keep texts by key; of some kinds only in memory, while the knowledge base is locked."""
        texts = {(kind, key): value for key, value in items.items()}
        if kind not in _CAN_WAIT:
            self._write(texts, {}, PATIENCE)
            return
        try:
            self._write(texts, {}, self._patience())
        except Locked:
            for value in items.values():
                value.encode()  # what SQLite will refuse must not wait in the way of the rest
            with self._guard:
                self._texts |= texts

    def add_up(self, kind: str, key: str, amount: float) -> None:
        """Add to a number in one step; while the knowledge base is locked, in memory."""
        try:
            self._write({}, {(kind, key): amount}, self._patience())
        except Locked:
            with self._guard:
                _add(self._sums, {(kind, key): amount})

    def settle(self, seconds: float) -> None:
        """Write what waits; what another process keeps out for longer than this is lost."""
        if self._texts or self._sums:
            with suppress(Locked):
                self._write({}, {}, seconds)

    def _patience(self) -> float:
        return _AT_ONCE if self._texts or self._sums else _SHORTLY

    def _write(
        self, texts: Mapping[_Place, str], sums: Mapping[_Place, float], seconds: float
    ) -> None:
        """Write these, and what waits, in one transaction."""
        with self._guard:
            waiting = dict(self._texts)
            # Taken out: two who write at once must not both add them.
            taken, self._sums = self._sums, {}
        try:
            with self._pool.one() as db, patient(db, seconds), transaction(db):
                db.executemany(_KEEP, [(*at, value) for at, value in {**waiting, **texts}.items()])
                for due in (taken, sums):
                    db.executemany(_ADD, [(*at, amount) for at, amount in due.items()])
        except BaseException:
            with self._guard:
                _add(self._sums, taken)
            raise
        with self._guard:
            for at, value in waiting.items():
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
