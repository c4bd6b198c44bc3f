"""Schema-bounded extraction: items outside the schema are dropped, new types only proposed."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from clew.extract.collect import ExtractionCollector, clean_line, literal_type
from clew.extract.locate import ChunkLocator
from clew.extract.model_calls import ChunkAsker, extract_chunks, fold_example, model_name
from clew.extract.response_models import SchemaAnswer
from clew.extract.schema import DEFAULT_SCHEMA, TYPE_KINDS, Schema, TypeKind
from clew.extract.schema_growth import Proposal
from clew.llm.chat import Chat
from clew.llm.prompt import Prompt
from clew.text.language import prompt_language
from clew.text.unicode import normalize_name
from clew.types import Chunk, Document, Extraction

SCHEMA_PROMPT = Prompt("schema", SchemaAnswer, {"schema", "text"}, documents={"text"})
AnswerCallback = Callable[[Chunk, SchemaAnswer], None]
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
    on_answer: AnswerCallback = field(default=lambda chunk, answer: None, repr=False, compare=False)
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
            answer = SchemaAnswer()
            if chunk.text.strip():
                ask = ChunkAsker(self.chat, chunk, self.dropped, self.max_tokens)
                answer = await ask(SCHEMA_PROMPT, schema=render_schema(self.schema))
                self.on_answer(chunk, answer)
            return apply_schema(answer, self.schema, document.title, chunk, self.dropped)

        return await extract_chunks(chunks, one)


def render_schema(schema: Schema) -> str:
    """The schema as text for the prompt."""
    tables = {"entity": "entity types", "relation": "relations", "attribute": "attributes"}
    parts = []
    for kind in TYPE_KINDS:
        lines = [f"- {x.name}: {x.description}".rstrip(": ") for x in schema.types_of(kind)]
        parts.append("\n".join([f"{tables[kind]}:", *(lines or ["-"])]))
    return "\n".join(parts)


def apply_schema(
    answer: SchemaAnswer, schema: Schema, title: str, chunk: Chunk, dropped: Counter[str]
) -> Extraction:
    """Keep the part of an answer that fits the schema; pure, so that it can be applied again."""
    example = fold_example(SCHEMA_PROMPT.template, SCHEMA_PROMPT.out, prompt_language(chunk.text))
    collector = ExtractionCollector(ChunkLocator(chunk), title, example, dropped)
    typed, foreign = _split_by_type(answer, schema, dropped)
    attributes = _collect_attributes(answer, schema, typed, dropped)
    for key, (name, kind, description) in typed.items():
        collector.add_entity(name, kind, description, attributes.get(key))
    for triple in answer.triples:
        relation = schema.find("relation", triple.relation)
        if relation is None:
            dropped["relation outside the schema"] += 1
        elif foreign & {
            normalize_name(clean_line(triple.head)),
            normalize_name(clean_line(triple.tail)),
        }:
            dropped["triple with an entity outside the schema"] += 1
        else:
            collector.add_triple(triple.head, relation.name, triple.tail)
    return collector.to_extraction()


TypedEntities = dict[str, tuple[str, str, str]]


def _split_by_type(
    answer: SchemaAnswer, schema: Schema, dropped: Counter[str]
) -> tuple[TypedEntities, set[str]]:
    """Entities with a type of the schema (key → name, type, description), and keys of the others.

    An entity used in a triple but not listed is in neither: it is added without a type.
    """
    typed: TypedEntities = {}
    foreign: set[str] = set()
    for thing in answer.entities:
        kind = schema.find("entity", thing.type)
        name = clean_line(thing.name)
        if kind is not None or literal_type(name):
            found = (name, kind.name if kind else "", thing.description)
            typed.setdefault(normalize_name(name), found)
        else:
            dropped["entity type outside the schema"] += 1
            foreign.add(normalize_name(name))
    return typed, foreign - typed.keys()


def _collect_attributes(
    answer: SchemaAnswer, schema: Schema, typed: TypedEntities, dropped: Counter[str]
) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for attribute in answer.attributes:
        kind = schema.find("attribute", attribute.name)
        key, value = normalize_name(clean_line(attribute.entity)), clean_line(attribute.value)
        if kind is None or key not in typed:
            dropped["attribute outside the schema"] += 1
        elif value:
            known = found.setdefault(key, {})
            previous = known.get(kind.name, "")
            values = dict.fromkeys([*filter(None, previous.split("; ")), value])
            known[kind.name] = "; ".join(values)
    return found


def collect_proposals(chunk: str, answer: SchemaAnswer) -> list[Proposal]:
    """The new types proposed in the answer for one chunk."""
    found = []
    for new in answer.new_types:
        kind = _parse_kind(new.kind)
        if kind and clean_line(new.name):
            found.append(
                Proposal(
                    kind, clean_line(new.name), new.confidence, chunk, clean_line(new.description)
                )
            )
    return found


def _parse_kind(text: str) -> TypeKind | None:
    """Parse a kind from spellings such as `entity type`, `Relations`, `attribute_type`."""
    word = text.strip().casefold()
    starts: dict[str, TypeKind] = {"entit": "entity", "relation": "relation", "attrib": "attribute"}
    return next((kind for start, kind in starts.items() if word.startswith(start)), None)
