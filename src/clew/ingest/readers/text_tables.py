"""Finds tables that are drawn in plain text, and writes each row with its header.

Three ways of drawing are read: a grid of `+---+` and `|` or of the signs made for boxes, columns
under a header with a rule below it, and rows of Markdown. Only what is surely a table is changed:
boxes and diagrams stay as they are.
"""

import re
import unicodedata

from clew.ingest.readers.table_text import label_rows, write_table

_GRID_RULE = re.compile(r"[ \t]*\+(?:[-=]{3,}\+){2,}[ \t]*")
_RULE = re.compile(r"[ \t]*[-=]{3,}(?:[ \t+]+[-=]{3,})*[ \t]*")
_HEADER_CELL = re.compile(r"\S+(?: \S+)*")
_LEAST_ROWS = 2  # below the header
_MAX_SHIFT = 2  # columns by which the rule may begin beside the header
_BOX_SIGNS = range(0x2500, 0x2580)  # of Unicode, by what their names say
_BOX = re.compile("[\u2500-\u257f]")


def _draw_plainly(sign: str) -> str:
    """Return `-`, `|` or `+` for a sign of a box: a line, or where lines meet."""
    named = unicodedata.name(sign)
    parts = {"HORIZONTAL", "VERTICAL", "UP", "DOWN", "LEFT", "RIGHT"} & {*named.split()}
    return "-" if parts == {"HORIZONTAL"} else "|" if parts == {"VERTICAL"} else "+"


_PLAIN_SIGNS = {code: _draw_plainly(chr(code)) for code in _BOX_SIGNS}


def mark_text_tables(text: str) -> str:
    """Write the rows of drawn tables with the names of their columns."""
    boxes = _BOX.search(text) is not None
    if not boxes and "---" not in text and "===" not in text:
        return text
    lines = text.split("\n")
    drawn = text.translate(_PLAIN_SIGNS).split("\n") if boxes else lines
    found: list[str] = []
    at = 0
    while at < len(lines):
        rows, end = _read_grid(drawn, at)
        if not rows:
            rows, end = _read_columns(drawn, at)
        if rows:
            gap = [""] if found and found[-1].strip() else []
            below = [""] if end < len(lines) and lines[end].strip() else []
            found += [*gap, *write_table(rows), *below]
            at = end
        else:
            found.append(lines[at])
            at += 1
    return label_rows("\n".join(found))


def _read_grid(lines: list[str], at: int) -> tuple[list[list[str]], int]:
    """Return the rows of a grid that begins at a line, and the line after it."""
    if not _GRID_RULE.fullmatch(lines[at]):
        return [], at
    bars = lines[at].strip().count("+")
    groups: list[list[list[str]]] = [[]]
    end = at + 1
    while end < len(lines):
        line = lines[end].strip()
        if _GRID_RULE.fullmatch(line) and line.count("+") == bars:
            groups.append([])
        elif line[:1] == "|" == line[-1:] and line.count("|") == bars:
            groups[-1].append([cell.strip() for cell in line[1:-1].split("|")])
        else:
            break
        end += 1
    filled = [group for group in groups if group]
    if groups[-1] or len(filled) < 2:
        return [], at
    ruled = len(filled) > 2  # a rule below each row, not only below the header
    rows = [_join_lines(filled[0])]
    for group in filled[1:]:
        rows += [_join_lines(group)] if ruled else _join_continued(group)
    return (rows, end) if len(rows) > _LEAST_ROWS and all(rows[0]) else ([], at)


def _join_lines(lines: list[list[str]]) -> list[str]:
    return [" ".join(filter(None, cells)) for cells in zip(*lines, strict=True)]


def _join_continued(lines: list[list[str]]) -> list[list[str]]:
    """Join lines with one cell, not the first one, to the row that they go on with."""
    rows: list[list[str]] = []
    for cells in lines:
        if rows and sum(map(bool, cells)) == 1 and not cells[0]:
            rows[-1] = _join_lines([rows[-1], cells])
        else:
            rows.append(cells)
    return rows


def _read_columns(lines: list[str], at: int) -> tuple[list[list[str]], int]:
    """Return the rows of columns under a header with a rule, and the line after them."""
    head = lines[at]
    if "|" in head.strip() and (barred := _read_barred(lines, at))[0]:
        return barred
    if "  " not in head.strip() or at + 1 >= len(lines) or not _RULE.fullmatch(lines[at + 1]):
        return [], at
    starts = [found.start() for found in _HEADER_CELL.finditer(head)]
    begin = len(lines[at + 1]) - len(lines[at + 1].lstrip())
    end = at + 2
    while end < len(lines) and lines[end].strip() and not _RULE.fullmatch(lines[end]):
        end += 1
    body = lines[at + 2 : end]
    if len(starts) < 2 or abs(begin - starts[0]) > _MAX_SHIFT or len(body) < _LEAST_ROWS:
        return [], at
    if "\t" in head or not all(_fits(line, starts) for line in body):
        return [], at
    rows = _join_continued([_cut(line, starts) for line in body])
    if end < len(lines) and _RULE.fullmatch(lines[end]):  # a rule below the table
        end += 1
    return ([_cut(head, starts), *rows], end) if len(rows) >= _LEAST_ROWS else ([], at)


def _read_barred(lines: list[str], at: int) -> tuple[list[list[str]], int]:
    """Return the rows under a header with a rule whose columns are parted by `|` below each other.

    Such a rule below the header tells a table from one of Markdown, which has bars itself.
    """
    bars = [place for place, sign in enumerate(lines[at]) if sign == "|"]
    if at + 1 >= len(lines) or not _RULE.fullmatch(lines[at + 1]):
        return [], at
    rows = []
    end = at
    while end < len(lines) and lines[end].strip():
        line = lines[end]
        if end != at + 1 and all(line[bar : bar + 1] == "|" for bar in bars):
            edges = zip([-1, *bars], [*bars, len(line)], strict=True)
            rows.append([line[a + 1 : b].strip() for a, b in edges])
        elif not _RULE.fullmatch(line):
            break
        end += 1
    rows = [[cell for cell, head in zip(row, rows[0], strict=True) if head] for row in rows]
    return (rows, end) if len(rows) > _LEAST_ROWS and len(rows[0]) > 1 else ([], at)


def _fits(line: str, starts: list[int]) -> bool:
    """Whether a line has a gap before each column."""
    return "\t" not in line and not any(line[start - 1 : start].strip() for start in starts[1:])


def _cut(line: str, starts: list[int]) -> list[str]:
    ends = [*starts[1:], len(line)]
    first = line[: ends[0]].strip()
    return [first, *(line[a:b].strip() for a, b in zip(starts[1:], ends[1:], strict=True))]
