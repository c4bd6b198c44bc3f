"""Joins the pages of a paged text: running headers, footers and tables of contents are left out.

Lines in a larger font than most of the text are its headings, where nothing else names them.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

_EDGE_LINES = 3  # lines at the top and at the bottom of a page that may be repeated
_LEAST_REPEATS = 3
_LEAST_SHARE = (
    0.25  # of the pages; headers of chapters change, those of left and right pages differ
)
_NUMBER = re.compile(r"\d+|\b[ivxlc]+\b")
_LEADER = re.compile(r".*?\S.*?(?:\.[ \t]?){4,}[ \t]*(?:\d{1,4}|[ivxlc]{1,7})?[ \t]*")
_INDEX_LINE = re.compile(r".{2,70}?(?:,? (?:\d{1,4}|see(?: also)? .+))(?:[,–-] ?\d{1,4})*[ \t]*")
_CONTENTS_LINE = re.compile(r".{2,100}?[ .\t…]\d{1,4}[ \t]*")
_LEAST_CONTENTS_LINES = 3
_LISTING_SHARE = 0.7  # of a page's lines: such a page is an index or a table of contents
_LEAST_LISTING_LINES = 10
_SENTENCE_ENDS = (".", "!", "?", ":", ";", "。", "！", "？", "”", '"', ")")

Bookmark = tuple[int, int, str]  # page from 0, level from 1, title
_LARGER = 1.15  # times the size of most of the text
_MAX_HEADING_CHARS = 120
_MAX_HEADING_SHARE = 0.15  # of the lines: where more are large, the font says nothing
_MAX_LEVELS = 3


class SizedLine(NamedTuple):
    """A line of a page (from 0) and the size of its font."""

    page: int
    size: float
    text: str


def find_large_lines(lines: Sequence[SizedLine]) -> list[Bookmark]:
    """Return the lines in a larger font than most text, as bookmarks; the largest come first."""
    characters: Counter[float] = Counter()
    for line in lines:
        characters[line.size] += len(line.text)
    if not characters:
        return []
    body = characters.most_common(1)[0][0]
    large = [
        line
        for line in lines
        if line.size >= _LARGER * body
        and len(line.text) <= _MAX_HEADING_CHARS
        and sum(map(str.isalpha, line.text)) >= 3
        and not line.text.endswith((".", ",", ";"))
        and not _LEADER.fullmatch(line.text)
    ]
    repeated = Counter(line.text for line in large)
    large = [line for line in large if repeated[line.text] <= 2]  # others are running headers
    if len(large) > _MAX_HEADING_SHARE * len(lines):
        return []
    sizes = sorted({line.size for line in large}, reverse=True)
    level = {size: min(at + 1, _MAX_LEVELS) for at, size in enumerate(sizes)}
    return [(line.page, level[line.size], line.text) for line in large]


def strip_running_lines(pages: Sequence[str]) -> list[str]:
    """Remove lines at the edges of pages that are repeated, except for their numbers."""
    split = [page.split("\n") for page in pages]
    tops: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    for lines in split:
        tops.update({_key(line) for line in _edge(lines)})
        ends.update({_key(line) for line in _edge(lines[::-1])})
    full = sum(bool(page.strip()) for page in pages)
    least = max(min(_LEAST_REPEATS, full), full * _LEAST_SHARE / 2)
    found = []
    for lines in split:
        kept = _drop_edge(lines, tops, least)
        kept = _drop_edge(kept[::-1], ends, least)[::-1]
        found.append("\n".join(kept).strip("\n"))
    return found if any(found) else list(pages)  # pages that are all alike are no headers


def _edge(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.strip()][:_EDGE_LINES]


def _key(line: str) -> str:
    return _NUMBER.sub("#", " ".join(line.casefold().split()))


def _drop_edge(lines: list[str], counts: Counter[str], least: float) -> list[str]:
    """Drop the repeated lines at the beginning, and page numbers that stand alone."""
    at = 0
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        key = _key(line)
        if counts[key] >= least and (len(key) > 1 or key == "#"):
            at = number + 1
        else:
            break
    return lines[at:]


def join_pages(pages: Sequence[str], separator: str) -> tuple[str, list[int]]:
    """Join pages by a separator, and return where each begins; a sentence may go on over an end."""
    pieces: list[str] = []
    starts: list[int] = []
    at = 0
    for page in pages:
        if pieces:
            gap = "\n" if _goes_on(pieces[-1], page) else "\n\n"
            pieces.append(gap + separator)
            at += len(pieces[-1])
        starts.append(at)
        pieces.append(page)
        at += len(page)
    return "".join(pieces), starts


def _goes_on(before: str, after: str) -> bool:
    """Whether a sentence is cut by the end of a page."""
    end, begin = before.rstrip(), after.lstrip()
    return bool(end and begin) and not end.endswith(_SENTENCE_ENDS) and begin[0].islower()


def drop_contents(text: str) -> str:
    """Remove the lines of a table of contents: those whose dots lead to a page number."""
    if ". . ." not in text and "...." not in text:
        return text
    lines = text.split("\n")
    marked = [len(line) < 300 and _LEADER.fullmatch(line) is not None for line in lines]
    if sum(marked) < _LEAST_CONTENTS_LINES:
        return text
    return "\n".join(line for line, is_listed in zip(lines, marked, strict=True) if not is_listed)


def is_listing(page: str) -> bool:
    """Whether a page is one of an index or of a table of contents: most lines end in numbers."""
    lines = [line.strip() for line in page.split("\n") if line.strip()]
    if len(lines) < _LEAST_LISTING_LINES:
        return False
    listed = sum(
        len(line) < 200
        and (_INDEX_LINE.fullmatch(line) or _CONTENTS_LINE.fullmatch(line)) is not None
        and any(map(str.isalpha, line))
        for line in lines
    )
    return listed >= _LISTING_SHARE * len(lines)
