"""Where a text begins anew: sentences, items, cells, definitions, quotations, lines of their own.

A word there has its capital from its place, and need not be a name; nor need the first word of a
heading where the text mentions it: "see Handling bugs" names a section, and no Handling. Only
headings written like sentences are meant; "Mail Transfer Agents" may be a name.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.text.names import Tokens, tokenize

_HEADING = re.compile(
    r"^\f? {0,3}#{1,6}[ \t]+(?:(?:\w+[ \t]+)?\d{1,3}(?:\.\d{1,3})*[.:]?[ \t]+)?(\S.*)$",
    re.MULTILINE,
)
_MOST_WORDS = 12  # of a heading that are compared
# What is before the first word of an item, a cell, a definition or a quotation.
_OPENING = re.compile(r"(?:^[ \t]*(?:[-*+•|>#]+|:|\d{1,3}[.)])[ \t]+|\|[ \t]+|[(:\"“„«>][ \t]*)$")
_CLOSING = ('"', "”", "“", "»")  # behind a word that is quoted alone
_LINE_ENDS = (";", ":", "{", "}")  # of a line of code, or of one that announces the next
# A line of a small term and what it is, "mkswap Command to set up"; a clause behind a semicolon.
_EXPLAINED_LINE = re.compile(
    r"^[ \t]*[a-z][\w.*/+-]*[ \t]+([^\W\d_a-z]\w*)[ \t]+\(?[a-z][^\n]*$(?:\n[ \t]+\([^\n]*$)?",
    re.MULTILINE,
)
_ASIDE = re.compile(r"(?:;|\)[ \t]+[–—])[ \t\n]+([^\W\d_a-z][a-z]+)[ \t\n]+(?=[a-z]{3,}\s)")
_LEAST_ROWS = 3
_MAX_MARK_CHARS = 12  # of the mark before an item
_NUMBERED = re.compile(
    r"\f?(?:#{1,6}[ \t]+)?[ \t]*\(?(?:\d{1,3}(?:\.\d{1,3})*[.)]?|[IVX]{2,}[.)])[ \t]+"
)
_LETTERED = re.compile(r"^[ \t\f]*\(?([A-Za-z])([.)])[ \t]+(?=\S)", re.MULTILINE)
_LEAST_LETTERED = 3
_ITEM_MARK = re.compile(r"[ \t]*(?:[-*+•>]|\(?\w{1,3}[.)])[ \t]")
_COLUMN_GAP = 3  # blanks that part columns; two do behind a single word
_DEEPER = 2  # columns by which a body stands below its term
_FULL_LINE = 0.8  # of the width: a shorter line is ended on purpose


def opening_tokens(text: str, t: Tokens, sentences: list[tuple[int, int]]) -> set[int]:
    """Return the tokens that begin a sentence, an item, a cell, a definition or a quotation."""
    found = {bisect_left(t.starts, start) for start, _ in sentences}
    found.update(at + 1 for at in find_lettered(text, t))
    for at, (end, start) in enumerate(zip([0, *t.ends], t.starts, strict=False)):
        if start - end > 1:
            before = text[end:start]
            above, _, margin = before.rpartition("\n")
            code = not margin.strip() and above.rstrip().endswith(_LINE_ENDS)
            cell = before[:1] == "." and _is_row(text, end) and len(t.keys[at - 1]) > 1
            column = t.upper[at] and _begins_column(text, end, start)
            opened = _OPENING.search(margin) is not None and not text.startswith(
                _CLOSING, t.ends[at]
            )
            if code or cell or column or opened:
                found.add(at)
    found.update(_find_line_openers(text, t))
    found.update(_find_explained(text, t))
    line = 0
    while line >= 0:
        at = bisect_left(t.starts, line)
        line_end = text.find("\n", line)
        last = min(line + _MAX_MARK_CHARS - (line > 0), line_end if line_end >= 0 else len(text))
        while at < len(t) and t.starts[at] <= last:
            if _NUMBERED.fullmatch(text, line, t.starts[at]):
                found.add(at)
            at += 1
        line = line_end + 1 if line_end >= 0 else -1
    return found


def _begins_column(text: str, end: int, start: int) -> bool:
    """Whether a wide gap is before a word, or a lesser one behind a term alone."""
    gap, line = text[end:start], text[text.rfind("\n", 0, end) + 1 : end].strip()
    if gap.strip() or "\n" in gap:
        return False
    wide = len(gap) >= _COLUMN_GAP or "\t" in gap
    return wide or (len(gap) == _COLUMN_GAP - 1 and len(line.split()) == 1)


def _find_line_openers(text: str, t: Tokens) -> Iterator[int]:
    """Yield the first words of lines that would have had room in the line before.

    So a line is ended on purpose, and not because it is full. A deeper line that follows an item
    goes on with it.
    """
    lines = text.split("\n")
    lengths = sorted(len(line) for line in lines if line.strip())
    width = lengths[len(lengths) * 9 // 10] if len(lengths) > 1 else 0
    start = 0
    before = ""
    for line in lines:
        bare = line.strip()
        if before.strip() and bare[:1].isupper():
            deeper = _indent(line) - _indent(before) >= _DEEPER
            room = width if deeper else _FULL_LINE * width
            fits = len(before.rstrip()) + 1 + len(bare.split()[0]) <= room
            if fits and not (deeper and _ITEM_MARK.match(before)):
                yield bisect_left(t.starts, start + _indent(line))
        start += len(line) + 1
        before = line


def _find_explained(text: str, t: Tokens) -> Iterator[int]:
    """Yield the words with a capital that explain a small term before them, in rows of such lines.

    So do those behind a semicolon or a dash, if the sentence goes on: "; Traditionally this".
    """
    rows = [found for found in _EXPLAINED_LINE.finditer(text)]
    for at, found in enumerate(rows):
        around = rows[max(0, at - _LEAST_ROWS + 1) : at + _LEAST_ROWS]
        joined = sum(
            not text[one.end() : other.start()].strip("\n \t")
            for one, other in zip(around, around[1:], strict=False)
        )
        if joined >= _LEAST_ROWS - 1:
            yield bisect_left(t.starts, found.start(1))
    for found in _ASIDE.finditer(text):
        yield bisect_left(t.starts, found.start(1))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_row(text: str, at: int) -> bool:
    """Whether a character stands in a row of a table, which is split into no sentences."""
    return text.startswith("|", text.rfind("\n", 0, at) + 1)


def find_lettered(text: str, t: Tokens, letters: frozenset[str] = frozenset()) -> set[int]:
    """Return the tokens that are letters of items, given those of the document's lists."""
    known = {found.start(1) for found in _LETTERED.finditer(text) if found[1] in letters}
    return {bisect_left(t.starts, start) for start in known | find_letter_marks(text)}


def find_letter_marks(text: str) -> set[int]:
    """Return where single letters count the items of a list, three or more in a row: "K. For".

    They are no initials.
    """
    marks = [(found.start(1), found[1], found[2]) for found in _LETTERED.finditer(text)]
    run: list[int] = []
    found: set[int] = set()
    for at, (start, letter, closing) in enumerate(marks):
        _, last, same = marks[at - 1] if run else (0, "", closing)
        goes_on = closing == same and last and ord(letter) == ord(last) + 1
        run = [*run, start] if goes_on else [start]
        if len(run) >= _LEAST_LETTERED:
            found.update(run)
    return found


@dataclass(frozen=True, slots=True)
class SentenceHeadings:
    """The words of the headings that are written like sentences, by their first one."""

    by_first: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)

    def find(self, t: Tokens) -> set[int]:
        """Return the tokens with a capital where the words of a heading begin."""
        found = set()
        for at, key in enumerate(t.keys if self.by_first else ()):
            if t.upper[at] and key in self.by_first:
                own = self.by_first[key]
                if any(tuple(t.keys[at : at + len(words)]) == words for words in own):
                    found.add(at)
        return found


def learn_headings(text: str) -> SentenceHeadings:
    """Learn the headings of two words and more whose second word is written small."""
    by_first: dict[str, list[tuple[str, ...]]] = {}
    for found in _HEADING.finditer(text) if "#" in text else ():
        t = tokenize(found[1])
        if len(t) > 1 and t.upper[0] and not t.upper[1] and not t.digit[1]:
            by_first.setdefault(t.keys[0], []).append(tuple(t.keys[:_MOST_WORDS]))
    return SentenceHeadings(by_first)
