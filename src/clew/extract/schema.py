"""Extraction bounded by a schema: what is outside it is dropped, new types are only proposed."""

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
"""Gets each chunk's whole answer: for proposals, and for bounding it anew when the schema grew."""


@dataclass(frozen=True)
class Bounded:
    """Asks for what the schema knows, chunk by chunk; `version` grows with the prompts.

    `seed` marks the schema a person wrote: growth alone is no reason to extract all again.
    """

    chat: Chat = field(repr=False, compare=False)
    schema: Schema = field(default=DEFAULT_SCHEMA, repr=False)
    seed: str = ""
    max_tokens: int = 4096
    version: int = 1
    model: str = field(default="", init=False)
    hear: Hear = field(default=lambda chunk, answer: None, repr=False, compare=False)
    dropped: Counter[str] = field(default_factory=Counter, repr=False, compare=False)
    """What was left out so far, by reason."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", model_name(self.chat))
        if not self.seed:
            object.__setattr__(self, "seed", self.schema.digest())

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        """One extraction per chunk, all asked at once."""

        async def one(chunk: Chunk) -> Extraction:
            answer = Bound()
            if chunk.text.strip():
                ask = Asker(self.chat, chunk, self.dropped, self.max_tokens)
                answer = await ask(FIND, schema=shown_schema(self.schema))
                self.hear(chunk, answer)
            return bounded(answer, self.schema, document.title, chunk, self.dropped)

        return await each_chunk(chunks, one)


def shown_schema(schema: Schema) -> str:
    """The schema as the model reads it."""
    tables = {"entity": "entity types", "relation": "relations", "attribute": "attributes"}
    parts = []
    for kind in KINDS:
        lines = [f"- {x.name}: {x.description}".rstrip(": ") for x in schema.of(kind)]
        parts.append("\n".join([f"{tables[kind]}:", *(lines or ["-"])]))
    return "\n".join(parts)


def bounded(
    answer: Bound, schema: Schema, title: str, chunk: Chunk, dropped: Counter[str]
) -> Extraction:
    """Keep of an answer what the schema knows; pure, so that a grown schema can be tried on it."""
    example = worked_example(FIND.page, FIND.out, prompt_language(chunk.text))
    harvest = Harvest(Places(chunk), title, example, dropped)
    typed, foreign = _typed(answer, schema, dropped)
    attributes = _attributes(answer, schema, typed, dropped)
    for key, (name, kind, description) in typed.items():
        harvest.entity(name, kind, description, attributes.get(key))
    for triple in answer.triples:
        relation = schema.named("relation", triple.relation)
        if relation is None:
            dropped["relation outside the schema"] += 1
        elif foreign & {normal_name(tidy(triple.head)), normal_name(tidy(triple.tail))}:
            dropped["triple with an entity outside the schema"] += 1
        else:
            harvest.triple(triple.head, relation.name, triple.tail)
    return harvest.extraction()


Typed = dict[str, tuple[str, str, str]]


def _typed(answer: Bound, schema: Schema, dropped: Counter[str]) -> tuple[Typed, set[str]]:
    """Key → name, type, description of the entities that the schema has a type for; the others.

    What a model uses in a triple and forgot to list is in neither: it comes in without a type.
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
    for one in answer.attributes:
        kind = schema.named("attribute", one.name)
        key, value = normal_name(tidy(one.entity)), tidy(one.value)
        if kind is None or key not in typed:
            dropped["attribute outside the schema"] += 1
        elif value:
            known = found.setdefault(key, {})
            said = known.get(kind.name, "")
            values = dict.fromkeys([*filter(None, said.split("; ")), value])
            known[kind.name] = "; ".join(values)
    return found


def proposals_of(chunk: str, answer: Bound) -> list[Proposal]:
    """The new types that one chunk's answer speaks for."""
    found = []
    for one in answer.new_types:
        kind = _kind(one.kind)
        if kind and tidy(one.name):
            found.append(
                Proposal(kind, tidy(one.name), one.confidence, chunk, tidy(one.description))
            )
    return found


def _kind(said: str) -> TypeKind | None:
    """The kind that is meant by `entity type`, `Relations`, `attribute_type`."""
    word = said.strip().casefold()
    starts: dict[str, TypeKind] = {"entit": "entity", "relation": "relation", "attrib": "attribute"}
    return next((kind for start, kind in starts.items() if word.startswith(start)), None)
