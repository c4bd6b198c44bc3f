"""Approximate token counts, and windows of a given number of tokens.

No tokenizer is used, so that chunking needs no model: six characters of a word count as one token,
a character of a script written without spaces as one, a punctuation mark as one. On English prose
that is 8 % more than a WordPiece vocabulary gives, which errs on the side of fitting.
"""

import re
import unicodedata
from collections.abc import Iterator

from clew.text import UNSPACED, UNSPACED_CHAR

Span = tuple[int, int]

_SPACED_TOKEN = re.compile(r"\w{1,6}|[^\w\s]")
_ANY_TOKEN = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])\w){{1,6}}|[^\w\s]")
_MAX_GRAPHEME = 32  # code points; real graphemes are shorter, a hostile one may be cut
_ZERO_WIDTH_JOINER = "\u200d"


def token_count(text: str) -> int:
    """Estimate the number of tokens."""
    return len(_token_pattern(text).findall(text))


def trim_span(text: str, start: int, end: int) -> Span:
    """Strip white space from both ends of a span."""
    piece = text[start:end]
    left = start + len(piece) - len(piece.lstrip())
    return left, max(left, start + len(piece.rstrip()))


def token_windows(text: str, start: int, end: int, size: int, overlap: int = 0) -> Iterator[Span]:
    """Split a span into windows of at most `size` tokens, at white space where possible."""
    starts: list[int] = []
    first = reached = start
    for token in _token_pattern(text).finditer(text, start, end):
        starts.append(token.start())
        if len(starts) <= size:
            continue
        cut = _find_last_gap(text, starts)
        left, right = trim_span(text, first, _align_to_grapheme(text, starts[cut], first))
        # A cut moved back to a grapheme boundary can leave only the overlap, or white space.
        if left < right and right > reached:
            yield left, right
            reached = right
        next_start = _find_first_gap(text, starts, cut - overlap, cut)
        first = _align_to_grapheme(text, starts[next_start], first)
        del starts[:next_start]
    left, right = trim_span(text, first, end)
    if left < right and right > reached:
        yield left, right


def _token_pattern(text: str) -> re.Pattern[str]:
    if text.isascii() or not UNSPACED_CHAR.search(text):
        return _SPACED_TOKEN
    return _ANY_TOKEN


def _find_last_gap(text: str, starts: list[int]) -> int:
    """Find a gap in the window's last quarter, else cut at its end."""
    full = len(starts) - 1
    for at in range(full, full * 3 // 4, -1):
        if _is_gap(text, starts[at]):
            return at
    return full


def _find_first_gap(text: str, starts: list[int], at: int, cut: int) -> int:
    for again in range(at, cut):
        if _is_gap(text, starts[again]):
            return again
    return cut


def _is_gap(text: str, at: int) -> bool:
    before = text[at - 1]
    if before.isspace():
        return True
    near = UNSPACED_CHAR.match(before) and text[at].isalnum()
    return bool(near) and not _is_inside_grapheme(text, at, at)


def _align_to_grapheme(text: str, at: int, floor: int) -> int:
    """Move a cut back so that it splits no grapheme."""
    for whole in range(at, max(floor, at - _MAX_GRAPHEME), -1):
        if not _is_inside_grapheme(text, whole, floor):
            return whole
    return at


def _is_inside_grapheme(text: str, at: int, floor: int) -> bool:
    here, before = text[at], text[at - 1]
    if before.isspace():
        return False
    if (
        here == _ZERO_WIDTH_JOINER
        or before == _ZERO_WIDTH_JOINER
        or unicodedata.category(here)[0] == "M"
    ):
        return True
    if "\u1160" <= here <= "\u11ff" or "\U0001f3fb" <= here <= "\U0001f3ff":  # jamo, skin tones
        return True
    if not (_is_flag_letter(here) and _is_flag_letter(before)):
        return False
    # Flags are pairs of regional indicators: cut only between pairs, counted from the last cut.
    first = at
    while first > floor and _is_flag_letter(text[first - 1]):
        first -= 1
    return (at - first) % 2 == 1


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"
