"""Tables as documents hold them: a line per row, "column: value; column: value."

Readers write these lines, and `read_tables` returns tables, rows and cells of them with their
spans, so that a query can be run over a table and cite a row.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.text.structure import CRUMB_SEPARATOR

TABLES = "tables"
"""Key of a document's metadata: its tables, each with its name, columns, span and row numbers."""
_ROW_PLACE = re.compile(r"row \d+")
_NAMED_PLACE = re.compile(r"(.+?)(?:, ([^,]+))?, row (\d+)")
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its number in the file (a sheet's or CSV's header is row 1), its span, its cells."""

    number: int
    start: int
    end: int
    cells: Mapping[str, str]
    """The values that are not empty, by column."""
    spans: Mapping[str, Span]
    """Where each value stands in the document's text."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a document; `name` is empty where the file is one table, else a sheet's name."""

    name: str
    columns: tuple[str, ...]
    label: str
    """The column that names the rows, or ""."""
    start: int
    end: int
    numbers: tuple[Span, ...]
    """Runs of row numbers: the first, and how many follow each other."""
    text: str = field(repr=False)
    """The text of the document."""

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Yield the number, start and end of each row."""
        at = self.start
        for first, count in self.numbers:
            for number in range(first, first + count):
                end = self.text.find("\n", at, self.end)
                end = self.end if end < 0 else end
                yield number, at, end
                at = end + 1

    def rows(self) -> Iterator[Row]:
        """Yield the rows with their cells."""
        find_cells = self.cell_finder()
        for number, start, end in self.spans():
            spans = dict(find_cells(start, end))
            cells = {column: read_value(self.text[a:b]) for column, (a, b) in spans.items()}
            yield Row(number, start, end, cells, spans)

    def cell_finder(self) -> Callable[[int, int], Iterator[tuple[str, Span]]]:
        """Return what yields the columns and the spans of the values of a row."""
        longest_first = sorted(self.columns, key=len, reverse=True)
        column = re.compile(f"({'|'.join(map(re.escape, longest_first))}): ")
        quoted = re.compile(r'"(?:[^"]|"")*"')

        def find_cells(start: int, end: int) -> Iterator[tuple[str, Span]]:
            end -= 1  # without the full stop
            while start < end and (found := column.match(self.text, start, end)):
                value = found.end()
                marked = quoted.match(self.text, value, end)
                stop = marked.end() if marked else self.text.find("; ", value, end)
                stop = end if stop < 0 else stop
                yield found[1], (value, stop)
                start = stop + 2

        return find_cells


def read_tables(text: str, metadata: Mapping[str, Any]) -> list[Table]:
    """Return the tables of a document, of its text and metadata; none if it is no file of rows."""
    listed = metadata.get(TABLES)
    if not isinstance(listed, list):
        return []
    return [
        Table(
            one["name"],
            tuple(one["columns"]),
            one["label"],
            one["start"],
            one["end"],
            tuple((first, count) for first, count in one["numbers"]),
            text,
        )
        for one in listed
    ]


def write_row(cells: Iterable[tuple[str, str]]) -> str:
    """Write a row on one line; a value that holds the separator stands in quotes."""
    return "; ".join(f"{column}: {_quote(value)}" for column, value in cells) + "."


def _quote(value: str) -> str:
    return '"' + value.replace('"', '""') + '"' if "; " in value or value[:1] == '"' else value


def read_value(written: str) -> str:
    """Return a value as it was before it was written."""
    return written[1:-1].replace('""', '"') if written[:1] == '"' else written


def count_runs(numbers: Sequence[int]) -> list[list[int]]:
    """Return row numbers as runs: the first of each, and how many follow each other."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == sum(runs[-1]):
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return runs


def write_row_place(table: str, number: int) -> str:
    """Return the heading of a row's passage: "row 3", below the name of its sheet."""
    return CRUMB_SEPARATOR.join(filter(None, (table, f"row {number}")))


def is_row_place(crumb: str) -> bool:
    """Whether the last part of a heading is the place of a row."""
    return _ROW_PLACE.fullmatch(crumb) is not None


def name_place(name: str, heading: str) -> str:
    """Name a place: "offices.csv, row 3", "prices.xlsx, May, row 3", "guide.md › Setup"."""
    crumbs = [name, *filter(None, heading.split(CRUMB_SEPARATOR))]
    return (", " if is_row_place(crumbs[-1]) else " › ").join(crumbs)


def split_place(place: str) -> tuple[str, str, int] | None:
    """Return the file, the table and the number of the row that `name_place` named."""
    found = _NAMED_PLACE.fullmatch(place)
    return (found[1], found[2] or "", int(found[3])) if found else None


def find_file_name(name: str, known: Iterable[str]) -> str:
    """Return the stored name of a file given without its folder, if one alone is called so."""
    found = [one for one in known if one.endswith(f"/{name}")]
    return found[0] if len(found) == 1 else ""


def find_row(tables: Sequence[Table], name: str, number: int) -> Span | None:
    """Return the span of a row by its table's name and its number."""
    for table in tables:
        if table.name == name:
            spans = list(table.spans())
            at = bisect_right(spans, number, key=lambda one: one[0]) - 1
            if at >= 0 and spans[at][0] == number:
                return spans[at][1:]
    return None
