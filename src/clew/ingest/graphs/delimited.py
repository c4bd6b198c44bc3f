"""Reads triples in columns: TSV, CSV and `head|relation|tail`, with or without a header.

An unclosed quote invalidates its own line, not those after it.
"""

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clew.ingest.graphs.rows import (
    LineReader,
    Link,
    Node,
    Row,
    RowBatch,
    StartPosition,
    UnreadableRow,
)
from clew.text.unicode import clean

MAX_RECORD_LINES = 1_000  # of one record: more means an unclosed quote
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
            if self.count >= MAX_RECORD_LINES:
                return


def _parse_leniently(span: _RecordLines, separator: str) -> list[str] | UnreadableRow:
    """Parse a line that is not strict CSV the way spreadsheets do."""
    try:
        return next(csv.reader([span.first], delimiter=separator))
    except csv.Error as error:
        return UnreadableRow(span.line, f"is not CSV ({error})")


# Known column names by meaning; compared without case, space and underscore.
COLUMN_NAMES: dict[str, tuple[str, ...]] = {
    "head": ("head", "subject", "source", "from", "h", "s", "start", "src", "entity1", "node1"),
    "relation": (
        *("relation", "predicate", "relationship", "edge", "r", "p", "property", "rel", "label"),
        *("type", "relationtype", "edgetype"),
    ),
    "tail": ("tail", "object", "target", "to", "t", "o", "end", "dst", "entity2", "node2"),
    "weight": ("weight", "score", "confidence"),
    "description": ("description", "comment", "note"),
    "text": ("text", "sentence"),
    "head_type": ("headtype", "subjecttype", "sourcetype", "htype"),
    "tail_type": ("tailtype", "objecttype", "targettype", "ttype"),
}
_OWN_COLUMNS = ("head", "relation", "tail", "weight", "description", "head_type", "tail_type")
_ESCAPED_FORMULA = re.compile(r"'+(?:[=@\t\r]|[+-](?![\d.]+$))")
_ESCAPE = re.compile(r"\\([tnr\\])")
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}
_MAX_FIELDS = 1_000_000  # no limit
_TRIPLE_COLUMNS = {"head": 0, "relation": 1, "tail": 2}


@dataclass(frozen=True)
class DelimitedReader:
    """Reads columns separated by `separator`: in CSV fields may be quoted, in TSV escaped."""

    separator: str

    def __call__(self, path: Path, start: StartPosition) -> Iterator[RowBatch]:
        """Yield the rows from `start` on."""
        first = self._first_record(path)
        columns = parse_header(first)
        lines = LineReader(path, start)
        rows = self._read_rows(lines, columns, columns is not None and start.line == 0)
        if tuple(first) == _OWN_COLUMNS:
            rows = ([_restore_formulas(row) for row in found] for found in rows)
        yield from lines.to_batches(rows)

    def _read_rows(
        self, lines: LineReader, columns: Mapping[str, int] | None, skip: bool
    ) -> Iterator[list[Row]]:
        for number, fields in self._read_records(lines, columns):
            if isinstance(fields, UnreadableRow):
                yield [fields]
            elif skip:
                skip = False
            else:
                yield parse_row(fields, columns, number)

    def _first_record(self, path: Path) -> Sequence[str]:
        for _, fields in self._read_records(LineReader(path, StartPosition()), None):
            if fields and not isinstance(fields, UnreadableRow):
                return fields
        return ()

    def _read_records(
        self, lines: LineReader, columns: Mapping[str, int] | None
    ) -> Iterator[tuple[int, list[str] | UnreadableRow]]:
        """Yield line number and fields of each record that is not blank."""
        if self.separator != "|" and self.separator != "\t":
            needed = (
                max(columns[name] for name in _TRIPLE_COLUMNS) + 1
                if columns
                else len(_TRIPLE_COLUMNS)
            )
            most = _MAX_FIELDS if columns else needed + 1  # there may be a weight
            yield from read_csv_records(lines, self.separator, range(needed, most + 1))
            return
        for text in lines:
            line = text.rstrip("\r\n")
            if not line.strip():
                continue
            fields = line.split(self.separator)
            if self.separator == "\t" and "\\" in line:
                fields = [_ESCAPE.sub(lambda m: _UNESCAPED[m[1]], field) for field in fields]
            yield lines.line, fields


def _restore_formulas(row: Row) -> Row:
    """Remove the apostrophe that our own export puts before what a spreadsheet would run."""
    match row:
        case Node():
            return replace(row, id=_restore(row.id), type=_restore(row.type))
        case Link():
            head, relation, tail = map(_restore, (row.head, row.relation, row.tail))
            described = _restore(row.description)
            return replace(row, head=head, relation=relation, tail=tail, description=described)
        case _:
            return row


def _restore(text: str) -> str:
    return text[1:] if _ESCAPED_FORMULA.match(text) else text


def parse_header(first: Sequence[str]) -> dict[str, int] | None:
    """Return the index of each known column, or None if the row is no head-relation-tail header."""
    found: dict[str, int] = {}
    for at, name in enumerate(first):
        plain = re.sub(r"[\s_:-]", "", name).casefold()
        for meaning, names in COLUMN_NAMES.items():
            if plain in names and meaning not in found:
                found[meaning] = at
                break
    return found if found.keys() >= _TRIPLE_COLUMNS.keys() else None


def parse_row(fields: Sequence[str], columns: Mapping[str, int] | None, line: int) -> list[Row]:
    """Convert a row to a link, and to nodes for what it says about the link's ends."""
    named = columns is not None
    columns = columns or _TRIPLE_COLUMNS
    if not named and len(fields) != 3:
        return _parse_without_header(fields, line)
    if len(fields) <= max(columns[name] for name in _TRIPLE_COLUMNS):
        return [UnreadableRow(line, f"has {len(fields)} fields, too few for the header")]
    head, relation, tail = (clean(fields[columns[name]]).strip() for name in _TRIPLE_COLUMNS)
    missing = [
        name
        for name, value in zip(_TRIPLE_COLUMNS, (head, relation, tail), strict=True)
        if not value
    ]
    if missing:
        return [UnreadableRow(line, f"has an empty {missing[0]}")]
    if len(columns) == len(_TRIPLE_COLUMNS):
        return [Link(head, relation, tail)]
    return _parse_extra_columns(fields, columns, (head, relation, tail), line)


def _parse_without_header(fields: Sequence[str], line: int) -> list[Row]:
    """Parse three fields, or four of which the last is a weight."""
    if len(fields) == 4 and parse_number(fields[3]) is not None:
        return parse_row(fields, {**_TRIPLE_COLUMNS, "weight": 3}, line)
    return [UnreadableRow(line, f"has {len(fields)} fields, not head, relation and tail")]


def _parse_extra_columns(
    fields: Sequence[str], columns: Mapping[str, int], triple: tuple[str, str, str], line: int
) -> list[Row]:
    cells = {name: clean(fields[at]).strip() for name, at in columns.items() if at < len(fields)}
    head, relation, tail = triple
    weight = parse_number(cells.get("weight") or "1")
    if weight is None:
        return [UnreadableRow(line, f"has the weight {cells['weight'][:40]!r}, which is no number")]
    found: list[Row] = [
        Node(end, type=kind)
        for end, kind in ((head, cells.get("head_type")), (tail, cells.get("tail_type")))
        if kind
    ]
    words = cells.get("description", ""), (), cells.get("text", "")
    return [*found, Link(head, relation, tail, weight, *words)]


def parse_number(text: str) -> float | None:
    """Return the text as a finite number, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
