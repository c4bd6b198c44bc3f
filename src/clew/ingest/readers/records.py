"""Reads files of rows: CSV and TSV, JSON lines, JSON lists.

Rows with a text (`text`, `content`, …) are documents of that text; any others are rows of a table,
and `readers/tables.py` makes one document of all of them.
"""

import csv
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from clew.errors import InputError
from clew.ingest.readers.decode import TextLine, decode, read_lines
from clew.ingest.readers.links import leave_out_link_targets
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, make_document, read_bytes
from clew.ingest.readers.tables import (
    TableFile,
    TableRow,
    can_name_columns,
    flatten_row,
    name_columns,
    show_cells,
)
from clew.ingest.readers.trace import trace_row
from clew.text.unicode import clean
from clew.types import Document

TEXT_FIELDS = ("text", "content", "body", "passage", "context")
TITLE_FIELDS = ("title", "name", "heading")
_MAX_RECORD_LINES = 1_000  # of one record of a table: more mean a quote that is not closed
_UNCLOSED = "has a quote that is not closed"
_CUT = "ends in the middle of a row"
ID_FIELDS = ("id", "_id", "doc_id", "key")
_LOOKED_AT = 12  # lines in which the header of a table is looked for
_MIN_COLUMNS = 2  # of a row of a table: an object with one field is none


def row_document(source: SourceFile, row: Any, number: int | None, encoding: str) -> Document:
    """Make the row's document; `number` names a row without an id."""
    if isinstance(row, str):
        row = {"text": row}
    if not isinstance(row, Mapping):
        raise InputError("is not an object with fields")
    fields = {key.casefold(): key for key in row}
    text_key, title_key, id_key = (
        first_field(fields, names) for names in (TEXT_FIELDS, TITLE_FIELDS, ID_FIELDS)
    )
    if not text_key:
        raise InputError(f"has no field named {format_choice(TEXT_FIELDS)}")
    text = leave_out_link_targets(_to_text(row[fields[text_key]]))
    if not text.strip():
        raise InputError(f"has an empty {text_key!r}")
    used = {fields[key] for key in (text_key, title_key, id_key) if key}
    rest = {clean(key): value for key, value in row.items() if key not in used}
    if encoding != "utf-8":
        rest.setdefault("encoding", encoding)
    title = row[fields[title_key]] if title_key else ""
    identity = _id_text(row[fields[id_key]]) if id_key else ""
    name = _row_name(source, identity, number)
    return make_document(
        text, title if isinstance(title, str) else _to_text(title or ""), name, rest
    )


def _row_name(source: SourceFile, identity: str, number: int | None) -> str:
    if source.row_names == "id" and identity:
        return identity
    where = identity or (str(number) if number else "")
    return f"{source.name}#{where}" if where else source.name


def _id_text(value: Any) -> str:
    return clean(str(value)).strip() if isinstance(value, str | int | float) else ""


def _to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(item.strip() for item in value)
    if value is None:
        return ""
    if isinstance(value, int | float):
        return str(value)
    raise InputError("has a text that is neither a string nor a list of strings")


def first_field(fields: Collection[str], names: tuple[str, ...]) -> str:
    """Return the first of the names that is a field, or ""."""
    return next((name for name in names if name in fields), "")


def format_choice(names: tuple[str, ...]) -> str:
    """Format names as a choice: "a, b or c"."""
    return f"{', '.join(names[:-1])} or {names[-1]}"


class _CsvLines:
    """Feeds lines to the CSV parser, keeps those of one record, and collects unreadable ones."""

    def __init__(self, source: SourceFile, budget: ReadBudget) -> None:
        self.number = 0
        self.encoding = "utf-8"
        self.record: list[TextLine] = []
        """The lines of the current record."""
        self.records = 0
        """How many records were read, with the header and what stands above it."""
        self.places: dict[int, tuple[int, int]] = {}
        """The first and last line of each record whose number is not that of its one line."""
        self.ended = False
        self._lines = read_lines(source, budget)
        self._again: list[TextLine] = []
        self._dropped: list[Skipped] = []

    def __iter__(self) -> "_CsvLines":
        return self

    def __next__(self) -> str:
        if len(self.record) >= _MAX_RECORD_LINES:
            raise csv.Error(_UNCLOSED)
        line = self._again.pop() if self._again else self._read_line()
        self.number = line.number
        self.record.append(line)
        if line.encoding != "utf-8":
            self.encoding = line.encoding
        return line.text

    def _read_line(self) -> TextLine:
        for line in self._lines:
            if isinstance(line, TextLine):
                return line
            self._dropped.append(line)
        self.ended = True
        raise StopIteration

    def is_unclosed(self, delimiter: str) -> bool:
        """Whether the file ended within a quoted field of the current record."""
        if not self.ended or not self.record:
            return False
        try:
            list(csv.reader([line.text for line in self.record], delimiter=delimiter, strict=True))
        except csv.Error as error:
            return "unexpected end" in str(error)
        return False

    def is_cut(self) -> bool:
        """Whether the current record ends without a line end."""
        return bool(self.record) and not self.record[-1].text.endswith(("\n", "\r"))

    def first_number(self) -> int:
        """Return the number of the first line that is kept; 0 without one."""
        return self.record[0].number if self.record else 0

    def repeat_after_first(self) -> None:
        """Feed the lines of the current record again, without the first."""
        self._again += reversed(self.record[1:])
        self.record = self.record[:1]

    def repeat_all(self) -> None:
        """Feed the lines of the current record again."""
        self._again += reversed(self.record)
        self.record, self.number = [], 0

    def pop_skipped(self) -> list[Skipped]:
        """Return the lines skipped since the last call."""
        dropped, self._dropped = self._dropped, []
        return dropped


def read_table(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a table; invalid rows are skipped."""
    # The csv module's limit is global to the process: never make it smaller.
    csv.field_size_limit(max(budget.row_bytes, csv.field_size_limit()))
    feed = _CsvLines(source, budget)
    delimiter, header = _read_header(source, feed)
    feed.records = feed.number
    rows = _read_records(source, feed, delimiter, header)
    if not first_field({name.casefold() for name in header}, TEXT_FIELDS):
        file = TableFile(source, budget, feed.encoding)
        numbered = (r if isinstance(r, Skipped) else (feed.records, r[1]) for r in rows)
        yield from file.add("", numbered)
        yield from file.finish(feed.places)
        return
    for row in rows:
        if isinstance(row, Skipped):
            yield row
            continue
        try:
            yield trace_row(row_document(source, row[1], row[0], feed.encoding), feed.record)
        except InputError as error:
            yield Skipped(source.name, str(error), row[0])


def _read_records(
    source: SourceFile, feed: _CsvLines, delimiter: str, header: list[str]
) -> Iterator[TableRow | Skipped]:
    """Yield the records with the lines they begin at, and what cannot be parsed as skipped."""
    table = csv.reader(feed, delimiter=delimiter)
    more = True
    while more:
        at, feed.record = feed.number + 1, []
        try:
            cells = next(table, None)
            more = cells is not None
            if feed.is_unclosed(delimiter):
                raise csv.Error(_UNCLOSED)
            if cells and len(cells) < len(header) and feed.is_cut():
                raise csv.Error(_CUT)
            feed.records += more
            if cells and (feed.records, at) != (at, feed.number):
                feed.places[feed.records] = (at, feed.number)
            if cells:
                yield at, _make_record(header, cells)
        except csv.Error as error:
            more = bool(feed.record)
            feed.records += 1
            yield Skipped(source.name, str(error), at, broken=True)
            feed.repeat_after_first()
            feed.number = at
            table = csv.reader(feed, delimiter=delimiter)
        except InputError as error:
            yield Skipped(source.name, str(error), at)
        yield from feed.pop_skipped()


def _read_header(source: SourceFile, feed: _CsvLines) -> tuple[str, list[str]]:
    """Parse the first line of the table; return the delimiter and the column names."""
    lines = list(islice(feed, _LOOKED_AT))
    if feed.first_number() != 1:
        raise InputError("has no header in its first line")
    marks = "\t" if source.path.suffix.lower() == ".tsv" else ",;\t|"
    titles, delimiter = _count_titles(lines, marks)
    feed.repeat_all()
    first = [next(feed, "") for _ in range(titles + 1)][-1]
    feed.record = feed.record[titles:]
    try:
        cells = next(csv.reader([first], delimiter=delimiter), [])
    except csv.Error as error:
        raise InputError(f"has no header in its first line ({error})") from error
    header = [cell.strip() for cell in cells]
    below = [_split_line(line, delimiter) for line in lines[titles + 1 :]]
    if _is_header(header) or _repeats_names(header, below):
        header = name_columns(header)
    else:
        # Values in the first line: a table without names of its columns.
        feed.repeat_all()
        header = [f"column {number}" for number in range(1, len(cells) + 1)]
    return delimiter, header


def _count_titles(lines: list[str], marks: str) -> tuple[int, str]:
    """Return how many lines stand above the header, such as a title, and the delimiter.

    As in a sheet the header is the first line with two cells; a row as wide must follow it.
    """
    first = lines[0] if lines else ""
    own = max(marks, key=first.count)
    if first.strip().casefold() in (*TEXT_FIELDS, *TITLE_FIELDS, *ID_FIELDS):
        return 0, own  # a table of one column, whose texts may have any marks
    top = [_split_line(line, own) for line in lines if line.strip()][:2]
    if top and can_name_columns(top[0]) and len(top[0]) == len(top[-1]):
        return 0, own  # the first line is the header; other marks are parts of values
    for mark in sorted(marks, key="".join(lines).count, reverse=True):
        rows = [_split_line(line, mark) for line in lines if line.strip()]
        at = next((n for n, row in enumerate(rows) if can_name_columns(row)), 0)
        follows = len(rows) > at + 1 and len(rows[at]) == len(rows[at + 1])
        if at and follows and _is_header([cell.strip() for cell in rows[at]]):
            whole = [n for n, line in enumerate(lines) if line.strip()]
            return whole[at], mark
    return 0, own


def _split_line(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def _is_header(cells: list[str]) -> bool:
    """Whether cells can name columns: no two alike, none a number, nearly all of them there."""
    named = {cell.casefold() for cell in cells if cell}
    return len(named) >= max(1, len(cells) - 1, sum(map(bool, cells))) and not any(
        map(_is_number, cells)
    )


def _is_number(cell: str) -> bool:
    return cell.strip().replace(".", "", 1).lstrip("+-").isdigit()


def _repeats_names(cells: list[str], below: list[list[str]]) -> bool:
    """Whether cells name columns, some alike: texts, of which one stands above numbers only."""
    rows = [row for row in below if len(row) == len(cells)]
    numeric = (all(_is_number(row[at]) for row in rows) for at in range(len(cells)))
    return bool(rows) and all(cells) and not any(map(_is_number, cells)) and any(numeric)


def _make_record(header: list[str], cells: list[str]) -> dict[str, str]:
    if len(cells) > len(header) and any(cells[len(header) :]):
        raise InputError(f"has {len(cells)} fields where the header has {len(header)}")
    return dict(zip(header, cells, strict=False))


# Lenient where nothing is lost: raw tabs in strings; NaN becomes a string that JSON can write.
_JsonRow = tuple[TextLine, Any]
_JSON_DECODER = json.JSONDecoder(strict=False, parse_constant=str)


def read_json_lines(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read one JSON object per line; invalid lines are skipped."""
    rows = _read_json_rows(source, budget)
    held: list[_JsonRow | Skipped] = []
    for row in rows:
        held.append(row)
        if not isinstance(row, Skipped):
            break
    if held and not isinstance(held[-1], Skipped) and _is_table_row(held[-1][1]):
        yield from _read_json_table(TableFile(source, budget), chain(held, rows))
        return
    for row in chain(held, rows):
        if isinstance(row, Skipped):
            yield row
            continue
        line, value = row
        try:
            yield trace_row(row_document(source, value, line.number, line.encoding), [line])
        except InputError as error:
            yield Skipped(source.name, str(error), line.number)


def _read_json_rows(source: SourceFile, budget: ReadBudget) -> Iterator[_JsonRow | Skipped]:
    """Yield each line and its value, and what cannot be parsed as skipped."""
    for line in read_lines(source, budget):
        if isinstance(line, Skipped):
            yield line
        elif raw := line.text.strip():
            try:
                yield line, _parse_json(raw)
            except InputError as error:
                yield Skipped(source.name, str(error), line.number, broken=True)


def _read_json_table(
    file: TableFile, rows: Iterable[_JsonRow | Skipped]
) -> Iterator[Document | Skipped]:
    plain = (row if isinstance(row, Skipped) else (row[0].number, row[1]) for row in rows)
    yield from file.add("", _check_objects(file.source, plain))
    yield from file.finish({})


def _check_objects(
    source: SourceFile, rows: Iterable[tuple[int, Any] | Skipped]
) -> Iterator[TableRow | Skipped]:
    """Pass rows on that are objects; skip others."""
    for row in rows:
        if isinstance(row, Skipped) or isinstance(row[1], Mapping):
            yield row
        else:
            yield Skipped(source.name, "is not an object with fields", row[0])


def _is_table_row(row: Any, fields: int = _MIN_COLUMNS) -> bool:
    """Whether a row is one of a table: an object of several fields, and none of them a text."""
    if not isinstance(row, Mapping) or len(row) < fields:
        return False
    return not first_field({str(key).casefold() for key in row}, TEXT_FIELDS)


def read_json(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a JSON list of rows, a single row, or an object of tables."""
    text, encoding = decode(read_bytes(source, budget))
    rows = _parse_json(text.strip())
    tables = _find_tables(rows)
    if tables:
        file = TableFile(source, budget, encoding)
        for name, some in tables.items():
            checked = _check_objects(source, enumerate(some, start=1))
            yield from file.add(name if len(tables) > 1 else "", checked)
        yield from file.finish()
        return
    if isinstance(rows, Mapping):
        settings = _is_table_row(rows, 1)
        make = _make_settings_document if settings else row_document
        yield make(source, rows, None, encoding)
        return
    if not isinstance(rows, list):
        raise InputError("holds neither a list of rows nor a row")
    for number, row in enumerate(rows, 1):
        try:
            yield row_document(source, row, number, encoding)
        except InputError as error:
            yield Skipped(source.name, f"row {number} {error}")


def _find_tables(value: Any) -> dict[str, list[Any]]:
    """Return the tables in a JSON value: a list of objects, an object of such lists, or of rows."""
    if isinstance(value, list):
        first = next((row for row in value if isinstance(row, Mapping)), None)
        return {"": value} if _is_table_row(first) else {}
    if not isinstance(value, Mapping) or not value:
        return {}
    found = {str(name): rows for name, rows in value.items() if _find_tables_in_list(rows)}
    if found:
        return found
    rows = list(value.values())
    if len(rows) > 1 and all(_is_table_row(row, 1) for row in rows) and _share_field(rows):
        return {"": [{"key": key, **row} for key, row in value.items()]}
    return {}


def _share_field(rows: Collection[Mapping[str, Any]]) -> bool:
    """Whether most objects have a field in common: rows do, sections of settings do not."""
    counts = Counter(field for row in rows for field in row)
    return max(counts.values(), default=0) > len(rows) / 2


def _make_settings_document(
    source: SourceFile, row: Mapping[str, Any], _number: int | None, encoding: str
) -> Document:
    """Make the document of an object that is neither a row nor a table: a line per value."""
    lines = [f"{field}: {value}" for field, value in show_cells(flatten_row(row))]
    if not lines:
        raise InputError("is empty")
    metadata = {} if encoding == "utf-8" else {"encoding": encoding}
    return make_document("\n".join(lines), source.path.stem, source.name, metadata)


def _find_tables_in_list(value: Any) -> bool:
    return isinstance(value, list) and bool(_find_tables(value))


def _parse_json(raw: str) -> Any:
    try:
        row = _JSON_DECODER.decode(raw)
        # Only escapes can put lone surrogates, which no store accepts, into JSON.
        return _clean_strings(row) if "\\u" in raw else row
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON ({error.msg} at character {error.pos + 1})") from error
    except ValueError as error:
        raise InputError(f"is not JSON ({error})") from error
    except RecursionError as error:
        raise InputError("is nested too deeply") from error


def _clean_strings(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean_strings(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): _clean_strings(item) for key, item in value.items()}
    return value
