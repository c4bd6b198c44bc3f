"""Reads tables out of SQLite files, Parquet files and Excel workbooks."""

import re
import sqlite3
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from typing import IO, Any
from urllib.parse import quote
from xml.etree import ElementTree

from clew.errors import InputError
from clew.ingest.readers.source import (
    ReadBudget,
    Skipped,
    SourceFile,
    format_megabytes,
)
from clew.ingest.readers.tables import TableRow, TableSource, can_name_columns, read_rows
from clew.types import Document
from clew.version import pip_install_command

_BATCH = 1_000
_SHEET_SPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_CELL_PLACE = re.compile(r"([A-Z]+)\d+")
_EXCEL_START = datetime(1899, 12, 30)
# Number formats of dates and times that Excel has built in.
_DATE_FORMATS = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})
_DATE_LETTERS = re.compile(r"[ymdh]", re.IGNORECASE)
_QUOTED_FORMAT = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
_MAX_COLUMNS = 2_000
# What zipfile, zlib and the parser raise for damaged or encrypted parts, and dates out of range.
_BROKEN_WORKBOOK = (
    *(zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OverflowError),
    *(ElementTree.ParseError, KeyError, ValueError),
)


def read_sqlite(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read every table of a SQLite file, each row a document; nothing is written to it."""
    del budget  # rows are streamed, and SQLite bounds their size itself
    address = f"file:{quote(str(source.path.resolve()))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            database.text_factory = lambda raw: raw.decode("utf-8", "replace")
            tables = database.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
                " ORDER BY name"
            ).fetchall()
            if not tables:
                raise InputError("holds no tables")
            for (name,) in tables:
                table = TableSource(source, name if len(tables) > 1 else "")
                yield from read_rows(table, _select_rows(database, name))
    except (sqlite3.Error, UnicodeDecodeError) as error:  # also of a column's name, or a message
        raise InputError(f"is not a readable SQLite file ({error})") from error


def _select_rows(database: sqlite3.Connection, name: str) -> Iterator[TableRow]:
    quoted = '"' + name.replace('"', '""') + '"'
    found = database.execute("SELECT * FROM " + quoted)  # noqa: S608  (an identifier, quoted)
    columns = [one[0] for one in found.description]
    for number, row in enumerate(found, start=1):
        yield number, dict(zip(columns, row, strict=True))


def read_parquet(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a Parquet file in batches, each row a document."""
    del budget
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        needed = pip_install_command("parquet")
        raise InputError(f"needs pyarrow to be read; `{needed}` installs it") from error
    try:
        with ParquetFile(source.path) as file:
            yield from read_rows(TableSource(source), _iter_parquet(file))
    # Values that Python does not hold: text that is not UTF-8, dates before the year 1.
    except (ArrowException, OSError, ValueError, OverflowError) as error:
        raise InputError(
            f"is not a readable Parquet file ({str(error).splitlines()[0]})"
        ) from error


def _iter_parquet(file: Any) -> Iterator[TableRow]:
    number = 0
    for batch in file.iter_batches(batch_size=_BATCH):
        for row in batch.to_pylist():
            number += 1
            yield number, row


def read_xlsx(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read every sheet of a workbook whose first row names the columns, each row a document."""
    try:
        with zipfile.ZipFile(source.path) as book:
            _check_sizes(book, budget)
            sheets = list(_list_sheets(book))
            texts, dates = _read_shared_texts(book), _read_date_styles(book)
            for name, part in sheets:
                table = TableSource(source, name if len(sheets) > 1 else "")
                try:
                    with book.open(part) as sheet:
                        yield from read_rows(table, _iter_sheet(sheet, texts, dates))
                except _BROKEN_WORKBOOK as error:
                    if len(sheets) == 1:
                        raise
                    yield Skipped(table.path, f"is not a readable sheet ({error})", broken=True)
    except _BROKEN_WORKBOOK as error:
        raise InputError(f"is not a readable workbook ({error})") from error


def _check_sizes(book: zipfile.ZipFile, budget: ReadBudget) -> None:
    """Refuse a workbook that unpacks to more than the budget."""
    if sum(part.file_size for part in book.infolist()) > budget.file_bytes:
        limit = format_megabytes(budget.file_bytes)
        raise InputError(f"unpacks to more than the limit of {limit}; split it")


def _list_sheets(book: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Yield the name and the part of every sheet, in order."""
    targets = {
        one.get("Id"): str(one.get("Target"))
        for one in ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))
    }
    for sheet in ElementTree.fromstring(book.read("xl/workbook.xml")).iter(f"{_SHEET_SPACE}sheet"):
        target = targets[sheet.get(_RELATION)].lstrip("/")
        part = target if target.startswith("xl/") else f"xl/{target}"
        if part in book.namelist() and "worksheets" in part:
            yield str(sheet.get("name")), part


def _read_shared_texts(book: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in book.namelist():
        return []
    items = ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
    return [_join_texts(item) for item in items]


def _join_texts(item: ElementTree.Element) -> str:
    """Return the text of an item without how it is to be read aloud."""
    return "".join(
        part.text or ""
        for child in item
        if child.tag != f"{_SHEET_SPACE}rPh"
        for part in child.iter(f"{_SHEET_SPACE}t")
    )


def _read_date_styles(book: zipfile.ZipFile) -> set[int]:
    """Return the styles of cells that hold dates."""
    if "xl/styles.xml" not in book.namelist():
        return set()
    root = ElementTree.fromstring(book.read("xl/styles.xml"))
    own = {
        int(one.get("numFmtId", "0"))
        for one in root.iter(f"{_SHEET_SPACE}numFmt")
        if _DATE_LETTERS.search(_QUOTED_FORMAT.sub("", one.get("formatCode", "")))
    }
    used = root.find(f"{_SHEET_SPACE}cellXfs")
    return {
        at
        for at, style in enumerate(used if used is not None else ())
        if int(style.get("numFmtId", "0")) in _DATE_FORMATS | own
    }


def _iter_sheet(sheet: IO[bytes], texts: list[str], dates: set[int]) -> Iterator[TableRow]:
    """Yield the rows below the first that has at least two cells, which names the columns."""
    header: dict[int, str] = {}
    number = 0
    for _, element in ElementTree.iterparse(sheet, ("end",)):
        if element.tag != f"{_SHEET_SPACE}row":
            continue
        number = int(element.get("r", number + 1))  # a row without a number follows the one before
        cells = dict(_iter_cells(element, texts, dates))
        element.clear()
        if not cells:
            continue
        if not header:
            if can_name_columns(cells.values()):
                header = {at: str(value) for at, value in cells.items()}
            continue
        yield number, {header.get(at, f"column {at + 1}"): value for at, value in cells.items()}


def _iter_cells(
    row: ElementTree.Element, texts: list[str], dates: set[int]
) -> Iterator[tuple[int, Any]]:
    """Yield the position and value of each cell that is not empty."""
    column = -1
    for cell in row:
        place = _CELL_PLACE.match(cell.get("r", ""))
        column = _column_number(place[1]) if place else column + 1
        value = _read_cell(cell, texts, dates)
        if value not in (None, "") and column < _MAX_COLUMNS:
            yield column, value


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _read_cell(cell: ElementTree.Element, texts: list[str], dates: set[int]) -> Any:
    kind, raw = cell.get("t", "n"), cell.findtext(f"{_SHEET_SPACE}v")
    if kind == "inlineStr":
        inline = cell.find(f"{_SHEET_SPACE}is")
        return _join_texts(inline) if inline is not None else None
    if not raw or kind == "e":  # a formula that nobody has computed yet has no value either
        return None
    if kind == "b":
        return raw == "1"
    if kind not in ("n", "s"):
        return raw
    try:
        if kind == "s":
            return texts[int(raw)] if int(raw) < len(texts) else None
        return _read_number(float(raw), int(cell.get("s", "0")) in dates)
    except (ValueError, OverflowError):  # no number, or a date out of range
        return raw


def _read_number(number: float, is_date: bool) -> Any:
    if is_date:
        moment = _EXCEL_START + timedelta(days=number)
        return moment.date() if number == int(number) else moment.replace(microsecond=0)
    return int(number) if number.is_integer() else number
