"""Reads Neo4j's CSV: `neo4j-admin import` files (a folder or one file) and apoc exports."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clew.errors import InputError
from clew.ingest.graphs.fields import labelled, link_of, node_of
from clew.ingest.graphs.lines import Lines
from clew.ingest.graphs.quoted import quoted
from clew.ingest.graphs.rows import Bad, Batch, Row, Start
from clew.text import clean

_HEAD = 65_536
_SEPARATORS = ",;\t|"
_COLUMN = re.compile(r"^([^:]*):([A-Z_]+)(?:\(([^)]*)\))?(?:\{.*\})?$")
_APOC = {"_id": "ID", "_labels": "LABEL", "_start": "START_ID", "_end": "END_ID", "_type": "TYPE"}
_ARRAY = re.compile(r"\[\]\s*(?:\{.*\})?$")  # suffix of the name of an array column
_MANY = ";"  # between the values of an array cell


@dataclass(frozen=True, slots=True)
class Header:
    """Indices of the columns with a meaning to Neo4j, and the names of the others."""

    places: dict[str, int]
    spaces: dict[str, str]
    fields: dict[int, str]
    arrays: frozenset[int]
    """Columns with several values per cell."""
    width: int


def header_of(first: Sequence[str]) -> Header | None:
    """Parse a header; None if it is not one of Neo4j's."""
    places: dict[str, int] = {}
    spaces: dict[str, str] = {}
    fields: dict[int, str] = {}
    for at, column in enumerate(name.strip() for name in first):
        known = _COLUMN.match(column)
        meaning = _APOC.get(column) or (known[2] if known else "")
        if meaning == "IGNORE":
            continue
        if meaning in _APOC.values() and meaning not in places:
            places[meaning] = at
            spaces[meaning] = known[3] or "" if known else ""
            if meaning == "ID" and known and known[1]:
                fields[at] = known[1]
        else:
            fields[at] = column.split(":")[0]
    if "ID" in places or {"START_ID", "END_ID"} <= places.keys():
        arrays = frozenset(at for at, name in enumerate(first) if _ARRAY.search(name))
        return Header(places, spaces, fields, arrays, len(first))
    return None


def files_of(path: Path) -> list[Path]:
    """Return the CSV files of an export: those of a folder by name, or the one file."""
    if not path.is_dir():
        return [path]
    found = sorted(one for one in path.iterdir() if one.suffix.lower() in (".csv", ".tsv"))
    found = [one for one in found if not _blank(one)]  # a label without rows
    if not found:
        raise InputError(
            f"{path} holds no CSV file with a header; name the folder of a Neo4j export"
        )
    return found


def _blank(file: Path) -> bool:
    with file.open("rb") as opened:
        return not opened.read(_HEAD).strip()


def separator_of(path: Path) -> str:
    """Return the separator with which the first line is a Neo4j header; "" if none is."""
    line = _first(path)
    for separator in _SEPARATORS:
        if header_of(next(csv.reader([line], delimiter=separator), [])) is not None:
            return separator
    return ""


def _first(path: Path) -> str:
    return next(iter(Lines(path, Start())), "")


def read_neo4j(path: Path, start: Start) -> Iterator[Batch]:
    """Yield nodes and relationships of all files; positions count through them as one file."""
    before = 0
    for file in files_of(path):
        size = file.stat().st_size
        if start.place < before + size or size == 0:
            inside = start.place > before
            own = Start(start.place - before, start.line) if inside else Start()
            for batch in _read(file, own):
                bytes_read = before + batch.seen
                yield Batch(batch.rows, before + batch.place, batch.line, bytes_read, batch.records)
        before += size


def _read(path: Path, start: Start) -> Iterator[Batch]:
    separator = separator_of(path)
    if not separator:
        raise InputError(
            f"{path}: the first line is no header of a Neo4j export "
            "(:ID, or :START_ID and :END_ID, or _id, _start and _end)"
        )
    lines = Lines(path, start)
    header = header_of(next(csv.reader([_first(path)], delimiter=separator)))
    assert header is not None  # detect_separator parsed it
    yield from lines.batches(_rows(lines, header, separator, start.line == 0))


def _rows(lines: Lines, header: Header, separator: str, skip: bool) -> Iterator[list[Row]]:
    for number, fields in quoted(lines, separator, range(header.width, header.width + 1)):
        if isinstance(fields, Bad):
            yield [fields]
        elif skip:
            skip = False
        else:
            yield [_row(fields, header, number)]


def _row(cells: Sequence[str], header: Header, line: int) -> Row:
    def cell(meaning: str) -> str:
        at = header.places.get(meaning, len(cells))
        return clean(cells[at]).strip() if at < len(cells) else ""

    def key(meaning: str) -> str:
        space = header.spaces.get(meaning, "")
        return f"{space}:{cell(meaning)}" if space else cell(meaning)

    fields = {
        name: _value(cells[at], at in header.arrays)
        for at, name in header.fields.items()
        if name and at < len(cells) and cells[at].strip()
    }
    if cell("START_ID") and cell("END_ID"):
        return link_of(key("START_ID"), key("END_ID"), fields, cell("TYPE"))
    if not cell("ID"):
        return Bad(line, "has neither an id nor a start and an end")
    kind = labelled(re.split(r"[:;]", cell("LABEL")), fields)
    return node_of(key("ID"), fields, kind)


def _value(cell: str, many: bool) -> str | list[str]:
    """Return a cell's text, or its values if there are several."""
    found = [one for one in map(str.strip, cell.split(_MANY)) if one] if many else []
    return found if len(found) > 1 else "".join(found) or cell
