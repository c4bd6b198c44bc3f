"""Makes one document of the tables of a file: a line per row, as `clew.text.tables` reads them.

Which column names rows is decided by the first rows alone, so that a table is read in one pass.
"""

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

from clew.errors import InputError
from clew.ingest.readers.source import (
    ReadBudget,
    Skipped,
    SourceFile,
    format_megabytes,
    make_document,
)
from clew.text.origins import Piece, encode_origin
from clew.text.tables import TABLES, count_runs, write_row
from clew.text.unicode import clean
from clew.types import Document

Cell = str | int | float | bool
Cells = dict[str, Cell]
TableRow = tuple[int, Mapping[str, Any]]
"""A row's number, from 1, and its values by column."""
NAME_COLUMNS = ("name", "title", "label", "heading")
_SAMPLE_ROWS = 200
_SAMPLE_CHARACTERS = 1_000_000
_MAX_LABEL = 80  # characters of a cell that may name a row
_DISTINCT = 0.9  # share of the cells of a column that differ, for a column that names rows …
_NAMESAKES = 0.5  # … and for one that is called "name"
_MAX_DEPTH = 3  # of objects within a row, whose fields become columns


@dataclass(eq=False)
class TableFile:
    """Collects the tables of a file, one after the other, and makes one document of them."""

    source: SourceFile
    budget: ReadBudget
    encoding: str = "utf-8"
    _lines: list[str] = field(default_factory=list)
    _tables: list[dict[str, Any]] = field(default_factory=list)
    _numbers: list[list[int]] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _size: int = 0

    def add(self, name: str, rows: Iterable[TableRow | Skipped]) -> Iterator[Skipped]:
        """Add the rows of a table; yield those without a value, and those skipped before.

        `name` is empty if the file holds one table.
        """
        own: set[str] = set()
        flat = (r if isinstance(r, Skipped) else (r[0], _flatten(r[1], own)) for r in rows)
        first = _take_sample(flat)
        label = choose_label([row[1] for row in first if not isinstance(row, Skipped)], own)
        if name:
            self._append(f"{chr(10) * bool(self._lines)}## {name}\n")
        columns, numbers = dict[str, None](), list[int]()
        table = {"name": name, "columns": columns, "label": label, "start": self._size}
        self._tables.append(table)
        self._numbers.append(numbers)
        for row in chain(first, flat):
            if isinstance(row, Skipped):
                yield row
            elif row[1]:
                columns.update(dict.fromkeys(row[1]))
                numbers.append(row[0])
                self._starts.append(self._size)
                self._append(write_row(show_cells(row[1])))
                table["end"] = self._size - 1
            else:
                path = f"{self.source.name}#{name}" if name else self.source.name
                yield Skipped(path, "has no value", row[0])

    def _append(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1
        if self._size > self.budget.file_bytes:
            limit = format_megabytes(self.budget.file_bytes)
            raise InputError(f"holds tables of more than the limit of {limit}; split it")

    def finish(self, lines: Mapping[int, tuple[int, int]] | None = None) -> Iterator[Document]:
        """Yield the document, unless there was no row; `lines` are those of each row, by number."""
        tables = [
            {**table, "columns": [*table["columns"]], "numbers": count_runs(numbers)}
            for table, numbers in zip(self._tables, self._numbers, strict=True)
            if numbers
        ]
        if not tables:
            return
        metadata = {TABLES: tables} | (
            {} if self.encoding == "utf-8" else {"encoding": self.encoding}
        )
        title = PurePosixPath(self.source.name).stem
        found = make_document("\n".join(self._lines), title, self.source.name, metadata)
        if lines is not None:
            numbers = [number for one in self._numbers for number in one]
            places = zip(self._starts, (lines.get(one, (one, one)) for one in numbers), strict=True)
            found = replace(found, origin=encode_origin(list(_trace_rows(found.text, places))))
        yield found


def _trace_rows(text: str, rows: Iterable[tuple[int, tuple[int, int]]]) -> Iterator[Piece]:
    """Yield where rows stand in their file: of a row over several lines the first and the last."""
    for start, (first, last) in rows:
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        cut = end - (last > first)
        yield Piece(start, cut - start, start, first, exact=False)
        if cut < end:
            yield Piece(cut, end - cut, cut, last, exact=False)


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


def _take_sample(rows: Iterator[Any]) -> list[Any]:
    taken, size = [], 0
    for row in rows:
        taken.append(row)
        size += 0 if isinstance(row, Skipped) else sum(len(str(cell)) for cell in row[1].values())
        if len(taken) >= _SAMPLE_ROWS or size > _SAMPLE_CHARACTERS:
            break
    return taken


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
    return " ".join(clean(str(key)).replace("; ", ", ").split())


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
