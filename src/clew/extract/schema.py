"""Schema-bounded extraction: items outside the schema are dropped, new types only proposed."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from clew.extract.answers import Bound
from clew.extract.asking import Asker, each_chunk, model_name, worked_example
from clew.extract.found import Harvest, literal_type, tidy
from clew.extract.growth import Proposal
from clew.extract.language import prompt_language
from clew.extract.locate import Places
from clew.extract.schema_file import DEFAULT_SCHEMA, KINDS, Schema, TypeKind
from clew.llm.chat import Chat
from clew.llm.prompt import Prompt
from clew.text import normal_name
from clew.types import Chunk, Document, Extraction

FIND = Prompt("schema", Bound, {"schema", "text"}, documents={"text"})

Hear = Callable[[Chunk, Bound], None]
"""Receives each chunk's unfiltered answer, which holds the proposed types."""


@dataclass(frozen=True)
class Bounded:
    """Extractor bounded by a schema; `version` increases with changes of the prompts.

    `seed` identifies the schema a user wrote: growth alone does not cause re-extraction.
    """

    chat: Chat = field(repr=False, compare=False)
    schema: Schema = field(default=DEFAULT_SCHEMA, repr=False)
    seed: str = ""
    max_tokens: int = 4096
    version: int = 1
    model: str = field(default="", init=False)
    hear: Hear = field(default=lambda chunk, answer: None, repr=False, compare=False)
    dropped: Counter[str] = field(default_factory=Counter, repr=False, compare=False)
    """Dropped items so far, by reason."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", model_name(self.chat))
        if not self.seed:
            object.__setattr__(self, "seed", self.schema.digest())

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk, all requested concurrently."""

        async def one(chunk: Chunk) -> Extraction:
            answer = Bound()
            if chunk.text.strip():
                ask = Asker(self.chat, chunk, self.dropped, self.max_tokens)
                answer = await ask(FIND, schema=shown_schema(self.schema))
                self.hear(chunk, answer)
            return bounded(answer, self.schema, document.title, chunk, self.dropped)

        return await each_chunk(chunks, one)


def shown_schema(schema: Schema) -> str:
    """The schema as text for the prompt."""
    tables = {"entity": "entity types", "relation": "relations", "attribute": "attributes"}
    parts = []
    for kind in KINDS:
        lines = [f"- {x.name}: {x.description}".rstrip(": ") for x in schema.of(kind)]
        parts.append("\n".join([f"{tables[kind]}:", *(lines or ["-"])]))
    return "\n".join(parts)


def bounded(
    answer: Bound, schema: Schema, title: str, chunk: Chunk, dropped: Counter[str]
) -> Extraction:
    """Keep the part of an answer that fits the schema; pure, so that it can be applied again."""
    example = worked_example(FIND.page, FIND.out, prompt_language(chunk.text))
    collector = Harvest(Places(chunk), title, example, dropped)
    typed, foreign = _typed(answer, schema, dropped)
    attributes = _attributes(answer, schema, typed, dropped)
    for key, (name, kind, description) in typed.items():
        collector.entity(name, kind, description, attributes.get(key))
    for triple in answer.triples:
        relation = schema.named("relation", triple.relation)
        if relation is None:
            dropped["relation outside the schema"] += 1
        elif foreign & {normal_name(tidy(triple.head)), normal_name(tidy(triple.tail))}:
            dropped["triple with an entity outside the schema"] += 1
        else:
            collector.triple(triple.head, relation.name, triple.tail)
    return collector.extraction()


Typed = dict[str, tuple[str, str, str]]


def _typed(answer: Bound, schema: Schema, dropped: Counter[str]) -> tuple[Typed, set[str]]:
    """Entities with a type of the schema (key → name, type, description), and keys of the others.

    An entity used in a triple but not listed is in neither: it is added without a type.
    """
    typed: Typed = {}
    foreign: set[str] = set()
    for thing in answer.entities:
        kind = schema.named("entity", thing.type)
        name = tidy(thing.name)
        if kind is not None or literal_type(name):
            found = (name, kind.name if kind else "", thing.description)
            typed.setdefault(normal_name(name), found)
        else:
            dropped["entity type outside the schema"] += 1
            foreign.add(normal_name(name))
    return typed, foreign - typed.keys()


def _attributes(
    answer: Bound, schema: Schema, typed: Typed, dropped: Counter[str]
) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for attribute in answer.attributes:
        kind = schema.named("attribute", attribute.name)
        key, value = normal_name(tidy(attribute.entity)), tidy(attribute.value)
        if kind is None or key not in typed:
            dropped["attribute outside the schema"] += 1
        elif value:
            known = found.setdefault(key, {})
            previous = known.get(kind.name, "")
            values = dict.fromkeys([*filter(None, previous.split("; ")), value])
            known[kind.name] = "; ".join(values)
    return found


def proposals_of(chunk: str, answer: Bound) -> list[Proposal]:
    """The new types proposed in the answer for one chunk."""
    found = []
    for new in answer.new_types:
        kind = _kind(new.kind)
        if kind and tidy(new.name):
            found.append(
                Proposal(kind, tidy(new.name), new.confidence, chunk, tidy(new.description))
            )
    return found


def _kind(text: str) -> TypeKind | None:
    """Parse a kind from spellings such as `entity type`, `Relations`, `attribute_type`."""
    word = text.strip().casefold()
    starts: dict[str, TypeKind] = {"entit": "entity", "relation": "relation", "attrib": "attribute"}
    return next((kind for start, kind in starts.items() if word.startswith(start)), None)
