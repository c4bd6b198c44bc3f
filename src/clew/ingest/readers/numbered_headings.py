"""Finds the numbered headings of plain text: "1.2. Purpose", "Chapter 3", "第 4 章", "Appendix B".

Which lines are headings is told by their numbers: of all lines that stand alone and begin with one,
the longest sequence in which each number goes on from the one before (1, 1.1, 1.2, 2, 2.1). What
is counted may have a word before its number, whatever that word is.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from clew.text.unicode import UNSPACED_CHAR

LEAST_HEADINGS = 3
PROSE_END = (".", ",", ";", ":", "。", "，", "；", "：", "、")
Number = tuple[int, ...]
_UNCASED = r"\u0e00-\u0fff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # scripts that have units
_HAN_DIGITS = "一二三四五六七八九"
_NUMBERED = re.compile(
    r"(?P<number>\d{1,2}(?:\.\d{1,3}){0,5})"
    rf"(?:[.．、]? (?P<title>\S.{{0,90}})|[.．、]?(?P<joined>[{_UNCASED}].{{0,90}}))"
)
_LETTERED = re.compile(r"[A-Z](?P<number>(?:\.\d{1,3}){1,4})\.? (?P<title>\S.{0,90})")
# "Article 3: Liability", "§ 4 Kündigung", "第 4 章 …": a word, sign or unit that is counted.
_COUNTED = re.compile(
    rf"(?P<word>§+|[^\W\d_]{{3,14}}|[{_UNCASED}]{{1,2}}?) ?"
    rf"(?P<number>\d{{1,3}}|[{_HAN_DIGITS}十]{{1,3}})(?: ?(?P<unit>[{_UNCASED}]))?"
    r"(?:[.:：]| ?[—–-])?(?P<title> *\S.{0,90})?"
)
_APPENDIX = re.compile(
    rf"(?P<word>[^\W\d_]{{3,14}}|[{_UNCASED}]{{1,3}}) ?(?P<letter>[A-Z])(?P<mark>[.:：]| ?[—–-])?"
    r"(?: (?P<title>\S.{0,90}))?"
)
_LONGEST_LINE = 110
_MAX_WRAPPED = 2  # lines that a heading goes on for
_MOST_KINDS = 8  # counted words of a text that are tried
_WIDE_SHARE = 0.98  # of the lines are no wider than the text is set
_MAX_LEVEL = 6


class _Line(NamedTuple):
    """A line that may be a heading, up to before the line `end`: its number and counted word."""

    at: int
    end: int
    text: str
    number: Number
    kind: str = ""


def find_numbered_headings(lines: Sequence[str]) -> tuple[list[str], dict[int, int]]:
    """Return the lines with wrapped headings in one, and the level of each numbered heading."""
    found = list(_read_lines(lines))
    chain = max(
        (_find_chain(found, kind) for kind in _list_kinds(found)),
        key=lambda one: (len(one), bool(one and one[0].kind)),
        default=[],
    )
    if len(chain) < LEAST_HEADINGS or not _is_outline(chain, found, lines, len(lines)):
        return list(lines), {}
    front = _find_chain([one for one in found if one.end <= chain[0].at], "")
    if len(front) >= LEAST_HEADINGS and _is_outline(front, found, lines, chain[0].at):
        chain = [*front, *chain]
    levels = {one.at: min(len(one.number) + 1, _MAX_LEVEL) for one in chain}
    texts = {one.at: one for one in chain}
    for line in _find_appendices(lines, chain[0].at):
        levels.setdefault(line.at, min(len(line.number) + 1, _MAX_LEVEL))
        texts.setdefault(line.at, line)
    joined = list(lines)
    for one in texts.values():
        joined[one.at : one.end] = [one.text, *[""] * (one.end - one.at - 1)]
    return joined, dict(sorted(levels.items()))


def stands_alone(lines: Sequence[str], at: int) -> bool:
    """Whether a line has blank lines around it, or the ends of the text."""
    before = at == 0 or not lines[at - 1].strip()
    return before and (at + 1 >= len(lines) or not lines[at + 1].strip())


def read_number(line: str) -> tuple[str, Number, str] | None:
    """Return what is counted ("" for a bare number), the number and the title of a line."""
    bare = " ".join(line.split())
    if (found := _NUMBERED.fullmatch(bare)) is not None:
        number = tuple(int(part) for part in found["number"].split("."))
        return "", number, found["title"] or found["joined"]
    if (found := _COUNTED.fullmatch(bare)) is not None:
        title = found["title"] or ""
        # Letters that follow at once make another word: "第4章概要" has a unit before them.
        if title and title[0] != " " and not found["unit"] and title[0].isalnum():
            return None
        kind = f"{found['word']}{found['unit'] or ''}".casefold()
        return kind, (_read_count(found["number"]),), title.strip()
    return None


def measure_width(line: str) -> int:
    """Return the columns of a line: signs of East Asian scripts take two."""
    if line.isascii():
        return len(line)
    return len(line) + sum(unicodedata.east_asian_width(char) in "WF" for char in line)


def _read_count(text: str) -> int:
    """Return a number below a hundred in digits or in Chinese numerals; 0 for none."""
    if text.isdigit():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    if len(tens) > 1 or len(ones) > 1:
        return 0
    return 10 * ((_HAN_DIGITS.find(tens) + 1) if tens else bool(ten)) + (
        (_HAN_DIGITS.find(ones) + 1) if ones else 0
    )


def _read_lines(lines: Sequence[str]) -> Iterator[_Line]:
    """Yield the lines at the margin that begin with a number and stand alone, or are wrapped."""
    width = 0
    for at, line in enumerate(lines):
        if not line[:1].strip() or len(line) > _LONGEST_LINE or (at and lines[at - 1].strip()):
            continue
        if (read := read_number(line)) is None:
            continue
        end, text = at + 1, " ".join(line.split())
        if not stands_alone(lines, at):
            if len(read[1]) < 2 and not read[0]:
                continue
            width = width or _measure_text(lines)
            end, text = _join_wrapped(lines, at, width)
        if end and not text.endswith(PROSE_END[1:] if not read[2] else PROSE_END):
            yield _Line(at, end, text, read[1], read[0])


def _measure_text(lines: Sequence[str]) -> int:
    """Return how wide the text is set, in columns."""
    widths = sorted(measure_width(line.rstrip()) for line in lines if line.strip())
    return widths[int(_WIDE_SHARE * (len(widths) - 1))] if widths else 0


def _join_wrapped(lines: Sequence[str], at: int, width: int) -> tuple[int, str]:
    """Return the line after a heading that goes on where its line is full, and its text; 0, if not.

    A line is full if the first word of the next one would not have fitted in.
    """
    text = " ".join(lines[at].split())
    for end in range(at + 1, min(at + 1 + _MAX_WRAPPED, len(lines))):
        after = lines[end]
        if not after[:1].strip():
            break
        joint = bool(UNSPACED_CHAR.match(after) and UNSPACED_CHAR.match(text[-1]))
        word = after[0] if joint or UNSPACED_CHAR.match(after) else after.split()[0]
        if measure_width(lines[end - 1].rstrip()) + measure_width(word) + (not joint) <= width:
            break
        text += ("" if joint else " ") + " ".join(after.split())
        if end + 1 == len(lines) or not lines[end + 1].strip():
            return end + 1, text
    return 0, ""


def _list_kinds(found: Iterable[_Line]) -> list[str]:
    """Return the words that are counted in a text, most frequent first, and none."""
    held = list(found)
    first = {one.kind for one in held if one.kind and one.number <= (1,)}
    counts = Counter(one.kind for one in held if one.kind in first)
    return [kind for kind, _ in counts.most_common(_MOST_KINDS)] + [""]


def _find_chain(found: Iterable[_Line], kind: str) -> list[_Line]:
    """Return the longest sequence of lines whose numbers go on, the first level of one kind."""
    lines = [one for one in found if one.kind == kind or (not one.kind and len(one.number) > 1)]
    length = [0] * len(lines)
    before = [-1] * len(lines)
    last: dict[Number, int] = {}  # the best chain that ends in a number
    within: dict[Number, int] = {}  # … and in one that begins so
    for at, line in enumerate(lines):
        places = {last.get(key, -1) for key in _list_parents(line.number)}
        places |= {within.get(key, -1) for key in _list_elders(line.number)}
        best = max(places, key=lambda one: length[one] if one >= 0 else 0, default=-1)
        if best < 0 and line.number not in {(1,), (0,), (1, 0), (1, 1)}:
            continue
        length[at], before[at] = 1 + (length[best] if best >= 0 else 0), best
        if length[at] > length[last.get(line.number, at)] or line.number not in last:
            last[line.number] = at
        for depth in range(1, len(line.number) + 1):
            key = line.number[:depth]
            if key not in within or length[at] > length[within[key]]:
                within[key] = at
    at = max(range(len(lines)), key=length.__getitem__, default=-1)
    chain: list[_Line] = []
    while at >= 0 and length[at]:
        chain.append(lines[at])
        at = before[at]
    return chain[::-1]


def _list_parents(number: Number) -> list[Number]:
    """Return the numbers that are exactly before the first of a deeper level."""
    found = [number[:-1]] if len(number) > 1 and number[-1] <= 1 else []
    return found + ([number[:-2]] if len(number) > 2 and number[-2:] == (1, 1) else [])


def _list_elders(number: Number) -> list[Number]:
    """Return what a number before may begin with: one or two less on this level, or on the one
    above that has no heading of its own.
    """
    found = [(*number[:-1], number[-1] - step) for step in (1, 2) if number[-1] >= step]
    if len(number) > 1 and number[-1] <= 1 and number[-2] > 1:
        found.append((*number[:-2], number[-2] - 1))
    return found


def _is_outline(
    chain: Sequence[_Line], found: Sequence[_Line], lines: Sequence[str], end: int
) -> bool:
    """Whether numbered lines are headings: half of them have text below; they are no lists.

    Numbers of one level that begin again and again are those of lists.
    """
    ends = [*((one.at, one.end) for one in chain), (end, end)]
    with_text = sum(any(map(str.strip, lines[a[1] : b[0]])) for a, b in pairwise(ends))
    if 2 * with_text < len(chain):
        return False
    if chain[-1].kind or any(len(one.number) > 1 for one in chain):
        return True
    alike = sum(not one.kind and len(one.number) == 1 and one.at < end for one in found)
    return 2 * len(chain) > alike


def _find_appendices(lines: Sequence[str], after: int) -> Iterator[_Line]:
    """Yield what letters count behind the first heading: "Appendix A: Codes", "A.1. Names"."""
    letters: dict[str, str] = {}
    for at in range(after, len(lines)):
        bare = " ".join(lines[at].split())
        if not lines[at][:1].strip() or len(bare) > _LONGEST_LINE or not stands_alone(lines, at):
            continue
        if (found := _LETTERED.fullmatch(bare)) is not None:
            if not bare.endswith(PROSE_END):
                yield _Line(at, at + 1, bare, (0,) * (found["number"].count(".") + 1))
        elif (found := _APPENDIX.fullmatch(bare)) is not None and not bare.endswith(PROSE_END[1:]):
            word = found["word"].casefold()
            step = ord(found["letter"]) - ord(letters.get(word, "@"))
            first = found["word"][0]
            told = bool(found["mark"] or word in letters or not found["title"])
            shaped = first.isupper() or bool(UNSPACED_CHAR.match(first)) or not first.islower()
            goes_on = step == 1 or (step == 2 and word in letters)
            if goes_on and shaped and (told or word == "appendix"):
                letters[word] = found["letter"]
                yield _Line(at, at + 1, bare, (0,))
