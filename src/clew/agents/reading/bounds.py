"""Bounds of numbers and times: whether two texts bound the same thing on the same side.

"At least 5" is not "at most 5", nor "more than 5" just 5; "after 1950" is not "before 1950". The
words for bounds are in the table of the language (`rules/*.toml`, `[bounds]`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from clew.agents.reading.spans import asked_words
from clew.agents.reading.stems import cut_ending
from clew.agents.rules.table import RuleTable
from clew.text.unicode import UNSPACED_CHAR

Side = Literal["below", "above"]
"""Where the bound lies: "at least" bounds below, "until" above."""
_NUMBER = re.compile(r"(?<![A-Za-z\d_.])\d+(?:[.,:]\d+)*")
_MARK = re.compile(r"[,;:.!?，。；：！？、](?=\s|\Z|[^\d\s])")
_GAP = re.compile(r"\s*(?:the\s+|a\s+|of\s+|about\s+|[€$£]\s*){0,2}", re.IGNORECASE)
_GAP_UNSPACED = re.compile(r"[^\d\s，。；：、]{0,4}")
_BEHIND = 3  # words between a number and a bound behind it
_BEHIND_UNSPACED = 4  # characters
_DENIED_WORDS = 1  # words between a bound and what turns it around
_OBJECT_CHARS = 2  # that say what something is before or after


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound of a number, or of what a few words say."""

    side: Side
    of: frozenset[str]
    text: str
    strict: bool = False


def find_other_bound(claim: str, text: str, table: RuleTable) -> str:
    """Return what a text says of something that a claim bounds otherwise; "" where nothing."""
    claimed, said = list(find_bounds(claim, table)), list(find_bounds(text, table))
    for one in claimed:
        others = [bound for bound in said if bound.of & one.of]
        if others and all(bound.side != one.side for bound in others):
            return others[0].text
        if not others and one.strict and _count_number(one, text):
            return next(iter(one.of))
    for bound in said:
        bare = _count_number(bound, text) > sum(one.of == bound.of for one in said)
        if bound.strict and not bare and _count_number(bound, claim):
            if not any(bound.of & other.of for other in claimed):
                return bound.text
    return ""


def _count_number(bound: Bound, text: str) -> int:
    """Return how often a text has the number of a bound."""
    return sum(bool(bound.of & _key(found)) for found in _NUMBER.finditer(text))


def find_bounds(text: str, table: RuleTable) -> Iterator[Bound]:
    """Yield the bounds that a text gives, of numbers and of what it says to be before or after."""
    for kind, side in _SIDES:
        for found in table.bounds[kind].finditer(text):
            turned = _is_denied(text[: found.start()], table)
            of, start, end = _find_object(text, found, kind)
            if of:
                own: Side = ("above" if side == "below" else "below") if turned else side
                strict = not turned and table.bounds["strict"].fullmatch(found[0]) is not None
                yield Bound(own, of, text[start:end], strict)


_SIDES: tuple[tuple[str, Side], ...] = (
    ("least", "below"),
    ("most", "above"),
    ("least_behind", "below"),
    ("most_behind", "above"),
    ("later", "below"),
    ("earlier", "above"),
)


def _is_denied(before: str, table: RuleTable) -> bool:
    """Whether what stands right before a bound turns it around: "no more than"."""
    if UNSPACED_CHAR.search(before):
        return table.bounds["denied"].fullmatch(before[-1:]) is not None
    words = re.findall(r"[\w'’]+", before)[-_DENIED_WORDS:]
    return any(table.bounds["denied"].fullmatch(word) or word.endswith("n't") for word in words)


def _find_object(text: str, found: re.Match[str], kind: str) -> tuple[frozenset[str], int, int]:
    """Return what a bound is of, and where both stand."""
    unspaced = UNSPACED_CHAR.search(text) is not None
    timed = kind in ("later", "earlier")
    if kind.endswith("behind") or (unspaced and timed):
        number = _find_number_before(text, found.start(), unspaced=unspaced)
        if number is not None:
            return _key(number), number.start(), found.end()
        if timed:
            start = max(0, found.start() - _OBJECT_CHARS)
            return frozenset({text[start : found.start()]}), start, found.end()
        return frozenset(), 0, 0
    gap = (_GAP_UNSPACED if unspaced else _GAP).match(text, found.end())
    number = _NUMBER.match(text, gap.end() if gap else found.end())
    if number is not None:
        return _key(number), found.start(), number.end()
    if not timed or unspaced:
        return frozenset(), 0, 0
    piece = text[found.end() :]
    end = mark.start() if (mark := _MARK.search(piece)) else len(piece)
    first = next((one for one in _NUMBER.finditer(piece[:end])), None)
    stems = [cut_ending(word) for word in asked_words(piece[:end].lower())]
    of = _key(first) if first else frozenset(stems[:1])
    return of, found.start(), found.end() + end


def _key(number: re.Match[str]) -> frozenset[str]:
    return frozenset({number[0].replace(",", "")})


def _find_number_before(text: str, at: int, *, unspaced: bool) -> re.Match[str] | None:
    """Return the last number before a place, if only a few words stand between."""
    numbers = [one for one in _NUMBER.finditer(text) if one.end() <= at]
    if not numbers:
        return None
    between = text[numbers[-1].end() : at]
    if _MARK.search(between):
        return None
    near = len(between) <= _BEHIND_UNSPACED if unspaced else len(between.split()) <= _BEHIND
    return numbers[-1] if near else None
