"""Makes a document of every row of a table: its text is "column: value; …", its cells are kept.

A row's title is the cell that names it. Which column names rows is decided by the first rows alone,
so that a table of any length is read in one pass.
"""

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

from clew.ingest.readers.source import Skipped, SourceFile, make_document
from clew.text.unicode import clean
from clew.types import Document

Cell = str | int | float | bool
Cells = dict[str, Cell]
TableRow = tuple[int, Mapping[str, Any]]
"""A row's number, from 1, and its values by column."""
TABLE_KEY, LABEL_KEY, CELLS_KEY = "table", "label", "cells"
"""Metadata of a row's document: its table, the column that names rows, and the values."""
NAME_COLUMNS = ("name", "title", "label", "heading")
_SAMPLE_ROWS = 200
_SAMPLE_CHARACTERS = 1_000_000
_MAX_LABEL = 80  # characters of a cell that may name a row
_DISTINCT = 0.9  # share of the cells of a column that differ, for a column that names rows …
_NAMESAKES = 0.5  # … and for one that is called "name"
_MAX_DEPTH = 3  # of objects within a row, whose fields become columns


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table within a file; `name` is empty if the file holds one table."""

    source: SourceFile
    name: str = ""
    encoding: str = "utf-8"

    @property
    def path(self) -> str:
        """The name that the rows' names begin with."""
        return f"{self.source.name}#{self.name}" if self.name else self.source.name

    @property
    def stem(self) -> str:
        """What the rows are, as far as a name tells."""
        return self.name or PurePosixPath(self.source.name).stem


def can_name_columns(cells: Iterable[Any]) -> bool:
    """Whether a row has two cells or more that are not empty: one alone is a title of the table."""
    return sum(cell is not None and bool(str(cell).strip()) for cell in cells) > 1


def name_columns(header: Sequence[str]) -> list[str]:
    """Return a name for each column: its number where it has none, "value (2)" for a second one."""
    found: list[str] = []
    seen: Counter[str] = Counter()
    for number, name in enumerate(header, start=1):
        own = name.strip() or f"column {number}"
        seen[own.casefold()] += 1
        count = seen[own.casefold()]
        found.append(f"{own} ({count})" if count > 1 else own)
    return found


def show_cells(cells: Cells) -> Iterator[tuple[str, str]]:
    """Yield each column with its value as it is told."""
    return ((column, _show(value)) for column, value in cells.items())


def read_rows(
    table: TableSource, rows: Iterable[TableRow | Skipped]
) -> Iterator[Document | Skipped]:
    """Yield a document per row; rows without a value, and those skipped before, are skipped."""
    own: set[str] = set()
    flat = (row if isinstance(row, Skipped) else (row[0], _flatten(row[1], own)) for row in rows)
    first = _take_sample(flat)
    label = choose_label([row[1] for row in first if not isinstance(row, Skipped)], own)
    for row in chain(first, flat):
        if isinstance(row, Skipped):
            yield row
        elif row[1]:
            yield make_row_document(table, row[0], row[1], label)
        else:
            yield Skipped(table.path, "has no value", row[0])


def _take_sample(rows: Iterator[Any]) -> list[Any]:
    taken, size = [], 0
    for row in rows:
        taken.append(row)
        size += 0 if isinstance(row, Skipped) else sum(len(str(cell)) for cell in row[1].values())
        if len(taken) >= _SAMPLE_ROWS or size > _SAMPLE_CHARACTERS:
            break
    return taken


def make_row_document(table: TableSource, number: int, cells: Cells, label: str) -> Document:
    """Make a row's document; identical rows are one document with several names."""
    text = "; ".join(f"{column}: {value}" for column, value in show_cells(cells))
    title = _show(cells[label]) if label in cells else ""
    metadata: dict[str, Any] = {TABLE_KEY: table.path, LABEL_KEY: label, CELLS_KEY: cells}
    if table.encoding != "utf-8":
        metadata["encoding"] = table.encoding
    # The table's name tells rows of two tables apart that have the same cells.
    return make_document(f"{text}.", title or table.stem, f"{table.path}#{number}", metadata)


def _show(value: Cell) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(str(value).split())


def _flatten(row: Mapping[str, Any], own: set[str]) -> Cells:
    """Return a row's values as plain ones, and note the columns of its own level.

    An object that is called a name is the row's own: "name.common".
    """
    cells = flatten_row(row)
    inner = {_column_name(key) for key, value in row.items() if isinstance(value, Mapping)}
    of_others = tuple(f"{key}." for key in inner if key.casefold() not in NAME_COLUMNS)
    own.update(column for column in cells if not column.startswith(of_others))
    return cells


def flatten_row(row: Mapping[str, Any]) -> Cells:
    """Return a row's values as plain ones: objects become columns, lists texts; empty ones go."""
    found: Cells = {}
    _flatten_into(found, row, "", _MAX_DEPTH)
    return found


def _flatten_into(found: Cells, row: Mapping[str, Any], prefix: str, depth: int) -> None:
    for key, value in row.items():
        column = f"{prefix}{_column_name(key)}"
        if isinstance(value, Mapping) and depth > 1 and value:
            _flatten_into(found, value, f"{column}.", depth - 1)
        elif (plain := _to_cell(value)) is not None and column:
            found[column] = plain


def _column_name(key: Any) -> str:
    return " ".join(clean(str(key)).split())


def _to_cell(value: Any) -> Cell | None:
    """Return a value as text or number; None for an empty one."""
    if isinstance(value, str):
        return clean(value).strip() or None
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return _to_cell(int(value) if value == value.to_integral_value() else float(value))
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        if all(isinstance(item, str | int | float) for item in value):
            return ", ".join(map(str, value)) or None
        return json.dumps(value, ensure_ascii=False, default=str)
    if value is None or isinstance(value, bytes):
        return None
    return clean(str(value)).strip() or None


def choose_label(rows: Sequence[Cells], own: Collection[str] = ()) -> str:
    """Return the column that names the rows; one of `own`, those of no object within, if it can.

    A talk is called by its title rather than by the name within its speaker.
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    outer = [column for column in columns if column in own]
    return _choose_among(outer, rows) or _choose_among(columns, rows)


def _choose_among(columns: Sequence[str], rows: Sequence[Cells]) -> str:
    """Return the column that names the rows: texts, no two alike, named like one or the first."""
    called = [one for one in columns if _names_rows(one, rows, _NAMESAKES)]
    first = columns[0] if columns and _names_rows(columns[0], rows, _DISTINCT) else ""
    coded = any(_is_code(row.get(first)) for row in rows)
    for wanted in NAME_COLUMNS:
        # "name" itself before "country name" before "username".
        for column in sorted(called, key=len):
            if column.casefold() == wanted:
                return column
            # A "job title" does not name a row whose first column, "employee", does.
            if wanted in split_column(column) and (wanted == "name" or not first or coded):
                return column
    found = [column for column in columns if _names_rows(column, rows, _DISTINCT)]
    words = [column for column in found if not any(_is_code(row.get(column)) for row in rows)]
    return next(iter([*words, *found]), "")


def split_column(column: str) -> list[str]:
    """Return the words of a column's name: "eol-server", "birthDate", "unit_price"."""
    spaced = "".join(
        f" {char}" if char.isupper() and column[at - 1 : at].islower() else char
        for at, char in enumerate(column)
    )
    return "".join(c if c.isalnum() else " " for c in spaced).casefold().split()


def _names_rows(column: str, rows: Sequence[Cells], distinct: float) -> bool:
    """Whether nearly all rows have a short text here, and such a share of them its own."""
    cells = [row[column] for row in rows if column in row]
    texts = {cell for cell in cells if isinstance(cell, str) and _is_wordy(cell)}
    return len(cells) >= _DISTINCT * len(rows) and len(texts) >= distinct * len(cells) > 0


def _is_wordy(cell: str) -> bool:
    return len(cell) <= _MAX_LABEL and any(char.isalpha() for char in cell)


def _is_code(cell: Cell | None) -> bool:
    """Whether a cell looks like a code rather than a name: capitals and digits, or very short."""
    return isinstance(cell, str) and (len(cell) <= 3 or any(char.isdigit() for char in cell))
