"""Reads reStructuredText: sections, definition and option lists, literal blocks, directives."""

import csv
import re
from collections.abc import Iterator
from itertools import count
from typing import Any

from clew.ingest.readers.decode import decode
from clew.ingest.readers.markup import MarkupWriter
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, make_document, read_bytes
from clew.ingest.readers.table_text import write_table
from clew.text.unicode import clean
from clew.types import Document

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*")
_DIRECTIVE = re.compile(r"\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w:.+-]+)::(?:[ \t]+(.*))?")
_TARGET = re.compile(r"\.\.[ \t]+_")
_FOOTNOTE = re.compile(r"\.\.[ \t]+\[([^\]\n]{1,40})\][ \t]+(.*)")
_OPTION = re.compile(r"((?:-{1,2}|/)[\w?][^\n]{0,60}?)(?:[ ]{2,}(\S.*))?")
_COUNTED = re.compile(r"(#|\d{1,3})\.[ \t]")
_ITEM = re.compile(r"([-*+•‣]|#\.|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{2,4})[.)])[ \t]+(.*)")
_FIELD = re.compile(r":([^:\n]{1,60}):(?:[ \t]+(.*))?")
_GRID = re.compile(r"[+|][-=+|].*")
_SIMPLE_TABLE = re.compile(r"=+(?:[ \t]+=+)+[ \t]*")
_LITERAL = re.compile(r"``([^`\n]+)``")
_ROLE = re.compile(r":[\w:.+-]{1,40}:`([^`]*)`|`([^`]*)`(?:__?|:[\w:.+-]{1,40}:)?")
# Between single backticks, without a role: code as in Markdown, if its signs say so.
_CODE = re.compile(r"(?<![`:\w])`([A-Za-z_][\w.]*(?:=[^`\s=][^`\s]{0,40}|\(\)))`(?![`:\w])")
_LABELLED = re.compile(r"(.*?)\s*<[^<>]*>", re.DOTALL)
_NOTE_REFERENCE = re.compile(r"\[([^\s\[\]]{1,40})\]_(?![\w])")
_REFERENCE = re.compile(r"(?<=[A-Za-z0-9])_{1,2}(?=[\s.,;:)|]|$)")
_SUBSTITUTION = re.compile(r"\|([^|\s][^|\n]{0,40})\|_{0,2}")
_REPLACEMENT = re.compile(r"\.\.[ \t]+\|([^|\n]{1,40})\|[ \t]+replace::[ \t]*(.*)")
_CODE_DIRECTIVES = frozenset(
    "code code-block sourcecode highlight parsed-literal literalinclude prompt doctest testcode "
    "testoutput productionlist math graphviz".split()
)
_DROPPED_DIRECTIVES = frozenset(
    "image figure toctree contents index raw include meta highlight default-role role "
    "currentmodule module sectionauthor moduleauthor only ifconfig tabularcolumns testsetup "
    "testcleanup class target-notes sectnum header footer unicode replace date".split()
)
_MAX_DEPTH = 12


def read_rst(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read reStructuredText; the title is the first heading."""
    text, encoding = decode(read_bytes(source, budget))
    page = _Page()
    lines = clean(text).expandtabs(8).split("\n")
    page.read_substitutes(lines)
    page.number_notes(lines)
    page.read(lines, 0)
    written = page.writer.text()
    metadata: dict[str, Any] = {"format": "rst", "encoding": encoding}
    if page.writer.marked:
        metadata["terms"] = page.writer.terms()
    yield make_document(written or text, page.title, source.name, metadata)


def _count_items(lines: list[str]) -> list[str]:
    """Return lines without a common indent with the items of `#.` numbered in order."""
    counted, number = list(lines), 0
    for at, line in enumerate(lines):
        if found := _COUNTED.match(line):
            number = int(found[1]) if found[1] != "#" else number + 1
            counted[at] = f"{number}{line[found.end(1) :]}"
        elif line.strip() and not line[0].isspace():
            number = 0
    return counted


class _Page:
    """Interprets lines; what is indented below a block is read again with less indent."""

    def __init__(self) -> None:
        self.writer = MarkupWriter()
        self.title = ""
        self._levels: list[str] = []  # adornments by level, in order of appearance
        self._begun = False
        self._substitutes: dict[str, str] = {}
        self._note_numbers: dict[str, str] = {}  # of notes without a number of their own
        self._unnamed: dict[str, int] = {"refers": 0, "note": 0}

    def read_substitutes(self, lines: list[str]) -> None:
        """Read what stands for `|name|` in the text."""
        for at, line in enumerate(lines):
            if found := _REPLACEMENT.fullmatch(line):
                said = " ".join([found[2], *_dedent(lines[at + 1 : _body_end(lines, at + 1)])])
                self._substitutes[found[1]] = " ".join(said.split())

    def number_notes(self, lines: list[str]) -> None:
        """Give notes that are numbered by themselves the next free numbers, in order."""
        labels = [found[1] for line in lines if (found := _FOOTNOTE.fullmatch(line.strip()))]
        taken = {label for label in labels if label.isdigit()}
        free = (str(number) for number in count(1) if str(number) not in taken)
        unnamed = count(1)
        for label in labels:
            if label.startswith("#"):
                key = label if label != "#" else f"#{next(unnamed)}"
                self._note_numbers.setdefault(key, next(free))

    def _note_mark(self, label: str, of: str) -> str:
        """Return the number of a note or of a reference to one; those without a name in order."""
        if label == "#":
            self._unnamed[of] += 1
            label = f"#{self._unnamed[of]}"
        return f"[{self._note_numbers.get(label, label.lstrip('#'))}]"

    def read(self, lines: list[str], depth: int) -> None:
        """Read blocks of lines without a common indent."""
        at, lines = 0, _count_items(lines)
        while at < len(lines):
            line = lines[at]
            if not line.strip():
                at += 1
            elif _ADORNMENT.fullmatch(line) and not "".join(lines[at + 1 : at + 2]).strip():
                at += 1  # a rule between paragraphs
            elif after := self._read_heading(lines, at, depth):
                at = after
            else:
                at = max(self._read_block(lines, at, depth), at + 1)

    def _read_heading(self, lines: list[str], at: int, depth: int) -> int:
        """Read a title with a line under it, or over and under it; 0 if there is none."""
        line, below = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
        over = _ADORNMENT.fullmatch(line)
        if over and at + 2 < len(lines) and lines[at + 2].rstrip() == line.rstrip():
            self._heading("over" + over[1], below)
            return at + 3
        under = _ADORNMENT.fullmatch(below)
        long = under and len(below.rstrip()) >= min(len(line.rstrip()), 4)
        if depth or not long or not under or line[:1].isspace() or over:
            return 0
        self._heading(under[1], line)
        return at + 2

    def _heading(self, adornment: str, title: str) -> None:
        if adornment not in self._levels:
            self._levels.append(adornment)
        title = self._inline(title.strip())
        if not self._begun and not self.title:
            self.title = title
        self.writer.heading(self._levels.index(adornment) + 1, title)

    def _read_block(self, lines: list[str], at: int, depth: int) -> int:
        line = lines[at]
        after = _body_end(lines, at + 1)
        body = _dedent(lines[at + 1 : after])
        if line.startswith(".."):
            self._read_directive(line, body, depth)
            return after
        if _GRID.fullmatch(line) or _SIMPLE_TABLE.fullmatch(line):
            return self._read_table(lines, at)
        if found := _ITEM.fullmatch(line):
            marker = "-" if found[1] in "-*+•‣" else found[1]
            self.writer.open_item(marker)
            self._read_inner([found[2], *body], depth)
            return after
        if (
            line.startswith(("-", "/"))
            and (found := _OPTION.fullmatch(line))
            and (found[2] or body)
        ):
            return self._definition(found[1], [found[2] or "", *body], depth, after)
        if found := _FIELD.fullmatch(line):
            return self._read_field(found, body, depth, after)
        if (
            body
            and body[0]
            and not line.endswith("::")
            and after > at + 1
            and lines[at + 1].strip()
        ):
            return self._definition(self._inline(line), body, depth, after)
        return self._read_paragraph(lines, at)

    def _read_field(self, found: re.Match[str], body: list[str], depth: int, after: int) -> int:
        """Read a field; in a description, `:param path:` is about `path`, which is the term."""
        said = [found[2] or "", *body]
        kind, _, argument = found[1].partition(" ")
        if not (depth and argument and kind.islower()):
            return self._definition(found[1], said, depth, after, is_name=False)
        value_type, _, name = argument.strip().rpartition(" ")
        kind = f"{kind}, {value_type}" if value_type else kind
        return self._definition(name.lstrip("*"), [f"{kind}: {said[0]}", *body], depth, after)

    def _definition(
        self, term: str, body: list[str], depth: int, after: int, *, is_name: bool = True
    ) -> int:
        self._begun = True
        self.writer.term(self._inline(term), is_name=is_name)
        self.writer.open_body()
        self._read_inner(body, depth)
        return after

    def _read_inner(self, body: list[str], depth: int) -> None:
        if depth < _MAX_DEPTH:
            self.read(body, depth + 1)
        else:
            self.writer.paragraph(" ".join(body))
        self.writer.close()

    def _read_paragraph(self, lines: list[str], at: int) -> int:
        after = at
        while after < len(lines) and lines[after].strip():
            after += 1
        text = "\n".join(lines[at:after])
        literal = text.endswith("::")
        if literal:
            text = text[:-1] if text[:-2].strip() and not text.endswith(" ::") else text[:-2]
        if _SUBSTITUTION.sub("", text).strip():  # badges alone say nothing
            self._begun = True
            self.writer.paragraph(self._inline(" ".join(text.split("\n"))))
        if not literal:
            return after
        end = _body_end(lines, after)
        self.writer.code("\n".join(_dedent(lines[after:end])))
        return end

    def _read_directive(self, line: str, body: list[str], depth: int) -> None:
        if found := _FOOTNOTE.fullmatch(line):
            text = " ".join([found[2], *body])
            self.writer.paragraph(f"{self._note_mark(found[1], 'note')} {self._inline(text)}")
            return
        found = _DIRECTIVE.fullmatch(line)
        if found is None or _TARGET.match(line):
            return  # a comment or a target
        name, argument = found[1].split(":")[-1], found[2] or ""
        headers = []
        while body and (not body[0].strip() or (option := _FIELD.fullmatch(body[0]))):
            if body[0].strip() and option and option[1] == "header":
                headers.append(option[2] or "")
            body = body[1:]
        if name in _CODE_DIRECTIVES:
            self.writer.code("\n".join(body))
        elif name in _DROPPED_DIRECTIVES:
            return
        elif name in _TABLE_DIRECTIVES and body:
            self._write_rows(argument, _TABLE_DIRECTIVES[name]([*headers, *body]))
        elif argument and body and name not in {"note", "warning", "tip", "admonition"}:
            self._definition(argument, body, depth, 0)
        else:
            self._begun = True
            label = [f"{name}: {argument}" if not body else argument] if argument else []
            self.read([*label, "", *body] if depth < _MAX_DEPTH else [" ".join(body)], depth + 1)

    def _read_table(self, lines: list[str], at: int) -> int:
        after = at
        while after < len(lines) and lines[after].strip():
            after += 1
        block = lines[at:after]
        rows = _grid_rows(block) if _GRID.fullmatch(block[0]) else _simple_rows(block)
        self._write_rows("", rows)
        return after

    def _write_rows(self, title: str, rows: list[list[str]]) -> None:
        self._begun = True
        if title:
            self.writer.paragraph(self._inline(title))
        self.writer.rows(write_table([[self._inline(cell) for cell in row] for row in rows]))

    def _inline(self, text: str) -> str:
        for found in _LITERAL.finditer(text):
            if len(found[1]) <= 80:
                self.writer.marked[found[1]] += 1
        text = _LITERAL.sub(r"\1", text)
        self.writer.marked.update(found[1] for found in _CODE.finditer(text))
        text = _ROLE.sub(_role_text, text)
        text = _NOTE_REFERENCE.sub(lambda one: self._note_mark(one[1], "refers"), text)
        text = _SUBSTITUTION.sub(lambda one: self._substitutes.get(one[1], one[1]), text)
        text = _REFERENCE.sub("", text)
        return re.sub(r"\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*", r"\1\2", text).replace("\\ ", "")


def _role_text(found: re.Match[str]) -> str:
    text = found[1] if found[1] is not None else found[2] or ""
    labelled = _LABELLED.fullmatch(text)
    return (labelled[1] if labelled and labelled[1] else text).lstrip("~!")


def _body_end(lines: list[str], at: int) -> int:
    """Return the line after the lines that are blank or indented."""
    last = at
    while at < len(lines) and (not lines[at].strip() or lines[at][0] == " "):
        at += 1
        if lines[at - 1].strip():
            last = at
    return last


def _dedent(lines: list[str]) -> list[str]:
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    least = min(indents, default=0)
    return [line[least:] for line in lines]


def _simple_rows(block: list[str]) -> list[list[str]]:
    """Return the rows of a table whose columns are marked by a line of `=`."""
    columns = [found.span() for found in re.finditer("=+", block[0])]
    rows: list[list[str]] = []
    for line in block[1:]:
        if _SIMPLE_TABLE.fullmatch(line) or re.fullmatch(r"[-= \t]+", line):
            continue
        cells = [
            line[start : columns[n + 1][0] if n + 1 < len(columns) else None].strip()
            for n, (start, _) in enumerate(columns)
        ]
        if rows and not cells[0]:
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    return rows


def _grid_rows(block: list[str]) -> list[list[str]]:
    """Return the rows of a table drawn with `+`, `-` and `|`."""
    rows: list[list[str]] = []
    fresh = True
    for line in block:
        if line.startswith("+"):
            fresh = True
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if fresh or len(cells) != len(rows[-1]):
            rows.append(cells)
        else:
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], cells, strict=True)]
        fresh = False
    return rows


def _listed_rows(body: list[str]) -> list[list[str]]:
    """Return the rows of a table that is written as a list of lists."""
    rows: list[list[str]] = []
    for line in body:
        text = line.strip()
        if line.startswith("* -"):
            rows.append([line[3:].strip()])
        elif rows and text.startswith("- "):
            rows[-1].append(text[2:].strip())
        elif rows and text == "-":
            rows[-1].append("")
        elif rows and text:
            rows[-1][-1] = f"{rows[-1][-1]} {text}".strip()
    return rows


def _csv_rows(body: list[str]) -> list[list[str]]:
    return [row for row in csv.reader(body, skipinitialspace=True) if row]


_TABLE_DIRECTIVES = {"list-table": _listed_rows, "csv-table": _csv_rows}
