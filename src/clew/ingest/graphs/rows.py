"""What a reader of a graph file hands out: nodes, links, and rows it could not read."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clew.store.graph_stage import LinkRow, NodeRow

BEST_NAME = 1  # rank of a name; higher ones are for lesser labels


@dataclass(frozen=True, slots=True)
class Node:
    """What one row says about one node; `id` is how links refer to it."""

    id: str
    name: str = ""
    type: str = ""
    description: str = ""
    aliases: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    rank: int = BEST_NAME
    """Of several names the one with the lowest rank counts."""

    def rows(self) -> Iterator[NodeRow]:
        """As the stage keeps it."""
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
    """A fact between nodes; `members` is for facts that are no plain head and tail."""

    head: str
    relation: str
    tail: str
    weight: float = 1.0
    description: str = ""
    keywords: tuple[str, ...] = ()
    text: str = ""
    members: tuple[tuple[str, str], ...] = ()
    """(node id, role) of each participant."""

    def row(self) -> LinkRow:
        """As the stage keeps it."""
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
class Bad:
    """A row that could not be read, and why."""

    line: int
    reason: str


Row = Node | Link | Bad


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows, and how far they reach."""

    rows: list[Row]
    place: int
    """From where the reader could go on; what it counts is the reader's own affair."""
    line: int
    seen: int
    """Bytes of the file that are behind us."""
    records: int | None = None
    """How many good rows of the file these are, where one of it may say several things."""

    def good(self) -> int:
        """How many rows of the file could be read."""
        if self.records is not None:
            return self.records
        return sum(not isinstance(row, Bad) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Start:
    """Where to begin: at the top, or where a killed import left off."""

    place: int = 0
    line: int = 0


Reader = Callable[[Path, Start], Iterator[Batch]]
"""Reads a file from some place on. Its `repr` must not depend on the run."""

READING = "2"  # raise it when the same file should be read as other rows
BATCH = 5_000  # rows between two commits of the stage
