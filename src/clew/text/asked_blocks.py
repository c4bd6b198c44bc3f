"""Lines that ask or announce something, and the block under each that answers it.

A heading of any kind does, and so does a line of its own that is a question, in bold or behind
"Q:". Its block ends at the next line of its rank or above; that of a question at the next one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from clew.text.structure import find_headings

_MARKED = re.compile(r"[ \t]*(?:\*\*|__)(?P<title>[^*_\n]+)(?:\*\*|__):?[ \t]*")
_ASKING = re.compile(r"[ \t]*(?:[-*+•][ \t]+|\d{1,3}[.)][ \t]+)?[^\n]*[?？؟][*_\"”’)]*[ \t]*")
_LABEL = re.compile(r"^\W*(?:(?:q|question|frage)\s*\d*\s*[:.)]|\d{1,3}[.)])?\W*", re.IGNORECASE)
_QUESTION_END = re.compile(r"[?？؟]\W*$")
_OPEN_LINE = re.compile(r"[\w,]$")  # a line that a sentence is wrapped in
_MAX_LINE_CHARS = 200
_INNERMOST = 7  # level of a line that is no heading


@dataclass(frozen=True, slots=True)
class AskedBlock:
    """A line that asks or announces, and the span of the text under it."""

    start: int
    title: str
    level: int
    body: int
    end: int

    @property
    def asks(self) -> bool:
        """Whether the line is a question."""
        return is_question(self.title)

    @property
    def is_heading(self) -> bool:
        """Whether the line is a heading of the document's structure."""
        return self.level < _INNERMOST


def is_question(sentence: str) -> bool:
    """Whether a sentence asks, whatever marks it ends with."""
    return _QUESTION_END.search(sentence.rstrip()) is not None


def find_asked_blocks(text: str) -> list[AskedBlock]:
    """Return the lines that ask or announce something, each with what stands under it."""
    lines = sorted([*_find_headings(text), *_find_question_lines(text)])
    found = []
    for at, (start, body, level, title) in enumerate(lines):
        asks = is_question(title)
        after = (
            other[0]
            for other in lines[at + 1 :]
            if other[2] <= level or (asks and is_question(other[3]))
        )
        end = next(after, len(text))
        own = text[body:end]
        if own.strip():
            left, right = len(own) - len(own.lstrip()), len(own.rstrip())
            found.append(AskedBlock(start, title, level, body + left, body + right))
    return found


def _find_headings(text: str) -> Iterator[tuple[int, int, int, str]]:
    return ((one.start, one.end, one.level, one.title) for one in find_headings(text))


def _find_question_lines(text: str) -> Iterator[tuple[int, int, int, str]]:
    at, before = 0, ""
    for line in text.split("\n"):
        bare = line.strip()
        whole = _MARKED.fullmatch(line) or (
            _ASKING.fullmatch(line) and not _OPEN_LINE.search(before)
        )
        if whole and len(bare) <= _MAX_LINE_CHARS and not bare.startswith(("#", "|", ">")):
            title = _LABEL.sub("", bare.strip("*_ \t"), count=1).strip("*_ \t")
            yield at, min(len(text), at + len(line) + 1), _INNERMOST, title
        at, before = at + len(line) + 1, bare
