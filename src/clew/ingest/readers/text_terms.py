"""Finds lists of terms in plain text whose meaning stands in a column beside them.

    %t     a tab
    %W     week number of the year, with Monday as the
           first day of the week

Each is written as a term with its definition below it (`clew.text.structure`). Only what is surely
such a list is changed: three or more terms one below the other, with words in one column; three or
more short lines each with its paragraphs directly below, deeper; or two paragraphs that begin with
a term and a colon, as standards write them, and stand deeper below it.
"""

import re
from collections import Counter
from itertools import groupby
from typing import NamedTuple

_LINE = re.compile(r"(?P<margin> *)(?P<term>\S+(?: \S+){0,2}) {2,}(?P<text>\S.*)")
_GAP = re.compile(r"\S {3,}\S")
_WORD = re.compile(r"[^\W\d_]{2,}")
_LEAST_TERMS = 3
_MAX_TERM = 24  # characters
_BODY = 4  # columns by which a definition stands deeper than its term
_LEAST_WORDS = 2
_PROSE_SHARE = 0.5  # of the meanings that have as many words
_MAX_COLUMNS_SHARE = 0.3  # of the meanings that go on after another gap: then it is a table
_SENTENCE_ENDS = (".", ",", ";", ":", "|")
_BLANK = re.compile(r"(\n(?:[ \t]*\n)+)")
_HANGING = re.compile(
    r"(?P<margin> *)(?P<term>[^\W\d_][^\s:]*(?: [^\s:]+){0,2}): {2,}(?P<text>\S+ \S.*)"
    r"(?P<rest>(?:\n(?P=margin) {2,}\S.*)*)\n?"
)
_LEAST_HANGING = 2
_ABOVE = re.compile(r"(?P<margin> *)(?P<term>(?:--?)?[^\W\d_]\S*(?: \S+){0,11})")
_MAX_ABOVE = 50  # characters of a term that stands above its meaning


class _Entry(NamedTuple):
    """A term with its meaning: the lines from `at` to before `end`; no text: it stands below."""

    at: int
    end: int
    margin: int
    column: int
    term: str
    text: str


def mark_text_terms(text: str) -> str:
    """Write terms with a meaning beside them as definitions."""
    if "  " not in text:
        return text
    lines = _mark_above(_mark_hanging(text).split("\n"))
    found: list[str] = []
    at = 0
    while at < len(lines):
        entries = _read_list(lines, at)
        beside = sum(bool(entry.text) for entry in entries)
        if beside >= _LEAST_TERMS and _is_explained(entries):
            for entry in entries:
                found += [*_write(entry, lines), ""]
            at = entries[-1].end
            if at < len(lines) and not lines[at].strip():
                found.pop()
        else:
            end = entries[-1].end if entries else at + 1
            found += lines[at:end]
            at = end
    return "\n".join(found)


def _read_list(lines: list[str], at: int) -> list[_Entry]:
    """Return the terms one below the other from a line on, blank lines between them or not."""
    found: list[_Entry] = []
    while at < len(lines):
        entry = _read_entry(lines, at, found[0] if found else None)
        if entry is None:
            break
        found.append(entry)
        at = entry.end
        while at < len(lines) and not lines[at].strip():
            at += 1
    return found


def _read_entry(lines: list[str], at: int, first: _Entry | None) -> _Entry | None:
    """Return the term at a line if it stands as the first one of the list does."""
    line = lines[at].rstrip()
    match = _LINE.fullmatch(line) if "  " in line else None
    if match and len(match["term"]) <= _MAX_TERM and not match["term"].endswith(_SENTENCE_ENDS):
        margin, column = len(match["margin"]), match.start("text")
        if first is None or (first.margin, first.column) == (margin, column):
            end = _find_end(lines, at + 1, column)
            return _Entry(at, end, margin, column, match["term"], match["text"])
    if first is None or measure_indent(line) != first.margin:
        return None
    below = at + 1 < len(lines) and measure_indent(lines[at + 1]) == first.column
    return (
        first._replace(at=at, end=_find_end(lines, at + 1, first.column), text="")
        if below
        else None
    )


def _find_end(lines: list[str], at: int, column: int) -> int:
    """Return the line after a meaning: all that stands in its column or deeper belongs to it."""
    end = at
    while at < len(lines) and (not lines[at].strip() or measure_indent(lines[at]) >= column):
        at += 1
        end = at if lines[at - 1].strip() else end
    return end


def measure_indent(line: str) -> int:
    """Return how many spaces a line begins with."""
    return len(line) - len(line.lstrip(" "))


def _is_explained(entries: list[_Entry]) -> bool:
    """Whether the second column has words, and is the last one."""
    beside = [entry for entry in entries if entry.text]
    worded = sum(len(_WORD.findall(entry.text)) >= _LEAST_WORDS for entry in beside)
    wide = sum(_GAP.search(entry.text) is not None for entry in beside)
    distinct = len({entry.term for entry in beside}) == len(beside)
    few = wide <= _MAX_COLUMNS_SHARE * len(beside)
    return distinct and few and worded >= _PROSE_SHARE * len(beside)


def _write(entry: _Entry, lines: list[str]) -> list[str]:
    """Return the lines of a definition; those below its first one keep their order of depth."""
    if not entry.text:
        return lines[entry.at : entry.end]
    margin, shift = " " * entry.margin, entry.column - entry.margin - _BODY
    least = entry.margin + _BODY
    rest = [
        " " * max(least, measure_indent(line) - shift) + line.lstrip(" ") if line.strip() else ""
        for line in lines[entry.at + 1 : entry.end]
    ]
    return [f"{margin}{entry.term}", f"{margin}:   {entry.text}", *rest]


def _mark_above(lines: list[str]) -> list[str]:
    """Write terms that stand above their meaning as definitions, where three or more do."""
    found: list[str] = []
    at = 0
    while at < len(lines):
        entries = _read_below(lines, at)
        if len(entries) < _LEAST_TERMS:
            found.append(lines[at])
            at += 1
        elif len({entry.term for entry in entries}) < len(entries):
            found += lines[at : entries[-1].end]
            at = entries[-1].end
        else:
            for entry in entries:
                found += [lines[entry.at], *_write(entry._replace(at=entry.at + 1), lines)[1:]]
            at = entries[-1].end
    return found


def _read_below(lines: list[str], at: int) -> list[_Entry]:
    """Return the entries one below the other from a line on, each with the lines after it."""
    found: list[_Entry] = []
    while at < len(lines):
        entry = _read_above(lines, at)
        if entry is None or (found and entry[2:4] != found[0][2:4]):
            break
        found.append(entry)
        at = entry.end
    return found


def _read_above(lines: list[str], at: int) -> _Entry | None:
    """Return the entry whose term is a line after a blank one, with its meaning right below."""
    line = lines[at].rstrip()
    match = _ABOVE.fullmatch(line) if 0 < len(line.strip()) <= _MAX_ABOVE else None
    blank = at == 0 or not lines[at - 1].strip()
    if match is None or not blank or at + 1 == len(lines) or line.endswith(_SENTENCE_ENDS):
        return None
    margin, column = len(match["margin"]), measure_indent(lines[at + 1])
    is_heading = not margin and match["term"].isupper()
    below = lines[at + 1].strip()
    if is_heading or column < margin + _BODY or len(_WORD.findall(below)) < _LEAST_WORDS:
        return None
    end = _find_end(lines, at + 1, margin + 1)
    while end < len(lines) and not lines[end].strip():
        end += 1
    return _Entry(at, end, margin, column, match["term"], below)


def _mark_hanging(text: str) -> str:
    """Write paragraphs that begin with a term and a colon as definitions, where several do."""
    pieces = _BLANK.split(text)  # every second one is what stands between two paragraphs
    found = [_HANGING.fullmatch(piece) for piece in pieces[::2]]
    terms = Counter(match["term"] for match in found if match)
    # What stands before several is no term: "Q:" and "A:", or who speaks.
    found = [match if match and terms[match["term"]] == 1 else None for match in found]
    margins = [match["margin"] if match else None for match in found]
    for _, run in groupby(range(len(found)), key=margins.__getitem__):
        matches = [(at, match) for at in run if (match := found[at])]
        hangs = any(match["rest"] for _, match in matches)
        if hangs and len(matches) >= _LEAST_HANGING:
            for at, match in matches:
                pieces[2 * at] = _write_hanging(match)
    return "".join(pieces)


def _write_hanging(match: re.Match[str]) -> str:
    margin = match["margin"]
    below = [margin + " " * _BODY + line.strip() for line in match["rest"].split("\n")[1:]]
    return "\n".join([margin + match["term"], f"{margin}:   {match['text']}", *below])
