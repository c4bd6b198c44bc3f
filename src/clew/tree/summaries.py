"""Community summaries: a name, and sentences with the facts or spans they cite."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clew.graph.csr import Ints
from clew.store.protocol import KeyValueStore

SUMMARY_KIND = "community"  # key-value kind of the stored summaries, by community mark
MODEL = "model"
_EMBEDDED_SENTENCES = 3  # sentences that are embedded
_HEADING_MARKS = re.compile(r"^#{1,6} +", re.MULTILINE)
QUOTED = "quoted"  # made of the facts' own sentences, without a model


@dataclass(frozen=True, slots=True)
class ChunkSpan:
    """A span of a chunk: the chunk's key and character offsets in the document."""

    chunk: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SummaryPoint:
    """One sentence, and the facts (by key) or spans it cites."""

    text: str
    facts: tuple[int, ...] = ()
    places: tuple[ChunkSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class CommunitySummary:
    """Name and summary of a community."""

    name: str
    points: tuple[SummaryPoint, ...]
    keywords: tuple[str, ...] = ()
    by: str = QUOTED
    seen: tuple[int, ...] = ()
    """Keys (never reused) of all source facts: the summary is invalid when one is removed."""

    @property
    def summary(self) -> str:
        """All sentences; a full stop is added to those that end in a letter, as triples do."""
        return " ".join(
            f"{text}." if text[-1:].isalnum() else text for text in map(_to_line, self.points)
        )

    @property
    def text(self) -> str:
        """The text to embed: the name and the first sentences."""
        return f"{self.name}\n{replace(self, points=self.points[:_EMBEDDED_SENTENCES]).summary}"

    def is_valid_for(self, keys: Ints) -> bool:
        """Tell whether all source facts are among these ascending keys."""
        seen = np.array(self.seen, np.int64)
        if not len(seen):
            return True
        at = np.searchsorted(keys, seen)
        return bool(len(keys) and (keys[np.minimum(at, len(keys) - 1)] == seen).all())

    def to_json(self) -> str:
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


def summary_from_json(text: str) -> CommunitySummary:
    """Parse what `to_json` wrote."""
    data: dict[str, Any] = json.loads(text)
    points = tuple(
        SummaryPoint(sentence, tuple(facts), tuple(ChunkSpan(*span) for span in spans))
        for sentence, facts, spans in data["points"]
    )
    return CommunitySummary(
        data["name"], points, tuple(data["keywords"]), data["by"], tuple(data["seen"])
    )


def _to_line(point: SummaryPoint) -> str:
    """Return a sentence in one line, without the marks of a quoted heading."""
    return " ".join(_HEADING_MARKS.sub("", point.text).split())


async def load_summaries(
    memory: KeyValueStore, marks: Sequence[str]
) -> dict[str, CommunitySummary]:
    """Load stored summaries by community mark."""
    found = await memory.get(SUMMARY_KIND, list(dict.fromkeys(marks)))
    return {mark: summary_from_json(text) for mark, text in found.items()}


async def save_summaries(memory: KeyValueStore, summaries: Mapping[str, CommunitySummary]) -> None:
    """Store summaries by community mark."""
    if summaries:
        await memory.set(
            SUMMARY_KIND, {mark: summary.to_json() for mark, summary in summaries.items()}
        )
