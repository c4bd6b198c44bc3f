"""Reads the lines of a large file with their byte offsets, so that reading can be resumed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from clew.errors import InputError
from clew.ingest.graphs.rows import BATCH, Row, RowBatch, StartPosition, UnreadableRow
from clew.ingest.readers.decode import detect_bom, reject_binary

MAX_LINE_BYTES = 16_000_000  # bytes of one line
_HEAD_BYTES = 65_536
_CONTROLS = bytes({*range(1, 32), 127} - set(b"\t\n\r"))


def check_utf8(path: Path) -> int:
    """Raise if the file is not UTF-8 text; return the length of its byte-order mark."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head.strip():
        raise InputError(f"{path} is empty; name a file that holds a graph")
    codec, skip = detect_bom(head)
    if codec not in ("", "utf-8"):
        raise InputError(f"{path} is in {codec.upper()}; convert it to UTF-8")
    try:
        # Names may hold any control character but NUL; magic bytes of archives are rejected.
        reject_binary(head[skip:].translate(None, _CONTROLS))
    except InputError as error:
        raise InputError(f"{path} {error}") from error
    return skip


@dataclass
class LineReader:
    """Iterates over decoded lines; `position` and `line` are the current byte and line."""

    path: Path
    start: StartPosition
    position: int = 0
    line: int = 0
    bad: list[UnreadableRow] = field(default_factory=list)
    """Lines that are too long or not text, to be passed on by the reader."""

    def __iter__(self) -> Iterator[str]:
        """Yield each line."""
        skip = check_utf8(self.path)
        self.position, self.line = max(self.start.position, skip), self.start.line
        with self.path.open("rb") as file:
            file.seek(self.position)
            while raw := file.readline(MAX_LINE_BYTES):
                self.line += 1
                self.position += len(raw)
                if len(raw) == MAX_LINE_BYTES and not raw.endswith(b"\n"):
                    self._skip_long_line(file)
                    continue
                try:
                    yield raw.decode()
                except UnicodeDecodeError:
                    self.bad.append(UnreadableRow(self.line, "is not UTF-8 text"))

    def _skip_long_line(self, file: BinaryIO) -> None:
        while raw := file.readline(_HEAD_BYTES):
            self.position += len(raw)
            if raw.endswith(b"\n"):
                break
        self.bad.append(
            UnreadableRow(self.line, f"is longer than {MAX_LINE_BYTES // 1_000_000} MB")
        )

    def rewind(self, start: StartPosition) -> Iterator[str]:
        """Read again from an earlier position; bad lines after it will be found again."""
        self.start, self.position, self.line = start, start.position, start.line
        self.bad = [one for one in self.bad if one.line <= start.line]
        return iter(self)

    def pop_bad(self) -> list[UnreadableRow]:
        """Return the bad lines since the last call."""
        found, self.bad = self.bad, []
        return found

    def to_batches(self, rows: Iterator[list[Row]]) -> Iterator[RowBatch]:
        """Group a reader's rows of these lines into batches that end at a line's end."""
        pending: list[Row] = []
        good = 0
        for found in rows:
            pending += self.pop_bad()
            pending += found
            good += any(not isinstance(row, UnreadableRow) for row in found)
            if len(pending) >= BATCH:
                yield RowBatch(pending, self.position, self.line, self.position, good)
                pending, good = [], 0
        yield RowBatch([*pending, *self.pop_bad()], self.position, self.line, self.position, good)
