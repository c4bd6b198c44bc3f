"""Draws a page of a PDF as PNG, and finds where on it some words stand (extra `pdf`)."""

import io
import struct
import unicodedata
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from ctypes import byref, c_int
from dataclasses import dataclass
from typing import Any

from clew.errors import InputError
from clew.ingest.readers.source import ReadBudget, SourceFile, read_bytes
from clew.version import pip_install_command

_SCALE = 2.0  # 144 dots per inch: sharp on most screens
_MAX_PIXELS = 6_000_000
_ANCHOR = 24  # letters at most that find the ends of words which the page interrupts
_UNITS = 10_000  # of pdfium's coordinates in which boxes are measured
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class PageImage:
    """A page as PNG; boxes are (left, top, width, height) as shares of its size."""

    png: bytes
    width: int
    height: int
    boxes: tuple[Box, ...]


def draw_page(
    source: SourceFile, budget: ReadBudget, number: int, words: str = "", share: float = 0.0
) -> PageImage:
    """Draw a page, from 1; `words` are looked for nearest to that share of the page's text."""
    try:
        import pypdfium2 as pdfium
    except ImportError as error:
        raise InputError(f"needs an extra to be drawn: {pip_install_command('pdf')}") from error
    try:
        document = pdfium.PdfDocument(io.BytesIO(read_bytes(source, budget)))
    except pdfium.PdfiumError as error:
        raise InputError("cannot be drawn as PDF") from error
    try:
        if not 1 <= number <= len(document):
            raise InputError(f"has {len(document)} pages")
        page = document[number - 1]
        boxes = tuple(_find_boxes(page, words, share)) if words.strip() else ()
        wide, tall = page.get_size()
        scale = _SCALE * min(1.0, (_MAX_PIXELS / max(wide * tall * _SCALE**2, 1.0)) ** 0.5)
        bitmap = page.render(scale=scale, rev_byteorder=True)
        return PageImage(_write_png(bitmap), bitmap.width, bitmap.height, boxes)
    except pdfium.PdfiumError as error:
        raise InputError(f"page {number} cannot be drawn") from error
    finally:
        document.close()


def _write_png(bitmap: Any) -> bytes:
    """Return a bitmap of red, green and blue (and maybe a fourth byte, left out) as PNG."""
    raw, channels = bytes(bitmap.buffer), bitmap.n_channels
    lines = []
    for row in range(bitmap.height):
        line = raw[row * bitmap.stride : row * bitmap.stride + bitmap.width * channels]
        if channels == 4:
            kept = bytearray(bitmap.width * 3)
            kept[0::3], kept[1::3], kept[2::3] = line[0::4], line[1::4], line[2::4]
            line = bytes(kept)
        lines.append(b"\0" + line)
    kind = 2 if channels > 1 else 0  # colours, or shades of grey
    head = struct.pack(">IIBBBBB", bitmap.width, bitmap.height, 8, kind, 0, 0, 0)
    data = zlib.compress(b"".join(lines), 6)
    parts = (_png_part(b"IHDR", head), _png_part(b"IDAT", data), _png_part(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _png_part(name: bytes, data: bytes) -> bytes:
    check = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)


def _find_boxes(page: Any, words: str, share: float) -> Iterator[Box]:
    """Yield one box for each line of the words on a page."""
    from pypdfium2 import raw

    text = page.get_textpage()
    chars = [chr(raw.FPDFText_GetUnicode(text.raw, at) or 32) for at in range(text.count_chars())]
    found = find_words(chars, words, share)
    if found is None:
        return
    start, end = found
    for number in range(text.count_rects(start, end - start)):
        left, bottom, right, top = text.get_rect(number)
        corners = [_to_share(page, x, y) for x, y in ((left, top), (right, bottom))]
        xs, ys = sorted(x for x, _ in corners), sorted(y for _, y in corners)
        yield xs[0], ys[0], xs[1] - xs[0], ys[1] - ys[0]


def _to_share(page: Any, x: float, y: float) -> tuple[float, float]:
    """Return a place of the page, turned and cropped as it is shown, in shares of its size."""
    from pypdfium2 import raw

    right, down = c_int(), c_int()
    raw.FPDF_PageToDevice(page.raw, 0, 0, _UNITS, _UNITS, 0, x, y, byref(right), byref(down))
    return right.value / _UNITS, down.value / _UNITS


def find_words(chars: Sequence[str], words: str, share: float) -> tuple[int, int] | None:
    """Return where words begin and end among characters; only letters and digits are compared.

    The text that was read has other spaces, hyphens and headings than the page. Words that occur
    more than once are those nearest to the share; None if they are not there.
    """
    folded, places = "", []
    for at, char in enumerate(chars):
        letters = fold_letters(char)
        folded += letters
        places += [at] * len(letters)
    wanted = fold_letters(words)
    if not wanted or not folded:
        return None
    near = share * len(folded)
    start = _find_nearest(folded, wanted, near)
    end = start + len(wanted)
    if start < 0:  # something stands between: the ends have to do
        size = min(_ANCHOR, len(wanted) // 3 + 1)
        start = _find_nearest(folded, wanted[:size], near)
        if start < 0:
            return None
        last = folded.find(wanted[-size:], start, start + 2 * len(wanted))
        end = last + size if last >= 0 else start + len(wanted)
    return places[start], places[min(end, len(places)) - 1] + 1


def fold_letters(text: str) -> str:
    """Return letters and digits in the form in which they are compared."""
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


def _find_nearest(text: str, wanted: str, near: float) -> int:
    found, at = [], text.find(wanted)
    while at >= 0:
        found.append(at)
        at = text.find(wanted, at + 1)
    if not found:
        return -1
    place = bisect_left(found, near)
    return min(found[max(0, place - 1) : place + 1], key=lambda one: abs(one - near))
