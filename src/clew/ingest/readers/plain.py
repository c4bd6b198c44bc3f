"""Reads plain text; numbered, underlined and capital lines of manuals and contracts are headings.

A text without pages and headings stays as it is. Of a paged one (RFCs, printed manuals) the running
headers, footers and the table of contents are left out.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, pairwise

from clew.ingest.readers.decode import decode
from clew.ingest.readers.numbered_headings import (
    LEAST_HEADINGS,
    find_numbered_headings,
    measure_width,
    read_number,
    stands_alone,
)
from clew.ingest.readers.pages import contents_title, drop_contents, join_pages, strip_running_lines
from clew.ingest.readers.pdf_words import Vocabulary, join_hyphenated
from clew.ingest.readers.printed_manual import find_manual_title, tidy_printed_manual
from clew.ingest.readers.questions import mark_questions
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, make_document, read_bytes
from clew.ingest.readers.text import first_line_title, text_metadata
from clew.ingest.readers.text_contents import drop_listed_contents
from clew.ingest.readers.text_tables import mark_text_tables
from clew.ingest.readers.text_terms import mark_text_terms
from clew.text.structure import split_sections
from clew.text.unicode import clean
from clew.types import Document

_UNDERLINE = re.compile(r"([=\-~*^#])\1{2,}[ \t]*")
_CAPITALS = re.compile(r"[^\W\d_a-z][^\na-z]{2,60}")
_SENTENCE_MARK = re.compile(
    r"[。！？；，、](?!\Z)|[。；，、]\Z"
)  # no heading in a script without capitals
_LABELLED = re.compile(r"[^:]{1,40}:\s|\S(?:\t| {3,})\S")
_PAGE_END = re.compile(r"^.*\[Page \d{1,4}\][ \t]*$", re.MULTILINE)  # of standards
_INDENTED_SHARE = (
    0.6  # of the lines: then those at the margin that are written in capitals are headings
)
_MAX_MARGIN = 8  # columns that the text of all sections is set in
_TITLE_SEARCH_LINES, _TITLE_MARGIN, _PAGE_WIDTH = 60, 8, 72
_CUT = "\N{HYPHEN}"


def read_plain_text(source: SourceFile, budget: ReadBudget) -> Iterator[Document | Skipped]:
    """Read a text; its title is a short first line on its own, or a centred line."""
    text, encoding = decode(read_bytes(source, budget))
    text = clean(text)
    manual = find_manual_title(text)
    text = tidy_printed_manual(text)
    listed = mark_text_terms(fence_drawings(mark_text_tables(tidy_pages(text))))
    tidied = drop_margin(mark_headings(_join_cut_words(listed)))
    title = manual or _find_title(text, tidied)
    tidied = mark_questions(tidied)
    yield make_document(tidied, title, source.name, text_metadata("text", encoding))


def _join_cut_words(text: str) -> str:
    """Join words that a formatter cut at a line end; only those write a hyphen of its own kind."""
    if f"{_CUT}\n" not in text:
        return text
    return join_hyphenated(text, Vocabulary([text.replace(_CUT, "-")]), _CUT)


def tidy_pages(text: str) -> str:
    """Join the pages of a text with form feeds; others are returned as they are."""
    pages = text.split("\f")
    if len(pages) < 2:
        pages = _split_at_page_numbers(text)
    if len(pages) < 2:
        return drop_listed_contents(drop_contents(text))
    pages = [_PAGE_END.sub("", page) if "[Page " in page else page for page in pages]
    joined, _ = join_pages(strip_running_lines(pages), "")
    return (
        re.sub(r"\n{4,}", "\n\n\n", drop_listed_contents(drop_contents(joined))).strip("\n") or text
    )


def _split_at_page_numbers(text: str) -> list[str]:
    """Split a text whose form feeds were lost after the lines that end in `[Page 3]`."""
    ends = [found.end() for found in _PAGE_END.finditer(text)]
    if len(ends) < 2:
        return [text]
    bounds = [0, *ends, len(text)]
    return [text[a:b] for a, b in pairwise(bounds) if text[a:b].strip()]


def mark_headings(text: str) -> str:
    """Mark headings with `#`: underlined ones, numbered ones in order, or lines in capitals."""
    lines = text.split("\n")
    underlined = _underlined_headings(lines)
    joined, numbered = find_numbered_headings(lines)
    if len(underlined) >= max(2, len(numbered)):
        lines = ["" if at - 1 in underlined else line for at, line in enumerate(lines)]
        return _mark_lines(lines, underlined)
    if numbered:
        lines, numbered = _drop_listed(joined, numbered)
    levels = numbered or _capital_headings(lines)
    return _mark_lines(lines, levels) if len(levels) >= LEAST_HEADINGS else text


def drop_margin(text: str) -> str:
    """Remove the margin that most sections below headings have, as RFCs and printed manuals do.

    A sentence that begins within a line then stands above lines that are no deeper.
    """
    parts = [text[one.start : one.end] for one in split_sections(text)]
    margins = list(map(_find_margin, parts))
    held = Counter(one for one in margins if one >= 0)
    margin = held.most_common(1)[0][0] if held else 0
    deep = sum(one >= margin for one in margins)
    if not 0 < margin <= _MAX_MARGIN or deep < max(LEAST_HEADINGS, _INDENTED_SHARE * held.total()):
        return text
    blank = re.compile(rf"^ {{{margin}}}", re.MULTILINE)
    return "".join(
        blank.sub("", part) if own >= margin else part
        for part, own in zip(parts, margins, strict=True)
    )


def _find_margin(text: str) -> int:
    """Return how deep all lines stand that are no headings and no rows; -1 if there are none."""
    lines = [line for line in text.split("\n") if line.strip() and line[0] not in "#|"]
    return min((len(line) - len(line.lstrip(" ")) for line in lines), default=-1)


def _drop_listed(lines: list[str], levels: dict[int, int]) -> tuple[list[str], dict[int, int]]:
    """Drop a table of contents: lines in a row before the headings that only repeat them."""
    titles = {" ".join(lines[at].split()) for at in levels}
    first, listed = min(levels), list[int]()
    for at, line in enumerate(lines[:first]):
        if " ".join(line.split()) in titles:
            listed.append(at)
        elif line.strip() and len(listed) < LEAST_HEADINGS:
            listed.clear()
        elif line.strip():
            break
    if len(listed) < LEAST_HEADINGS:
        return lines, levels
    gone = set(listed)
    if (title := contents_title(lines, listed[0])) is not None:
        gone.add(title)
    kept = [at for at in range(len(lines)) if at not in gone]
    moved = {new: levels[old] for new, old in enumerate(kept) if old in levels}
    return [lines[at] for at in kept], moved


def _mark_lines(lines: list[str], levels: dict[int, int]) -> str:
    return "\n".join(
        f"{'#' * levels[at]} {' '.join(line.split())}" if at in levels else line
        for at, line in enumerate(lines)
    )


def _underlined_headings(lines: list[str]) -> dict[int, int]:
    """Return the level of each short line with a line of marks below; a new mark goes deeper."""
    marks: list[str] = []
    found: dict[int, int] = {}
    for at, (line, below) in enumerate(pairwise(lines)):
        under = _UNDERLINE.fullmatch(below) if below[:1] in "=-~*^#" else None
        blank = at == 0 or not lines[at - 1].strip()
        if under is None or not blank or not line[:1].strip() or len(line) > 100:
            continue
        if "  " in line.strip():  # the columns of a table
            continue
        if len(below.rstrip()) >= len(line.rstrip()) / 2 and not _UNDERLINE.fullmatch(line):
            marks += [] if under[1] in marks else [under[1]]
            found[at] = min(marks.index(under[1]) + 1, 6)
    return found


def _capital_headings(lines: list[str]) -> dict[int, int]:
    """Return the lines in capitals at the margin that stand alone, or above indented text."""
    full = [line for line in lines if line.strip()]
    indented = sum(line[0] in " \t" for line in full)
    if not full or indented < _INDENTED_SHARE * len(full):
        alone = [
            at
            for at, line in enumerate(lines)
            if _is_capital(line.rstrip()) and stands_alone(lines, at)
        ]
        # Where every other line is in capitals, they are no headings.
        opening = next(at for at, line in enumerate(lines) if line.strip()) if full else 0
        return {at: 1 + (at != opening) for at in alone if 3 * len(alone) <= 2 * len(full)}
    return {
        at: 2
        for at, line in enumerate(lines)
        if line[:1].strip()
        and _is_capital(line.rstrip())
        and (at == 0 or not lines[at - 1].strip())
        and (at + 1 >= len(lines) or not lines[at + 1].strip() or lines[at + 1][0] in " \t")
    }


def _is_capital(line: str) -> bool:
    """Whether a line is in capitals, or short and no sentence in a script without them."""
    if _CAPITALS.fullmatch(line) is None or line != line.upper():
        return False
    return any(map(str.isupper, line)) or _SENTENCE_MARK.search(line) is None


def _find_title(text: str, tidied: str) -> str:
    """Return the title of a text: its first line, or the first centred ones where that is none.

    One that only labels ("RFC: 791", "RFC 907") or has columns is no title of a printed text.
    """
    first = first_line_title(text)
    counted = read_number(first)
    labels = _LABELLED.search(first) or (counted and not counted[2])
    if tidied == text or (first and not labels):
        return first
    return _centred_title(text) or first


def _centred_title(text: str) -> str:
    """Return the first centred lines that stand alone near the beginning, or ""."""
    lines = [line.rstrip() for line in text.split("\n", _TITLE_SEARCH_LINES)[:_TITLE_SEARCH_LINES]]
    for at, line in enumerate(lines):
        left = len(line) - len(line.lstrip())
        right = _PAGE_WIDTH - measure_width(line)
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


# -- diagrams drawn with signs: boxes, arrows, fields of bits
#
# A run of lines without a blank one in which at least one is nothing but a drawn rule (`+-+-+`,
# `+-----+`), and the others have borders, arrows, or only numbers (the ruler above bits).

_DRAWN_RULE = re.compile(r"[ \t]*[+|.'`,:][-=~_.:*^v<>/\\|+'`, \t]{2,}[ \t]*")
_JOINTS = re.compile(r"[+|.'`][-=~]{1,}[+|.'`]")
_BORDERED = re.compile(r"[ \t]*[|+].*|.*[|+][ \t]*|.*(?:--+[>|+]|<--|[|+]--).*")
_RULER = re.compile(r"[ \t]*\d+(?:[ \t]+\d+)+[ \t]*")
_LEAST_LINES = 3
_MAX_LINE = 200  # characters


def find_drawings(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of drawings, in whole lines."""
    if "--" not in text and "-+" not in text:
        return
    lines: list[tuple[int, str]] = []
    at = 0
    for line in text.split("\n"):
        lines.append((at, line))
        at += len(line) + 1
    for is_drawn, group in groupby(lines, key=lambda one: _is_drawn(one[1])):
        run = list(group)
        ruled = any(_is_rule(line) for _, line in run) if is_drawn else False
        if ruled and len(run) >= _LEAST_LINES:
            yield run[0][0], run[-1][0] + len(run[-1][1])


def _is_rule(line: str) -> bool:
    return _DRAWN_RULE.fullmatch(line) is not None and _JOINTS.search(line) is not None


def _is_drawn(line: str) -> bool:
    if not line.strip() or len(line) > _MAX_LINE:
        return False
    return any(one.fullmatch(line) for one in (_RULER, _BORDERED)) or _is_rule(line)


def fence_drawings(text: str) -> str:
    """Return a text with its drawings as blocks of code."""
    pieces, done = [], 0
    for start, end in find_drawings(text):
        if text.count("```", 0, start) % 2:
            continue
        pieces += [text[done:start], "```\n", text[start:end], "\n```"]
        done = end
    return "".join([*pieces, text[done:]])
