"""Writes tables as rows of text in which every value stands with the label of its column."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from clew.text.structure import find_blocks

_MAX_LABEL_CHARS = 60
_MAX_CELL_CHARS = 1_000  # a longer cell is no value: the table arranges a page
_MAX_SPAN = 100
_BAR = re.compile(r"(?<!\\)\|")
_HEADING_LINE = re.compile(r"^#{1,6} |^```", re.MULTILINE)


@dataclass(slots=True)
class Cell:
    """A cell; `columns` and `rows` are how many of them it spans."""

    is_header: bool = False
    columns: int = 1
    rows: int = 1
    text: str = ""


@dataclass(frozen=True, slots=True)
class TableBlock:
    """A row on one line, or the text of a cell that is no value."""

    text: str
    is_text: bool = False


@dataclass(slots=True)
class Table:
    """Collects cells row by row; only the current row is open."""

    in_head: bool = False
    cell: Cell | None = None
    _row: list[Cell] = field(default_factory=list)
    _rows: list[list[Cell]] = field(default_factory=list)
    _head_rows: int = 0
    _carried: dict[int, tuple[Cell, int]] = field(default_factory=dict)

    def open_cell(self, cell: Cell) -> None:
        """Begin a cell of the current row."""
        self.cell = cell

    def close_cell(self, text: str) -> None:
        """End the current cell with its text."""
        if self.cell is not None:
            self.cell.text = text.strip("\n ")
            self._row.append(self.cell)
            self.cell = None

    def close_row(self) -> None:
        """End the current row."""
        if self._row:
            self._rows.append(self._place_cells(self._row))
            only_headers = len(self._row) > 1 and all(cell.is_header for cell in self._row)
            if len(self._rows) == self._head_rows + 1 and (self.in_head or only_headers):
                self._head_rows += 1
        self._row = []

    def _place_cells(self, row: Sequence[Cell]) -> list[Cell]:
        """Return one cell per column: those that span several columns or rows are repeated."""
        placed: list[Cell] = []
        waiting = list(row)
        while waiting or len(placed) in self._carried:
            at = len(placed)
            if at in self._carried:
                cell, left = self._carried.pop(at)
                if left > 1:
                    self._carried[at] = (cell, left - 1)
                placed.append(cell)
                continue
            cell = waiting.pop(0)
            for column in range(at, at + min(cell.columns, _MAX_SPAN)):
                if cell.rows > 1:
                    self._carried[column] = (cell, min(cell.rows, _MAX_SPAN) - 1)
                placed.append(cell)
        return placed

    def blocks(self) -> Iterator[TableBlock]:
        """Yield the rows as text, or the cells of a table that arranges a page."""
        cells = [cell for row in self._rows for cell in row]
        arranges = max((len(row) for row in self._rows), default=0) < 2 or any(
            len(cell.text) > _MAX_CELL_CHARS or _HEADING_LINE.search(cell.text) for cell in cells
        )
        if arranges:
            seen: set[int] = set()
            for cell in cells:
                if cell.text and id(cell) not in seen:
                    seen.add(id(cell))
                    yield TableBlock(cell.text, is_text=True)
            return
        head = min(self._head_rows, len(self._rows) - 1)
        rows = [[(cell.text, cell.is_header, id(cell)) for cell in row] for row in self._rows]
        for line in write_rows(rows[:head], rows[head:]):
            yield TableBlock(line)


CellText = tuple[str, bool, int]  # text, whether it is a header, identity of a spanning cell


def write_rows(head: Sequence[Sequence[CellText]], rows: Sequence[Sequence[CellText]]) -> list[str]:
    """Write rows with the labels of their columns; a leading header labels the cell beside it."""
    labels = _column_labels(head)
    if any(len(label) > _MAX_LABEL_CHARS for label in labels):
        lines = [_join([_flatten(text) for text, _, _ in row]) for row in head]
        lines.append("|" + "---|" * max(1, len(labels)))
        return lines + [_write_row(row, []) for row in rows if any(text for text, _, _ in row)]
    return [line for row in rows if (line := _write_row(row, labels))]


def write_table(rows: Sequence[Sequence[str]], *, headed: bool = True) -> list[str]:
    """Write rows of plain cells; the first row labels the columns if it looks like labels.

    Not where the document tells that it is a row as any other (`headed`).
    """
    if max(map(len, rows), default=0) < 2:
        return [text for row in rows for text in row if text]
    marked = [[(text, False, at) for at, text in enumerate(row)] for row in rows]
    head = 1 if headed and len(rows) > 1 and _looks_like_labels(rows) else 0
    return write_rows(marked[:head], marked[head:])


def label_rows(text: str) -> str:
    """Give the values of each table in Markdown the labels of their columns; the rest stays."""
    if "|" not in text or "---" not in text:
        return text
    blocks = find_blocks(text)
    pieces, at = list[str](), 0
    for number, block in enumerate(blocks):
        if block.kind != "header" or block.start < at:
            continue
        after = number + 1
        while after < len(blocks) and blocks[after].kind == "row":
            after += 1
        rows = [_split_cells(text[one.start : one.end]) for one in blocks[number:after]]
        if len(rows) < 2:
            continue
        marked = [[(cell, False, at) for at, cell in enumerate(row)] for row in rows]
        indent = text[text.rfind("\n", 0, block.start) + 1 : block.start]
        pieces += [text[at : block.start], f"\n{indent}".join(write_rows(marked[:1], marked[1:]))]
        at = blocks[after - 1].end
    return "".join([*pieces, text[at:]])


def _split_cells(line: str) -> list[str]:
    """Return the cells of a row in Markdown; a bar after a backslash is text, and stays so."""
    cells = [cell.strip() for cell in _BAR.split(line.strip().removeprefix("|"))]
    return cells[:-1] if len(cells) > 1 and not cells[-1] else cells


def _looks_like_labels(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has a short word for each column, and no number."""
    labels = [_flatten(text) for text in rows[0]]
    distinct = len(set(labels)) == len(labels) == max(map(len, rows))
    return distinct and all(
        0 < len(label) <= _MAX_LABEL_CHARS and not label[0].isdigit() for label in labels
    )


def _column_labels(head: Sequence[Sequence[CellText]]) -> list[str]:
    labels: list[str] = []
    for row in head:
        for at, (text, _, _) in enumerate(row):
            flat = _flatten(text)
            if at >= len(labels):
                labels.append(flat)
            elif flat and flat not in labels[at]:
                labels[at] = f"{labels[at]} {flat}".strip()
    return labels


def _write_row(row: Sequence[CellText], labels: Sequence[str]) -> str:
    values: list[str] = []
    label, seen = "", set()
    for at, (text, is_header, identity) in enumerate(row):
        flat = _flatten(text)
        if not flat or identity in seen:
            continue
        seen.add(identity)
        if labels:
            name = labels[at] if at < len(labels) and len(set(i for *_, i in row)) > 1 else ""
            values.append(f"{name}: {flat}" if name and name != flat else flat)
        elif is_header and not values and not label and len(row) > 1:
            label = flat
        else:
            values.append(flat)
    if label:
        values[:1] = [f"{label}: {values[0]}" if values else label]
    return _join(values) if values else ""


def _flatten(text: str) -> str:
    return " ".join(text.split())


def _join(values: Sequence[str]) -> str:
    return f"| {' | '.join(values)} |"
