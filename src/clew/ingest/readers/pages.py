"""Joins the pages of a paged text: running headers, footers and tables of contents are left out.

Lines in a larger font than most of the text are its headings, where nothing else names them.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from clew.text.sentences import goes_on_with_number

_EDGE_LINES = 3  # lines at the top and at the bottom of a page that may be repeated
_LEAST_REPEATS = 3
_LEAST_SHARE = (
    0.25  # of the pages; headers of chapters change, those of left and right pages differ
)
_MOST_PAGES = 0.8
_FRONT_PAGES = 30  # before the page that is numbered 1, or that an excerpt lacks
_LEAST_SENTENCE_WORDS = 6
_LEAST_HEADER_WORDS = 3
_COLUMNS = re.compile(r"\S.*?(?:\t| {3,})\S.*?(?:\t| {3,})\S.*")  # left, middle and right
_COLUMN_GAP = re.compile(r"\t+| {3,}")
_FULL_LINE = 0.6  # of the longest line: a shorter one ends a paragraph
_MAX_DIGITS = 9
_NUMBER = re.compile(r"\d+|\b[ivxlc]+\b")
_COUNTED_WORD = re.compile(r"\d[\d.,]* (?=[^\W\d_])(?-i:[a-zß-ÿа-я])")  # "10 seconds"
_ROMAN = re.compile(r"\b[ivxlc]+\b")
_LEADER = re.compile(
    r".*?\S.*?(?:\.[ \t]?){4,}[ \t]*(?:(?:\d{1,4}|[ivxlc]{1,7})(?:[,–-] ?\d{1,4})*)?[ \t]*"
)
_INDEX_LINE = re.compile(r".{2,70}?(?:,? (?:\d{1,4}|see(?: also)? .+))(?:[,–-] ?\d{1,4})*[ \t]*")
_CONTENTS_LINE = re.compile(r".{2,100}?[ .\t…]\d{1,4}[ \t]*")
_LEAST_CONTENTS_LINES = 3
_LISTING_SHARE = 0.7  # of a page's lines: such a page is an index or a table of contents
_LEAST_LISTING_LINES = 10
_MAX_TITLE_WORDS = 5  # of a table of contents
_MAX_REST_LINES = 3  # beside the entries: the title of the list
_SENTENCE_ENDS = (".", "!", "?", ":", ";", "。", "！", "？", "”", '"', ")")

Bookmark = tuple[int, int, str]  # page from 0, level from 1, title
_LARGER = 1.15  # times the size of most of the text
_MAX_HEADING_CHARS = 120
_LEAST_LETTERS = 3
_MAX_HEADING_SHARE = 0.15  # of the letters: where more are large, the font says nothing
_MAX_LEVELS = 3


class SizedLine(NamedTuple):
    """A line of a page (from 0) and the size of its font."""

    page: int
    size: float
    text: str


def find_large_lines(lines: Sequence[SizedLine]) -> list[Bookmark]:
    """Return the lines in a larger font than most text, as bookmarks; the largest come first."""
    body = _find_body_size(lines)
    large = [at for at, line in enumerate(lines) if body and _is_large(line, body)]
    repeated = Counter(lines[at].text for at in large)
    # Others are running headers.
    large = [at for at in large if repeated[lines[at].text] <= 2]
    if sum(len(lines[at].text) for at in large) > _MAX_HEADING_SHARE * _count_letters(lines):
        return []
    sizes = sorted({lines[at].size for at in large}, reverse=True)
    level = {size: min(at + 1, _MAX_LEVELS) for at, size in enumerate(sizes)}
    joined = _join_wrapped(lines, large)
    return [(line.page, level[line.size], line.text) for line in joined]


def find_large_title(lines: Sequence[SizedLine]) -> str:
    """Return what stands in the largest font on the first page, if that is larger than text."""
    body = _find_body_size(lines)
    first = [at for at, line in enumerate(lines) if line.page == 0 and line.text.strip()]
    size = max((lines[at].size for at in first), default=0.0)
    if len({line.page for line in lines}) < 2 or size < _LARGER * body:
        return ""
    largest = [at for at in first if lines[at].size == size]
    after = next((n for n, at in enumerate(largest) if at != largest[0] + n), len(largest))
    title = " ".join(lines[at].text for at in largest[:after])
    lettered = sum(map(str.isalpha, title)) >= _LEAST_LETTERS
    return title if lettered and len(title) <= _MAX_HEADING_CHARS else ""


def _find_body_size(lines: Sequence[SizedLine]) -> float:
    """Return the size of the font that most of the text is in; 0 without any text."""
    characters: Counter[float] = Counter()
    for line in lines:
        characters[line.size] += len(line.text)
    return characters.most_common(1)[0][0] if characters else 0.0


def _count_letters(lines: Sequence[SizedLine]) -> int:
    return sum(len(line.text) for line in lines)


def _is_large(line: SizedLine, body: float) -> bool:
    return (
        line.size >= _LARGER * body
        and len(line.text) <= _MAX_HEADING_CHARS
        and sum(map(str.isalpha, line.text)) >= _LEAST_LETTERS
        and not line.text.endswith((".", ",", ";"))
        and not _LEADER.fullmatch(line.text)
    )


def _join_wrapped(lines: Sequence[SizedLine], large: Sequence[int]) -> list[SizedLine]:
    """Return large lines, those that go on with the one before joined to it.

    It goes on in small letters, or without a number below a line that begins with one.
    """
    found: list[SizedLine] = []
    last = -2
    for at in large:
        line, before = lines[at], found[-1] if found else None
        same = before is not None and at == last + 1 and line[:2] == before[:2]
        goes_on = line.text[:1].islower() or (
            before is not None and before.text[:1].isdigit() and not line.text[:1].isdigit()
        )
        if before is not None and same and goes_on:
            found[-1] = before._replace(text=f"{before.text} {line.text}")
        else:
            found.append(line)
        last = at
    return found


class _EdgeLine(NamedTuple):
    """A line at an edge of a page, folded, and the numbers in it."""

    page: int
    text: str
    key: str
    numbers: tuple[int, ...]
    is_sentence: bool  # a whole one …
    goes_on: bool  # … or one that began before: body text, whatever is repeated


def strip_running_lines(
    pages: Sequence[str], headings: Collection[tuple[int, str]] = ()
) -> list[str]:
    """Remove lines at the edges of pages that are repeated, except for the number of the page.

    A line whose number is another one names what the page is about, and stays; so do the
    `headings` (page and text), and sentences that not every page has.
    """
    split = [page.split("\n") for page in pages]
    kept_lines = {(page, fold_line(text)) for page, text in headings}
    full = sum(bool(page.strip()) for page in pages)
    if full < 2:
        return list(pages)  # nothing is repeated
    found = split
    for step in (1, -1):  # from the top, then from the end
        lines = [page[::step] for page in found]
        running = _find_running(lines, full) - kept_lines
        found = [_drop_edge(page, at, running)[::step] for at, page in enumerate(lines)]
    if len(found) == 2:
        found[1] = _drop_columns(pages[0], found[1])
    joined = ["\n".join(page).strip("\n") for page in found]
    return joined if any(joined) else list(pages)  # pages that are all alike are no headers


def _drop_columns(first: str, lines: list[str]) -> list[str]:
    """Drop a header in columns from the second of two pages; the first page says a part of it."""
    at = next((number for number, line in enumerate(lines) if line.strip()), None)
    if at is None or not _COLUMNS.fullmatch(lines[at].strip()) or "|" in lines[at]:
        return lines
    alone = at + 1 < len(lines) and not lines[at + 1].strip()
    parts = [part.strip() for part in _COLUMN_GAP.split(lines[at].strip())]
    known = any(_has_letters(part) and part in first for part in parts)
    return lines[at + 1 :] if alone and known else lines


def _find_running(pages: Sequence[list[str]], full: int) -> set[tuple[int, str]]:
    """Return the repeated lines at the beginning of pages, as page and folded text."""
    edges = [_make_edge_line(at, line) for at, page in enumerate(pages) for line in _edge(page)]
    groups: dict[str, list[_EdgeLine]] = {}
    for line in edges:
        groups.setdefault(line.key, []).append(line)
    usual = max(min(_LEAST_REPEATS, full), full * _LEAST_SHARE / 2)
    found: set[tuple[int, str]] = set()
    for group in groups.values():
        on = {line.page for line in group}
        # The first page of a short text has a title instead, the last one may end before its foot.
        most = (set(range(1, full)), set(range(full - 1)))
        short = full == _LEAST_REPEATS and on in most and _is_running(group[0])
        least = len(on) if short else usual
        if len(on) < least or _is_one_sign(group[0].key):
            continue
        masked = _mask_page_numbers(group, full)
        times = Counter(masked)
        enough = min(least, _LEAST_REPEATS) if group[0].numbers else least
        is_numbered = any("#" in one for one in masked)
        on_most = len(on) >= _MOST_PAGES * full
        for number, (line, mask) in enumerate(zip(group, masked, strict=True)):
            stays = line.is_sentence and not is_numbered and (number == 0 or not on_most)
            if times[mask] >= enough and not line.goes_on and not stays:
                found.add((line.page, line.text))
    return found


def _make_edge_line(page: int, line: str) -> _EdgeLine:
    text = fold_line(line)
    numbers = tuple(int(found[-_MAX_DIGITS:]) for found in re.findall(r"\d+", text))
    is_long = len(text.split()) >= _LEAST_SENTENCE_WORDS
    is_sentence = is_long and text.endswith(_SENTENCE_ENDS[:3])
    goes_on = is_long and line.lstrip()[0].islower()
    return _EdgeLine(page, text, _NUMBER.sub("#", text), numbers, is_sentence, goes_on)


def _is_running(line: _EdgeLine) -> bool:
    """Whether a line that few pages have can be a header: it has a number or several words."""
    return bool(line.numbers) or len(line.text.split()) >= _LEAST_HEADER_WORDS


def _is_one_sign(key: str) -> bool:
    return len(key) < 2 and key != "#"


def _mask_page_numbers(group: Sequence[_EdgeLine], full: int) -> list[str]:
    """Return the lines of one key with a mark for each number that counts the pages."""
    offsets: Counter[tuple[int, int]] = Counter()
    for line in group:
        offsets.update({(at, number - line.page) for at, number in enumerate(line.numbers)})
    # Beyond the pages there are, a number is that of a page on left or on right pages only.
    one_side = len({line.page % 2 for line in group}) == 1 or not _has_letters(group[0].key)
    one_side = one_side or _has_volume(group)
    found = []
    for line in group:
        parts = re.split(r"(\d+)", line.text)  # every second one is a number
        for at, number in enumerate(line.numbers):
            offset = number - line.page
            near = one_side or abs(offset) <= full + _FRONT_PAGES
            if near and offsets[at, offset] >= 2:
                parts[2 * at + 1] = "#"
        found.append(_ROMAN.sub("#", "".join(parts)))
    return found


def _has_volume(group: Sequence[_EdgeLine]) -> bool:
    """Whether lines have a number that stays before one that ends them: "Moss, vol. 12 201"."""
    least = min(len(line.numbers) for line in group)
    stays = least > 1 and len({line.numbers[:-1] for line in group}) == 1
    return stays and all(line.text[-1].isdigit() for line in group)


def _has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def _edge(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.strip()][:_EDGE_LINES]


def fold_line(line: str) -> str:
    """Return what repeated lines are compared by: without case, blanks made one."""
    return " ".join(line.casefold().split())


def _drop_edge(lines: list[str], page: int, running: Collection[tuple[int, str]]) -> list[str]:
    """Drop the running lines at the beginning."""
    at = 0
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        if (page, fold_line(line)) not in running:
            break
        at = number + 1
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
    """Whether a sentence is cut by the end of a page: small letters follow, or the line is full."""
    end, begin = before.rstrip(), after.lstrip()
    if not end or not begin or end.endswith(_SENTENCE_ENDS):
        return False
    return begin[0].islower() or _fills_line(end, after.strip("\n"))


def _fills_line(before: str, after: str) -> bool:
    """Whether a paragraph of several lines ends in a full one, and one with its indent follows."""
    lines, following = before.split("\n"), after.split("\n")
    last, first = lines[-1], following[0]
    widest = max(map(len, lines))
    indents = [
        len(line) - len(line.lstrip())
        for line in (lines[-2] if len(lines) > 1 else "", last, first)
    ]
    goes_on = len(following) > 1 or first.rstrip().endswith(_SENTENCE_ENDS)
    return (
        len(last) >= _FULL_LINE * widest
        and len(set(indents)) == 1
        and bool(lines[-2].strip() if len(lines) > 1 else "")
        and _begins_in_sentence(last, first, f"{before}\n{after}")
        and goes_on
    )


def _begins_in_sentence(last: str, first: str, around: str) -> bool:
    """Whether a line can stand within a sentence: a word, or a number that is no item's."""
    begin = first.lstrip()
    if begin[0].isalpha() or _COUNTED_WORD.match(begin):
        return True
    return begin[0].isdigit() and goes_on_with_number(last, first, around)


def drop_contents(text: str) -> str:
    """Remove a table of contents: the lines whose dots lead to a page number, and its title."""
    if ". . ." not in text and "...." not in text:
        return text
    lines = text.split("\n")
    marked = [len(line) < 300 and _LEADER.fullmatch(line) is not None for line in lines]
    if sum(marked) < _LEAST_CONTENTS_LINES:
        return text
    if (title := contents_title(lines, marked.index(True))) is not None:
        marked[title] = True
    return "\n".join(line for line, is_listed in zip(lines, marked, strict=True) if not is_listed)


def contents_title(lines: Sequence[str], first: int) -> int | None:
    """Return the short line that stands alone before the entries, if there is one."""
    at = first - 1
    while at >= 0 and not lines[at].strip():
        at -= 1
    if at < 0 or (at and lines[at - 1].strip()) or lines[at].rstrip().endswith(_SENTENCE_ENDS[:3]):
        return None
    return at if len(lines[at].split()) <= _MAX_TITLE_WORDS else None


def drop_page_contents(page: str) -> str:
    """Remove the entries of contents or an index from a page, and what only heads them."""
    rest = drop_contents(page)
    if rest == page:
        return page
    # Letters of the alphabet head the parts of an index.
    left = [line for line in rest.split("\n") if len(line.strip()) > 1]
    return "" if len(left) <= _MAX_REST_LINES else rest


def is_listing(page: str) -> bool:
    """Whether a page is one of an index or of a table of contents: most lines end in numbers."""
    lines = [line.strip() for line in page.split("\n") if line.strip()]
    if len(lines) < _LEAST_LISTING_LINES:
        return False
    listed = sum(
        len(line) < 300
        and (
            _INDEX_LINE.fullmatch(line) or _CONTENTS_LINE.fullmatch(line) or _LEADER.fullmatch(line)
        )
        is not None
        and any(map(str.isalpha, line))
        for line in lines
    )
    return listed >= _LISTING_SHARE * len(lines)
