"""Key-value table in SQLite; model replies are deferred while another process holds the lock.

Replies are paid for, and another process may write for minutes: the question continues, and
pending values are written with the next write, or on close.
"""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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


# Kinds whose rows are counted and summed (in `meta`, in the transaction that writes them), so that
# a lost row is noticed, and what a loss means.
COUNTED_KINDS = {
    "resolution": "decisions on names",
    "senses": "decisions on senses of names",
    "label": "labels of documents",
    "earlier-labels": "earlier labels of documents",
    "community": "summaries of communities, which a tree built again quotes or asks for",
    "manifest": "settings and costs",
    "arrival": "times of arrival of documents",
    "place": "locations of documents",
    "placed": "names of documents by location",
    "graph": "imported graphs",
    "summary": "summaries of descriptions",
    "tuning": "adapters fitted by `clew tune`",
    "calibration": "thresholds set by `clew calibrate`",
}
CHECKED_WHEN_OPENED = ("manifest", "resolution", "senses", "tuning", "calibration")
"""Kinds of few rows, without which results would be others."""
_MAX_CHECKED = 2_000  # rows of a kind that are summed when a knowledge base is opened
_SUM_OF_KEYS = (
    "SELECT count(*), coalesce(sum(checksum(kind, key, value)), 0) FROM memory WHERE kind = ?1 "
    "AND key IN (SELECT value FROM json_each(?2))"
)
_SUM_OF_ALL = (
    "SELECT count(*), coalesce(sum(checksum(kind, key, value)), 0) FROM memory WHERE kind = ?"
)
_SELECT_SUM = "SELECT value FROM meta WHERE key = 'rows of ' || ?"
_FORGET_SUMS = "DELETE FROM meta WHERE key LIKE 'rows of %'"
_PUBLISH = "INSERT OR REPLACE INTO meta VALUES ('generation', ?), ('arrays', ?)"
_META_KEYS = "SELECT key FROM meta WHERE key != 'restoring' ORDER BY key"
_STORE_SUM = "INSERT OR REPLACE INTO meta VALUES ('rows of ' || ?, ?)"


def seal_meta(db: sqlite3.Connection) -> None:
    """Note in the database's header which rows the table `meta` has."""
    mark = _compute_mark(db)
    if mark != _read_mark(db):
        db.execute(f"PRAGMA application_id = {mark}")


def _find_lost_meta(db: sqlite3.Connection) -> list[str]:
    """One sentence if rows of `meta` were lost; earlier versions did not note them."""
    if _read_mark(db) in (0, _compute_mark(db)):
        return []
    return [
        "rows of the table `meta` were lost, without which damage is not noticed; `clew restore "
        "FILE` restores a backup, `clew verify --repair` accepts the loss"
    ]


def _read_mark(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA application_id").fetchone()[0])


def _compute_mark(db: sqlite3.Connection) -> int:
    return checksum_cells(*(key for (key,) in db.execute(_META_KEYS))) % (1 << 31) or 1


@contextmanager
def _keep_seal(db: sqlite3.Connection) -> Iterator[None]:
    """Seal `meta` after this block, unless rows were lost before it."""
    whole = not _find_lost_meta(db)
    yield
    if whole:
        seal_meta(db)


def publish_generation(db: sqlite3.Connection, generation: int, seal: str) -> None:
    """Make a generation the newest one, with the seal of its arrays."""
    with _keep_seal(db):
        db.execute(_PUBLISH, (generation, seal))


def forget_sums(db: sqlite3.Connection) -> None:
    """Forget how many values were written: others stay behind."""
    db.execute(_FORGET_SUMS)
    seal_meta(db)


@contextmanager
def keep_sums(db: sqlite3.Connection, keys: Mapping[str, Collection[str]]) -> Iterator[None]:
    """Update the counts and sums of the kinds whose keys are written in this block."""
    kept = {kind: json.dumps(list(keys[kind])) for kind in keys if kind in COUNTED_KINDS}
    before = {at: db.execute(_SUM_OF_KEYS, (at, kept[at])).fetchone() for at in kept}
    yield
    for kind, written in kept.items():
        held = db.execute(_SELECT_SUM, (kind,)).fetchone()
        if held is None:  # the first ones, or written by an earlier version
            with _keep_seal(db):
                total = db.execute(_SUM_OF_ALL, (kind,)).fetchone()
                db.execute(_STORE_SUM, (kind, json.dumps(list(total))))
            continue
        after = db.execute(_SUM_OF_KEYS, (kind, written)).fetchone()
        parts = zip(json.loads(held[0]), before[kind], after, strict=True)
        total = [whole - old + new for whole, old, new in parts]
        db.execute(_STORE_SUM, (kind, json.dumps(list(total))))


def count_all_values(db: sqlite3.Connection) -> None:
    """Take the rows there are now as whole."""
    for kind in COUNTED_KINDS:
        total = db.execute(_SUM_OF_ALL, (kind,)).fetchone()
        db.execute(_STORE_SUM, (kind, json.dumps(list(total))))
    seal_meta(db)


def find_lost_values(db: sqlite3.Connection, kinds: Collection[str] = ()) -> list[str]:
    """One sentence per kind (of these, or of all) whose rows are not those that were written."""
    found = _find_lost_meta(db)
    for kind in kinds or COUNTED_KINDS:
        held = db.execute(_SELECT_SUM, (kind,)).fetchone()
        if held is not None:
            found += compare_sums(kind, json.loads(held[0]), db.execute(_SUM_OF_ALL, (kind,)))
    return found


def compare_sums(kind: str, written: Sequence[int], held: Iterable[Sequence[int]]) -> Iterator[str]:
    """Yield a sentence if the rows of a kind are not as many, or not those, that were written."""
    for count, total in held:
        if [count, total] != list(written):
            yield (
                f"{written[0]} stored values of kind {kind!r} were written and {count} are there, "
                f"or others than were written ({COUNTED_KINDS[kind]}); `clew restore FILE` "
                "restores a backup, `clew verify --repair` accepts the loss"
            )


def find_lost_settings(db: sqlite3.Connection) -> list[str]:
    """The same for what every result depends on, as long as looking takes no time."""
    few = []
    for kind in CHECKED_WHEN_OPENED:
        held = db.execute(_SELECT_SUM, (kind,)).fetchone()
        if held is not None and json.loads(held[0])[0] <= _MAX_CHECKED:
            few.append(kind)
    return find_lost_values(db, few) if few else _find_lost_meta(db)


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
    with keep_sums(db, values):
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
            keys: dict[str, set[str]] = {}
            for kind, key in (*pending, *texts, *taken, *sums):
                keys.setdefault(kind, set()).add(key)
            with (
                self._pool.connection() as db,
                busy_timeout(db, seconds),
                transaction(db),
                keep_sums(db, keys),
            ):
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
