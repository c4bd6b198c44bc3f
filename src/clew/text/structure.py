"""The structure of a text: headings, lists, definitions, tables and code, as character spans.

Readers write every format in one plain markup, close to Markdown, so that the structure can be
found again in the stored text and in any chunk of it:

    # Heading                  sections, by level
    term                       a definition with its term; `:` and an indent mark its body
    :   what it means
    `term`: what it means      the same in one line, of a marked name, an option, an identifier
    - item, 1. item            lists, in order
    | a | b |                  a table row; `|---|` follows a header
    ``` … ```                  code

An indented body below a term needs no colon: this is how manuals are written as plain text.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from clew.text.sentences import TERM_LINE, goes_on_with_number
from clew.text.word_forms import is_function_word

BlockKind = Literal["heading", "paragraph", "code", "item", "definition", "header", "row"]

_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_FENCE = re.compile(r"[ \t]*(```|~~~)")
# Code may begin on the line of an item or a definition, right behind its mark.
_OPENING_FENCE = re.compile(
    r"[ \t]*(?:(```|~~~)|(?::|[-*+•‣◦]|\d{1,3}[.)])[ \t]+(```|~~~)(?=[^`~]*\Z))"
)
_UNDERLINE_LEVELS = {"=": 1, "-": 2, "~": 3}
_LONGEST_HEADING_LINE = 200
_ITEM = re.compile(
    r"[ \t]*(?:(?P<bullet>[-*+•‣◦–—·])|(?P<number>\(?(?:\d{1,3}|[A-Za-z]|[ivx]{2,5})[.)]))[ \t]+\S"
)
_COLON = re.compile(r"[ \t]*:[ \t]+\S")
# "-q, --quiet    Print only errors": an option, a gap, and what it does.
_OPTION_LINE = re.compile(
    r"[ \t]*(?P<term>-{1,2}[^\W\d_][\w-]*(?:[ =,][^\n]{0,60}?)?)(?:[ \t]{2,}\S|$)"
)
# "Storing: Wind the cord under the base.", where such lines stand together.
_LABEL_LINE = re.compile(
    r"[ \t]*(?P<term>[^\W\d_a-z][\w'’-]*(?: [\w'’-]+){0,3}):[ \t]+"
    r"[^\W\d_a-z][^\n]* [^\n]*[.!][ \t]*"
)
_TERM_LINE = re.compile(rf"[ \t]*{TERM_LINE}")
# "24 - Partial transfer", "E7: no water", "HTTP – a protocol": an item that says what a code means.
_CODE_ENTRY = re.compile(
    r"[ \t]*[*_`]{0,3}(?P<term>(?=\S{0,30}[\d_$%/\\]|[A-Z]{2})[^\s:=*`]{1,30})[*_`]{0,3}"
    r"(?: [-–—=]|:)[ \t]+(?=\S)"
)
# One dash is enough between bars; without a bar, fewer than three are an item or a sign.
_DELIMITER_ROW = re.compile(
    r"(?=[^\n]*-)(?=[^\n]*\||[ \t]*:?-{3})"
    r"[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)*[ \t]*(?::?-+:?[ \t]*\|?)?[ \t]*"
)
_MAX_TERM_LINES = 4
_MAX_TERM_CHARS = 120
_MAX_DEPTH = 6  # of blocks within blocks
_CODE_INDENT = 4
_TAB = 8  # columns from one tab stop to the next
_HANGING_INDENT = 2
_LEAST_CLAUSE_WORDS = 3
_LIST_LINES = 30  # before and behind an item, where its neighbours are looked for
_PROSE_END = (".", ",", ";", "。", "，", "、")
_SENTENCE_ENDS = (".", ":", "?", "!")
_PLAIN_WORD = re.compile(r"[\"“‘(]?[^\W\d_]+(?:[-'’][^\W\d_]+)*[\"”’)]?[.,:;?!]?\)?")
_LEAST_WORDS, _PLAIN_SHARE = 5, 0.8  # of a sentence, and of its words that are letters alone
_PAGE_BREAK = "\f"
CRUMB_SEPARATOR = " > "  # between the parts of a stored heading path


# A heading, fence, table, definition or list somewhere: the text is more than sentences.
_STRUCTURE = re.compile(
    r"^\f?[ \t]*(?:#{1,6}[ \t]+\S|```|~~~|\||:[ \t]+\S|[-*+•‣◦][ \t]+\S|\d{1,3}[.)][ \t]+\S|"
    r"={3,}[ \t]*$|-{3,}[ \t]*$|~{3,}[ \t]*$)"
    r"|^[ \t]*\S[^\n]*\n(?:[ \t]{2,}|\t)\S",
    re.MULTILINE,
)


class Heading(NamedTuple):
    """A heading of one line (two if underlined) with its level from 1."""

    start: int
    end: int
    level: int
    title: str


class Section(NamedTuple):
    """A span that begins with its headings, and their path from the outermost one."""

    start: int
    end: int
    path: tuple[str, ...]
    outer: int = 0
    """How many titles of the path stand before the section, not in it."""

    @property
    def heading(self) -> str:
        """The path as one text: `A > B`."""
        return CRUMB_SEPARATOR.join(self.path)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of text; `title` is a definition's term, an item's marker, a heading's title."""

    kind: BlockKind
    start: int
    end: int
    title: str = ""
    depth: int = 0

    def holds(self, at: int) -> bool:
        """Whether a character is within the block."""
        return self.start <= at < self.end


def has_structure(text: str) -> bool:
    """Whether a text has headings, lists, tables, definitions or code: more than sentences."""
    return _STRUCTURE.search(text) is not None


# -- headings and sections


def is_heading_line(text: str) -> bool:
    """Whether a text is only the line of a heading with its marks: `## Work`."""
    return _ATX.fullmatch(text.strip()) is not None


def find_headings(text: str) -> Iterator[Heading]:
    """Yield the headings outside of code blocks."""
    at = before_at = 0
    before = fence = ""
    for line in text.split("\n"):
        end = at + len(line) + 1
        if line.startswith(_PAGE_BREAK):  # a page may begin with a heading
            line, at = line[1:], at + 1
        opened = (_FENCE if fence else _OPENING_FENCE).match(line)
        if opened and (not fence or fence == opened[1]):
            fence = "" if fence else opened[1] or opened[2]
        if fence or opened:
            before = ""
        elif (atx := _ATX.fullmatch(line)) and len(line) <= _LONGEST_HEADING_LINE:
            yield Heading(at, end, len(atx[1]), atx[2].rstrip("# \t"))
            before = ""
        elif level := _underline_level(before, line):
            yield Heading(before_at, end, level, before.strip())
            before = ""
        else:
            before, before_at = line, at
        at = end


def _underline_level(title: str, line: str) -> int:
    mark = line.strip()[:1]
    level = _UNDERLINE_LEVELS.get(mark, 0)
    if (
        not level
        or len(line) > _LONGEST_HEADING_LINE
        or line.strip().strip(mark)
        or len(line.strip()) < 3
    ):
        return 0
    title = title.strip()
    prose = title and title[0] not in "|>-*+=~" and len(title) <= _LONGEST_HEADING_LINE // 2
    return level if prose else 0


def split_sections(text: str) -> list[Section]:
    """Split a text before each heading; a heading without a body joins the next section."""
    return nest_sections(text, find_headings(text))


def nest_sections(text: str, headings: Iterable[Heading]) -> list[Section]:
    """Return the sections that begin at the given headings, with their paths by level."""
    found: list[Section] = []
    path: list[Heading] = []
    start = 0
    body = 0  # where the text after the last heading begins
    for heading in headings:
        if text[body : heading.start].strip():
            found.append(_make_section(start, heading.start, path))
            start = heading.start
        path = [one for one in path if one.level < heading.level]
        path.append(heading)
        body = heading.end
    found.append(_make_section(start, len(text), path))
    return found


def _make_section(start: int, end: int, path: list[Heading]) -> Section:
    named = [one for one in path if one.title]
    outer = sum(one.start < start for one in named)
    return Section(start, end, tuple(one.title for one in named), outer)


# -- blocks


class _Line(NamedTuple):
    start: int
    text: str
    indent: int  # in columns; -1 for a blank line

    @property
    def begin(self) -> int:
        """Where its first sign stands."""
        return self.start + len(self.text) - len(self.text.lstrip())

    @property
    def end(self) -> int:
        return self.start + len(self.text.rstrip())


def _runs_on(line: str, after: str, *, opens: bool) -> bool:
    """Whether a line is the beginning of a sentence that the next one goes on with: "It is the".

    With `opens` it is the first of a text, which may be cut from a paragraph anywhere: then a
    function word beside small letters tells, wherever it stands.
    """
    words = line.split()
    small = after[:1].islower()
    is_word = is_function_word(words[-1]) and not (words[-1].isupper() and len(words[-1]) > 1)
    if is_word and (len(words) >= _LEAST_CLAUSE_WORDS or (small and len(words) > 1)):
        return True
    if not (opens and small and line[:1].isupper() and not words[0][1:].isupper()):
        return False
    return any(map(is_function_word, (*words, after.split()[0])))


def find_outer_blocks(text: str) -> list[Block]:
    """Return the blocks of a text that lie within no other block."""
    return [one for one in find_blocks(text) if not one.depth]


def find_blocks(text: str) -> list[Block]:
    """Return the blocks of a text in order; blocks within a block follow it."""
    lines = []
    at = 0
    for line in text.split("\n"):
        end = at + len(line) + 1
        if line.startswith(_PAGE_BREAK):
            line, at = line[1:], at + 1
        bare = line.strip()
        margin = line[: len(line) - len(line.lstrip())]
        indent = len(margin.expandtabs(_TAB)) if bare else -1
        lines.append(_Line(at, line, indent))
        at = end
    return list(_BlockFinder(lines).find(0, len(lines), 0))


class _BlockFinder:
    """Finds blocks line by line; every line is looked at once for each depth."""

    def __init__(self, lines: list[_Line]) -> None:
        self._lines = lines

    def find(self, at: int, end: int, depth: int, base: int = 0) -> Iterator[Block]:
        """Yield the blocks of lines `at` to `end`; `base` is the indent of the text around."""
        after_blank = True
        while at < end:
            line = self._lines[at]
            if line.indent < 0:
                at, after_blank = at + 1, True
                continue
            block, after, inner = self._next_block(at, end, base, after_blank)
            if block.kind in ("paragraph", "heading"):
                base = line.indent
            yield Block(block.kind, block.start, block.end, block.title, depth)
            if inner and depth < _MAX_DEPTH:
                yield from self.find(inner, after, depth + 1, self._lines[inner].indent)
            if block.kind == "header":
                yield from self._rows(at + 2, after, depth)
            elif block.kind == "row":
                yield from self._rows(at + 1, after, depth)
            at, after_blank = max(after, at + 1), False

    def _next_block(
        self, at: int, end: int, base: int, after_blank: bool
    ) -> tuple[Block, int, int]:
        """Return the block at a line, the line after it, and where blocks within it begin."""
        line = self._lines[at]
        if fence := _FENCE.match(line.text):
            return self._fenced(at, end, fence[1])
        if _ATX.fullmatch(line.text):
            return Block("heading", line.start, line.end, line.text.strip("# \t")), at + 1, 0
        if at + 1 < end and _underline_level(line.text, self._lines[at + 1].text):
            closing = self._lines[at + 1]
            return Block("heading", line.start, closing.end, line.text.strip()), at + 2, 0
        if self._begins_table(at, end):
            return self._table(at, end)
        if term := self._term_lines(at, end):
            return self._definition(at, at + term, end)
        if found := _ITEM.match(line.text):
            after = self._body_end(at + 1, end, line.indent, lazy=True)
            marker = found["bullet"] or found["number"]
            return self._block("item", at, after, marker), after, self._inner(at, after)
        if told := self._term_of_line(at):
            after = self._body_end(at + 1, end, line.indent, lazy=True)
            return self._block("definition", at, after, told), after, self._inner(at, after)
        if after_blank and line.indent >= base + _CODE_INDENT and not self._is_prose(at, end):
            after = self._body_end(at + 1, end, line.indent - 1)
            return self._block("code", at, after), after, 0
        if self._is_hanging_term(at, end):
            return self._definition(at, at + 1, end)
        return self._paragraph(at, end)

    def _is_prose(self, at: int, end: int) -> bool:
        """Whether the lines up to a blank one are a sentence: a body that began before goes on."""
        after = at + 1
        while after < end and self._lines[after].indent >= 0:
            after += 1
        words = " ".join(line.text for line in self._lines[at : min(after, at + _MAX_TERM_LINES)])
        plain = sum(_PLAIN_WORD.fullmatch(word) is not None for word in words.split())
        ends = self._lines[after - 1].text.rstrip().endswith(_SENTENCE_ENDS)
        return ends and plain >= max(_LEAST_WORDS, _PLAIN_SHARE * len(words.split()))

    def _block(self, kind: BlockKind, at: int, after: int, title: str = "") -> Block:
        last = after - 1
        while last > at and self._lines[last].indent < 0:
            last -= 1
        return Block(kind, self._lines[at].begin, self._lines[last].end, title)

    def _inner(self, marked: int, after: int) -> int:
        """Return the first line within an item or a definition that begins another block.

        Lines that go on with the `marked` one, as they are wrapped, begin none; nor does code that
        begins on it.
        """
        first = marked + 1
        if opened := _OPENING_FENCE.match(self._lines[marked].text):
            first = min(self._fenced(marked, after, opened[1] or opened[2])[1], after)
        at, wrapped = first, self._lines[first].indent if first < after else -1
        while at < after and 0 <= self._lines[at].indent <= wrapped:
            if self._begins_block(at) or self._begins_table(at, after):
                return at
            if self._term_lines(at, after):
                return at
            at += 1
        while at < after and self._lines[at].indent < 0:
            at += 1
        return at if at < after else 0

    def _fenced(self, at: int, end: int, fence: str) -> tuple[Block, int, int]:
        after = at + 1
        while after < end and not self._lines[after].text.lstrip().startswith(fence):
            after += 1
        after = min(after + 1, end)
        return self._block("code", at, after), after, 0

    def _begins_table(self, at: int, end: int) -> bool:
        line = self._lines[at].text
        if "|" not in line:
            return False
        headed = at + 1 < end and _DELIMITER_ROW.fullmatch(self._lines[at + 1].text) is not None
        return headed or line.lstrip().startswith("|")

    def _table(self, at: int, end: int) -> tuple[Block, int, int]:
        after = at + 1
        while after < end and "|" in self._lines[after].text:
            after += 1
        headed = after > at + 1 and _DELIMITER_ROW.fullmatch(self._lines[at + 1].text) is not None
        line = self._lines[at]
        kind: BlockKind = "header" if headed else "row"
        return Block(kind, line.begin, line.end), after, 0

    def _rows(self, at: int, after: int, depth: int) -> Iterator[Block]:
        for line in self._lines[at:after]:
            yield Block("row", line.begin, line.end, "", depth)

    def _term_lines(self, at: int, end: int) -> int:
        """Return how many lines of terms stand before a line that begins with a colon, or 0."""
        for count in range(1, min(_MAX_TERM_LINES, end - at - 1) + 1):
            line = self._lines[at + count]
            if line.indent < 0:
                return 0
            if _COLON.match(line.text):
                return count
        return 0

    def _is_hanging_term(self, at: int, end: int) -> bool:
        """Whether a short line is followed at once by a deeper one: a term and its body."""
        line = self._lines[at]
        if at + 1 >= end or self._lines[at + 1].indent < line.indent + _HANGING_INDENT:
            return False
        bare = line.text.strip()
        if len(bare) > _MAX_TERM_CHARS or bare.endswith(_PROSE_END):
            return False
        return not _runs_on(bare, self._lines[at + 1].text.strip(), opens=at == 0)

    def _definition(self, at: int, body: int, end: int) -> tuple[Block, int, int]:
        indent = self._lines[at].indent
        after = self._body_end(body + 1, end, indent)
        title = ", ".join(line.text.strip() for line in self._lines[at:body])
        return self._block("definition", at, after, title), after, self._inner(body, after)

    def _body_end(self, at: int, end: int, indent: int, lazy: bool = False) -> int:
        """Return the line after a body; with `lazy`, lines that just go on need no indent."""
        blank = False
        while at < end:
            line = self._lines[at]
            if 0 <= line.indent <= indent and (blank or not lazy or self._begins_block(at)):
                return at
            blank = line.indent < 0
            at += 1
        return at

    def _term_of_line(self, at: int) -> str:
        """Return the term that a line begins with and tells of: one that is marked, an option, or
        what each of several lines is labelled with; "" of any other.
        """
        line = self._lines[at]
        if defined := _TERM_LINE.match(line.text):
            return defined["term"]
        if option := _OPTION_LINE.match(line.text):
            below = self._lines[at + 1].indent if at + 1 < len(self._lines) else -1
            told = option.end() > option.end("term") or below > line.indent
            return option["term"] if told else ""
        near = [self._lines[n].text for n in (at - 1, at + 1) if 0 <= n < len(self._lines)]
        label = _LABEL_LINE.fullmatch(line.text)
        return label["term"] if label and any(map(_LABEL_LINE.fullmatch, near)) else ""

    def _begins_block(self, at: int) -> bool:
        line = self._lines[at].text
        if not _ITEM.match(line):
            return bool(_ATX.fullmatch(line) or _FENCE.match(line) or self._term_of_line(at))
        before = self._lines[at - 1].text if at else ""
        if not before.strip():
            return True
        near = self._lines[max(0, at - _LIST_LINES) : at + _LIST_LINES]
        return not goes_on_with_number(before, line, "\n".join(one.text for one in near))

    def _paragraph(self, at: int, end: int) -> tuple[Block, int, int]:
        after = at + 1
        while after < end and self._lines[after].indent >= 0 and not self._begins_block(after):
            if self._begins_table(after, end) or self._term_lines(after, end) == 1:
                break
            after += 1
        return self._block("paragraph", at, after), after, 0


def find_item_term(text: str, block: Block) -> str:
    """Return what an item of a list defines: "- `term`: what it means", "- 24 - why", else ""."""
    marker = _ITEM.match(text, block.start) if block.kind == "item" else None
    if marker is None:
        return ""
    defined = _TERM_LINE.match(text, marker.end() - 1) or _CODE_ENTRY.match(text, marker.end() - 1)
    return defined["term"] if defined else ""
