"""Reads Neo4j's CSV: `neo4j-admin import` files (a folder or one file) and apoc exports."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clew.errors import InputError
from clew.ingest.graphs.delimited import read_csv_records
from clew.ingest.graphs.fields import make_link, make_node, type_from_labels
from clew.ingest.graphs.rows import LineReader, Row, RowBatch, StartPosition, UnreadableRow
from clew.text.unicode import clean

_HEAD_BYTES = 65_536
_SEPARATORS = ",;\t|"
_COLUMN = re.compile(r"^([^:]*):([A-Z_]+)(?:\(([^)]*)\))?(?:\{.*\})?$")
_APOC_COLUMNS = {
    "_id": "ID",
    "_labels": "LABEL",
    "_start": "START_ID",
    "_end": "END_ID",
    "_type": "TYPE",
}
_ARRAY_COLUMN = re.compile(r"\[\]\s*(?:\{.*\})?$")  # suffix of the name of an array column
_ARRAY_SEPARATOR = ";"  # between the values of an array cell


@dataclass(frozen=True, slots=True)
class Neo4jHeader:
    """Indices of the columns with a meaning to Neo4j, and the names of the others."""

    columns: dict[str, int]
    id_spaces: dict[str, str]
    fields: dict[int, str]
    array_columns: frozenset[int]
    """Columns with several values per cell."""
    width: int


def parse_header(first: Sequence[str]) -> Neo4jHeader | None:
    """Parse a header; None if it is not one of Neo4j's."""
    places: dict[str, int] = {}
    spaces: dict[str, str] = {}
    fields: dict[int, str] = {}
    for at, column in enumerate(name.strip() for name in first):
        known = _COLUMN.match(column)
        meaning = _APOC_COLUMNS.get(column) or (known[2] if known else "")
        if meaning == "IGNORE":
            continue
        if meaning in _APOC_COLUMNS.values() and meaning not in places:
            places[meaning] = at
            spaces[meaning] = known[3] or "" if known else ""
            if meaning == "ID" and known and known[1]:
                fields[at] = known[1]
        else:
            fields[at] = column.split(":")[0]
    if "ID" in places or {"START_ID", "END_ID"} <= places.keys():
        arrays = frozenset(at for at, name in enumerate(first) if _ARRAY_COLUMN.search(name))
        return Neo4jHeader(places, spaces, fields, arrays, len(first))
    return None


def csv_files(path: Path) -> list[Path]:
    """Return the CSV files of an export: those of a folder by name, or the one file."""
    if not path.is_dir():
        return [path]
    found = sorted(one for one in path.iterdir() if one.suffix.lower() in (".csv", ".tsv"))
    found = [one for one in found if not _is_blank(one)]  # a label without rows
    if not found:
        raise InputError(f"{path} has no CSV file with a header; name the folder of a Neo4j export")
    return found


def _is_blank(file: Path) -> bool:
    with file.open("rb") as opened:
        return not opened.read(_HEAD_BYTES).strip()


def detect_separator(path: Path) -> str:
    """Return the separator with which the first line is a Neo4j header; "" if none is."""
    line = _first_line(path)
    for separator in _SEPARATORS:
        if _parse_first_line(line, separator) is not None:
            return separator
    return ""


def _parse_first_line(line: str, separator: str) -> Neo4jHeader | None:
    try:
        return parse_header(next(csv.reader([line], delimiter=separator), []))
    except csv.Error:  # such as a field of more than 131 kB
        return None


def _first_line(path: Path) -> str:
    return next(iter(LineReader(path, StartPosition())), "")


def read_neo4j(path: Path, start: StartPosition) -> Iterator[RowBatch]:
    """Yield nodes and relationships of all files; positions count through them as one file."""
    before = 0
    for file in csv_files(path):
        size = file.stat().st_size
        if start.position < before + size or size == 0:
            inside = start.position > before
            own = StartPosition(start.position - before, start.line) if inside else StartPosition()
            for batch in _read_file(file, own):
                bytes_read = before + batch.bytes_read
                yield RowBatch(
                    batch.rows, before + batch.position, batch.line, bytes_read, batch.records
                )
        before += size


def _read_file(path: Path, start: StartPosition) -> Iterator[RowBatch]:
    separator = detect_separator(path)
    if not separator:
        raise InputError(
            f"{path}: the first line is not a Neo4j header "
            "(:ID, or :START_ID and :END_ID, or _id, _start and _end)"
        )
    lines = LineReader(path, start)
    header = _parse_first_line(_first_line(path), separator)
    assert header is not None  # detect_separator parsed it
    yield from lines.to_batches(_read_rows(lines, header, separator, start.line == 0))


def _read_rows(
    lines: LineReader, header: Neo4jHeader, separator: str, skip: bool
) -> Iterator[list[Row]]:
    for number, fields in read_csv_records(lines, separator, range(header.width, header.width + 1)):
        if isinstance(fields, UnreadableRow):
            yield [fields]
        elif skip:
            skip = False
        else:
            yield [_parse_row(fields, header, number)]


def _parse_row(cells: Sequence[str], header: Neo4jHeader, line: int) -> Row:
    def cell(meaning: str) -> str:
        at = header.columns.get(meaning, len(cells))
        return clean(cells[at]).strip() if at < len(cells) else ""

    def key(meaning: str) -> str:
        space = header.id_spaces.get(meaning, "")
        return f"{space}:{cell(meaning)}" if space else cell(meaning)

    fields = {
        name: _cell_value(cells[at], at in header.array_columns)
        for at, name in header.fields.items()
        if name and at < len(cells) and cells[at].strip()
    }
    if cell("START_ID") and cell("END_ID"):
        return make_link(key("START_ID"), key("END_ID"), fields, cell("TYPE"))
    if not cell("ID"):
        return UnreadableRow(line, "has neither an id nor a start and an end")
    kind = type_from_labels(re.split(r"[:;]", cell("LABEL")), fields)
    return make_node(key("ID"), fields, kind)


def _cell_value(cell: str, many: bool) -> str | list[str]:
    """Return a cell's text, or its values if there are several."""
    found = [one for one in map(str.strip, cell.split(_ARRAY_SEPARATOR)) if one] if many else []
    return found if len(found) > 1 else "".join(found) or cell
