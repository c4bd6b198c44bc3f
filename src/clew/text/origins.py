"""Where the text of a document stands in the file that it was read from.

Readers rewrite many formats, so that spans of the stored text are none of the file. An origin is
the list of pieces of the stored text and where each stands in the file, kept as a short text.
Offsets in a file count characters as `open(path).read()` gives them: a line end is one, and a
byte-order mark none.
"""

import base64
import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import unescape
from itertools import pairwise

from clew.text.align import align_words, split_words

SAME = "="  # the origin of a text that is the file's
_LINES = re.compile(r"(\d+)-(\d+)")  # of a text that stands somewhere in these lines
_EXACT, _JOINED = 1, 2
_STRAY_LENGTH, _STRAY_GAP = 16, 300  # words far from their neighbours are found by chance
_FAR = 2_000  # characters more between parts of a span in the file than in the text


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a stored text, and where it stands in the file: within one line."""

    start: int
    length: int
    file_start: int
    line: int
    exact: bool = True
    """Whether these are the characters of the file; else they are written otherwise there."""
    joined: bool = False
    """Whether only white space stands between this and the previous one, in both texts."""


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Lines of a file, from 1, and the span of characters where it has the very words."""

    line: int
    end_line: int
    start: int | None = None
    end: int | None = None


# What stands for a character, or for none, in a file of this kind.
_ROFF_ESCAPE = re.compile(
    r"\\(?:f(?:\[\w*\]|\(\w\w|\w)|s[+-]?\d|\((?P<sign>\w\w)|\[[^\]\n]*\]|(?P<own>[-&e'` |^%:/,]))"
)
_ROFF_SIGNS = {"-": "-", "e": "\\", "'": "'", "`": "`", " ": " ", "aq": "'", "dq": '"', "em": "—"}
_JSON_ESCAPE = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])')
_JSON_SIGNS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HTML_ESCAPE = re.compile(
    r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|\w{2,32});"
    r"|(?P<in_words></?(?:wbr|b|i|u|em|strong|span|a|code|font|tt|kbd|var)\b[^<>]*>)|<[^<>]+>"
)


def _read_roff(found: re.Match[str]) -> str:
    return _ROFF_SIGNS.get(found["sign"] or found["own"] or "", "")


def _read_json(found: re.Match[str]) -> str:
    body = found[0][1:]
    return chr(int(body[1:], 16)) if len(body) > 1 else _JSON_SIGNS.get(body, body)


def _read_html(found: re.Match[str]) -> str:
    if found[0].startswith("<"):
        return "" if found["in_words"] else " "
    return unescape(found[0])


Escapes = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]
ESCAPES: Mapping[str, Escapes] = {
    "roff": (_ROFF_ESCAPE, _read_roff),
    "json": (_JSON_ESCAPE, _read_json),
    "html": (_HTML_ESCAPE, _read_html),
}
"""How files of some kinds write characters that cannot stand for themselves."""


def trace_text(text: str, source: str, escapes: Escapes | None = None) -> str:
    """Return the origin of a text that was read from this source."""
    if source.startswith(text):
        return SAME
    return encode_origin(find_pieces(text, source, escapes))


def cut_origins(texts: Sequence[str], source: str, escapes: Escapes | None = None) -> list[str]:
    """Return the origins of several texts that follow each other in their source."""
    pieces = find_pieces("\n".join(texts), source, escapes)
    found = list[str]()
    start = 0
    for text in texts:
        end = start + len(text)
        inner = (
            replace(piece, start=piece.start - start)
            for piece in pieces
            if start <= piece.start and piece.start + piece.length <= end
        )
        found.append(encode_origin(list(inner)))
        start = end + 1
    return found


def trace_exact(text: str, source: str, file_start: int, line: int) -> str:
    """Return the origin of a text that stands as it is in a part of a file, or ""."""
    at = source.find(text)
    if at < 0:
        return ""
    first = line + source.count("\n", 0, at)
    lines = text.split("\n")
    pieces, start = list[Piece](), 0
    for number, part in enumerate(lines):
        if part:
            place = file_start + at + start
            pieces.append(Piece(start, len(part), place, first + number, joined=bool(number)))
        start += len(part) + 1
    return encode_origin(pieces)


def trace_lines(first: int, last: int) -> str:
    """Return the origin of a text of which only the lines are known."""
    return f"{first}-{last}"


def find_pieces(text: str, source: str, escapes: Escapes | None = None) -> list[Piece]:
    """Return the pieces of a text that stand in its source, in the order of the text."""
    shown, places = _unescape(source, escapes)
    own, other = split_words(text), split_words(shown)
    pairs = align_words([word for word, *_ in own], [word for word, *_ in other])
    line_ends = [found.start() for found in re.finditer("\n", source)]
    found: list[Piece] = []
    for at, there in pairs:
        _, start, end = own[at]
        _, begin, stop = other[there]
        begin, stop = places(begin), places(stop - 1) + 1
        exact = source[begin:stop] == text[start:end]
        line = bisect_right(line_ends, begin - 1) + 1
        _append(found, Piece(start, end - start, begin, line, exact), text, source)
    kept = _drop_strays(found)
    return list(_mark_joined(_widen(kept, text, source), text, source))


def _unescape(source: str, escapes: Escapes | None) -> tuple[str, Callable[[int], int]]:
    """Return a source as it is shown, and what returns the place of each of its characters."""
    if escapes is None:
        return source, lambda at: at
    shown, starts, shifts = list[str](), [0], [0]
    done = size = 0
    for found in escapes[0].finditer(source):
        sign = escapes[1](found)
        shown += source[done : found.start()], sign
        size += found.start() - done
        if sign:
            starts.append(size)
            shifts.append(found.start() - size)
        size += len(sign)
        done = found.end()
        starts.append(size)
        shifts.append(done - size)
    shown.append(source[done:])
    return "".join(shown), lambda at: at + shifts[bisect_right(starts, at) - 1]


def _append(found: list[Piece], piece: Piece, text: str, source: str) -> None:
    """Add a piece, as a part of the last one where the file goes on just so."""
    last = found[-1] if found else None
    if last is None or not (last.exact and piece.exact) or last.line != piece.line:
        found.append(piece)
        return
    end, stop = last.start + last.length, last.file_start + last.length
    if stop <= piece.file_start and text[end : piece.start] == source[stop : piece.file_start]:
        length = piece.start + piece.length - last.start
        found[-1] = Piece(last.start, length, last.file_start, last.line)
    else:
        found.append(piece)


def _drop_strays(found: Sequence[Piece]) -> list[Piece]:
    """Leave out short pieces that stand far from both neighbours in the file, not in the text."""
    kept: list[Piece] = []
    for at, piece in enumerate(found):
        near = [found[one] for one in (at - 1, at + 1) if 0 <= one < len(found)]
        stray = near and all(
            abs((piece.file_start - one.file_start) - (piece.start - one.start)) > _STRAY_GAP
            for one in near
        )
        if not stray or piece.length > _STRAY_LENGTH:
            kept.append(piece)
    return kept


def _widen(found: Sequence[Piece], text: str, source: str) -> Iterator[Piece]:
    """Widen exact pieces by the signs around them that both texts have in this line."""
    for at, piece in enumerate(found):
        if not piece.exact:
            yield piece
            continue
        least = found[at - 1].start + found[at - 1].length if at else 0
        most = found[at + 1].start if at + 1 < len(found) else len(text)
        start, begin = piece.start, piece.file_start
        end, stop = start + piece.length, begin + piece.length
        while start > least and begin and _same_sign(text[start - 1], source[begin - 1]):
            start, begin = start - 1, begin - 1
        while end < most and stop < len(source) and _same_sign(text[end], source[stop]):
            end, stop = end + 1, stop + 1
        yield replace(piece, start=start, length=end - start, file_start=begin)


def _same_sign(one: str, other: str) -> bool:
    return one == other and one != "\n"


def _mark_joined(pieces: Iterator[Piece], text: str, source: str) -> Iterator[Piece]:
    end = stop = -1
    for piece in pieces:
        between = (text[end : piece.start], source[stop : piece.file_start])
        joined = 0 <= end <= piece.start and 0 <= stop <= piece.file_start
        joined = joined and not any(part.strip() for part in between)
        yield replace(piece, joined=joined)
        end, stop = piece.start + piece.length, piece.file_start + piece.length


def encode_origin(pieces: Sequence[Piece]) -> str:
    """Return the pieces as a short text; "" for none."""
    if not pieces:
        return ""
    numbers: list[int] = []
    end, stop, line = 0, 0, 1
    for piece in pieces:
        flags = _EXACT * piece.exact + _JOINED * piece.joined
        numbers += _fold(piece.start - end), _fold(piece.file_start - stop), piece.length
        numbers.append(_fold(piece.line - line) * 4 + flags)
        end, stop, line = piece.start + piece.length, piece.file_start + piece.length, piece.line
    raw = b"".join(map(_write_number, numbers))
    packed = zlib.compress(raw, 9)
    small = len(packed) < len(raw)
    return ("z" if small else "r") + base64.b85encode(packed if small else raw).decode()


def decode_origin(origin: str) -> list[Piece]:
    """Return the pieces of an origin that is neither the file itself nor lines."""
    raw = base64.b85decode(origin[1:])
    numbers = list(_read_numbers(zlib.decompress(raw) if origin[0] == "z" else raw))
    found: list[Piece] = []
    end, stop, line = 0, 0, 1
    for at in range(0, len(numbers), 4):
        ahead, there, length, rest = numbers[at : at + 4]
        start, begin = end + _unfold(ahead), stop + _unfold(there)
        line += _unfold(rest >> 2)
        found.append(Piece(start, length, begin, line, bool(rest & _EXACT), bool(rest & _JOINED)))
        end, stop = start + length, begin + length
    return found


def _fold(number: int) -> int:
    """Return a number without a sign: 0, -1, 1, -2, 2 …"""
    return 2 * number if number >= 0 else -2 * number - 1


def _unfold(number: int) -> int:
    return -(number + 1) // 2 if number % 2 else number // 2


def _write_number(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number % 128 + 128)
        number //= 128
    found.append(number)
    return bytes(found)


def _read_numbers(raw: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in raw:
        number += (byte % 128) << shift
        shift += 7
        if byte < 128:
            yield number
            number = shift = 0


def locate(origin: str, text: str, start: int, end: int) -> FilePlace | None:
    """Return where a span of a text stands in the file; None where that is not known.

    The text is needed only where the origin is the file itself.
    """
    if origin == SAME:
        while start < end and text[start].isspace():
            start += 1
        first = text.count("\n", 0, start) + 1
        last = first + text.rstrip()[start:end].rstrip().count("\n")
        return FilePlace(first, last, start, end)
    if lines := _LINES.fullmatch(origin):
        return FilePlace(int(lines[1]), int(lines[2]))
    return _locate_in(decode_origin(origin), start, end) if origin else None


def _locate_in(pieces: Sequence[Piece], start: int, end: int) -> FilePlace | None:
    first = bisect_right(pieces, start, key=lambda one: one.start + one.length)
    held = []
    for piece in pieces[first:]:
        if piece.start >= end:
            break
        held.append(piece)
    if not held:
        return None
    held = _drop_far(held)
    lines = [piece.line for piece in held]
    place = FilePlace(min(lines), max(lines))
    whole = held[0].start <= start and held[-1].start + held[-1].length >= end
    if not whole or not all(one.exact for one in held) or not all(one.joined for one in held[1:]):
        return place
    begin = held[0].file_start + start - held[0].start
    stop = held[-1].file_start + end - held[-1].start
    return FilePlace(place.line, place.end_line, begin, stop)


def _drop_far(held: list[Piece]) -> list[Piece]:
    """Keep what stands together and is more than half of a span: the same words may stand twice."""
    groups = [held[:1]]
    for before, piece in pairwise(held):
        moved = (piece.file_start - before.file_start) - (piece.start - before.start)
        if abs(moved) > _FAR:
            groups.append([])
        groups[-1].append(piece)
    sizes = [sum(piece.length for piece in group) for group in groups]
    return groups[sizes.index(max(sizes))] if 2 * max(sizes) > sum(sizes) else held


def compose(origin: str, before: str, after: str) -> str:
    """Return the origin of a text after parts of it were left out."""
    if not origin or _LINES.fullmatch(origin):
        return origin
    inner = find_pieces(after, before)
    if origin == SAME:
        return encode_origin(inner)
    outer = decode_origin(origin)
    found: list[Piece] = []
    for piece in inner:
        first = bisect_right(outer, piece.file_start, key=lambda one: one.start + one.length)
        for one in outer[first:]:
            start = max(one.start, piece.file_start)
            end = min(one.start + one.length, piece.file_start + piece.length)
            if start >= end:
                break
            found.append(
                Piece(
                    piece.start + start - piece.file_start,
                    end - start,
                    one.file_start + start - one.start,
                    one.line,
                    one.exact,
                    one.joined if start > piece.file_start else piece.joined and one.joined,
                )
            )
    return encode_origin(found)
