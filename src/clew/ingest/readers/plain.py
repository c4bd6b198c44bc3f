"""Reads plain text; numbered and capital headings of manuals and standards become headings.

A text without pages and headings stays as it is. Of a paged one (RFCs, printed manuals) the running
headers, footers and the table of contents are left out.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from clew.ingest.readers.decode import decode
from clew.ingest.readers.pages import drop_contents, join_pages, strip_running_lines
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, make_document, read_bytes
from clew.ingest.readers.text import first_line_title, text_metadata
from clew.text.unicode import clean
from clew.types import Document

_NUMBERED = re.compile(
    r"(?:(?P<number>\d{1,2}(?:\.\d{1,3}){0,5})\.?|(?P<letter>[A-Z](?:\.\d{1,3}){1,4})\.?|"
    r"(?P<appendix>Appendix [A-Z])[.:]?)[ \t]+(?P<title>\S.{0,90})"
)
_CAPITALS = re.compile(r"[^\W\d_a-z][^\na-z]{2,60}")
_LEAST_HEADINGS = 3
_INDENTED_SHARE = (
    0.6  # of the lines: then those at the margin that are written in capitals are headings
)
_TITLE_SEARCH_LINES, _TITLE_MARGIN, _PAGE_WIDTH = 60, 8, 72
_PROSE_END = (".", ",", ";", ":")


def read_plain_text(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a text; its title is a short first line on its own, or a centred line."""
    text, encoding = decode(read_bytes(source, budget))
    text = clean(text)
    title = first_line_title(text)
    tidied = mark_headings(tidy_pages(text))
    if tidied != text:
        title = _centred_title(text) or title
    yield make_document(tidied, title, source.name, text_metadata("text", encoding))


def tidy_pages(text: str) -> str:
    """Join the pages of a text with form feeds; others are returned as they are."""
    pages = text.split("\f")
    if len(pages) < _LEAST_HEADINGS:
        return text
    joined, _ = join_pages(strip_running_lines(pages), "")
    return re.sub(r"\n{4,}", "\n\n\n", drop_contents(joined)).strip("\n") or text


def mark_headings(text: str) -> str:
    """Mark numbered headings in order, and lines in capitals above indented text, with `#`."""
    lines = text.split("\n")
    numbered = _numbered_headings(lines)
    capitals = _capital_headings(lines) if not numbered else {}
    levels = numbered or capitals
    if len(levels) < _LEAST_HEADINGS:
        return text
    return "\n".join(
        f"{'#' * levels[at]} {' '.join(line.split())}" if at in levels else line
        for at, line in enumerate(lines)
    )


def _stands_alone(lines: list[str], at: int) -> bool:
    before = at == 0 or not lines[at - 1].strip()
    return before and (at + 1 >= len(lines) or not lines[at + 1].strip())


def _numbered_headings(lines: list[str]) -> dict[int, int]:
    """Return the level of each numbered heading: numbers must follow each other."""
    found: dict[int, int] = {}
    last: tuple[int, ...] = ()
    for at, line in enumerate(lines):
        if not line[:1].strip() or len(line) > 110:
            continue
        match = _NUMBERED.fullmatch(line.rstrip())
        if match is None or not _stands_alone(lines, at) or match["title"].endswith(_PROSE_END):
            continue
        if match["number"]:
            number = tuple(int(part) for part in match["number"].split("."))
            if not _follows(last, number):
                continue
            last = number
            found[at] = min(len(number) + 1, 6)
        elif found:
            dots = (match["letter"] or "").count(".")
            found[at] = min(dots + 2, 6)
    ends = [*found, len(lines)]
    with_text = sum(any(map(str.strip, lines[a + 1 : b])) for a, b in pairwise(ends))
    return found if 2 * with_text >= len(found) >= _LEAST_HEADINGS else {}


def _follows(last: tuple[int, ...], number: tuple[int, ...]) -> bool:
    """Whether a number comes next: one more on some level, or the first of a deeper one."""
    if not last:
        return number in {(1,), (0,), (1, 0), (1, 1)}
    if len(number) > len(last):
        return number[: len(last)] == last and number[len(last) :] in {(1,), (0,), (1, 1)}
    same = number[:-1] == last[: len(number) - 1]
    return same and last[len(number) - 1] < number[-1] <= last[len(number) - 1] + 2


def _capital_headings(lines: list[str]) -> dict[int, int]:
    """Return the lines in capitals at the margin, where nearly all other lines are indented."""
    full = [line for line in lines if line.strip()]
    indented = sum(line[0] in " \t" for line in full)
    if not full or indented < _INDENTED_SHARE * len(full):
        return {}
    return {
        at: 2
        for at, line in enumerate(lines)
        if line[:1].strip()
        and _CAPITALS.fullmatch(line.rstrip())
        and (at == 0 or not lines[at - 1].strip())
        and (at + 1 >= len(lines) or not lines[at + 1].strip() or lines[at + 1][0] in " \t")
    }


def _centred_title(text: str) -> str:
    """Return the first centred lines that stand alone near the beginning, or ""."""
    lines = [line.rstrip() for line in text.split("\n", _TITLE_SEARCH_LINES)[:_TITLE_SEARCH_LINES]]
    for at, line in enumerate(lines):
        left = len(line) - len(line.lstrip())
        right = _PAGE_WIDTH - len(line)
        if left < _TITLE_MARGIN or abs(left - right) > _TITLE_MARGIN:
            continue
        if at and lines[at - 1].strip():
            continue
        title = [line.strip()]
        for other in lines[at + 1 : at + 3]:
            if other.strip() and len(other) - len(other.lstrip()) >= _TITLE_MARGIN // 2:
                title.append(other.strip())
            else:
                break
        return " ".join(title)
    return ""
