"""Headings and sections of Markdown and reStructuredText."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(\S.*))?")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_UNDERLINE_LEVELS = {"=": 1, "-": 2, "~": 3}
_LONGEST_HEADING_LINE = 200


@dataclass(frozen=True, slots=True)
class Section:
    """A span that begins with its headings; `heading` is its heading path, `A > B`."""

    start: int
    end: int
    heading: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of one line (two if underlined) with its level from 1."""

    start: int
    end: int
    level: int
    title: str


def split_sections(text: str) -> list[Section]:
    """Split a text before each heading; a heading without a body joins the next section."""
    found: list[Section] = []
    path: list[tuple[int, str]] = []
    start = 0
    body = 0  # where the text after the last heading begins
    for heading in find_headings(text):
        if text[body : heading.start].strip():
            found.append(Section(start, heading.start, _join_path(path)))
            start = heading.start
        path = [(level, title) for level, title in path if level < heading.level]
        path.append((heading.level, heading.title))
        body = heading.end
    found.append(Section(start, len(text), _join_path(path)))
    return found


def _join_path(path: list[tuple[int, str]]) -> str:
    return " > ".join(title for _, title in path)


def find_headings(text: str) -> Iterator[Heading]:
    """Yield the headings outside of code blocks."""
    at = before_at = 0
    before = fence = ""
    for line in text.split("\n"):
        end = at + len(line) + 1
        opened = _FENCE.match(line)
        if opened and (not fence or fence == opened[1]):
            fence = "" if fence else opened[1]
        if fence or opened:
            before = ""
        elif (atx := _ATX.fullmatch(line)) and len(line) <= _LONGEST_HEADING_LINE:
            yield Heading(at, end, len(atx[1]), (atx[2] or "").rstrip("# \t"))
            before = ""
        elif level := _underline_level(before, line):
            yield Heading(before_at, end, level, before.strip())
            before = ""
        else:
            before, before_at = line, at
        at = end


def _underline_level(title: str, line: str) -> int:
    """Return the level of a title underlined with `=`, `-` or `~`; 0 if it is no heading."""
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
