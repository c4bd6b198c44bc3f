"""COPY rows in and integer columns out, and the graph as integer columns."""

import json
from collections import defaultdict
from collections.abc import Collection, ItemsView, Iterable, Iterator, Mapping, Sequence
from typing import Any, LiteralString

import numpy as np
from psycopg import sql

from clew.store.merge import embedded_text
from clew.store.postgres.connections import READ, Connection, Database
from clew.store.postgres.versions import VERSIONED_TABLES, show_generation
from clew.store.protocol import HAS_DETAILS, Array, Arrays, Tables
from clew.store.resolved_entities import (
    RESOLUTION_KIND,
    SENSES_KIND,
    parse_decisions,
    parse_sense_pins,
)
from clew.store.sqlite.tables import update_tables
from clew.types import Chunk

Row = tuple[Any, ...]
_SIGNATURE_BYTES = 19  # before the first row of a binary COPY without options
_TRAILER_BYTES = 2
_TEXTS_AT_ONCE = 2000
_SELECT_TEXTS: LiteralString = (
    "SELECT c.key, d.title, c.heading, c.text FROM chunks c JOIN documents d ON d.key = c.document"
)
_ROLE_CODES: LiteralString = (
    "CASE p.role WHEN 'subject' THEN 0 WHEN 'head' THEN 2 WHEN 'tail' THEN 3 ELSE 1 END::bigint"
)
_CONTENT_CODE: LiteralString = "('x' || left(md5(id), 16))::bit(64)::bigint"
# By table: columns, the source with its condition, and the order; every column is a bigint.
_QUERIES: dict[str, tuple[LiteralString, LiteralString, LiteralString, int]] = {
    "chunks": (f"key, vector_row, {_CONTENT_CODE}, start", "chunks WHERE key", "key", 4),
    "entities": (
        "key, vector_row, name_hash, literal, type_code, id_code, length(description)::bigint + "
        f"CASE attributes WHEN '' THEN 0 ELSE {HAS_DETAILS} END::bigint, exact",
        "entities WHERE key",
        "key",
        8,
    ),
    "facts": (
        "key, vector_row, relation_code, weight_code, length(description)::bigint + "
        f"CASE keywords WHEN '' THEN 0 ELSE {HAS_DETAILS} END::bigint, {_CONTENT_CODE}",
        "facts WHERE key",
        "key",
        6,
    ),
    "mentions": (
        "entity, chunk, times, about_code, class_code",
        "mentions WHERE chunk",
        "entity, chunk",
        5,
    ),
    "participants": (
        f"p.fact, p.entity, {_ROLE_CODES}",
        "participants p WHERE p.fact",
        "p.fact, p.ordinal",
        3,
    ),
    "supports": (
        "s.fact, s.chunk, s.start - c.start",
        "sayings s JOIN chunks c ON c.key = s.chunk WHERE s.chunk",
        "s.fact, s.chunk",
        3,
    ),
    "forms": ("entity, hash, weight, part", "forms WHERE entity", "entity, hash", 4),
}

TABLES_OF_COLUMNS = tuple(_QUERIES)


def copy_in(db: Connection, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Insert rows by COPY; those of the graph belong to the generation that is being written."""
    target = f"{table}_versions" if table in VERSIONED_TABLES else table
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(target), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with db.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def copy_out(db: Connection, table: str, columns: Sequence[str]) -> Iterable[Row]:
    """Stream the rows of a table, in the order of its first columns."""
    shown = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("SELECT {} FROM {} ORDER BY 1, 2").format(shown, sql.Identifier(table))
    with db.cursor(name="copy_out") as cursor:
        cursor.itersize = 5000
        yield from cursor.execute(statement)


def read_tables(db: Connection, previous: Arrays, touched: Mapping[str, Collection[int]]) -> Tables:
    """Update the touched rows of the previous columns; read all if there are none."""
    return update_tables(previous, touched, lambda name, keys: read_columns(db, name, keys))


def read_columns(db: Connection, name: str, keys: Collection[int] | None = None) -> Array:
    """Read the columns of a table, of some keys or of all."""
    columns, source, order, width = _QUERIES[name]
    where: LiteralString = "IS NOT NULL" if keys is None else "= ANY(%s::bigint[])"
    statement = sql.SQL(
        f"COPY (SELECT {columns} FROM {source} {where} ORDER BY {order}) "  # noqa: S608
        "TO STDOUT (FORMAT BINARY)"
    )
    given = None if keys is None else (sorted(keys),)
    with db.cursor() as cursor, cursor.copy(statement, given) as copy:
        raw = b"".join(copy)
    return _parse_integers(raw, width)


def _parse_integers(raw: bytes, width: int) -> Array:
    """Rows of a binary COPY whose columns are all 8-byte integers."""
    cells = np.dtype([("count", ">i2"), ("cells", [("size", ">i4"), ("value", ">i8")], (width,))])
    body = raw[_SIGNATURE_BYTES : len(raw) - _TRAILER_BYTES]
    rows = np.frombuffer(body, cells)
    found: Array = rows["cells"]["value"].astype(np.int64).reshape(-1, width)
    return found


def read_decisions(db: Connection, changed: Mapping[str, Mapping[str, str]]) -> tuple[Array, Array]:
    """Read merge decisions and sense pins as key columns; those that are `changed` count."""
    held, pins = (
        {
            str(key): str(value)
            for key, value in db.execute("SELECT key, value FROM memory WHERE kind = %s", (kind,))
        }
        | dict(changed.get(kind, {}))
        for kind in (RESOLUTION_KIND, SENSES_KIND)
    )
    ids = [name.partition("#")[0] for pair in (*held, *pins) for name in pair.split()]
    entities = find_keys(db, "entities", ids)
    chunks: dict[str, list[int]] = defaultdict(list)
    documents = [document for value in pins.values() for document in json.loads(value)]
    for document, key in db.execute(
        "SELECT d.id, c.key FROM chunks c JOIN documents d ON d.key = c.document "
        "WHERE d.id = ANY(%s::text[]) ORDER BY c.key",
        (documents,),
    ):
        chunks[document].append(key)
    return parse_decisions(held, entities), parse_sense_pins(pins, entities, chunks)


def find_keys(db: Connection, table: str, ids: Iterable[str]) -> dict[str, int]:
    """Keys of these ids."""
    statement = sql.SQL("SELECT id, key FROM {} WHERE id = ANY(%s::text[])")
    found = db.execute(statement.format(sql.Identifier(table)), (list(ids),))
    return {str(name): int(key) for name, key in found}


def searchable_text(title: str, heading: str, text: str) -> str:
    """The text of a chunk that is embedded and indexed."""
    return embedded_text(Chunk("", "", 0, 0, text, title, heading))


class ChunkTexts(Mapping[int, str]):
    """Searchable text of a generation's chunks (all if `keys` is None), read on access.

    Each block is read in a transaction of its own: none is open while arrays are derived.
    """

    def __init__(
        self, database: Database, generation: int, keys: Sequence[int] | None = None
    ) -> None:
        self._database = database
        self._generation = generation
        self._keys = keys

    def __getitem__(self, key: int) -> str:
        """Text of one chunk."""
        for _, text in self._read("c.key = ANY(%s::bigint[])", [key]):
            return text
        raise KeyError(key)

    def __iter__(self) -> Iterator[int]:
        """The keys, ascending."""
        if self._keys is not None:
            return iter(sorted(self._keys))
        return (key for key, _ in self.stream())

    def __len__(self) -> int:
        """Number of chunks."""
        return len(self._keys) if self._keys is not None else sum(1 for _ in self.stream())

    def items(self) -> ItemsView[int, str]:
        """Stream all pairs, without holding all of them in memory."""
        return _ChunkTextItems(self)

    def stream(self) -> Iterator[tuple[int, str]]:
        """Key and searchable text, ascending, block by block."""
        if self._keys is not None:
            listed = sorted(self._keys)
            for at in range(0, len(listed), _TEXTS_AT_ONCE):
                block = listed[at : at + _TEXTS_AT_ONCE]
                yield from self._read("c.key = ANY(%s::bigint[])", block)
            return
        last = -1
        while found := self._read("c.key > %s", last):
            yield from found
            last = found[-1][0]

    def _read(self, where: LiteralString, given: object) -> list[tuple[int, str]]:
        statement = f"{_SELECT_TEXTS} WHERE {where} ORDER BY c.key LIMIT {_TEXTS_AT_ONCE}"
        with self._database.transaction(READ) as db:
            show_generation(db, self._generation)
            found = db.execute(statement.encode(), (given,)).fetchall()
        return [(int(key), searchable_text(*parts)) for key, *parts in found]


class _ChunkTextItems(ItemsView[int, str]):
    def __init__(self, texts: ChunkTexts) -> None:
        super().__init__(texts)
        self._texts = texts

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return self._texts.stream()
