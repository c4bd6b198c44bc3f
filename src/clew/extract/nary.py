"""Extraction of n-ary facts by a model: sentences with all their entities (hyperedges)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from clew.extract.answers import Segment, Segments
from clew.extract.asking import model_name
from clew.extract.found import Harvest, tidy
from clew.extract.gleaning import Gleaning, distinct
from clew.extract.locate import fold
from clew.extract.manner import Manner
from clew.llm.chat import Chat
from clew.llm.prompt import Prompt
from clew.text import normal_name
from clew.types import Chunk, Document, Extraction

FIND = Prompt("nary", Segments, {"text"}, documents={"text"})
MORE = Prompt("nary_more", Segments, {"text", "known"}, documents={"text", "known"})


@dataclass(frozen=True)
class Nary:
    """Extractor of n-ary facts; `version` increases with changes of the prompts."""

    chat: Chat = field(repr=False, compare=False)
    gleaning: Gleaning = Gleaning()
    max_tokens: int = 4096
    version: int = 1
    model: str = field(default="", init=False)
    dropped: Counter[str] = field(default_factory=Counter, repr=False, compare=False)
    """Dropped items so far, by reason."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", model_name(self.chat))

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk, all requested concurrently."""
        return await MANNER(self, document, chunks)


def gather(found: Segments, harvest: Harvest) -> None:
    """Add each segment with its usable entities."""
    for segment in found.segments:
        names = [
            harvest.entity(thing.name, thing.type.lower(), thing.description)
            for thing in segment.entities
        ]
        harvest.segment(segment.text, names, segment.score)


def told(found: Segments) -> str:
    """The segments so far, for the follow-up prompt."""
    return "\n".join(tidy(segment.text) for segment in found.segments) or "-"


def joined(one: Segments, other: Segments) -> Segments:
    """Merge two answers; a repeated sentence only adds the entities it lacked."""
    by_text: dict[str, list[Segment]] = {}
    for segment in (*one.segments, *other.segments):
        by_text.setdefault(fold(segment.text), []).append(segment)
    return Segments(segments=[_one_of(same) for same in by_text.values()])


def _one_of(same: Iterable[Segment]) -> Segment:
    first, *_ = segments = list(same)
    things = distinct((x for s in segments for x in s.entities), lambda x: normal_name(x.name))
    return first.model_copy(update={"entities": things})


MANNER = Manner(FIND, MORE, told, joined, gather)
