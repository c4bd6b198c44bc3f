"""Reads CSV and TSV with a header line: each row is a document."""

import csv
from collections.abc import Iterator

from clew.errors import InputError
from clew.ingest.readers.lines import bounded_lines
from clew.ingest.readers.rows import TEXT, listed, one_of, row_document
from clew.ingest.readers.source import Budget, Skipped, Source
from clew.types import Document


class _Feed:
    """Feeds lines to the CSV parser and collects those that could not be read."""

    def __init__(self, source: Source, budget: Budget) -> None:
        self.number = 0
        self.encoding = "utf-8"
        self._lines = bounded_lines(source, budget)
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

    def dropped(self) -> list[Skipped]:
        """Return the lines skipped since the last call."""
        dropped, self._dropped = self._dropped, []
        return dropped


def read_table(source: Source, budget: Budget) -> Iterator[Document | Skipped]:
    """Read a table; invalid rows are skipped."""
    # The csv module's limit is global to the process: never make it smaller.
    csv.field_size_limit(max(budget.row_bytes, csv.field_size_limit()))
    feed = _Feed(source, budget)
    lines = iter(feed)
    delimiter, header = _header(source, next(lines, ""), feed.number)
    table = csv.reader(lines, delimiter=delimiter)
    more = True
    while more:
        at = feed.number + 1
        try:
            cells = next(table, None)
            more = cells is not None
            if cells:
                yield row_document(source, _record(header, cells), at, feed.encoding)
        except (csv.Error, InputError) as error:
            yield Skipped(source.name, str(error), at)
        yield from feed.dropped()


def _header(source: Source, first: str, number: int) -> tuple[str, list[str]]:
    """Parse the first line; return the delimiter and the column names."""
    delimiter = "\t" if source.path.suffix.lower() == ".tsv" else max(",;\t|", key=first.count)
    try:
        cells = next(csv.reader([first], delimiter=delimiter), [])
    except csv.Error as error:
        raise InputError(f"has no header in its first line ({error})") from error
    header = [cell.strip() for cell in cells]
    if number != 1 or not one_of({name.casefold() for name in header}, TEXT):
        raise InputError(f"has no column named {listed(TEXT)} in its first line")
    return delimiter, header


def _record(header: list[str], cells: list[str]) -> dict[str, str]:
    if len(cells) > len(header):
        raise InputError(f"has {len(cells)} fields where the header has {len(header)}")
    return dict(zip(header, cells, strict=False))
