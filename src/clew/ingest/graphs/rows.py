"""Rows yielded by graph file readers: nodes, links and unreadable rows."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clew.store.graph_stage import LinkRow, NodeRow

BEST_NAME_RANK = 1  # higher ranks are for less preferred labels


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
