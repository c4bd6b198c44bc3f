"""Leaves tables of contents out of plain text: numbered lines in a row that stand again below.

No word tells a table of contents: most of its entries are headings or captions further on. What
stands above the first one is the name of such lists, and tells those of chapters that are short.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from clew.ingest.readers.numbered_headings import Number, read_number
from clew.ingest.readers.pages import contents_title

_BULLET = re.compile(r"\A[ \t]*(?:[*•-][ \t]+)?")
_CAPTION = re.compile(r"[^\W\d_]{2,14}\s(?P<rest>\d.*)")  # "Table 1.1. Names of …"
_LETTERED = re.compile(r"(?P<letter>[A-Z](?:\.\d{1,3})*)\.?\s+(?P<title>\S.*)")
_PAGE = re.compile(r"(?:\s{2,}|[ .…]*\t)\d{1,4}\s*\Z")
_KEY_CHARS = 10  # of a title, which may be wrapped elsewhere
_LEAST_ENTRIES, _LEAST_NAMED = 4, 1  # … below a title that named a list before
_LEAST_AGAIN = 0.6  # of the entries must stand again
_MAX_WRAPPED = 3
_MAX_FIRST = 3  # unnumbered entries before the numbered ones

Key = tuple[Number | str, str]


class _Run(NamedTuple):
    """The lines `start` to before `end`, and what its numbered entries are called."""

    start: int
    end: int
    keys: list[Key]


def drop_listed_contents(text: str) -> str:
    """Remove lists of numbered titles most of which stand alone again, further on."""
    lines = text.split("\n")
    keys = [_read_key(line) for line in lines]
    alone: dict[Key, int] = {}
    plain: dict[str, int] = {}
    for at, line in enumerate(lines):
        if line.strip() and (not at or not lines[at - 1].strip()):
            plain[line.strip()] = at
            if (key := keys[at]) is not None:
                alone[key] = at
    gone: set[int] = set()
    titles: set[str] = set()
    at = 0
    while at < len(lines):
        run = _read_run(lines, keys, at) if keys[at] is not None else None
        if run is None:
            at += 1
            continue
        title = contents_title(lines, start := _find_start(lines, run.start, plain))
        named = title is not None and lines[title].strip() in titles
        again = sum(alone.get(key, -1) >= run.end for key in run.keys)
        least = _LEAST_NAMED if named else _LEAST_ENTRIES
        if len(run.keys) >= least and again >= _LEAST_AGAIN * len(run.keys):
            gone.update(range(start, run.end))
            if title is not None:
                titles.add(lines[title].strip())
                gone.add(title)
        at = max(at + 1, run.end)
    return "\n".join(line for at, line in enumerate(lines) if at not in gone) if gone else text


def _read_key(line: str) -> Key | None:
    """Return the number and the beginning of the title of a line that has both."""
    bare = _PAGE.sub("", _BULLET.sub("", line, count=1).strip())
    if not bare or len(bare) > 200:
        return None
    if (lettered := _LETTERED.fullmatch(bare)) is not None:
        return lettered["letter"], _fold(lettered["title"])
    if (caption := _CAPTION.fullmatch(bare)) is not None:
        bare = caption["rest"]
    read = read_number(bare)
    return (read[1], _fold(read[2])) if read is not None and read[2] else None


def _fold(title: str) -> str:
    return "".join(title.split()).casefold()[:_KEY_CHARS]


def _read_run(lines: Sequence[str], keys: Sequence[Key | None], at: int) -> _Run:
    """Return the entries from a line on; blank lines and what they are wrapped to stand between."""
    found: list[Key] = []
    held: set[Key] = set()
    start = end = at
    wrapped = 0
    while at < len(lines):
        key = keys[at]
        if key is not None:
            if key in held or (found and not lines[at - 1].strip() and _goes_back(found, key)):
                break  # the first heading, which the list names
            found.append(key)
            held.add(key)
            wrapped, end = 0, at + 1
        elif lines[at].strip():
            wrapped += 1
            if wrapped > _MAX_WRAPPED or not lines[at - 1].strip() or not lines[at][:1].isspace():
                # A wrapped entry at the margin stands between two others.
                between = at + 1 < len(lines) and keys[at + 1] is not None
                if not (between and lines[at - 1].strip() and wrapped == 1):
                    break
            end = at + 1
        at += 1
    return _Run(start, end, found)


def _goes_back(found: Sequence[Key], key: Key) -> bool:
    """Whether a number is not behind the one before: another list, or the text, begins."""
    before, number = found[-1][0], key[0]
    if isinstance(before, tuple) and isinstance(number, tuple):
        return number <= before
    return isinstance(before, str) and not isinstance(number, str)


def _find_start(lines: Sequence[str], at: int, plain: dict[str, int]) -> int:
    """Return where a list begins: entries without a number may stand before, and again below."""
    start = at
    for before in range(at - 1, max(-1, at - 1 - _MAX_FIRST), -1):
        if plain.get(lines[before].strip(), -1) <= at:
            break
        start = before
    return start
