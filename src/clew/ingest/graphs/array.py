"""Streams the items of a file that is one JSON array; only the current item is in memory."""

import json
import re
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from clew.errors import InputError
from clew.ingest.graphs.lines import LONGEST, check

_PIECE = 1 << 16
_OPENS = re.compile(r"\s*\[\s*[\[{]")  # of objects or arrays: an array of strings is a triple
_NO_SPACE = re.compile(r"\S")
_DECODER = json.JSONDecoder()

Item = tuple[Any, int, int]
"""A value, the line it begins on, and about how many bytes of the file were read."""


def is_array(path: Path) -> bool:
    """Return whether the file is one array, not one value per line."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        head = file.read(_PIECE)
    if not _OPENS.match(head):
        return False
    first, *others = head.strip().split("\n")
    return not (any(map(str.strip, others)) and _is_json(first))


def items(path: Path) -> Iterator[Item]:
    """Yield every item; raise `InputError` with the line where the array is malformed."""
    check(path)
    with path.open("rb") as file:
        text = _Text(path, TextIOWrapper(file, "utf-8-sig", newline="\n"))
        text.passes("[")
        while text.ahead() != "]":
            yield text.value(), text.line, file.tell()
            if text.ahead() != "]":
                text.passes(",")
        text.passes("]")
        if text.ahead():
            raise text.broken("goes on after its end")


class _Text:
    """Parser over a buffer of text that was read but not yet consumed."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path, self._file = path, file
        self._held, self._at = "", 0
        self._next = 1
        self.line = 1
        """Line on which the last value began."""

    def ahead(self) -> str:
        """Return the next character that is not white space; "" at the end."""
        while True:
            found = _NO_SPACE.search(self._held, self._at)
            self._use(found.start() if found else len(self._held))
            if found:
                return found[0]
            if not self._more(_PIECE):
                return ""

    def passes(self, wanted: str) -> None:
        """Consume this character, or raise."""
        if self.ahead() != wanted:
            raise self.broken(f"has no {wanted!r}")
        self._use(self._at + 1)

    def value(self) -> Any:
        """Parse and consume the next value."""
        self.ahead()
        while True:
            try:
                found, end = _DECODER.raw_decode(self._held, self._at)
            except RecursionError as error:
                raise self.broken("is nested too deeply") from error
            except ValueError as error:
                # Double the buffer each time, so that a long item is not decoded over and over.
                size = len(self._held) - self._at
                if size > LONGEST or not self._more(max(_PIECE, size)):
                    raise self.broken("holds what is not JSON") from error
                continue
            if end == len(self._held) and self._more(_PIECE):
                continue  # a number may continue
            self.line = self._next
            self._use(end)
            return found

    def broken(self, why: str) -> InputError:
        """Return an error for an array that cannot be read further."""
        return InputError(
            f"{self._path} is a JSON array that {why} in line {self._next}; "
            "mend it, or write one object a line"
        )

    def _use(self, end: int) -> None:
        self._next += self._held.count("\n", self._at, end)
        self._at = end

    def _more(self, size: int) -> bool:
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
