"""Reads a file line by line in memory bounded for any file and line length."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, TextIO

from clew.errors import InputError
from clew.ingest.readers.decode import decode, detect_bom, reject_binary
from clew.ingest.readers.source import ReadBudget, Skipped, SourceFile, format_megabytes

_PIECE = 65_536


@dataclass(frozen=True, slots=True)
class TextLine:
    """A decoded line, its number from 1, and its encoding."""

    number: int
    text: str
    encoding: str


def read_lines(source: SourceFile, budget: ReadBudget) -> Iterator[TextLine | Skipped]:
    """Yield every line, and a `Skipped` for each that is too long or not text."""
    with source.path.open("rb") as file:
        head = file.read(_PIECE)
        codec, skip = detect_bom(head)
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
    number = 0
    while raw := file.readline(limit + 1):
        number += 1
        if len(raw) > limit:
            _discard_line(file, raw)
            yield _skip_too_long(name, number, limit)
            continue
        try:
            yield TextLine(number, raw.decode(), "utf-8")
        except UnicodeDecodeError:
            yield _decode_line(name, number, raw)


def _decode_line(name: str, number: int, raw: bytes) -> TextLine | Skipped:
    try:
        return TextLine(number, *decode(raw))
    except InputError as error:
        return Skipped(name, str(error), number)


def _read_wide_lines(
    wide: TextIO, name: str, limit: int, codec: str
) -> Iterator[TextLine | Skipped]:
    number = 0
    while text := wide.readline(limit + 1):
        number += 1
        if len(text) > limit:
            while text and not text.endswith("\n"):
                text = wide.readline(_PIECE)
            yield _skip_too_long(name, number, limit)
        else:
            yield TextLine(number, text, codec)


def _discard_line(file: BinaryIO, raw: bytes) -> None:
    """Read to the end of the line without keeping it."""
    while raw and not raw.endswith(b"\n"):
        raw = file.readline(_PIECE)


def _skip_too_long(name: str, number: int, limit: int) -> Skipped:
    return Skipped(name, f"the line is longer than the limit of {format_megabytes(limit)}", number)
