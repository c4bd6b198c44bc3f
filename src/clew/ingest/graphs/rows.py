"""What graph file readers share: the rows they yield, labels, and lines that can be resumed."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from clew.errors import InputError
from clew.ingest.graphs.staging import LinkRow, NodeRow
from clew.ingest.readers.decode import detect_bom, reject_binary
from clew.text.names import local_name

BEST_NAME_RANK = 1  # higher ranks are for less preferred labels
MAX_LINE_BYTES = 16_000_000  # bytes of one line
_HEAD_BYTES = 65_536
_CONTROLS = bytes({*range(1, 32), 127} - set(b"\t\n\r"))


@dataclass(frozen=True, slots=True)
class Node:
    """What one row states about a node; links refer to it by `id`."""

    id: str
    name: str = ""
    type: str = ""
    description: str = ""
    aliases: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    rank: int = BEST_NAME_RANK
    """Of several names the one with the lowest rank is used."""

    def to_rows(self) -> Iterator[NodeRow]:
        """Convert to the stage's form."""
        yield (self.id, "node", 0, "")
        if self.name:
            yield (self.id, "name", self.rank, self.name)
        if self.type:
            yield (self.id, "type", 0, self.type)
        if self.description:
            yield (self.id, "description", 0, self.description)
        for alias in self.aliases:
            yield (self.id, "alias", 0, alias)
        for name, value in self.attributes.items():
            yield (self.id, f"+{name}", 0, value)


@dataclass(frozen=True, slots=True)
class Link:
    """A fact between nodes; `members` is for facts with more than head and tail."""

    head: str
    relation: str
    tail: str
    weight: float = 1.0
    description: str = ""
    keywords: tuple[str, ...] = ()
    text: str = ""
    members: tuple[tuple[str, str], ...] = ()
    """(node id, role) of each participant."""

    def to_row(self) -> LinkRow:
        """Convert to the stage's form."""
        return (
            self.head,
            self.relation,
            self.tail,
            self.weight,
            self.description,
            json.dumps(self.keywords, ensure_ascii=False) if self.keywords else "",
            self.text,
            json.dumps(self.members, ensure_ascii=False) if self.members else "",
        )


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A row that could not be read, and why."""

    line: int
    reason: str


Row = Node | Link | UnreadableRow
NOT_TEXT = "has a value that is not text"


def stage_rows(rows: Iterable[Row]) -> tuple[list[NodeRow], list[LinkRow], list[UnreadableRow]]:
    """Convert rows to the stage's form; one that cannot be stored costs that row only."""
    nodes: list[NodeRow] = []
    links: list[LinkRow] = []
    bad: list[UnreadableRow] = []
    for row in rows:
        if isinstance(row, UnreadableRow):
            bad.append(row)
        elif isinstance(row, Link):
            link = row.to_row()
            if all(map(is_storable, link)):
                links.append(link)
            else:
                bad.append(UnreadableRow(0, NOT_TEXT))
        else:
            some = list(row.to_rows())
            if _are_storable(some):
                nodes += some
            else:
                bad.append(UnreadableRow(0, NOT_TEXT))
    return nodes, links, bad


def is_storable_row(row: Row) -> bool:
    """Return whether all cells of a row can be stored."""
    match row:
        case Link():
            return all(map(is_storable, row.to_row()))
        case Node():
            return _are_storable(row.to_rows())
        case _:
            return True


def _are_storable(rows: Iterable[NodeRow]) -> bool:
    return all(is_storable(cell) for cells in rows for cell in cells)


def is_storable(value: object) -> bool:
    """Return whether SQLite can hold a value: a number, or text without lone surrogates and NUL."""
    if not isinstance(value, str):
        return isinstance(value, int | float)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
    return "\0" not in value


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Some rows, and the position in the file after them."""

    rows: list[Row]
    position: int
    """Where the reader can resume; its unit is up to the reader."""
    line: int
    bytes_read: int
    """Bytes of the file read so far."""
    records: int | None = None
    """Number of readable records of the file, where one record may give several rows."""

    def count_good(self) -> int:
        """Return how many rows of the file could be read."""
        if self.records is not None:
            return self.records
        return sum(not isinstance(row, UnreadableRow) for row in self.rows)


@dataclass(frozen=True, slots=True)
class StartPosition:
    """Where to start reading: at the beginning, or where a killed import stopped."""

    position: int = 0
    line: int = 0


GraphReader = Callable[[Path, StartPosition], Iterator[RowBatch]]
"""Reads a file from a position on. Its `repr` must not depend on the run."""
READER_VERSION = "2"  # increase it when the same file should give different rows
BATCH = 5_000  # rows between two commits of the stage


def resource_name(identifier: str) -> str:
    """Return the local name of an `<iri>`; literals and blank nodes unchanged."""
    if identifier.startswith("<") and identifier.endswith(">"):
        return local_name(identifier[1:-1])
    return identifier


def id_as_label(identifier: str) -> str:
    """Return the id itself, for formats whose ids are names."""
    return identifier


def check_utf8(path: Path) -> int:
    """Raise if the file is not UTF-8 text; return the length of its byte-order mark."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head.strip():
        raise InputError(f"{path} is empty; name a file with a graph")
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
