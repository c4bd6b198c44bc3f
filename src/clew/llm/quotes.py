"""Reads JSON strings with unescaped quotes inside, deciding where the string ends.

In valid JSON the first unescaped quote ends the string and is followed by a comma, colon or
bracket. So a quote ends the string if what follows may follow a string; otherwise it is part of
the text.
"""

import re
from dataclasses import dataclass
from typing import Literal

Position = Literal["key", "value", "item"]

CLOSING_QUOTES = {'"': '"', "'": "'", "“": "”", "`": "`"}
QUOTE_OR_BACKSLASH = {closer: re.compile(rf"[{closer}\\]") for closer in CLOSING_QUOTES.values()}
WHITESPACE = re.compile(r"\s*")
ITEM_START = re.compile(r"[\"'“\[{\]}\d+-]|(?:true|false|null|None|True|False|NaN)\b|//|/\*|\Z")
FIELD_START = re.compile(r"[\"'“{}\]]|[\w$-]+\s*:|//|/\*|\Z")
COMMENT_START = re.compile(r"//|/\*|# |```")
ITEM_BOUNDARY = re.compile(r"\s*[\]}]\s*,\s*[\[{]\s*\Z")
TRAILING_COMMA = re.compile(r"\s*,\s*\Z")
LOOK_BACK_CHARS = 40
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\"'\\/bfnrt“”]))")
ESCAPE_CHARS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(frozen=True, slots=True)
class QuotedString:
    """A string: its text, the position after it, and whether its closing quote was found."""

    text: str
    end: int
    complete: bool


def read_string(text: str, start: int, place: Position, depth: int) -> QuotedString:
    """Read the string whose opening quote is at `start`, `depth` brackets deep."""
    closer = CLOSING_QUOTES[text[start]]
    at = start + 1
    inner = 0
    while (found := QUOTE_OR_BACKSLASH[closer].search(text, at)) is not None:
        here = found.start()
        at = here + 1
        if found[0] == "\\":
            at += 1
        elif can_end_string(text, at, place, depth):
            return QuotedString(unescape(text[start + 1 : here]), at, complete=True)
        else:
            missed = _find_missed_end(text, start + 1, here, inner)
            if missed is not None:
                return QuotedString(
                    unescape(text[start + 1 : missed]).rstrip(' "'), missed, complete=True
                )
            inner += 1
    return QuotedString("", len(text), complete=False)


def can_end_string(text: str, at: int, place: Position, depth: int) -> bool:
    """Whether a string in this position may end just before `at`, judged by what follows."""
    after = _skip_whitespace(text, at)
    follows = text[after : after + 1]
    if follows == ":":
        return place != "value"
    if follows == ",":
        pattern = FIELD_START if place == "value" else ITEM_START
        return pattern.match(text, _skip_whitespace(text, after + 1)) is not None
    if follows in ("]", "}"):
        beyond = text[(later := _skip_whitespace(text, after + 1)) : later + 1]
        return depth <= 1 or beyond in ("", ",", "]", "}", "`", "/", "#")
    if follows in ('"', "[", "{"):  # a missing comma is likely only before a new line
        return "\n" in text[at:after]
    return not follows or COMMENT_START.match(text, after) is not None


def _find_missed_end(text: str, start: int, here: int, inner: int) -> int | None:
    """Find where the string should have ended if the quote at `here` opens the next one."""
    begin = max(start, here - LOOK_BACK_CHARS)
    before = text[begin:here]
    boundary = ITEM_BOUNDARY.search(before)
    if boundary is None and inner % 2 == 1:  # an odd inner quote was the end
        boundary = TRAILING_COMMA.search(before)
    return begin + boundary.start() if boundary else None


def _skip_whitespace(text: str, at: int) -> int:
    blank = WHITESPACE.match(text, at)
    return blank.end() if blank else at


def unescape(text: str) -> str:
    """Resolve JSON escapes; a backslash before anything else is kept."""
    if "\\" not in text:
        return text
    plain = ESCAPE.sub(_unescape_match, text)
    if any("\ud800" <= letter <= "\udfff" for letter in plain):
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return plain


def _unescape_match(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return ESCAPE_CHARS.get(found[2], found[2])
