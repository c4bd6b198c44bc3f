"""Reads JSON strings with unescaped quotes inside, deciding where the string ends.

In valid JSON the first unescaped quote ends the string and is followed by a comma, colon or
bracket. So a quote ends the string if what follows may follow a string; otherwise it is part of
the text.
"""

import re
from dataclasses import dataclass
from typing import Literal

Place = Literal["key", "value", "item"]

CLOSERS = {'"': '"', "'": "'", "“": "”", "`": "`"}
NEXT = {closer: re.compile(rf"[{closer}\\]") for closer in CLOSERS.values()}
BLANK = re.compile(r"\s*")
ITEM = re.compile(r"[\"'“\[{\]}\d+-]|(?:true|false|null|None|True|False|NaN)\b|//|/\*|\Z")
FIELD = re.compile(r"[\"'“{}\]]|[\w$-]+\s*:|//|/\*|\Z")
COMMENT = re.compile(r"//|/\*|# |```")
NEW_ITEM = re.compile(r"\s*[\]}]\s*,\s*[\[{]\s*\Z")
NEXT_ITEM = re.compile(r"\s*,\s*\Z")
LOOK_BACK = 40
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\"'\\/bfnrt“”]))")
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(frozen=True, slots=True)
class Quoted:
    """A string: its text, the position after it, and whether its closing quote was found."""

    text: str
    end: int
    whole: bool


def read_string(text: str, start: int, place: Place, depth: int) -> Quoted:
    """Read the string whose opening quote is at `start`, `depth` brackets deep."""
    closer = CLOSERS[text[start]]
    at = start + 1
    inner = 0
    while (found := NEXT[closer].search(text, at)) is not None:
        here = found.start()
        at = here + 1
        if found[0] == "\\":
            at += 1
        elif may_end(text, at, place, depth):
            return Quoted(unescape(text[start + 1 : here]), at, whole=True)
        else:
            missed = _missed_end(text, start + 1, here, inner)
            if missed is not None:
                return Quoted(unescape(text[start + 1 : missed]).rstrip(' "'), missed, whole=True)
            inner += 1
    return Quoted("", len(text), whole=False)


def may_end(text: str, at: int, place: Place, depth: int) -> bool:
    """Whether a string in this position may end just before `at`, judged by what follows."""
    after = _skip(text, at)
    follows = text[after : after + 1]
    if follows == ":":
        return place != "value"
    if follows == ",":
        pattern = FIELD if place == "value" else ITEM
        return pattern.match(text, _skip(text, after + 1)) is not None
    if follows in ("]", "}"):
        beyond = text[(later := _skip(text, after + 1)) : later + 1]
        return depth <= 1 or beyond in ("", ",", "]", "}", "`", "/", "#")
    if follows in ('"', "[", "{"):  # a missing comma is likely only before a new line
        return "\n" in text[at:after]
    return not follows or COMMENT.match(text, after) is not None


def _missed_end(text: str, start: int, here: int, inner: int) -> int | None:
    """Find where the string should have ended if the quote at `here` opens the next one."""
    begin = max(start, here - LOOK_BACK)
    before = text[begin:here]
    boundary = NEW_ITEM.search(before)
    if boundary is None and inner % 2 == 1:  # an odd inner quote was the end
        boundary = NEXT_ITEM.search(before)
    return begin + boundary.start() if boundary else None


def _skip(text: str, at: int) -> int:
    blank = BLANK.match(text, at)
    return blank.end() if blank else at


def unescape(text: str) -> str:
    """Resolve JSON escapes; a backslash before anything else is kept."""
    if "\\" not in text:
        return text
    plain = ESCAPE.sub(_unescape, text)
    if any("\ud800" <= letter <= "\udfff" for letter in plain):
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return plain


def _unescape(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return ESCAPED.get(found[2], found[2])
