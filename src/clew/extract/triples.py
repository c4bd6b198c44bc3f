"""Extraction of entities and binary relations by a model, with types, keywords and weights."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from clew.extract.answers import ExtractedGraph
from clew.extract.asking import model_name
from clew.extract.found import ExtractionCollector, clean_line
from clew.extract.gleaning import Gleaning, unique_by
from clew.extract.manner import PromptedExtraction
from clew.llm.chat import Chat
from clew.llm.prompt import Prompt
from clew.text import normalize_name
from clew.types import Chunk, Document, Extraction

TRIPLES_PROMPT = Prompt("triples", ExtractedGraph, {"text"}, documents={"text"})
TRIPLES_MORE_PROMPT = Prompt(
    "triples_more", ExtractedGraph, {"text", "known"}, documents={"text", "known"}
)


@dataclass(frozen=True)
class Triples:
    """Extractor of entities and relations; `version` increases with changes of the prompts."""

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
        return await TRIPLES_EXTRACTION(self, document, chunks)


def collect_graph(graph: ExtractedGraph, harvest: ExtractionCollector) -> None:
    """Add the entities first, so that relations find them with type and description."""
    for thing in graph.entities:
        harvest.add_entity(thing.name, thing.type.lower(), thing.description)
    for link in graph.relations:
        harvest.add_triple(
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
