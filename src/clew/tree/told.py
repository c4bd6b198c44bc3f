"""Community summaries: a name, and sentences with the facts or spans they cite."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.store.protocol import Memory

KIND = "community"  # key-value kind of the stored summaries, by community mark
MODEL = "model"
_EMBEDDED = 3  # sentences that are embedded
QUOTED = "quoted"  # made of the facts' own sentences, without a model


@dataclass(frozen=True, slots=True)
class Place:
    """A span of a chunk: the chunk's key and character offsets in the document."""

    chunk: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Point:
    """One sentence, and the facts (by key) or spans it cites."""

    text: str
    facts: tuple[int, ...] = ()
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """Name and summary of a community."""

    name: str
    points: tuple[Point, ...]
    keywords: tuple[str, ...] = ()
    by: str = QUOTED
    seen: tuple[int, ...] = ()
    """Keys (never reused) of all source facts: the summary is invalid when one is removed."""

    @property
    def summary(self) -> str:
        """All sentences; a full stop is added to those that end in a letter, as triples do."""
        return " ".join(
            f"{text}." if text[-1:].isalnum() else text for text in map(_flat, self.points)
        )

    @property
    def text(self) -> str:
        """The text to embed: the name and the first sentences."""
        return f"{self.name}\n{replace(self, points=self.points[:_EMBEDDED]).summary}"

    def holds(self, keys: NDArray[np.int64]) -> bool:
        """Tell whether all source facts are among these ascending keys."""
        seen = np.array(self.seen, np.int64)
        if not len(seen):
            return True
        at = np.searchsorted(keys, seen)
        return bool(len(keys) and (keys[np.minimum(at, len(keys) - 1)] == seen).all())

    def dumped(self) -> str:
        """Serialise for the key-value store."""
        points = [
            [p.text, list(p.facts), [[span.chunk, span.start, span.end] for span in p.places]]
            for p in self.points
        ]
        data = {
            "name": self.name,
            "points": points,
            "keywords": list(self.keywords),
            "by": self.by,
            "seen": list(self.seen),
        }
        return json.dumps(data, ensure_ascii=False)


def loaded(text: str) -> Told:
    """Parse what `to_json` wrote."""
    data: dict[str, Any] = json.loads(text)
    points = tuple(
        Point(sentence, tuple(facts), tuple(Place(*span) for span in spans))
        for sentence, facts, spans in data["points"]
    )
    return Told(data["name"], points, tuple(data["keywords"]), data["by"], tuple(data["seen"]))


def _flat(point: Point) -> str:
    return " ".join(point.text.split())


async def recalled(memory: Memory, marks: Sequence[str]) -> dict[str, Told]:
    """Load stored summaries by community mark."""
    found = await memory.recall(KIND, list(dict.fromkeys(marks)))
    return {mark: loaded(text) for mark, text in found.items()}


async def remember(memory: Memory, summaries: Mapping[str, Told]) -> None:
    """Store summaries by community mark."""
    if summaries:
        await memory.remember(KIND, {mark: summary.dumped() for mark, summary in summaries.items()})
