"""Finds the defined terms of a PDF by where its lines stand, and writes them with their bodies.

A term has a line of its own above deeper ones, or stands in a line before a wide gap that ends
where such bodies begin. Its font is another one than that of the text, and three or more terms of
the document stand so: a single indent is no list of definitions.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from ctypes import byref, c_double, c_int, create_string_buffer
from itertools import pairwise
from typing import Any, NamedTuple

_LEAST_TERMS = 3  # that stand alike
_LEAST_INDENT, _MOST_INDENT = 1.5, 9.0  # of a body, times the size of its font
_NEAR = 2.0  # points by which lines of one column may differ
_WIDE_GAP = 1.0  # times the size of the font: a wider one parts a term from its body
_MAX_TERM_CHARS = 90
_MAX_TERM_WORDS = 8  # before the gap
_SAMPLES = 12  # characters of a line whose font is looked at
_FONT_NAME_BYTES = 128
_MAX_DEPTH = 4
_MAX_HEADER_LINES = 3  # at the top of a page, above what goes on
_INNER_CAPITAL = re.compile(r"[^\W\d_]{2,40}[A-Z][a-z]+")
_LEAST_GLUED = 2  # letters before the capital
_PROSE_END = (".", ",", ";", ":", "!", "?")
_INDENT = "    "


class _Line(NamedTuple):
    """Where a line begins, the size and the font of most of it, and its first wide gap."""

    left: float
    size: float
    font: str
    gap: int = 0  # the place in the line of what stands behind the gap, 0 without one …
    behind: float = 0.0  # … and where it stands
    head: str = ""  # the font before the gap


class PageLines(NamedTuple):
    """The lines of a page as they are read, and where each stands; None for blank ones."""

    lines: list[str]
    places: list[_Line | None]


class _Column(NamedTuple):
    term: float
    body: float


def measure_page(layer: Any, text: str, lines: Sequence[tuple[str, int]]) -> PageLines:
    """Return where the lines of a page stand that are lines of its text, by their numbers.

    Where pdfium added or left out characters, none is known.
    """
    found: list[_Line | None] = [None] * (text.count("\n") + 1)
    if len(text) == layer.count_chars():
        at = 0
        for number, line in enumerate(text.split("\n")):
            found[number] = _measure_line(layer, line, at) if line.strip() else None
            at += len(line) + 1
    places = [found[number] if number >= 0 else None for _, number in lines]
    return PageLines([line for line, _ in lines], places)


def _measure_line(layer: Any, line: str, start: int) -> _Line:
    from pypdfium2.raw import FPDFText_GetFontSize

    words = line.split()
    first = start + len(line) - len(line.lstrip())
    size = float(FPDFText_GetFontSize(layer.raw, first)) or 1.0
    at = line.index(words[0]) + len(words[0])
    for word in words[1:_MAX_TERM_WORDS]:
        begin = line.index(word, at)
        behind = _origin(layer, start + begin)
        if behind - layer.get_charbox(start + at - 1)[2] > _WIDE_GAP * size:
            font = _usual_font(layer, line[begin:], start + begin)
            head = _usual_font(layer, line[:at], start)
            return _Line(_origin(layer, first), size, font, begin, behind, head)
        at = begin + len(word)
    return _Line(_origin(layer, first), size, _usual_font(layer, line, start))


def find_glued_fonts(layer: Any, text: str) -> dict[str, str]:
    """Return the words of a page whose font changes at a capital within them, with a space there.

    "KDEThe": a name, and behind it without a gap the title in another font.
    """
    if len(text) != layer.count_chars():
        return {}
    found: dict[str, str] = {}
    for word in _INNER_CAPITAL.finditer(text):
        for at in range(word.start() + _LEAST_GLUED, word.end() - 1):
            changes = text[at].isupper() and text[at + 1].islower()
            if changes and _font_at(layer, at - 1) != _font_at(layer, at):
                found[word[0]] = f"{text[word.start() : at]} {text[at : word.end()]}"
                break
    return found


def _font_at(layer: Any, at: int) -> str:
    from pypdfium2.raw import FPDFText_GetFontInfo

    name = create_string_buffer(_FONT_NAME_BYTES)
    size = FPDFText_GetFontInfo(layer.raw, at, name, _FONT_NAME_BYTES, c_int())
    return name.value.decode("utf-8", "replace") if 0 < size <= _FONT_NAME_BYTES else ""


def _origin(layer: Any, at: int) -> float:
    from pypdfium2.raw import FPDFText_GetCharOrigin

    x, y = c_double(), c_double()
    FPDFText_GetCharOrigin(layer.raw, at, byref(x), byref(y))
    return x.value


def _usual_font(layer: Any, line: str, start: int) -> str:
    """Return the font of most letters of a line, by samples."""
    letters = [at for at, sign in enumerate(line) if sign.isalnum()]
    chosen = letters[:: max(1, len(letters) // _SAMPLES)]
    fonts = Counter(_font_at(layer, start + at) for at in chosen)
    return fonts.most_common(1)[0][0] if fonts else ""


def mark_terms(pages: Sequence[PageLines]) -> list[list[str]]:
    """Return the lines of each page; terms stand above their bodies, which begin with a colon."""
    fonts: Counter[str] = Counter()
    for page in pages:
        fonts.update(place.font for place in page.places if place is not None)
    body = fonts.most_common(1)[0][0] if fonts else ""
    seen = Counter(found for page in pages for found in _find_columns(page, body))
    columns = [one for one, count in seen.items() if count >= _LEAST_TERMS]
    if not columns:
        return [page.lines for page in pages]
    for page, after in pairwise(pages):
        _move_last_term(page, after, columns, body)
    writer = _Writer(columns, body)
    return [writer.write(page) for page in pages]


def _move_last_term(
    page: PageLines, after: PageLines, columns: Sequence[_Column], body: str
) -> None:
    """Put a term that a page ends with above its body, which begins the next page."""
    numbered = [at for at, place in enumerate(page.places) if place is not None]
    last = next((at for at in reversed(numbered) if not page.lines[at].strip().isdigit()), -1)
    place = page.places[last] if last >= 0 else None
    if place is None or place.font == body or place.gap or not _is_short_term(page.lines[last]):
        return
    bodies = [one.body for one in columns if abs(place.left - one.term) <= _NEAR]
    full = [at for at, below in enumerate(after.places) if below is not None]
    for at in full[: _MAX_HEADER_LINES + 1]:
        below = after.places[at]
        if below and below.font == body and any(abs(below.left - x) <= _NEAR for x in bodies):
            after.lines.insert(at, page.lines.pop(last))
            after.places.insert(at, page.places.pop(last))
            return


def _find_columns(page: PageLines, body: str) -> Iterator[_Column]:
    """Yield where terms that have a line of their own stand, and where their bodies do."""
    for at, place in enumerate(page.places[:-1]):
        below = page.places[at + 1]
        if place is None or below is None or place.font == body or below.font != body:
            continue
        if _is_short_term(page.lines[at]) and not place.gap:
            deeper = below.left - place.left
            if _LEAST_INDENT * place.size < deeper < _MOST_INDENT * place.size:
                yield _Column(round(place.left), round(below.left))


def _is_short_term(line: str) -> bool:
    bare = line.strip()
    return len(bare) <= _MAX_TERM_CHARS and not bare.endswith(_PROSE_END)


class _Writer:
    """Writes the lines of one page after the other; a definition may go on over the end of one."""

    def __init__(self, columns: Sequence[_Column], body: str) -> None:
        self._columns = columns
        self._font = body
        self._open: list[_Column] = []  # the definitions around the line, the outermost first

    def write(self, page: PageLines) -> list[str]:
        """Return the lines of a page with their marks."""
        found: list[str] = []
        skipped = self._count_header(page)
        after_term = False
        full = [at for at, line in enumerate(page.lines) if line.strip()]
        for at, (line, place) in enumerate(zip(page.lines, page.places, strict=True)):
            page_number = at in (full[:1] + full[-1:]) and line.strip().isdigit()
            if at < skipped or place is None or page_number:
                found.append(line)
                continue
            if after_term:
                found.append(f"{_INDENT * (len(self._open) - 1)}:   {line.strip()}")
                after_term = False
                continue
            self._close(place, found)
            column, same_line = self._find_column(page, at)
            margin = _INDENT * len(self._open)
            if column is None or len(self._open) >= _MAX_DEPTH:
                found.append(margin + line.strip() if self._open else line)
                continue
            self._open.append(column)
            term = line[: place.gap] if same_line else line
            found += [margin + term.strip()] if found[-1:] == [""] else ["", margin + term.strip()]
            if same_line:
                found.append(f"{margin}:   {line[place.gap :].strip()}")
            after_term = not same_line
        return found

    def _count_header(self, page: PageLines) -> int:
        """Return how many lines stand above the one that goes on with an open definition."""
        full = [at for at, place in enumerate(page.places) if place is not None]
        for number, at in enumerate(full[: _MAX_HEADER_LINES + 1]):
            place = page.places[at]
            if self._find_column(page, at)[0] is not None:
                return at if number else 0
            if place and self._open and abs(place.left - self._open[-1].body) <= _NEAR:
                return at if number else 0
        return 0

    def _close(self, place: _Line, found: list[str]) -> None:
        before = len(self._open)
        while self._open and place.left < self._open[-1].body - _NEAR:
            self._open.pop()
        if len(self._open) < before:
            found.append("")

    def _find_column(self, page: PageLines, at: int) -> tuple[_Column | None, bool]:
        """Return the column of which a line begins a definition, and whether its body does, too."""
        place = page.places[at]
        below = page.places[at + 1] if at + 1 < len(page.places) else None
        if place is None:
            return None, False
        for column in self._columns:
            if abs(place.left - column.term) > _NEAR:
                continue
            if place.gap and abs(place.behind - column.body) <= _NEAR:
                if place.head != self._font:
                    return column, True
            elif below is not None and abs(below.left - column.body) <= _NEAR:
                other = place.font != self._font == below.font
                if other and not place.gap and _is_short_term(page.lines[at]):
                    return column, False
        return None, False
