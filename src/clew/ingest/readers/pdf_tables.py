"""Finds tables on a PDF page by where its words stand, and writes each row with its header.

Only what is surely a table is changed: lines in a row with as many cells each, below each other,
under a line that heads them, in another font or without the figures of its columns. Without such a
line they are one if all have a figure in the same column: of two cells the first labels the second.
"""

import re
from ctypes import c_int, create_string_buffer
from typing import Any, NamedTuple

from clew.ingest.readers.table_text import write_table

_WIDE_GAP = 1.2  # times the size of the font: a wider one parts two cells
_MAX_LINE_CHARS = 200
_MAX_CELL_CHARS = 60
_LEAST_ROWS = 2  # below the header …
_LEAST_PAIRS = 3  # … and where there are only two columns
_LEAST_BARE = 3  # rows of a table without a header
_MAX_LABEL_CHARS = 40
_FONT_NAME_BYTES = 128
_RULE = re.compile(r"[-=_]{3,}(?:\s+[-=_]{3,})*")
_ALIGNED = 2.0  # points by which cells may begin left of their column


class _Cell(NamedTuple):
    text: str
    left: float
    right: float


class _Row(NamedTuple):
    cells: tuple[_Cell, ...]
    font: str


def mark_tables(layer: Any, text: str) -> list[tuple[str, int]]:
    """Return the lines of a page, the rows of its tables written with their headers.

    Beside each line stands its number in the text, -1 if it was written.
    """
    lines = text.split("\n")
    if len(text) != layer.count_chars():  # characters were added or left out:
        return [(line, at) for at, line in enumerate(lines)]  # positions would be wrong
    rows: list[_Row | None] = []
    at = 0
    for line in lines:
        rows.append(_split_line(layer, line.rstrip("\r"), at))
        at += len(line) + 1
    found: list[tuple[str, int]] = []
    at = 0
    while at < len(lines):
        if (ruled := _read_ruled(lines, rows, at)) is not None:
            written, at = ruled
            found += [(line, -1) for line in written]
            continue
        end = _find_table_end(rows, at)
        table = [row for row in rows[at:end] if row is not None]
        if _is_table(table):
            cells = [[cell.text for cell in row.cells] for row in table]
            found += [(line, -1) for line in write_table(cells)]
            at = end
        elif _is_bare_table(table):
            found += [(line, -1) for line in _write_bare(table)]
            at = end
        else:
            found.append((lines[at], at))
            at += 1
    return found


def _read_ruled(lines: list[str], rows: list[_Row | None], at: int) -> tuple[list[str], int] | None:
    """Return the rows under a header with a line of dashes below it, and the line after them.

    Where they are no table the dashes are left out: a row of cells is no heading.
    """
    head = rows[at]
    if head is None or at + 1 >= len(lines) or not _RULE.fullmatch(lines[at + 1].strip()):
        return None
    lefts = [cell.left for cell in head.cells]
    table: list[list[str]] = [[cell.text for cell in head.cells]]
    end = at + 2
    while end < len(rows) and (row := rows[end]) is not None:
        cells = [""] * len(lefts)
        for cell in row.cells:
            column = sum(left <= cell.left + _ALIGNED for left in lefts[1:])
            cells[column] = f"{cells[column]} {cell.text}".strip()
        if cells[0]:
            table.append(cells)
        elif len(table) > 1:  # it goes on with the row above
            table[-1] = [f"{a} {b}".strip() for a, b in zip(table[-1], cells, strict=True)]
        end += 1
    if len(table) <= _LEAST_ROWS:
        return [lines[at]], at + 2
    return write_table(table), end


def _split_line(layer: Any, line: str, start: int) -> _Row | None:
    """Return the cells of a line that has several, parted by wide gaps."""
    if len(line) > _MAX_LINE_CHARS or " " not in line.strip():
        return None
    from pypdfium2.raw import FPDFText_GetFontSize

    words = _find_words(line)
    size = float(FPDFText_GetFontSize(layer.raw, start + words[0][0])) or 1.0
    cells: list[_Cell] = []
    for begin, end in words:
        left = layer.get_charbox(start + begin)[0]
        right = layer.get_charbox(start + end - 1)[2]
        last = cells[-1] if cells else None
        if last is None or left - last.right > _WIDE_GAP * size:
            cells.append(_Cell(line[begin:end], left, right))
        elif left < last.left:
            return None  # it goes back: no line as people see it
        else:
            cells[-1] = _Cell(f"{last.text} {line[begin:end]}", last.left, right)
    if len(cells) < 2 or any(len(cell.text) > _MAX_CELL_CHARS for cell in cells):
        return None
    return _Row(tuple(cells), _font_name(layer, start + words[0][0]))


def _find_words(line: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    at = 0
    for word in line.split():
        begin = line.index(word, at)
        at = begin + len(word)
        found.append((begin, at))
    return found


def _font_name(layer: Any, at: int) -> str:
    from pypdfium2.raw import FPDFText_GetFontInfo

    name = create_string_buffer(_FONT_NAME_BYTES)
    size = FPDFText_GetFontInfo(layer.raw, at, name, _FONT_NAME_BYTES, c_int())
    return name.value.decode("utf-8", "replace") if 0 < size <= _FONT_NAME_BYTES else ""


def _find_table_end(rows: list[_Row | None], at: int) -> int:
    """Return the line after the rows whose cells stand below those of the first."""
    first = rows[at]
    if first is None:
        return at + 1
    spans = [(cell.left, cell.right) for cell in first.cells]
    end = at + 1
    while end < len(rows) and (row := rows[end]) is not None:
        if len(row.cells) != len(spans) or not _stands_below(row, spans):
            break
        spans = [
            (min(left, cell.left), max(right, cell.right))
            for (left, right), cell in zip(spans, row.cells, strict=True)
        ]
        end += 1
    return end


def _stands_below(row: _Row, spans: list[tuple[float, float]]) -> bool:
    """Whether each cell is below its own column, and below no other one."""
    return all(
        (cell.left <= right and cell.right >= left) == (mine == column)
        for mine, cell in enumerate(row.cells)
        for column, (left, right) in enumerate(spans)
    )


def _is_table(rows: list[_Row]) -> bool:
    """Whether the first row heads the others: by its font, or by figures that only they have."""
    if len(rows) <= (_LEAST_ROWS if rows and len(rows[0].cells) > 2 else _LEAST_PAIRS):
        return False
    head, *body = rows
    if not all(any(map(str.isalpha, cell.text)) for cell in head.cells):
        return False
    fonts = {row.font for row in body}
    if head.font and len(fonts) == 1 and head.font not in fonts:
        return True
    if any(any(map(str.isdigit, cell.text)) for cell in head.cells):
        return False
    return any(
        all(any(map(str.isdigit, row.cells[column].text)) for row in body)
        for column in range(len(head.cells))
    )


def _is_bare_table(rows: list[_Row]) -> bool:
    """Whether rows without a header are no text in columns: each has a figure in the same one.

    Of two columns the first must name what the second tells.
    """
    if len(rows) < _LEAST_BARE:
        return False
    columns = list(zip(*(row.cells for row in rows), strict=True))
    if len(columns) == 2:
        names = [cell.text for cell in columns[0]]
        if len(set(names)) < len(names) or not all(map(_is_label, names)):
            return False
        return all(any(map(str.isdigit, cell.text)) for cell in columns[1])
    return any(all(any(map(str.isdigit, cell.text)) for cell in column) for column in columns[1:])


def _is_label(text: str) -> bool:
    bare = len(text) <= _MAX_LABEL_CHARS and not any(map(str.isdigit, text))
    return bare and text[:1].isalpha() and not text.rstrip().endswith((".", ",", ";", "-"))


def _write_bare(rows: list[_Row]) -> list[str]:
    """Write rows without a header; of two cells the first is the label of the second."""
    cells = [[cell.text for cell in row.cells] for row in rows]
    if len(cells[0]) == 2:
        return [f"| {name.rstrip(' :')}: {value} |" for name, value in cells]
    return write_table(cells, headed=False)
