"""Knowledge segments by a model: one sentence each, with all the entities it joins (hyperedges)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from clew.extract.answers import Segment, Segments
from clew.extract.asking import Asker, each_chunk, lacks, model_name, worked_example
from clew.extract.found import Harvest, tidy
from clew.extract.gleaning import Gleaning, distinct, glean
from clew.extract.locate import Places, fold
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

        async def one(chunk: Chunk) -> Extraction:
            return await self._extract(document.title, chunk)

        return await each_chunk(chunks, one)

    async def _extract(self, title: str, chunk: Chunk) -> Extraction:
        ask = Asker(self.chat, chunk, self.dropped, self.max_tokens)
        example = worked_example(FIND.page, FIND.out, ask.language)
        harvest = Harvest(Places(chunk), title, example, self.dropped)
        if chunk.text.strip():
            found = await glean(
                self.gleaning,
                await ask(FIND),
                lambda found: ask(MORE, known=told(found)),
                lambda found: lacks(ask, told(found)),
                joined,
            )
            gather(found, harvest)
        return harvest.extraction()


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
