"""Extraction of n-ary facts by a model: sentences with all their entities (hyperedges)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from clew.extract.answers import Segment, Segments
from clew.extract.asking import model_name
from clew.extract.found import ExtractionCollector, clean_line
from clew.extract.gleaning import Gleaning, unique_by
from clew.extract.locate import fold
from clew.extract.manner import PromptedExtraction
from clew.llm.chat import Chat
from clew.llm.prompt import Prompt
from clew.text import normalize_name
from clew.types import Chunk, Document, Extraction

NARY_PROMPT = Prompt("nary", Segments, {"text"}, documents={"text"})
NARY_MORE_PROMPT = Prompt("nary_more", Segments, {"text", "known"}, documents={"text", "known"})


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
        return await NARY_EXTRACTION(self, document, chunks)


def collect_segments(found: Segments, harvest: ExtractionCollector) -> None:
    """Add each segment with its usable entities."""
    for segment in found.segments:
        names = [
            harvest.add_entity(thing.name, thing.type.lower(), thing.description)
            for thing in segment.entities
        ]
        harvest.add_segment(segment.text, names, segment.score)


def describe_segments(found: Segments) -> str:
    """The segments so far, for the follow-up prompt."""
    return "\n".join(clean_line(segment.text) for segment in found.segments) or "-"


def merge_segments(one: Segments, other: Segments) -> Segments:
    """Merge two answers; a repeated sentence only adds the entities it lacked."""
    by_text: dict[str, list[Segment]] = {}
    for segment in (*one.segments, *other.segments):
        by_text.setdefault(fold(segment.text), []).append(segment)
    return Segments(segments=[_merge_same_text(same) for same in by_text.values()])


def _merge_same_text(same: Iterable[Segment]) -> Segment:
    first, *_ = segments = list(same)
    things = unique_by((x for s in segments for x in s.entities), lambda x: normalize_name(x.name))
    return first.model_copy(update={"entities": things})


NARY_EXTRACTION = PromptedExtraction(
    NARY_PROMPT, NARY_MORE_PROMPT, describe_segments, merge_segments, collect_segments
)
