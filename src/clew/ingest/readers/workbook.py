"""Reads the sheets of Excel workbooks as tables, their cells as they are shown."""

import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import IO, Any
from xml.etree import ElementTree

from clew.errors import InputError
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, format_megabytes
from clew.ingest.readers.tables import (
    TableFile,
    TableRow,
    can_name_columns,
    name_columns,
)
from clew.types import Document

_SHEET_SPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_CELL_PLACE = re.compile(r"([A-Z]+)\d+")
_EXCEL_START = datetime(1899, 12, 30)
_DAY_SECONDS = 86_400
# Number formats that Excel has built in: dates and times, and percentages.
_DATE = "yyyy-mm-dd"
_BUILT_IN = {
    **dict.fromkeys((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)), _DATE),
    9: "0%",
    10: "0.00%",
}
_DATE_LETTERS = re.compile(r"[ymdh]", re.IGNORECASE)
_QUOTED_FORMAT = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
_CURRENCY = re.compile(r'\[\$([^\]-]+)[^\]]*\]|"\s*([^"\d]{1,3}?)\s*"|([$€£¥₽₹])')
_DECIMALS = re.compile(r"0\.(0+)")
_MAX_COLUMNS = 2_000
# What zipfile, zlib and the parser raise for damaged or encrypted parts, and dates out of range.
_BROKEN_WORKBOOK = (
    *(zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OverflowError),
    *(ElementTree.ParseError, KeyError, ValueError),
)


@dataclass(slots=True)
class _Cells:
    """What the cells of a workbook refer to, and how many of a sheet's formulas have no value."""

    texts: Sequence[str]
    formats: Mapping[int, str]
    """The format of each style that is a date, a percentage or a currency."""
    unknown: int = field(default=0)


def read_xlsx(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read every sheet of a workbook whose first row names the columns."""
    file = TableFile(source, budget)
    try:
        with zipfile.ZipFile(source.path) as book:
            _check_sizes(book, budget)
            sheets = list(_list_sheets(book))
            shown = [one for one in sheets if not one[2]]
            for name, _, hidden in sheets if shown else ():
                if hidden:
                    yield Skipped(f"{source.name}#{name}", "is a hidden sheet")
            texts, formats = _read_shared_texts(book), _read_formats(book)
            for name, part, _ in shown or sheets:
                path = f"{source.name}#{name}" if len(sheets) > 1 else source.name
                cells = _Cells(texts, formats)
                try:
                    with book.open(part) as sheet:
                        yield from file.add(
                            name if len(sheets) > 1 else "", _iter_sheet(sheet, cells)
                        )
                    if cells.unknown:
                        yield _tell_unknown(path, cells.unknown)
                except _BROKEN_WORKBOOK as error:
                    if len(sheets) == 1:
                        raise
                    yield Skipped(path, f"is not a readable sheet ({error})", broken=True)
    except _BROKEN_WORKBOOK as error:
        raise InputError(f"is not a readable workbook ({error})") from error
    yield from file.finish()


def _check_sizes(book: zipfile.ZipFile, budget: ReadBudget) -> None:
    """Refuse a workbook that unpacks to more than the budget."""
    if sum(part.file_size for part in book.infolist()) > budget.file_bytes:
        limit = format_megabytes(budget.file_bytes)
        raise InputError(f"unpacks to more than the limit of {limit}; split it")


def _tell_unknown(path: str, count: int) -> Skipped:
    some = "1 cell is" if count == 1 else f"{count} cells are"
    why = "formulas without a stored value; open and save it to compute them"
    return Skipped(path, f"{some} empty: {why}", partly=True)


def _list_sheets(book: zipfile.ZipFile) -> Iterator[tuple[str, str, bool]]:
    """Yield the name and the part of every sheet, in order, and whether it is hidden."""
    targets = {
        one.get("Id"): str(one.get("Target"))
        for one in ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))
    }
    for sheet in ElementTree.fromstring(book.read("xl/workbook.xml")).iter(f"{_SHEET_SPACE}sheet"):
        target = targets[sheet.get(_RELATION)].lstrip("/")
        part = target if target.startswith("xl/") else f"xl/{target}"
        if part in book.namelist() and "worksheets" in part:
            yield str(sheet.get("name")), part, sheet.get("state", "visible") != "visible"


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


def _read_formats(book: zipfile.ZipFile) -> dict[int, str]:
    """Return the formats of the styles whose cells are more than plain numbers."""
    if "xl/styles.xml" not in book.namelist():
        return {}
    root = ElementTree.fromstring(book.read("xl/styles.xml"))
    own = {
        int(one.get("numFmtId", "0")): one.get("formatCode", "").split(";")[0]
        for one in root.iter(f"{_SHEET_SPACE}numFmt")
    }
    used = root.find(f"{_SHEET_SPACE}cellXfs")
    numbers = [int(one.get("numFmtId", "0")) for one in (used if used is not None else ())]
    formats = ({**_BUILT_IN, **own}.get(number, "") for number in numbers)
    return {at: one for at, one in enumerate(formats) if _says_more(one)}


def _says_more(code: str) -> bool:
    """Whether a format makes a date, a percentage or a currency of a number."""
    bare = _QUOTED_FORMAT.sub("", code)
    return bool(_DATE_LETTERS.search(bare)) or "%" in bare or _CURRENCY.search(code) is not None


def _iter_sheet(sheet: IO[bytes], known: _Cells) -> Iterator[TableRow]:
    """Yield the rows below the first that has at least two cells, which names the columns."""
    header: dict[int, str] = {}
    number = 0
    for _, element in ElementTree.iterparse(sheet, ("end",)):
        if element.tag != f"{_SHEET_SPACE}row":
            continue
        number = int(element.get("r", number + 1))  # a row without a number follows the one before
        cells = dict(_iter_cells(element, known))
        element.clear()
        if not cells:
            continue
        if not header:
            if can_name_columns(cells.values()):
                header = dict(
                    zip(cells, name_columns([str(v) for v in cells.values()]), strict=True)
                )
            continue
        yield number, {header.get(at, f"column {at + 1}"): value for at, value in cells.items()}


def _iter_cells(row: ElementTree.Element, known: _Cells) -> Iterator[tuple[int, Any]]:
    """Yield the position and value of each cell that is not empty."""
    column = -1
    for cell in row:
        place = _CELL_PLACE.match(cell.get("r", ""))
        column = _column_number(place[1]) if place else column + 1
        value = _read_cell(cell, known)
        if value not in (None, "") and column < _MAX_COLUMNS:
            yield column, value


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _read_cell(cell: ElementTree.Element, known: _Cells) -> Any:
    kind, raw = cell.get("t", "n"), cell.findtext(f"{_SHEET_SPACE}v")
    if kind == "inlineStr":
        inline = cell.find(f"{_SHEET_SPACE}is")
        return _join_texts(inline) if inline is not None else None
    if not raw or kind == "e":
        computed = raw or cell.find(f"{_SHEET_SPACE}f") is None
        known.unknown += 0 if computed else 1  # nobody has computed it yet
        return None
    if kind == "b":
        return raw == "1"
    if kind not in ("n", "s"):
        return raw
    try:
        if kind == "s":
            return known.texts[int(raw)] if int(raw) < len(known.texts) else None
        return _read_number(float(raw), known.formats.get(int(cell.get("s", "0")), ""))
    except (ValueError, OverflowError):  # no number, or a date out of range
        return raw


def _read_number(number: float, code: str) -> Any:
    """Return a number as its format shows it: a date, a time, a percentage or an amount."""
    bare = _QUOTED_FORMAT.sub("", code)
    if "%" in bare:
        return f"{_round(round(number * 100, 9), bare)}%"
    if _DATE_LETTERS.search(bare):
        moment = _EXCEL_START + timedelta(seconds=round(number * _DAY_SECONDS))
        if 0 < number < 1:
            return moment.time()
        return moment.date() if number == int(number) else moment
    if sign := _CURRENCY.search(code):
        amount, mark = _round(number, bare), next(filter(None, sign.groups())).strip()
        return f"{mark}{amount}" if sign.start() < code.find("0") else f"{amount} {mark}"
    return int(number) if number.is_integer() else number


def _round(number: float, code: str) -> str:
    """Return a number with the decimals of a format, the half rounded up as sheets do."""
    decimals = _DECIMALS.search(code)
    places = Decimal(1).scaleb(-len(decimals[1]) if decimals else 0)
    return str(Decimal(str(number)).quantize(places, ROUND_HALF_UP))
