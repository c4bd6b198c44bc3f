"""The key-value table: model replies, the manifest, summaries and decisions.

Unlike in a folder, a running write does not block it, so nothing has to wait in memory.
"""

from collections.abc import Mapping, Sequence

from clew.errors import StoreError
from clew.store.checksums import checksum_cells
from clew.store.postgres.connections import Connection, Database

DAMAGED_ROW = "a row of the database is damaged; `clew verify` says where"
_UPSERT = (
    "INSERT INTO memory SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[]) "
    "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, checksum = excluded.checksum"
)


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
        db.execute(_UPSERT, (*(list(column) for column in zip(*rows, strict=True)), sums))


def increment_value(db: Connection, kind: str, key: str, amount: float) -> float:
    """Add to a stored number within the caller's transaction; return the sum."""
    db.execute("INSERT INTO memory VALUES (%s, %s, '0', NULL) ON CONFLICT DO NOTHING", (kind, key))
    row = db.execute(
        "SELECT value FROM memory WHERE kind = %s AND key = %s FOR UPDATE", (kind, key)
    ).fetchone()
    total = round(float(row[0] if row else 0) + amount, 9)
    store_values(db, {kind: {key: repr(total)}})
    return total


class PostgresKeyValueStore:
    """The key-value table, each access a transaction of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored values of these keys."""
        with self._database.transaction() as db:
            return select_values(db, kind, keys)

    def set(self, kind: str, items: Mapping[str, str]) -> None:
        """Store values by key."""
        with self._database.transaction() as db:
            store_values(db, {kind: items})

    def increment(self, kind: str, key: str, amount: float) -> None:
        """Add to a stored number atomically."""
        with self._database.transaction() as db:
            increment_value(db, kind, key, amount)
