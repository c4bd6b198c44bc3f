"""The key-value table: model replies, the manifest, summaries and decisions.

Unlike in a folder, a running write does not block it, so nothing has to wait in memory.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from clew.errors import NotPermitted, StoreError
from clew.store.checksums import checksum_cells
from clew.store.postgres.connections import Connection, Database
from clew.store.sqlite.keyvalue import CHECKED_WHEN_OPENED, COUNTED_KINDS, compare_sums

DAMAGED_ROW = "a row of the database is damaged; `clew verify` says where"
_UPSERT = (
    "INSERT INTO memory SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[]) "
    "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, checksum = excluded.checksum"
)
_REPLY = "reply"  # the kind of what can be asked for again
_SUMS = "rows of "  # begins the names, in `meta`, of the counts and sums by kind
_SUM_OF_KEYS = (
    "SELECT kind, count(*), coalesce(sum(checksum), 0)::bigint FROM memory WHERE (kind, key) IN "
    "(SELECT * FROM unnest(%s::text[], %s::text[])) GROUP BY kind"
)
_SUM_OF_ALL = (
    "SELECT kind, count(*), coalesce(sum(checksum), 0)::bigint FROM memory "
    "WHERE kind = ANY(%s::text[]) GROUP BY kind"
)
_STORE_SUM = (
    "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_Sums = dict[str, tuple[int, int]]


@contextmanager
def keep_sums(db: Connection, keys: Collection[tuple[str, str]]) -> Iterator[None]:
    """Update the counts and sums of the kinds whose (kind, key) pairs are written in this block.

    Writers of one kind wait here for each other; replies of models are not counted.
    """
    counted = [(kind, key) for kind, key in keys if kind in COUNTED_KINDS]
    kinds = sorted({kind for kind, _ in counted})
    if not kinds:
        yield
        return
    names = [_SUMS + kind for kind in kinds]
    db.execute(
        "INSERT INTO meta SELECT *, '' FROM unnest(%s::text[]) ON CONFLICT DO NOTHING", (names,)
    )
    rows = db.execute(
        "SELECT key, value FROM meta WHERE key = ANY(%s::text[]) ORDER BY key FOR UPDATE", (names,)
    ).fetchall()
    held = {str(name)[len(_SUMS) :]: str(value) for name, value in rows}
    columns = [list(column) for column in zip(*counted, strict=True)]
    before = _read_sums(db, _SUM_OF_KEYS, *columns)
    yield
    after = _read_sums(db, _SUM_OF_KEYS, *columns)
    unknown = [kind for kind in kinds if not held[kind]]  # written by an earlier version
    total = _read_sums(db, _SUM_OF_ALL, unknown) if unknown else {}
    none = (0, 0)
    for kind in kinds:
        if held[kind]:
            parts = zip(
                json.loads(held[kind]), before.get(kind, none), after.get(kind, none), strict=True
            )
            sums = [whole - old + new for whole, old, new in parts]
        else:
            sums = list(total.get(kind, none))
        db.execute(_STORE_SUM, (_SUMS + kind, json.dumps(sums)))


def _read_sums(db: Connection, statement: str, *given: list[str]) -> _Sums:
    found = db.execute(statement.encode(), given)
    return {str(kind): (int(count), int(total)) for kind, count, total in found}


def count_all_values(db: Connection) -> None:
    """Take the rows there are now as whole."""
    total = _read_sums(db, _SUM_OF_ALL, list(COUNTED_KINDS))
    for kind in COUNTED_KINDS:
        db.execute(_STORE_SUM, (_SUMS + kind, json.dumps(list(total.get(kind, (0, 0))))))


def find_lost_values(db: Connection, kinds: Collection[str] = ()) -> list[str]:
    """One sentence per kind (of these, or of all) whose rows are not those that were written."""
    wanted = list(kinds or COUNTED_KINDS)
    names = [_SUMS + kind for kind in wanted]
    rows = db.execute(
        "SELECT key, value FROM meta WHERE key = ANY(%s::text[]) AND value != ''", (names,)
    ).fetchall()
    total = _read_sums(db, _SUM_OF_ALL, wanted)
    return [
        sentence
        for kind, written in sorted((str(name)[len(_SUMS) :], value) for name, value in rows)
        for sentence in compare_sums(kind, json.loads(written), [total.get(kind, (0, 0))])
    ]


def refuse_losses(db: Connection) -> None:
    """Raise if settings or decisions that every result depends on were lost."""
    if lost := find_lost_values(db, CHECKED_WHEN_OPENED):
        raise StoreError(lost[0])


def select_values(db: Connection, kind: str, keys: Sequence[str]) -> dict[str, str]:
    """The stored values of these keys; raise if one is not as it was written."""
    found = {}
    for key, value, checksum in db.execute(
        "SELECT key, value, checksum FROM memory WHERE kind = %s AND key = ANY(%s::text[])",
        (kind, list(keys)),
    ):
        if checksum not in (None, checksum_cells(kind, key, value)):
            raise StoreError(DAMAGED_ROW)
        found[key] = value
    return found


def store_values(db: Connection, values: Mapping[str, Mapping[str, str]]) -> None:
    """Store values by kind and key within the caller's transaction."""
    # Sorted: two transactions that store the same keys must not wait for each other.
    rows = sorted(
        (kind, key, value) for kind, many in values.items() for key, value in many.items()
    )
    if rows:
        sums = [checksum_cells(*row) for row in rows]
        with keep_sums(db, [row[:2] for row in rows]):
            db.execute(_UPSERT, (*(list(column) for column in zip(*rows, strict=True)), sums))


def increment_values(db: Connection, kind: str, amounts: Mapping[str, float]) -> None:
    """Add to stored numbers within the caller's transaction."""
    keys = sorted(amounts)  # two transactions that add to the same keys must not wait in a circle
    with keep_sums(db, [(kind, key) for key in keys]):  # first, as whoever stores values does
        db.execute(
            "INSERT INTO memory SELECT %s, key, '0', NULL FROM unnest(%s::text[]) AS key "
            "ON CONFLICT DO NOTHING",
            (kind, keys),
        )
        held = db.execute(
            "SELECT key, value FROM memory WHERE kind = %s AND key = ANY(%s::text[]) "
            "ORDER BY key FOR UPDATE",
            (kind, keys),
        ).fetchall()
        values = [repr(round(float(value) + amounts[key], 9)) for key, value in held]
        found = [str(key) for key, _ in held]
        sums = [checksum_cells(kind, *cells) for cells in zip(found, values, strict=True)]
        db.execute(_UPSERT, ([kind] * len(found), found, values, sums))


class PostgresKeyValueStore:
    """The key-value table, each access a transaction of its own.

    A user who may only read keeps replies for this process alone, and adds nothing to the totals.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._own_replies: dict[str, str] = {}

    def get(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored values of these keys."""
        with self._database.transaction() as db:
            found = select_values(db, kind, keys)
        if kind == _REPLY and self._own_replies:
            found |= {key: self._own_replies[key] for key in keys if key in self._own_replies}
        return found

    def set(self, kind: str, items: Mapping[str, str]) -> None:
        """Store values by key."""
        try:
            with self._database.transaction() as db:
                store_values(db, {kind: items})
        except NotPermitted:
            if kind != _REPLY:
                raise
            self._own_replies |= items

    def increment(self, kind: str, key: str, amount: float) -> None:
        """Add to a stored number atomically."""
        with suppress(NotPermitted), self._database.transaction() as db:
            increment_values(db, kind, {key: amount})
