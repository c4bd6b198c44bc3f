"""Decodes files to text, whole or line by line in bounded memory; rejects binary content."""

import codecs
import io
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, TextIO

from clew.errors import InputError
from clew.ingest.readers.encodings import detect_encoding, detect_wide
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, format_megabytes

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MAGIC_BYTES = {
    b"%PDF-": "a PDF",
    b"PK\x03\x04": "a zip archive (as DOCX, XLSX, EPUB are)",
    b"\x89PNG": "a PNG picture",
    b"GIF8": "a GIF picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"\x1f\x8b": "gzip-compressed",
    b"\x7fELF": "a program",
    b"SQLite format 3\0": "an SQLite file",
    b"\xd0\xcf\x11\xe0": "an old Office file",
    b"{\\rtf": "a rich-text file",
}
_SAMPLE_BYTES = 65_536
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b") | {127})
_HIGH_BYTES = bytes(range(128, 256))
_NON_LETTER_BYTES = bytes(set(range(128)) - set(range(65, 91)) - set(range(97, 123)))
_HIGH_RUN = re.compile(rb"[\x80-\xff]{3,}")
_C1 = re.compile(rb"[\x80-\x9f]")


def decode(raw: bytes, declared: str = "") -> tuple[str, str]:
    """Return the text and its encoding; raise `InputError` for binary or empty content."""
    codec, skip = detect_bom(raw)
    if codec:
        text = _decode_with_bom(raw[skip:], codec)
    else:
        text, codec = _decode_without_bom(raw, declared)
    if not text.strip():
        raise InputError("is empty")
    return text, codec


def detect_bom(raw: bytes) -> tuple[str, int]:
    """Return the encoding of a byte-order mark and the mark's length; ("", 0) without one."""
    for mark, codec in _BOMS:
        if raw.startswith(mark):
            return codec, len(mark)
    return "", 0


def reject_binary(raw: bytes) -> None:
    """Raise `InputError` if the bytes are binary: a program, an image, an archive…"""
    for magic, what in _MAGIC_BYTES.items():
        if raw.startswith(magic):
            raise InputError(f"is not text but {what}; give the file the right suffix")
    sample = raw[:_SAMPLE_BYTES]
    controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    if b"\0" in sample[:8192] or controls > len(sample) / 100:
        raise InputError("is not text: it contains binary data")


def _decode_with_bom(raw: bytes, codec: str) -> str:
    try:
        text = raw.decode(codec)
    except UnicodeDecodeError as error:
        if codec == "utf-8":
            return raw.decode(codec, "replace")
        raise InputError(f"begins like {codec.upper()} text but is not") from error
    sample = text[:4096]
    odd = sum(unicodedata.category(char) in {"Cc", "Cn", "Co"} for char in sample)
    if odd - sum(map(sample.count, "\t\n\r\f")) > len(sample) / 20:
        raise InputError("is not text: it contains binary data")
    return text


def _decode_without_bom(raw: bytes, declared: str) -> tuple[str, str]:
    if wide := detect_wide(raw):
        return _decode_with_bom(raw, wide), wide
    reject_binary(raw)
    try:
        return raw.decode(), "utf-8"
    except UnicodeDecodeError:
        return _decode_declared(raw, declared) or _decode_legacy(raw)


def _decode_declared(raw: bytes, declared: str) -> tuple[str, str] | None:
    try:
        codec = codecs.lookup(declared).name
        return raw.decode(codec), codec
    except (LookupError, ValueError, TypeError):
        return None  # unknown encoding, or a wrong declaration: guess instead


def _decode_legacy(raw: bytes) -> tuple[str, str]:
    """Decode as damaged UTF-8 or a Western single-byte encoding, or raise `InputError`."""
    ascii_size = len(raw.translate(None, _HIGH_BYTES))
    damaged = raw.decode("utf-8", "replace")
    broken = damaged.count("\ufffd")
    if len(damaged) - ascii_size - broken > 4 * broken:
        return damaged, f"utf-8, {broken} broken"
    if not _is_western(raw):
        if codec := detect_encoding(raw):
            return raw.decode(codec, "replace"), codec
        raise InputError("is in an encoding that cannot be detected; convert it to UTF-8")
    if not _C1.search(raw):
        return raw.decode("latin-1"), "latin-1"
    try:
        return raw.decode("cp1252"), "cp1252"
    except UnicodeDecodeError as error:
        raise InputError("is in an unknown encoding; convert it to UTF-8") from error


def _is_western(raw: bytes) -> bool:
    """Whether a text is ASCII with single accents; other scripts (Cyrillic, CJK) come in runs."""
    high = len(raw) - len(raw.translate(None, _HIGH_BYTES))
    letters = len(raw.translate(None, _NON_LETTER_BYTES))  # high bytes included
    in_runs = sum(map(len, _HIGH_RUN.findall(raw)))
    return in_runs <= high / 2 and high <= 0.4 * letters


def _detect_of_lines(head: bytes) -> str:
    """Return the encoding of a file of lines by how it begins; "" for UTF-8 and Western ones."""
    if wide := detect_wide(head):
        return wide
    whole = head[: head.rfind(b"\n") + 1] or head
    try:
        whole.decode()
    except UnicodeDecodeError:
        return "" if _is_western(whole) else detect_encoding(whole)
    return ""


@dataclass(frozen=True, slots=True)
class TextLine:
    """A decoded line, its number from 1, its encoding, and how many characters stand before it."""

    number: int
    text: str
    encoding: str
    start: int = -1
    """Counted as `open(path).read()` gives them; -1 if an earlier line could not be decoded."""


def read_lines(source: SourceFile, budget: ReadBudget) -> Iterator[TextLine | Skipped]:
    """Yield every line, and a `Skipped` for each that is too long or not text."""
    with source.path.open("rb") as file:
        head = file.read(_SAMPLE_BYTES)
        codec, skip = detect_bom(head)
        codec = codec or _detect_of_lines(head)
        file.seek(skip)
        if not head.strip():
            raise InputError("is empty")
        if codec in {"", "utf-8"}:
            reject_binary(head[skip:])
            yield from _read_byte_lines(file, source.name, budget.row_bytes)
        else:
            with io.TextIOWrapper(file, codec, "replace", newline="\n") as wide:
                yield from _read_wide_lines(wide, source.name, budget.row_bytes, codec)


def _read_byte_lines(file: BinaryIO, name: str, limit: int) -> Iterator[TextLine | Skipped]:
    number = start = 0
    while raw := file.readline(limit + 1):
        number += 1
        if len(raw) > limit:
            _discard_line(file, raw)
            start = -1
            yield _skip_too_long(name, number, limit)
            continue
        try:
            line = TextLine(number, raw.decode(), "utf-8", start)
        except UnicodeDecodeError:
            start = -1
            yield _decode_line(name, number, raw)
            continue
        yield line
        start = _count_on(start, line.text)


def _count_on(start: int, text: str) -> int:
    """Return how many characters stand before the next line; -1 stays unknown."""
    return start + len(text) - text.endswith("\r\n") if start >= 0 else -1


def _decode_line(name: str, number: int, raw: bytes) -> TextLine | Skipped:
    try:
        return TextLine(number, *decode(raw))
    except InputError as error:
        return Skipped(name, str(error), number, broken=True)


def _read_wide_lines(
    wide: TextIO, name: str, limit: int, codec: str
) -> Iterator[TextLine | Skipped]:
    number = start = 0
    while text := wide.readline(limit + 1):
        number += 1
        if len(text) > limit:
            while text and not text.endswith("\n"):
                text = wide.readline(_SAMPLE_BYTES)
            start = -1
            yield _skip_too_long(name, number, limit)
        else:
            yield TextLine(number, text, codec, start)
            start = _count_on(start, text)


def _discard_line(file: BinaryIO, raw: bytes) -> None:
    """Read to the end of the line without keeping it."""
    while raw and not raw.endswith(b"\n"):
        raw = file.readline(_SAMPLE_BYTES)


def _skip_too_long(name: str, number: int, limit: int) -> Skipped:
    reason = f"the line is longer than the limit of {format_megabytes(limit)}"
    return Skipped(name, reason, number, broken=True)
