"""Reads the lines of a large file with their byte offsets, so that reading can be resumed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from clew.errors import InputError
from clew.ingest.graphs.rows import BATCH, Bad, Batch, Row, Start
from clew.ingest.readers.decode import marked, reject_binary

LONGEST = 16_000_000  # bytes of one line
_HEAD = 65_536
_CONTROLS = bytes({*range(1, 32), 127} - set(b"\t\n\r"))


def check(path: Path) -> int:
    """Raise if the file is not UTF-8 text; return the length of its byte-order mark."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if not head.strip():
        raise InputError(f"{path} is empty; name a file that holds a graph")
    codec, skip = marked(head)
    if codec not in ("", "utf-8"):
        raise InputError(f"{path} is in {codec.upper()}; convert it to UTF-8")
    try:
        # Names may hold any control character but NUL; magic bytes of archives are rejected.
        reject_binary(head[skip:].translate(None, _CONTROLS))
    except InputError as error:
        raise InputError(f"{path} {error}") from error
    return skip


@dataclass
class Lines:
    """Iterates over decoded lines; `position` and `line` are the current byte and line."""

    path: Path
    start: Start
    place: int = 0
    line: int = 0
    bad: list[Bad] = field(default_factory=list)
    """Lines that are too long or not text, to be passed on by the reader."""

    def __iter__(self) -> Iterator[str]:
        """Yield each line."""
        skip = check(self.path)
        self.place, self.line = max(self.start.place, skip), self.start.line
        with self.path.open("rb") as file:
            file.seek(self.place)
            while raw := file.readline(LONGEST):
                self.line += 1
                self.place += len(raw)
                if len(raw) == LONGEST and not raw.endswith(b"\n"):
                    self._pass_over(file)
                    continue
                try:
                    yield raw.decode()
                except UnicodeDecodeError:
                    self.bad.append(Bad(self.line, "is not UTF-8 text"))

    def _pass_over(self, file: BinaryIO) -> None:
        while raw := file.readline(_HEAD):
            self.place += len(raw)
            if raw.endswith(b"\n"):
                break
        self.bad.append(Bad(self.line, f"is longer than {LONGEST // 1_000_000} MB"))

    def back_to(self, start: Start) -> Iterator[str]:
        """Read again from an earlier position; bad lines after it will be found again."""
        self.start, self.place, self.line = start, start.place, start.line
        self.bad = [one for one in self.bad if one.line <= start.line]
        return iter(self)

    def taken(self) -> list[Bad]:
        """Return the bad lines since the last call."""
        found, self.bad = self.bad, []
        return found

    def batches(self, rows: Iterator[list[Row]]) -> Iterator[Batch]:
        """Group a reader's rows of these lines into batches that end at a line's end."""
        pending: list[Row] = []
        good = 0
        for found in rows:
            pending += self.taken()
            pending += found
            good += any(not isinstance(row, Bad) for row in found)
            if len(pending) >= BATCH:
                yield Batch(pending, self.place, self.line, self.place, good)
                pending, good = [], 0
        yield Batch([*pending, *self.taken()], self.place, self.line, self.place, good)
