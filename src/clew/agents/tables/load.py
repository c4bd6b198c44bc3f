"""Tables as columns of typed values, loaded from the documents of their rows, and joined."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple

from clew.agents.tables.words import fold_text, is_same_word
from clew.context import Context
from clew.ingest.build import TABLES_KEY
from clew.ingest.readers.tables import CELLS_KEY, LABEL_KEY, TABLE_KEY, split_column
from clew.types import Document

ColumnType = Literal["number", "date", "text"]
_BATCH = 5_000  # rows whose documents are in memory at once
_MOSTLY = 0.95  # share of the values that decides a column's type
_KEY_SHARE = 0.999
_LINK_SHARE = 0.95  # share of a column's values that are keys of the other table
_MIN_LINKED = 3  # different numbers that a link needs: fewer agree by chance
_MAX_CODE = 3  # characters of texts that agree by chance: yes, no, codes of countries
_MIN_TEXTS = 2  # different texts that are a link whatever the column is called
# An exponent only as programs write it: "1E4" is more often a code.
_NUMBER = re.compile(r"[+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?")
_DATE = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:[T ].*)?")
_NAMED_MONTH = re.compile(r"(?:[A-Za-z]{3,9}\.? \d{1,2},? \d{4}|\d{1,2} [A-Za-z]{3,9} \d{4})")
_DOTTED_DATE = re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}")
_DATE_FORMS = ("%b %d %Y", "%B %d %Y", "%d %b %Y", "%d %B %Y", "%d.%m.%Y")
_MAX_JOINED = 200_000  # rows of all tables together, beyond which links are not looked for
_MEMO = "tables"
_YEARS = (1000, 2999)


def parse_number(cell: object) -> float | None:
    """Return a cell as a number, if it is one."""
    if isinstance(cell, bool):
        return float(cell)
    if isinstance(cell, int | float):
        return float(cell)
    text = str(cell).strip()
    if not _NUMBER.fullmatch(text):
        return None
    return float(text.replace(",", ""))


def parse_date(cell: object) -> date | None:
    """Return a cell as a date, if it is one and says which number is the month."""
    text = str(cell).strip()
    found = _DATE.fullmatch(text)
    if found:
        try:
            return date(*map(int, found.groups()))
        except ValueError:
            return None
    if not _NAMED_MONTH.fullmatch(text) and not _DOTTED_DATE.fullmatch(text):
        return None
    for form in _DATE_FORMS:
        try:
            return datetime.strptime(text.replace(",", " ").replace("  ", " "), form).date()
        except ValueError:
            continue
    return None


def is_year(number: float) -> bool:
    """Whether a number may be a year."""
    return _YEARS[0] <= number <= _YEARS[1]


@dataclass(frozen=True)
class Column:
    """A column: its name, and a value or None per row."""

    name: str
    cells: Sequence[Any]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of its name."""
        return tuple(split_column(self.name))

    @cached_property
    def type(self) -> ColumnType:
        """What nearly all of its values are."""
        there = Counter(cell for cell in self.cells if cell is not None)
        least = _MOSTLY * there.total()
        if there and sum(n for cell, n in there.items() if parse_number(cell) is not None) >= least:
            return "number"
        if there and sum(n for cell, n in there.items() if parse_date(cell)) >= least:
            return "date"
        return "text"

    @cached_property
    def numbers(self) -> list[float | None]:
        """The values as numbers; dates as days, so that they can be compared."""
        known = {cell: self._to_number(cell) for cell in set(self.cells)}
        return [known[cell] for cell in self.cells]

    def _to_number(self, cell: Any) -> float | None:
        if cell is None or self.type != "date":
            return None if cell is None else parse_number(cell)
        day = parse_date(cell)
        return float(day.toordinal()) if day else None

    @cached_property
    def folded(self) -> list[str | None]:
        """The values as they are compared with words."""
        known = {cell: None if cell is None else fold_text(cell) for cell in set(self.cells)}
        return [known[cell] for cell in self.cells]

    @cached_property
    def rows_by_value(self) -> Mapping[str, list[int]]:
        """The rows with each value, folded."""
        found = defaultdict(list)
        for row, fold in enumerate(self.folded):
            if fold is not None:
                found[fold].append(row)
        return dict(found)

    @cached_property
    def has_years(self) -> bool:
        """Whether its numbers are years: by its name, or since all could be."""
        known = [number for number in self.numbers if number is not None]
        if self.type != "number" or not known:
            return False
        return "year" in self.words or all(n.is_integer() and is_year(n) for n in known)

    @cached_property
    def is_nearly_key(self) -> bool:
        """Whether most values occur once."""
        known = sum(cell is not None for cell in self.cells)
        return len(self.rows_by_value) >= 0.9 * known > 0

    @cached_property
    def is_key(self) -> bool:
        """Whether every row has a value here, and hardly any two the same."""
        known = sum(cell is not None for cell in self.cells)
        return known == len(self.cells) and len(self.rows_by_value) >= _KEY_SHARE * known


@dataclass(frozen=True)
class Table:
    """A table: its columns and its rows."""

    name: str
    label: str
    columns: Mapping[str, Column]
    rows: Sequence[tuple[str, str, str]]
    """The name, document and first chunk of each row."""
    partners: tuple["Partner", ...] = ()
    """Tables whose columns were added to these."""

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of its name and its partners', without folders and the file's suffix."""
        file, _, inner = self.name.partition("#")
        own = split_column(f"{PurePosixPath(file).stem} {inner}")
        return frozenset(own).union(*(one.table.words for one in self.partners))

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)


@dataclass(frozen=True)
class Link:
    """A column whose values are keys of another table."""

    column: str
    other: Table = field(repr=False)
    key: str


@dataclass(frozen=True)
class Partner:
    """A table joined to another: its row for each row of that one, and the columns it brought."""

    table: Table = field(repr=False)
    rows: Sequence[int | None] = field(repr=False)
    columns: frozenset[str]


async def load_tables(ctx: Context) -> list[Table]:
    """Return the tables of a knowledge base, loaded once per generation."""
    if _MEMO not in ctx.view.memo and ctx.key_values is not None:
        held = await ctx.key_values.get("manifest", [TABLES_KEY])
        ctx.view.memo[_MEMO] = await _read_tables(ctx) if held.get(TABLES_KEY) else []
    found: list[Table] = ctx.view.memo.get(_MEMO, [])
    return found


async def _read_tables(ctx: Context) -> list[Table]:
    rows: dict[str, list[_StoredRow]] = defaultdict(list)
    keys = ctx.view.keys("chunk").tolist()
    for start in range(0, len(keys), _BATCH):
        chunks = await ctx.snapshot.chunks(keys[start : start + _BATCH])
        first = {one.document: one for one in chunks.values() if one.start == 0}
        documents = await ctx.snapshot.documents(list(first))
        some = [document for document in documents.values() if is_row(document)]
        names = await ctx.snapshot.names([document.id for document in some])
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
    return Table(
        name, rows[0].label, columns, [(row.name, row.document, row.chunk) for row in rows]
    )


def is_row(document: Document) -> bool:
    """Whether a document is a row of a table."""
    return TABLE_KEY in document.metadata and isinstance(document.metadata.get(CELLS_KEY), dict)


def _append_row(cells: dict[str, list[Any]], row: Mapping[str, Any], number: int) -> None:
    for column, value in row.items():
        values = cells.setdefault(column, [])
        values.extend([None] * (number - len(values)))
        values.append(value)


def find_links(table: Table, others: Sequence[Table]) -> list[Link]:
    """Return the columns of a table whose values are keys of another one."""
    found = []
    for name, column in table.columns.items():
        values = column.rows_by_value.keys()
        least = 1 if column.type == "text" else _MIN_LINKED
        if len(values) < least or column.type == "date":
            continue
        for other in others:
            for key, keys in other.columns.items():
                if other is table or keys.type == "date" or not keys.is_key:
                    continue
                if len(values & keys.rows_by_value.keys()) >= _LINK_SHARE * len(values):
                    found.append(Link(name, other, key))
    return found


def join_tables(tables: Sequence[Table]) -> list[Table]:
    """Return every table that refers to others, with the columns of these beside its own."""
    if len(tables) < 2 or sum(map(len, tables)) > _MAX_JOINED:
        return []
    found = [_join(table, tables) for table in tables]
    return [table for table in found if table.partners]


def _join(table: Table, tables: Sequence[Table]) -> Table:
    columns = dict(table.columns)
    partners: list[Partner] = []
    for link in find_links(table, tables):
        own = table.columns[link.column]
        if not _is_named_alike(own, link.other, link.key) and not _has_texts(own):
            continue  # values that agree by chance: years and small numbers do
        keys = link.other.columns[link.key].rows_by_value
        rows = [keys[fold][0] if fold is not None and fold in keys else None for fold in own.folded]
        brought = {
            name: Column(name, [None if row is None else column.cells[row] for row in rows])
            for name, column in link.other.columns.items()
            if name not in columns
        }
        columns |= brought
        partners.append(Partner(link.other, rows, frozenset(brought)))
    return replace(table, columns=columns, partners=tuple(partners))


def _has_texts(column: Column) -> bool:
    """Whether the values are texts too long to agree by chance."""
    long = [fold for fold in column.rows_by_value if len(fold) > _MAX_CODE]
    return column.type == "text" and len(long) >= _MIN_TEXTS


def _is_named_alike(column: Column, other: Table, key: str) -> bool:
    """Whether a column's name has a word of the other table's name, or of its key's."""
    known = {*other.words, *other.columns[key].words}
    return any(is_same_word(word, own) for word in column.words for own in known)
