"""Reads CSV records; an unclosed quote invalidates its own line, not those after it."""

import csv
from collections.abc import Iterator

from clew.ingest.graphs.lines import LineReader
from clew.ingest.graphs.rows import StartPosition, UnreadableRow

_LINES = 1_000  # of one record: more means an unclosed quote

CsvRecord = tuple[int, list[str] | UnreadableRow]
"""Line number and fields."""


def read_csv_records(lines: LineReader, separator: str, sizes: range) -> Iterator[CsvRecord]:
    """Yield each non-blank record; `sizes` are the field counts a multi-line record may have."""
    span = _RecordLines(lines)
    # Strict: text right after a closing quote means that it opened another field.
    records = csv.reader(span.track(iter(lines)), delimiter=separator, strict=True)
    while True:
        span.count = 0
        try:
            fields = next(records, None)
        except csv.Error:
            if span.count == 1:
                yield span.line, _parse_leniently(span, separator)
                continue
            fields = []
        if fields is None:
            return
        if span.count > 1 and len(fields) not in sizes:
            onward = lines.rewind(StartPosition(span.place, span.line))
            records = csv.reader(span.track(onward), delimiter=separator, strict=True)
            yield span.line, UnreadableRow(span.line, "has a quote that is not closed")
        elif any(map(str.strip, fields)):
            yield span.line, fields


class _RecordLines:
    """Tracks the lines the CSV parser reads for a record, and where the first of them ends."""

    def __init__(self, lines: LineReader) -> None:
        self._lines = lines
        self.count = self.line = self.place = 0
        self.first = ""

    def track(self, texts: Iterator[str]) -> Iterator[str]:
        """Yield the lines, counting them."""
        for text in texts:
            if not self.count:
                self.first, self.line, self.place = text, self._lines.line, self._lines.position
            self.count += 1
            yield text
            if self.count >= _LINES:
                return


def _parse_leniently(span: _RecordLines, separator: str) -> list[str] | UnreadableRow:
    """Parse a line that is not strict CSV the way spreadsheets do."""
    try:
        return next(csv.reader([span.first], delimiter=separator))
    except csv.Error as error:
        return UnreadableRow(span.line, f"is not CSV ({error})")
