"""Extractors that ask a model, by their names in the settings.

`triples` extracts entities and binary relations with types, keywords and weights; `nary` extracts
sentences with all their entities (hyperedges); `propositions` extracts sentences and names alone;
`schema` is bounded by a schema.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

from clew.extract.collect import ExtractionCollector, clean_line
from clew.extract.locate import fold
from clew.extract.model_calls import Gleaning, PromptedExtraction, model_name, unique_by
from clew.extract.response_models import (
    ExtractedGraph,
    Proposition,
    PropositionList,
    Segment,
    Segments,
)
from clew.extract.schema_bounded import Bounded
from clew.llm.chat import Chat
from clew.llm.prompt import Prompt
from clew.text.unicode import normalize_name
from clew.types import Chunk, Document, Extraction


@dataclass(frozen=True)
class PromptedExtractor:
    """An extractor by one `extraction`; its limits and its model are part of its `repr`."""

    extraction: ClassVar[PromptedExtraction[Any]]
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
        return await self.extraction(self, document, chunks)


TRIPLES_PROMPT = Prompt("triples", ExtractedGraph, {"text"}, documents={"text"})
TRIPLES_MORE_PROMPT = Prompt(
    "triples_more", ExtractedGraph, {"text", "known"}, documents={"text", "known"}
)


def collect_graph(graph: ExtractedGraph, collector: ExtractionCollector) -> None:
    """Add the entities first, so that relations find them with type and description."""
    for thing in graph.entities:
        collector.add_entity(thing.name, thing.type.lower(), thing.description)
    for link in graph.relations:
        collector.add_triple(
            link.head, link.relation, link.tail, link.keywords, link.description, link.weight
        )


def describe_graph(graph: ExtractedGraph) -> str:
    """The entities and relations so far, for the follow-up prompt."""
    names = dict.fromkeys(clean_line(thing.name) for thing in graph.entities)
    links = [
        f"{clean_line(x.head)} | {clean_line(x.relation)} | {clean_line(x.tail)}"
        for x in graph.relations
    ]
    return "\n".join([*names, "", *links]).strip() or "-"


def merge_graphs(one: ExtractedGraph, other: ExtractedGraph) -> ExtractedGraph:
    """Merge two answers without duplicates; the first occurrence is kept."""
    graphs = (one,) if other is one else (one, other)
    # Skips validation: the parts are valid already.
    return ExtractedGraph.model_construct(
        entities=unique_by(
            (x for g in graphs for x in g.entities), lambda x: normalize_name(x.name)
        ),
        relations=unique_by(
            (x for g in graphs for x in g.relations),
            lambda x: (normalize_name(x.head), normalize_name(x.relation), normalize_name(x.tail)),
        ),
    )


TRIPLES_EXTRACTION = PromptedExtraction(
    TRIPLES_PROMPT, TRIPLES_MORE_PROMPT, describe_graph, merge_graphs, collect_graph
)


class Triples(PromptedExtractor):
    """Extractor of entities and relations; `version` increases with changes of the prompts."""

    extraction = TRIPLES_EXTRACTION


NARY_PROMPT = Prompt("nary", Segments, {"text"}, documents={"text"})
NARY_MORE_PROMPT = Prompt("nary_more", Segments, {"text", "known"}, documents={"text", "known"})


def collect_segments(found: Segments, collector: ExtractionCollector) -> None:
    """Add each segment with its usable entities."""
    for segment in found.segments:
        names = [
            collector.add_entity(thing.name, thing.type.lower(), thing.description)
            for thing in segment.entities
        ]
        collector.add_segment(segment.text, names, segment.score)


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


class Nary(PromptedExtractor):
    """Extractor of n-ary facts; `version` increases with changes of the prompts."""

    extraction = NARY_EXTRACTION


PROPOSITIONS_PROMPT = Prompt("propositions", PropositionList, {"text"}, documents={"text"})
PROPOSITIONS_MORE_PROMPT = Prompt(
    "propositions_more", PropositionList, {"text", "known"}, documents={"text", "known"}
)


def collect_propositions(found: PropositionList, collector: ExtractionCollector) -> None:
    """Add each proposition with its usable names."""
    for one in found.propositions:
        collector.add_segment(one.text, [collector.add_entity(name) for name in one.entities])


def describe_propositions(found: PropositionList) -> str:
    """The propositions so far, for the follow-up prompt."""
    return "\n".join(clean_line(one.text) for one in found.propositions) or "-"


def merge_propositions(one: PropositionList, other: PropositionList) -> PropositionList:
    """Merge two answers; a repeated sentence only adds the names it lacked."""
    by_text: dict[str, Proposition] = {}
    for found in (*one.propositions, *other.propositions):
        first = by_text.setdefault(fold(found.text), found)
        names = unique_by((*first.entities, *found.entities), normalize_name)
        by_text[fold(found.text)] = first.model_copy(update={"entities": names})
    return PropositionList(propositions=list(by_text.values()))


PROPOSITIONS_EXTRACTION = PromptedExtraction(
    PROPOSITIONS_PROMPT,
    PROPOSITIONS_MORE_PROMPT,
    describe_propositions,
    merge_propositions,
    collect_propositions,
)


class Propositions(PromptedExtractor):
    """Extractor of self-contained sentences; `version` increases with changes of the prompts."""

    extraction = PROPOSITIONS_EXTRACTION


class DocumentExtractor(Protocol):
    """Extracts entities and facts from chunks; its `repr` is part of a document's stamp."""

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """Return one extraction per chunk, in order."""


def with_limits(
    extractor: DocumentExtractor, gleaning: Gleaning, max_tokens: int
) -> DocumentExtractor:
    """A copy of the extractor with these limits, as far as it has them."""
    match extractor:
        case PromptedExtractor():
            return replace(extractor, gleaning=gleaning, max_tokens=max_tokens)
        case Bounded():
            return replace(extractor, max_tokens=max_tokens)
    return extractor


MODEL_EXTRACTORS: dict[str, Callable[[Chat], DocumentExtractor]] = {
    "triples": Triples,
    "schema": Bounded,
    "nary": Nary,
    "propositions": Propositions,
}
