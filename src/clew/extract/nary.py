"""Knowledge segments by a model: one sentence each, with all the entities it joins (hyperedges)."""

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
    """Asks for knowledge segments, chunk by chunk; `version` grows with the prompts."""

    chat: Chat = field(repr=False, compare=False)
    gleaning: Gleaning = Gleaning()
    max_tokens: int = 4096
    version: int = 1
    model: str = field(default="", init=False)
    dropped: Counter[str] = field(default_factory=Counter, repr=False, compare=False)
    """What was left out so far, by reason."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", model_name(self.chat))

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk, all asked at once."""
        return await MANNER(self, document, chunks)


def gather(found: Segments, harvest: Harvest) -> None:
    """Take in each segment with the entities that stood the test."""
    for segment in found.segments:
        names = [
            harvest.entity(thing.name, thing.type.lower(), thing.description)
            for thing in segment.entities
        ]
        harvest.segment(segment.text, names, segment.score)


def told(found: Segments) -> str:
    """What is known, for the model to read."""
    return "\n".join(tidy(segment.text) for segment in found.segments) or "-"


def joined(one: Segments, other: Segments) -> Segments:
    """Both without doubles; a sentence said again brings only entities it lacked."""
    together: dict[str, list[Segment]] = {}
    for segment in (*one.segments, *other.segments):
        together.setdefault(fold(segment.text), []).append(segment)
    return Segments(segments=[_one_of(same) for same in together.values()])


def _one_of(same: Iterable[Segment]) -> Segment:
    first, *_ = said = list(same)
    things = distinct((x for one in said for x in one.entities), lambda x: normal_name(x.name))
    return first.model_copy(update={"entities": things})


MANNER = Manner(FIND, MORE, told, joined, gather)
