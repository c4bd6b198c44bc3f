"""Extraction of entities and binary relations by a model, with types, keywords and weights."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from clew.extract.answers import Graph
from clew.extract.asking import model_name
from clew.extract.found import Harvest, tidy
from clew.extract.gleaning import Gleaning, distinct
from clew.extract.manner import Manner
from clew.llm.chat import Chat
from clew.llm.prompt import Prompt
from clew.text import normal_name
from clew.types import Chunk, Document, Extraction

FIND = Prompt("triples", Graph, {"text"}, documents={"text"})
MORE = Prompt("triples_more", Graph, {"text", "known"}, documents={"text", "known"})


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
        return await MANNER(self, document, chunks)


def gather(graph: Graph, harvest: Harvest) -> None:
    """Add the entities first, so that relations find them with type and description."""
    for thing in graph.entities:
        harvest.entity(thing.name, thing.type.lower(), thing.description)
    for link in graph.relations:
        harvest.triple(
            link.head, link.relation, link.tail, link.keywords, link.description, link.weight
        )


def told(graph: Graph) -> str:
    """The entities and relations so far, for the follow-up prompt."""
    names = dict.fromkeys(tidy(thing.name) for thing in graph.entities)
    links = [f"{tidy(x.head)} | {tidy(x.relation)} | {tidy(x.tail)}" for x in graph.relations]
    return "\n".join([*names, "", *links]).strip() or "-"


def joined(one: Graph, other: Graph) -> Graph:
    """Merge two answers without duplicates; the first occurrence is kept."""
    graphs = (one,) if other is one else (one, other)
    # Skips validation: the parts are valid already.
    return Graph.model_construct(
        entities=distinct((x for g in graphs for x in g.entities), lambda x: normal_name(x.name)),
        relations=distinct(
            (x for g in graphs for x in g.relations),
            lambda x: (normal_name(x.head), normal_name(x.relation), normal_name(x.tail)),
        ),
    )


MANNER = Manner(FIND, MORE, told, joined, gather)
