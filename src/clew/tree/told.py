"""What is told of a community: a name, and sentences that say on what they rest."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.store.protocol import Memory

KIND = "community"  # of the memory that holds the texts, by the mark of the members
MODEL = "model"
_EMBEDDED = 3  # sentences
QUOTED = "quoted"  # made of the facts' own words, without a model


@dataclass(frozen=True, slots=True)
class Place:
    """Words of a chunk, by its key and the document's characters."""

    chunk: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Point:
    """One sentence, the facts (by key) it rests on, or where it is said."""

    text: str
    facts: tuple[int, ...] = ()
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """A community in words."""

    name: str
    points: tuple[Point, ...]
    keywords: tuple[str, ...] = ()
    by: str = QUOTED
    seen: tuple[int, ...] = ()
    """Every fact (by key, never used twice) it was made from: when one goes, so does this."""

    @property
    def summary(self) -> str:
        """All sentences; those that end in a letter (triples do) get a stop."""
        return " ".join(
            f"{text}." if text[-1:].isalnum() else text for text in map(_flat, self.points)
        )

    @property
    def text(self) -> str:
        """What is embedded: the name and the first sentences, which say most."""
        return f"{self.name}\n{replace(self, points=self.points[:_EMBEDDED]).summary}"

    def holds(self, keys: NDArray[np.int64]) -> bool:
        """Whether all it was made from is among these facts (ascending)."""
        seen = np.array(self.seen, np.int64)
        if not len(seen):
            return True
        at = np.searchsorted(keys, seen)
        return bool(len(keys) and (keys[np.minimum(at, len(keys) - 1)] == seen).all())

    def dumped(self) -> str:
        """As the memory holds it."""
        points = [
            [p.text, list(p.facts), [[at.chunk, at.start, at.end] for at in p.places]]
            for p in self.points
        ]
        shown = {
            "name": self.name,
            "points": points,
            "keywords": list(self.keywords),
            "by": self.by,
            "seen": list(self.seen),
        }
        return json.dumps(shown, ensure_ascii=False)


def loaded(text: str) -> Told:
    """Read back what `dumped` wrote."""
    held: dict[str, Any] = json.loads(text)
    points = tuple(
        Point(said, tuple(facts), tuple(Place(*place) for place in places))
        for said, facts, places in held["points"]
    )
    return Told(held["name"], points, tuple(held["keywords"]), held["by"], tuple(held["seen"]))


def _flat(point: Point) -> str:
    return " ".join(point.text.split())


async def recalled(memory: Memory, marks: Sequence[str]) -> dict[str, Told]:
    """What is remembered of communities, by their mark."""
    found = await memory.recall(KIND, list(dict.fromkeys(marks)))
    return {mark: loaded(text) for mark, text in found.items()}


async def remember(memory: Memory, told: Mapping[str, Told]) -> None:
    """Keep it, durably."""
    if told:
        await memory.remember(KIND, {mark: one.dumped() for mark, one in told.items()})
