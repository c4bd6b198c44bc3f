"""Writes the text of a page from a stream of tags: headings, lists, definitions, tables, code.

The markup is described in `clew.text.structure`. No tree is built, and containers are counted only
to a fixed depth, so nesting costs nothing.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from clew.ingest.readers.hidden_parts import is_ended_by
from clew.ingest.readers.list_numbers import NumberStyle, format_number
from clew.ingest.readers.table_text import Cell, Table

_CELL_TAGS = frozenset({"td", "th"})
_TABLE_PARTS = frozenset({"thead", "tbody", "tfoot"})
_TABLE_TAGS = _CELL_TAGS | _TABLE_PARTS | {"table", "tr"}
# Number of line ends that separate an element from its surroundings.
_LINE_BREAKS = dict.fromkeys("br li dt dd tr caption option".split(), 1) | dict.fromkeys(
    "p div section article main header aside blockquote figure figcaption address details summary "
    "ul ol dl table form fieldset hr pre body h1 h2 h3 h4 h5 h6".split(),
    2,
)
_HEADING_MARKS = {f"h{level}": "#" * level for level in range(1, 7)}
_LIST_TAGS = frozenset({"ul", "ol", "dl"})
_INLINE_CODE_TAGS = frozenset("code tt kbd samp var".split())
_MAX_CONTAINERS = 12  # lists and items that are indented
_MAX_TABLES = 3  # tables within tables that have rows of their own
_MAX_TERMS, _MAX_TERM_CHARS = 400, 80
_LEAST_SHARE_OF_INDEX = 0.05  # a page with less text than this share of its index is one


@dataclass(slots=True)
class _Container:
    """A list, an item or a definition: `marker` precedes its first line, `indent` the others."""

    tag: str
    marker: str = ""
    indent: str = ""
    count: int = 0
    style: NumberStyle = "decimal"


@dataclass(slots=True)
class _Output:
    """Text written so far, of the page or of one table cell."""

    pieces: list[str] = field(default_factory=list)
    apart: int = 0  # line ends due before the next text …
    mark: str = ""  # … and a heading's mark before it


class ListNumber(NamedTuple):
    """What a list or an item says about its number: the one it begins with, and the style."""

    number: int | None = None
    style: NumberStyle = "decimal"
    note: str = ""
    """The mark of an item that is a note."""


PLAIN_NUMBER = ListNumber()


class PageText:
    """Collects a page's text from a stream of tags and text."""

    def __init__(self, dropped: frozenset[str]) -> None:
        self.index_chars = 0
        """Length of what was dropped as an index or a table of contents."""
        self.terms: dict[str, int] = {}
        """What the page marks as code, within a line."""
        self._dropped = dropped
        self._inside = ""  # the dropped element we are in, and how often it is nested in itself
        self._depth = 0
        self._in_index = False
        self._pre = 0
        self._code: list[str] | None = None
        self._in_title = False
        self._title: list[str] = []
        self._in_heading = False
        self._heading: list[str] = []
        self._containers: list[_Container] = []
        self._tables: list[Table] = []
        self._skipped_tables = 0
        self._held: list[tuple[_Output, list[_Container]]] = []  # what is around the current cell
        self._out = _Output()

    def text(self) -> str:
        """Return the page's text with its blocks separated."""
        while self._tables:
            self._close_table()
        return re.sub(r"[ \t]+\n", "\n", "".join(self._out.pieces)).strip("\n ")

    def is_only_index(self) -> bool:
        """Whether an index, which was closed, is all that there is, or nearly all."""
        return not self._inside and len(self.text()) < self.index_chars * _LEAST_SHARE_OF_INDEX

    def title(self) -> str:
        """Return the page's title without the name of its site, or its first heading."""
        title, heading = ("".join(parts).split() for parts in (self._title, self._heading))
        whole, first = " ".join(title), " ".join(heading).rstrip("¶ ")
        # "Caching — Manual of it" below the heading "Caching": the rest names the site.
        site = whole[len(first) :].lstrip() if first and whole.startswith(first) else ""
        return first if site[:1] in {"—", "–", "|", "-", "·"} and len(site) > 1 else whole or first

    def open_tag(
        self,
        tag: str,
        dropped_as: str = "",
        spans: tuple[int, int] = (1, 1),
        numbered: ListNumber = PLAIN_NUMBER,
    ) -> None:
        """Handle an opening tag; `spans` are the columns and rows of a cell."""
        self._in_title = tag == "title" and self._inside in {"", "head"} and not self._title
        if tag == "body" and self._inside == "head":  # the head's closing tag is optional
            self._inside = ""
        if is_ended_by(self._inside, tag):
            self._inside = ""
        if self._inside:
            self._depth += tag == self._inside
        elif dropped_as or tag in self._dropped:
            self._inside, self._depth = tag, 1
            self._in_index = dropped_as == "index"
        else:
            self._begin_tag(tag, spans, numbered)

    def close_tag(self, tag: str) -> None:
        """Handle a closing tag."""
        if tag == "title":
            self._in_title = False
        if self._inside:
            self._depth -= tag == self._inside
            if self._depth <= 0 or is_ended_by(self._inside, tag, closing=True):
                self._inside = ""
            return
        if tag in _INLINE_CODE_TAGS:
            self._end_inline_code()
        elif tag in _HEADING_MARKS:
            self._in_heading = False
            self._out.mark = ""
        elif tag == "pre":
            self._close_code()
        elif tag in _TABLE_TAGS:
            self._end_table_tag(tag)
        elif tag in _LIST_TAGS or tag in {"li", "dd"}:
            self._close_container(tag)
        self._add_break(tag)

    def add_text(self, text: str) -> None:
        """Handle the text between tags."""
        if self._in_title:
            self._title.append(text)
        elif self._inside:
            self.index_chars += len(text) if self._in_index else 0
        else:
            if self._in_heading:
                self._heading.append(text)
            if self._code is not None:
                self._code.append(text)
            self._append(text if self._pre else re.sub(r"\s+", " ", text))

    # -- tags

    def _begin_tag(self, tag: str, spans: tuple[int, int], numbered: ListNumber) -> None:
        if tag in _TABLE_TAGS:
            self._begin_table_tag(tag, spans)
            return
        self._add_break(tag)
        if tag == "pre":
            self._open_code()
        elif tag in _LIST_TAGS:
            before = 0 if numbered.number is None else numbered.number - 1
            self._open_container(_Container(tag, count=before, style=numbered.style))
        elif tag == "li":
            self._open_item(numbered)
        elif tag in {"dt", "dd"}:
            if self._close_container("dd") and tag == "dt":
                self._out.apart = 2
            if tag == "dd":
                self._open_container(_Container("dd", ":   ", "    "))
        elif tag in _HEADING_MARKS:
            self._out.mark = f"{_HEADING_MARKS[tag]} "
            self._in_heading = not self._heading
        elif tag in _INLINE_CODE_TAGS and not self._pre:
            self._code = []

    def _end_inline_code(self) -> None:
        term = " ".join("".join(self._code or ()).split())
        self._code = None
        if term and len(term) <= _MAX_TERM_CHARS:
            if term in self.terms or len(self.terms) < _MAX_TERMS:
                self.terms[term] = self.terms.get(term, 0) + 1

    def _open_code(self) -> None:
        if not self._pre:
            self._append("```")
            self._out.apart = 1
        self._pre += 1

    def _close_code(self) -> None:
        if self._pre == 1:
            written = self._out.pieces
            while written and not (last := written[-1].rstrip("\n ")):
                written.pop()
            if written:
                written[-1] = last
            if written and written[-1].endswith("```") and self._out.apart:
                written[-1] = written[-1][:-3]  # nothing was in it
            else:
                self._out.apart = 1
                self._append("```")
        self._pre -= self._pre > 0

    # -- containers

    def _open_container(self, container: _Container) -> None:
        if len(self._containers) < _MAX_CONTAINERS:
            self._containers.append(container)

    def _open_item(self, numbered: ListNumber) -> None:
        self._close_container("li")
        around = self._containers[-1] if self._containers else _Container("ul")
        around.count = around.count + 1 if numbered.number is None else numbered.number
        counted = format_number(around.count, around.style)
        marker = f"{counted}. " if around.tag == "ol" else "- "
        marker = f"[{numbered.note}] " if numbered.note else marker
        self._open_container(_Container("li", marker, " " * len(marker)))

    def _close_container(self, tag: str) -> bool:
        """Close the innermost container of this tag, but none outside of its own list."""
        for at in range(len(self._containers) - 1, -1, -1):
            held = self._containers[at].tag
            if held == tag:
                del self._containers[at:]
                return True
            if held in _LIST_TAGS and tag not in _LIST_TAGS:
                break
        return False

    # -- tables

    def _begin_table_tag(self, tag: str, spans: tuple[int, int]) -> None:
        if tag in _TABLE_PARTS:
            if self._tables and not self._skipped_tables:
                self._close_row()
                self._tables[-1].in_head = tag == "thead"
            return
        if tag == "table" and len(self._tables) >= _MAX_TABLES:
            self._skipped_tables += 1
        if self._skipped_tables:
            self._append(" ")
            return
        if tag == "table" or not self._tables:
            self._add_break("table")
            self._tables.append(Table())
        if tag == "tr":
            self._close_row()
        elif tag in _CELL_TAGS:
            self._close_cell()
            self._tables[-1].open_cell(Cell(tag == "th", *spans))
            self._held.append((self._out, self._containers))
            self._out, self._containers = _Output(), []

    def _end_table_tag(self, tag: str) -> None:
        if tag == "table":
            self._close_table()
        elif self._tables and not self._skipped_tables:
            if tag in _CELL_TAGS:
                self._close_cell()
            else:
                self._close_row()
                self._tables[-1].in_head &= tag == "tr"

    def _close_cell(self) -> None:
        if self._tables and self._tables[-1].cell is not None:
            written = "".join(self._out.pieces)
            self._out, self._containers = self._held.pop()
            self._pre, self._code = 0, None
            self._tables[-1].close_cell(written)

    def _close_row(self) -> None:
        self._close_cell()
        self._tables[-1].close_row()

    def _close_table(self) -> None:
        if self._skipped_tables:
            self._skipped_tables -= 1
            return
        if not self._tables:
            return
        self._close_row()
        for number, block in enumerate(self._tables.pop().blocks()):
            self._out.apart = max(self._out.apart, 2 if number == 0 or block.is_text else 1)
            for line in block.text.split("\n"):
                self._append(line)
                self._out.apart = max(self._out.apart, 1)
        self._out.apart = 2

    # -- writing

    def _add_break(self, tag: str) -> None:
        apart = _LINE_BREAKS.get(tag, 0)
        if not self._out.mark:
            self._out.apart = max(self._out.apart, apart)

    def _prefix(self) -> str:
        """Return the indents and the first markers of the open containers."""
        written = []
        for container in self._containers:
            written.append(container.marker or container.indent)
            container.marker = ""
        return "".join(written)

    def _append(self, text: str) -> None:
        out = self._out
        fresh = out.apart > 0 or not out.pieces or out.pieces[-1][-1:] in {" ", "\n"}
        if fresh and not self._pre:
            text = text.removeprefix(" ")
        if not text:
            return
        if self._pre and self._containers:
            text = text.replace("\n", "\n" + "".join(one.indent for one in self._containers))
        begins = out.apart > 0 or not out.pieces
        if self._containers and self._containers[-1].marker.startswith(":"):
            out.apart = min(out.apart, 1)  # a definition follows its term
        prefix = self._prefix() if begins else ""
        out.pieces.append("\n" * (out.apart if out.pieces else 0) + prefix + out.mark + text)
        out.apart, out.mark = 0, ""
