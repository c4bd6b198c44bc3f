"""Reads CSV and TSV with a header line: each row is a document."""

import csv
from collections.abc import Iterator

from clew.errors import InputError
from clew.ingest.readers.lines import read_lines
from clew.ingest.readers.rows import TEXT_FIELDS, first_field, format_choice, row_document
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile
from clew.types import Document


class _CsvLines:
    """Feeds lines to the CSV parser and collects those that could not be read."""

    def __init__(self, source: SourceFile, budget: ReadBudget) -> None:
        self.number = 0
        self.encoding = "utf-8"
        self._lines = read_lines(source, budget)
        self._dropped: list[Skipped] = []

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            if isinstance(line, Skipped):
                self._dropped.append(line)
                continue
            self.number = line.number
            if line.encoding != "utf-8":
                self.encoding = line.encoding
            yield line.text

    def pop_skipped(self) -> list[Skipped]:
        """Return the lines skipped since the last call."""
        dropped, self._dropped = self._dropped, []
        return dropped


def read_table(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a table; invalid rows are skipped."""
    # The csv module's limit is global to the process: never make it smaller.
    csv.field_size_limit(max(budget.row_bytes, csv.field_size_limit()))
    feed = _CsvLines(source, budget)
    lines = iter(feed)
    delimiter, header = _read_header(source, next(lines, ""), feed.number)
    table = csv.reader(lines, delimiter=delimiter)
    more = True
    while more:
        at = feed.number + 1
        try:
            cells = next(table, None)
            more = cells is not None
            if cells:
                yield row_document(source, _make_record(header, cells), at, feed.encoding)
        except (csv.Error, InputError) as error:
            yield Skipped(source.name, str(error), at)
        yield from feed.pop_skipped()


def _read_header(source: SourceFile, first: str, number: int) -> tuple[str, list[str]]:
    """Parse the first line; return the delimiter and the column names."""
    delimiter = "\t" if source.path.suffix.lower() == ".tsv" else max(",;\t|", key=first.count)
    try:
        cells = next(csv.reader([first], delimiter=delimiter), [])
    except csv.Error as error:
        raise InputError(f"has no header in its first line ({error})") from error
    header = [cell.strip() for cell in cells]
    if number != 1 or not first_field({name.casefold() for name in header}, TEXT_FIELDS):
        raise InputError(f"has no column named {format_choice(TEXT_FIELDS)} in its first line")
    return delimiter, header


def _make_record(header: list[str], cells: list[str]) -> dict[str, str]:
    if len(cells) > len(header):
        raise InputError(f"has {len(cells)} fields where the header has {len(header)}")
    return dict(zip(header, cells, strict=False))
