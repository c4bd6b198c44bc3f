"""Read the graph as integer columns, updating only the rows touched by a write."""

import json
import sqlite3
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np

from clew.errors import StoreError
from clew.out_of_core import UNBOUNDED, WorkingMemory
from clew.store.edited_rows import EditedRows
from clew.store.protocol import COLUMN_PREFIX, HAS_DETAILS, Array, Arrays, Tables
from clew.store.resolved_entities import (
    RESOLUTION_KIND,
    SENSES_KIND,
    parse_decisions,
    parse_sense_pins,
)
from clew.store.spliced_arrays import find_splice, splice_rows
from clew.store.sqlite.connections import DAMAGED_ROW

_ROWS_PER_BLOCK = 50_000  # read at once of a table that does not fit into memory
_PROBED_ROWS = 64
_MAX_BISECTED = 1000  # keys that are looked for one by one


@dataclass(frozen=True)
class _Query:
    """One table: its columns, source and the key by which touched rows are selected."""

    columns: str
    source: str
    key: str
    width: int
    order: str = ""
    """How all rows are read: in the order of the first column."""

    def read_all(self, db: sqlite3.Connection, memory: WorkingMemory) -> Array:
        # Counted first: an array that grows is copied, and there are several times as many bytes.
        rows = db.execute(f"SELECT count(*) FROM {self.source}").fetchone()[0]  # noqa: S608
        cursor = db.execute(f"SELECT {self.columns} FROM {self.source} {self.order}")  # noqa: S608
        if memory.fits(rows, 8 * self.width):
            return self._to_array(cursor, rows)
        found = memory.empty((rows, self.width), np.int64)
        done = 0
        for _ in range(0, rows, _ROWS_PER_BLOCK):
            block = self._to_array(islice(cursor, _ROWS_PER_BLOCK))
            found[done : done + len(block)] = block
            done += len(block)
            memory.release()
        return found[:done]

    def read_some(self, db: sqlite3.Connection, keys: Collection[int]) -> Array:
        return self._to_array(
            db.execute(
                f"SELECT {self.columns} FROM {self.source} "  # noqa: S608  (our own constants)
                f"WHERE {self.key} IN (SELECT value FROM json_each(?))",
                (json.dumps(sorted(keys)),),
            )
        )

    def _to_array(self, cursor: Iterable[tuple[Any, ...]], rows: int | None = None) -> Array:
        count = -1 if rows is None else rows * self.width
        try:
            found = np.fromiter(chain.from_iterable(cursor), np.int64, count)
            return found.reshape(-1, self.width)
        except (TypeError, ValueError, OverflowError) as error:  # text or NULL instead of a number
            raise StoreError(DAMAGED_ROW) from error


_ROLE_CODE_SQL = (
    "CASE p.role WHEN 'subject' THEN 0 WHEN 'head' THEN 2 WHEN 'tail' THEN 3 ELSE 1 END"
)
_QUERIES = {
    "chunks": _Query("key, row, content_code(id), start", "chunks", "key", 4),
    "entities": _Query(
        "key, row, name_hash, type IN ('date', 'number'), label_code(type), id_code(id), "
        f"length(description) + (attributes != '') * {HAS_DETAILS}, node_code(id, name)",
        "entities",
        "key",
        8,
    ),
    "facts": _Query(
        "key, row, label_code(relation), CAST(round(weight * 1000) AS INTEGER), "
        f"length(description) + (keywords != '') * {HAS_DETAILS}, content_code(id)",
        "facts",
        "key",
        6,
    ),
    "mentions": _Query(
        "entity, chunk, times, CAST(round(about * 1000) AS INTEGER), class_of(type)",
        "mentions",
        "chunk",  # not by entity: a frequent name would have all its mentions read again
        5,
    ),
    "participants": _Query(f"p.fact, p.entity, {_ROLE_CODE_SQL}", "participants p", "p.fact", 3),
    "supports": _Query(
        "s.fact, s.chunk, s.start - c.start",
        "sayings s JOIN chunks c ON c.key = s.chunk",
        "s.chunk",
        3,
        "ORDER BY s.fact, s.chunk",
    ),
    "forms": _Query("entity, hash, weight, part", "forms", "entity", 4),
}
_KEY_COLUMNS = {"mentions": 1, "supports": 1}
"""The column of the key by which a table is read again, where it is not the first."""
_CODED = ("chunks", "entities", "facts", "forms")
"""Tables from which larger numbers are computed: they always have 64 bits in memory."""
_TOUCHED_BY = {
    "chunks": "chunks",
    "entities": "entities",
    "mentions": "chunks",
    "forms": "entities",
    "facts": "facts",
    "participants": "facts",
    "supports": "chunks",
}


def read_tables(
    db: sqlite3.Connection,
    previous: Arrays,
    touched: Mapping[str, Collection[int]],
    memory: WorkingMemory = UNBOUNDED,
) -> Tables:
    """Update the touched rows of the previous columns; read all if there are none."""

    def read(name: str, keys: Collection[int] | None) -> Array:
        query = _QUERIES[name]
        return query.read_all(db, memory) if keys is None else query.read_some(db, keys)

    return update_tables(previous, touched, read, memory)


def update_tables(
    previous: Arrays,
    touched: Mapping[str, Collection[int]],
    read: Callable[[str, Collection[int] | None], Array],
    memory: WorkingMemory = UNBOUNDED,
) -> Tables:
    """The same for any database: `read` reads a table's columns, of some keys or of all."""
    found: dict[str, Any] = {}
    for name, by in _TOUCHED_BY.items():
        held = previous.get(COLUMN_PREFIX + name)
        # An earlier version did not tell how names are written.
        if held is None or (name == "entities" and "entity_small" not in previous):
            table = _sort_by_key(read(name, None))
            found[name] = table if name in _CODED else _narrow(table, memory)
        else:
            keys = touched[by]
            fresh = _sort_by_key(read(name, keys))
            gone = _find_rows(held, _KEY_COLUMNS.get(name, 0), _find_older(previous, by, keys))
            found[name] = _replace_rows(previous, COLUMN_PREFIX + name, gone, fresh)
            if name in _CODED and found[name].dtype != np.int64:
                found[name] = np.asarray(found[name], np.int64)
        memory.release()
    if all(COLUMN_PREFIX + name in previous for name in ("entities", "forms")):
        found["touched_names"] = _find_changed_names(previous, found, touched["entities"])
    return Tables(**found, memory=memory)


def _find_changed_names(
    previous: Arrays, found: Mapping[str, Array], touched: Collection[int]
) -> Array:
    """Keys of names of which rows came or went; all that were touched where that is not known."""
    keys = []
    for table in ("entities", "forms"):
        held = previous[COLUMN_PREFIX + table]
        made = find_splice(previous, COLUMN_PREFIX + table, found[table])
        if made is None:
            return np.array(sorted(touched), np.int64)
        keys += [held[made.gone, 0], made.rows[:, 0]]
    return np.unique(np.concatenate(keys)).astype(np.int64)


def _sort_by_key(table: Array) -> Array:
    if (table[1:, 0] >= table[:-1, 0]).all():
        return table
    # Cheap: the rows are nearly sorted already.
    return table[np.argsort(table[:, 0], kind="stable")]


def _find_older(previous: Arrays, by: str, keys: Collection[int]) -> Array:
    """Those of the keys that there were before: new ones are larger than all others."""
    held = previous.get(COLUMN_PREFIX + by)
    found = np.array(sorted(keys), np.int64)
    if held is None:
        return found
    return found[found <= int(held[-1, 0])] if len(held) else found[:0]


def _replace_rows(previous: Arrays, name: str, gone: Array, fresh: Array) -> Array:
    """Replace the rows `gone` of an array by `fresh`; all are sorted by their first column."""
    held = previous[name]
    if held.dtype == np.int32:
        fresh = _narrow(fresh)
    gone, fresh = _leave_out_equal(held, gone, fresh)
    if not len(gone) and not len(fresh):
        return held
    at = _bisect(held[:, 0], fresh[:, 0], bisect_right)
    return splice_rows(previous, name, held, gone, at, fresh)


def _leave_out_equal(held: Array, gone: Array, fresh: Array) -> tuple[Array, Array]:
    """Leave out the rows of keys of which all rows, in order, are what they were."""
    old = held[gone]
    keys = np.intersect1d(old[:, 0], fresh[:, 0])
    if not len(keys):
        return gone, fresh
    sizes = [np.diff(_find_edges(rows, keys), axis=0)[0] for rows in (old, fresh)]
    keys, size = keys[sizes[0] == sizes[1]], sizes[0][sizes[0] == sizes[1]]
    (mine, _), (theirs, _) = (_find_edges(rows, keys) for rows in (old, fresh))
    which = np.repeat(np.arange(len(keys)), size)
    steps = np.arange(len(which)) - np.repeat(np.cumsum(size) - size, size)
    differs = (old[mine[which] + steps] != fresh[theirs[which] + steps]).any(axis=1)
    same = np.ones(len(keys), np.bool_)
    same[which[differs]] = False
    return (
        gone[~np.isin(old[:, 0], keys[same])],
        fresh[~np.isin(fresh[:, 0], keys[same])],
    )


def _find_edges(rows: Array, keys: Array) -> Array:
    """Where the rows of each key begin and end."""
    return np.stack([np.searchsorted(rows[:, 0], keys, side) for side in ("left", "right")])


def _find_rows(table: Array, column: int, keys: Array) -> Array:
    """Where a column has one of these keys, which ascend; a table is sorted by its first column."""
    if not len(keys) or not len(table):
        return np.zeros(0, np.int64)
    if not column:
        first, last = (_bisect(table[:, 0], keys, side) for side in (bisect_left, bisect_right))
        sizes = last - first
        return np.repeat(last - np.cumsum(sizes), sizes) + np.arange(int(sizes.sum()))
    held = np.ascontiguousarray(table[:, column])
    at = np.flatnonzero((held >= keys[0]) & (held <= keys[-1]))  # most are outside
    values = held[at]
    found: Array = at[keys[np.minimum(np.searchsorted(keys, values), len(keys) - 1)] == values]
    return found


def _bisect(column: Array, keys: Array, side: Callable[[Any, int], int]) -> Array:
    """Where a few ascending keys are in an ascending column, of which no copy is made."""
    distinct = np.unique(keys)
    if isinstance(column, EditedRows):
        places = column.bisect(distinct, right=side is bisect_right)
        return places[np.searchsorted(distinct, keys)]
    if len(distinct) > _MAX_BISECTED:
        return np.searchsorted(column, keys, "left" if side is bisect_left else "right")
    found = np.array([side(column, key) for key in distinct.tolist()], np.int64)
    return found[np.searchsorted(distinct, keys)]


def read_decisions(db: sqlite3.Connection) -> tuple[Array, Array]:
    """Read merge decisions and sense pins as key columns."""
    held, pins = (
        dict(db.execute("SELECT key, value FROM memory WHERE kind = ?", (kind,)).fetchall())
        for kind in (RESOLUTION_KIND, SENSES_KIND)
    )
    ids = [name.partition("#")[0] for pair in (*held, *pins) for name in pair.split()]
    entities = dict(
        db.execute(
            "SELECT id, key FROM entities WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(ids),),
        )
    )
    chunks: dict[str, list[int]] = defaultdict(list)
    for document, key in db.execute(
        "SELECT d.id, c.key FROM chunks c JOIN documents d ON d.key = c.document "
        "WHERE d.id IN (SELECT value FROM json_each(?))",
        (json.dumps([document for value in pins.values() for document in json.loads(value)]),),
    ):
        chunks[document].append(key)
    return parse_decisions(held, entities), parse_sense_pins(pins, entities, chunks)


def drop_columns(held: Arrays, kinds: Collection[str]) -> Arrays:
    """The columns of an earlier generation but for those of elements of these kinds."""
    dropped = {COLUMN_PREFIX + {"entity": "entities"}.get(kind, f"{kind}s") for kind in kinds}
    return {name: held[name] for name in held if name not in dropped} if dropped else held


def columns_to_keep(tables: Tables) -> dict[str, Array]:
    """Columns as named arrays, to be saved in the generation's folder."""
    return {
        COLUMN_PREFIX + name: _narrow(getattr(tables, name), tables.memory) for name in _QUERIES
    }


def _narrow(table: Array, memory: WorkingMemory = UNBOUNDED) -> Array:
    """The same numbers in half the bytes, if none is too large."""
    if not len(table):
        return table.astype(np.int64, copy=False)
    if table.dtype == np.int32 or not _has_small_numbers(table, memory):
        return table
    return memory.copy(table, np.int32)


def _has_small_numbers(table: Array, memory: WorkingMemory) -> bool:
    """Whether all numbers have 32 bits; a table of codes has a large one among its first rows."""
    limits = np.iinfo(np.int32)
    for some in (slice(_PROBED_ROWS), *memory.blocks(len(table), 8 * table.shape[1])):
        if table[some].min() < limits.min or table[some].max() > limits.max:
            memory.release()
            return False
    return True
