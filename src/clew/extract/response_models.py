"""Pydantic models of the replies to the extraction prompts, with lenient validators.

Small models write a name instead of an object, a list instead of a triple, one string instead of
a list; where the meaning is clear, it is accepted.
"""

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, model_validator

_NAME_KEYS = ("name", "entity", "entity_name", "id", "text")
_HEAD_KEYS = ("head", "subject", "source", "from")
_RELATION_KEYS = ("relation", "predicate", "relationship", "type", "label")
_TAIL_KEYS = ("tail", "object", "target", "to")


# Every item of every answer passes these validators, and most are valid: that case comes first.


def _split_list(value: Any) -> Any:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _to_fraction(value: Any) -> Any:
    """Coerce a weight to 0 to 1, also if given out of ten or in per cent."""
    if type(value) is float and 0.0 <= value <= 1.0:
        return value
    try:
        number = float(str(value).strip().rstrip("%"))
    except ValueError:
        return value
    if not math.isfinite(number):
        return 1.0
    if number > 1:
        number /= 10 if number <= 10 else 100
    return min(1.0, max(0.0, number))


def _to_text(value: Any) -> Any:
    if type(value) is str:
        return value
    return "" if value is None else _number_to_text(value)


def _number_to_text(value: Any) -> Any:
    """Convert a number to text: 1963 is a valid name."""
    if type(value) is str:
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if number else value


def _first_value(given: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((given[name] for name in names if name in given), None)


def _to_name(value: Any) -> Any:
    """Take the name of an entity that is given as an object."""
    return _number_to_text(_first_value(value, _NAME_KEYS) if isinstance(value, dict) else value)


def _describe(text: str) -> Any:
    """Field description, which is also its placeholder value in the example JSON."""
    return Field(description=text)


Keywords = Annotated[list[Annotated[str, _describe("keyword")]], BeforeValidator(_split_list)]
Fraction = Annotated[float, BeforeValidator(_to_fraction)]
OptionalText = Annotated[str, BeforeValidator(_to_text)]
Name = Annotated[str, BeforeValidator(_number_to_text)]
MemberName = Annotated[str, BeforeValidator(_to_name), _describe("full name from the passage")]


class ExtractedEntity(BaseModel, title="Thing"):
    """An entity as the model names it."""

    name: Annotated[Name, _describe("full name from the passage")]
    type: Annotated[OptionalText, _describe("its type")] = ""
    description: Annotated[OptionalText, _describe("what the passage says of it")] = ""

    @model_validator(mode="before")
    @classmethod
    def _coerce(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"name": given}
        if isinstance(given, dict) and "name" not in given:
            return given | {"name": _first_value(given, _NAME_KEYS)}
        return given


class ExtractedTriple(BaseModel, title="Triple"):
    """Two entities and what joins them."""

    head: Annotated[Name, _describe("name of an entity")]
    relation: Annotated[Name, _describe("what joins them")]
    tail: Annotated[Name, _describe("name of another entity")]

    @model_validator(mode="before")
    @classmethod
    def _coerce(cls, given: Any) -> Any:
        if isinstance(given, list) and len(given) == 3:
            return dict(zip(("head", "relation", "tail"), given, strict=True))
        if not isinstance(given, dict) or all(key in given for key in ("head", "relation", "tail")):
            return given
        parts = (("head", _HEAD_KEYS), ("relation", _RELATION_KEYS), ("tail", _TAIL_KEYS))
        return given | {key: _first_value(given, names) for key, names in parts}


class Relation(ExtractedTriple, title="Relation"):
    """A triple with what there is to say about it."""

    keywords: Keywords = []
    description: Annotated[OptionalText, _describe("the fact as a sentence")] = ""
    weight: Fraction = 1.0


class ExtractedGraph(BaseModel, title="Graph"):
    """What `triples` asks for."""

    entities: list[ExtractedEntity] = []
    relations: list[Relation] = []

    @model_validator(mode="before")
    @classmethod
    def _coerce(cls, given: Any) -> Any:
        if isinstance(given, dict) and "relations" not in given:
            others = _first_value(given, ("triples", "relationships", "edges", "facts"))
            return given if others is None else given | {"relations": others}
        return given


class Segment(BaseModel):
    """One sentence of knowledge, its entities, and how well it stands by itself."""

    text: Annotated[str, _describe("one fact as a complete sentence")]
    entities: list[ExtractedEntity] = []
    score: Fraction = 1.0


class Segments(BaseModel):
    """What `nary` asks for."""

    segments: list[Segment] = []


class Proposition(BaseModel):
    """A sentence that stands by itself, and the names in it."""

    text: Annotated[str, _describe("one fact as a complete sentence")]
    entities: Annotated[list[MemberName], BeforeValidator(_split_list)] = []


class PropositionList(BaseModel, title="Propositions"):
    """What `propositions` asks for."""

    propositions: list[Proposition] = []


class CompletenessVerdict(BaseModel, title="Verdict"):
    """What the judge of a loop says: are the notes complete, or is something missing."""

    verdict: Literal["complete", "missing"]


class Attribute(BaseModel):
    """A property of one entity."""

    entity: Annotated[Name, _describe("name of an entity")]
    name: Annotated[Name, _describe("an attribute of the schema")]
    value: Annotated[Name, _describe("a few words from the passage")]


class NewType(BaseModel):
    """A type that the schema lacks, as the model sees it."""

    kind: Annotated[str, _describe("entity, relation or attribute")]
    name: Annotated[str, _describe("short general name")]
    description: Annotated[OptionalText, _describe("what it means")] = ""
    confidence: Fraction = 0.0


class SchemaAnswer(BaseModel, title="Bound"):
    """What `schema` asks for."""

    entities: list[ExtractedEntity] = []
    attributes: list[Attribute] = []
    triples: list[ExtractedTriple] = []
    new_types: list[NewType] = []
