"""Loads the tables of a knowledge base from the documents of their rows, or as they were saved.

Reading very many rows takes long, so what was read is saved when rows have changed (`save_tables`).
A mark in the manifest, changed before any row is, tells whether what was saved is out of date.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from clew.agents.rules.table_words import fold_text
from clew.agents.tables.load import Column, Table
from clew.agents.tables.values import load_vocabulary
from clew.context import Context
from clew.index.view import View
from clew.ingest.build import SAVED_TABLES_KIND, TABLES_KEY
from clew.ingest.readers.tables import CELLS_KEY, LABEL_KEY, TABLE_KEY
from clew.store.protocol import KeyValueStore, Snapshot, Store
from clew.types import Document

_BATCH = 5_000  # rows whose documents are in memory at once
_MEMO, _CHANGING = "tables", "tables that change"
_MAX_SUMMING = 2  # rows at the end that may sum up the others
_CLOSE = 0.006  # of a sum that was rounded
_MARK, _ROWS = "mark", "rows"  # keys of what is saved


async def load_tables(ctx: Context) -> list[Table]:
    """Return the tables of a knowledge base, loaded once per generation."""
    if _MEMO not in ctx.view.memo and ctx.key_values is not None:
        held = (await ctx.key_values.get("manifest", [TABLES_KEY])).get(TABLES_KEY, "")
        found = await _load_saved(ctx.key_values, held, ctx.view.generation) if held else []
        if found is None:
            saved = await ctx.key_values.get(SAVED_TABLES_KIND, [_MARK])
            ctx.view.memo[_CHANGING] = saved.get(_MARK) == ""
            found = await _read_tables(ctx.snapshot, ctx.view)
        ctx.view.memo[_MEMO] = found
    tables: list[Table] = ctx.view.memo.get(_MEMO, [])
    return tables


def are_unfinished(ctx: Context) -> bool:
    """Whether rows were being added when the tables were read, or an add of rows was ended."""
    return bool(ctx.view.memo.get(_CHANGING))


async def save_tables(store: Store) -> None:
    """Read the tables if rows have changed, and save them for the first question."""
    held = (await store.get("manifest", [TABLES_KEY])).get(TABLES_KEY, "")
    saved = (await store.get(SAVED_TABLES_KIND, [_MARK])).get(_MARK, "")
    if not held or saved.startswith(f"{held} "):
        return
    async with store.snapshot() as now:
        tables = await _read_tables(now, View(now.arrays, {}))
        generation = now.generation
    content = [
        [one.name, one.label, {name: c.cells for name, c in one.columns.items()}, one.rows]
        for one in tables
    ]
    rows = pack_tables(json.dumps(content, ensure_ascii=False))
    await store.set(SAVED_TABLES_KIND, {_MARK: f"{held} {generation}", _ROWS: rows})


async def _load_saved(key_values: KeyValueStore, held: str, generation: int) -> list[Table] | None:
    """Return the tables as they were saved, None if they were not since rows have changed.

    What was saved of a later generation may have rows that this one has not.
    """
    saved = await key_values.get(SAVED_TABLES_KIND, [_MARK])
    mark, _, made = saved.get(_MARK, "").partition(" ")
    if mark != held or int(made or 0) > generation:
        return None
    rows = (await key_values.get(SAVED_TABLES_KIND, [_ROWS])).get(_ROWS, "")
    return [
        Table(name, label, {c: Column(c, cells) for c, cells in columns.items()}, places)
        for name, label, columns, places in json.loads(unpack_tables(rows))
    ]


def pack_tables(text: str) -> str:
    """Return a text compressed, as a text: tables say the same words again and again."""
    return b64encode(zlib.compress(text.encode(), 6)).decode("ascii")


def unpack_tables(packed: str) -> str:
    """Return a text that was packed, or one of an earlier version as it is."""
    return packed if packed[:1] in ("[", "") else zlib.decompress(b64decode(packed)).decode()


async def _read_tables(snapshot: Snapshot, view: View) -> list[Table]:
    """Read all tables from the documents of their rows."""
    rows: dict[str, list[_StoredRow]] = defaultdict(list)
    keys = view.keys("chunk").tolist()
    for start in range(0, len(keys), _BATCH):
        chunks = await snapshot.chunks(keys[start : start + _BATCH])
        first = {one.document: one for one in chunks.values() if one.start == 0}
        documents = await snapshot.documents(list(first))
        some = [document for document in documents.values() if is_row(document)]
        names = await snapshot.names([document.id for document in some])
        for document in some:
            for name in names[document.id]:
                table, _, number = name.rpartition("#")
                if number.isdigit():
                    row = _StoredRow(
                        int(number),
                        name,
                        document.id,
                        first[document.id].id,
                        document.metadata[CELLS_KEY],
                        document.metadata[LABEL_KEY],
                    )
                    rows[table].append(row)
    return [_make_table(name, sorted(rows[name], key=_row_number)) for name in sorted(rows)]


class _StoredRow(NamedTuple):
    """A row as it was stored."""

    number: int
    name: str
    document: str
    chunk: str
    cells: Mapping[str, Any]
    label: str


def _row_number(row: _StoredRow) -> int:
    return row.number


def _make_table(name: str, rows: Sequence[_StoredRow]) -> Table:
    cells: dict[str, list[Any]] = {}
    for number, row in enumerate(rows):
        _append_row(cells, row.cells, number)
    for column in cells.values():
        column.extend([None] * (len(rows) - len(column)))
    columns = {column: Column(column, values) for column, values in cells.items()}
    kept = len(rows) - _count_summing_rows(columns, len(rows))
    if kept < len(rows):
        columns = {column: Column(column, values[:kept]) for column, values in cells.items()}
    return Table(
        name, rows[0].label, columns, [(row.name, row.document, row.chunk) for row in rows[:kept]]
    )


def _count_summing_rows(columns: Mapping[str, Column], size: int) -> int:
    """Return how many rows at the end sum up the others: by their label and by their numbers."""
    for count in range(min(_MAX_SUMMING, size - 2), 0, -1):
        body = size - count
        if all(_sums_up(columns, row, body) for row in range(body, size)):
            return count
    return 0


def _sums_up(columns: Mapping[str, Column], row: int, body: int) -> bool:
    """Whether a row is called a total and most of its numbers are those of the rows above."""
    texts = [one.cells[row] for one in columns.values() if isinstance(one.cells[row], str)]
    words = fold_text(texts[0]).split()[:2] if texts else []
    totals = load_vocabulary().totals
    how = next((totals[word] for word in words if word in totals), "")
    if not how:
        return False
    agreed, compared = 0, 0
    for column in columns.values():
        own = column.numbers[row] if column.type == "number" else None
        above = [number for number in column.numbers[:body] if number is not None]
        if own is not None and above:
            value = sum(above) / (len(above) if how == "mean" else 1)
            compared += 1
            agreed += abs(value - own) <= _CLOSE * max(1.0, abs(own))
    return agreed * 2 > compared


def is_row(document: Document) -> bool:
    """Whether a document is a row of a table."""
    return TABLE_KEY in document.metadata and isinstance(document.metadata.get(CELLS_KEY), dict)


def _append_row(cells: dict[str, list[Any]], row: Mapping[str, Any], number: int) -> None:
    for column, value in row.items():
        values = cells.setdefault(column, [])
        values.extend([None] * (number - len(values)))
        values.append(value)
