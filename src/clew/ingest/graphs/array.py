"""Streams the items of a file that is one JSON array; only the current item is in memory."""

import json
import re
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from clew.errors import InputError
from clew.ingest.graphs.lines import MAX_LINE_BYTES, check_utf8

_PIECE = 1 << 16
_ARRAY_START = re.compile(r"\s*\[\s*[\[{]")  # of objects or arrays: an array of strings is a triple
_NON_SPACE = re.compile(r"\S")
_DECODER = json.JSONDecoder()

ArrayItem = tuple[Any, int, int]
"""A value, the line it begins on, and about how many bytes of the file were read."""


def is_array(path: Path) -> bool:
    """Return whether the file is one array, not one value per line."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        head = file.read(_PIECE)
    if not _ARRAY_START.match(head):
        return False
    first, *others = head.strip().split("\n")
    return not (any(map(str.strip, others)) and _is_json(first))


def read_items(path: Path) -> Iterator[ArrayItem]:
    """Yield every item; raise `InputError` with the line where the array is malformed."""
    check_utf8(path)
    with path.open("rb") as file:
        text = _ArrayParser(path, TextIOWrapper(file, "utf-8-sig", newline="\n"))
        text.expect("[")
        while text.peek() != "]":
            yield text.read_value(), text.line, file.tell()
            if text.peek() != "]":
                text.expect(",")
        text.expect("]")
        if text.peek():
            raise text.syntax_error("goes on after its end")


class _ArrayParser:
    """Parser over a buffer of text that was read but not yet consumed."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path, self._file = path, file
        self._held, self._at = "", 0
        self._next = 1
        self.line = 1
        """Line on which the last value began."""

    def peek(self) -> str:
        """Return the next character that is not white space; "" at the end."""
        while True:
            found = _NON_SPACE.search(self._held, self._at)
            self._consume(found.start() if found else len(self._held))
            if found:
                return found[0]
            if not self._read_more(_PIECE):
                return ""

    def expect(self, wanted: str) -> None:
        """Consume this character, or raise."""
        if self.peek() != wanted:
            raise self.syntax_error(f"has no {wanted!r}")
        self._consume(self._at + 1)

    def read_value(self) -> Any:
        """Parse and consume the next value."""
        self.peek()
        while True:
            try:
                found, end = _DECODER.raw_decode(self._held, self._at)
            except RecursionError as error:
                raise self.syntax_error("is nested too deeply") from error
            except ValueError as error:
                # Double the buffer each time, so that a long item is not decoded over and over.
                size = len(self._held) - self._at
                if size > MAX_LINE_BYTES or not self._read_more(max(_PIECE, size)):
                    raise self.syntax_error("holds what is not JSON") from error
                continue
            if end == len(self._held) and self._read_more(_PIECE):
                continue  # a number may continue
            self.line = self._next
            self._consume(end)
            return found

    def syntax_error(self, why: str) -> InputError:
        """Return an error for an array that cannot be read further."""
        return InputError(
            f"{self._path} is a JSON array that {why} in line {self._next}; "
            "mend it, or write one object a line"
        )

    def _consume(self, end: int) -> None:
        self._next += self._held.count("\n", self._at, end)
        self._at = end

    def _read_more(self, size: int) -> bool:
        self._held, self._at = self._held[self._at :], 0
        try:
            piece = self._file.read(size)
        except UnicodeDecodeError as error:
            raise InputError(f"{self._path} is not UTF-8 text; convert it") from error
        self._held += piece
        return bool(piece)


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
