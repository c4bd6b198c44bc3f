"""Pydantic models of the replies to the extraction prompts, with lenient validators.

Small models write a name instead of an object, a list instead of a triple, one string instead of
a list; where the meaning is clear, it is accepted.
"""

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from clew.llm.plain import patient

_NAME = ("name", "entity", "entity_name", "id", "text")
_HEAD = ("head", "subject", "source", "from")
_RELATION = ("relation", "predicate", "relationship", "type", "label")
_TAIL = ("tail", "object", "target", "to")


# Every item of every answer passes these validators, and most are valid: that case comes first.


@patient()
def _listed(value: Any) -> Any:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


@patient(ge=0.0, le=1.0)
def _share(value: Any) -> Any:
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


@patient()
def _or_empty(value: Any) -> Any:
    if type(value) is str:
        return value
    return "" if value is None else _spelt(value)


@patient()
def _spelt(value: Any) -> Any:
    """Convert a number to text: 1963 is a valid name."""
    if type(value) is str:
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if number else value


def _first_of(given: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((given[name] for name in names if name in given), None)


def _told(text: str) -> Any:
    """Field description, which is also its placeholder value in the example JSON."""
    return Field(description=text)


Words = Annotated[list[Annotated[str, _told("keyword")]], BeforeValidator(_listed)]
Share = Annotated[float, BeforeValidator(_share)]
Text = Annotated[str, BeforeValidator(_or_empty)]
Name = Annotated[str, BeforeValidator(_spelt)]


class Thing(BaseModel):
    """An entity as the model names it."""

    name: Annotated[Name, _told("full name from the passage")]
    type: Annotated[Text, _told("its type")] = ""
    description: Annotated[Text, _told("what the passage says of it")] = ""

    @model_validator(mode="before")
    @classmethod
    @patient()
    def _lenient(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"name": given}
        if isinstance(given, dict) and "name" not in given:
            return given | {"name": _first_of(given, _NAME)}
        return given


class Triple(BaseModel):
    """Two entities and what joins them."""

    head: Annotated[Name, _told("name of an entity")]
    relation: Annotated[Name, _told("what joins them")]
    tail: Annotated[Name, _told("name of another entity")]

    @model_validator(mode="before")
    @classmethod
    @patient()
    def _lenient(cls, given: Any) -> Any:
        if isinstance(given, list) and len(given) == 3:
            return dict(zip(("head", "relation", "tail"), given, strict=True))
        if not isinstance(given, dict) or all(key in given for key in ("head", "relation", "tail")):
            return given
        parts = (("head", _HEAD), ("relation", _RELATION), ("tail", _TAIL))
        return given | {key: _first_of(given, names) for key, names in parts}


class Relation(Triple):
    """A triple with what there is to say about it."""

    keywords: Words = []
    description: Annotated[Text, _told("the fact as a sentence")] = ""
    weight: Share = 1.0


class Graph(BaseModel):
    """What `triples` asks for."""

    entities: list[Thing] = []
    relations: list[Relation] = []

    @model_validator(mode="before")
    @classmethod
    @patient()
    def _lenient(cls, given: Any) -> Any:
        if isinstance(given, dict) and "relations" not in given:
            others = _first_of(given, ("triples", "relationships", "edges", "facts"))
            return given if others is None else given | {"relations": others}
        return given


class Segment(BaseModel):
    """One sentence of knowledge, its entities, and how well it stands by itself."""

    text: Annotated[str, _told("one fact as a complete sentence")]
    entities: list[Thing] = []
    score: Share = 1.0


class Segments(BaseModel):
    """What `nary` asks for."""

    segments: list[Segment] = []


class Verdict(BaseModel):
    """What the judge of a loop says: are the notes complete, or is something missing."""

    verdict: Literal["complete", "missing"]


class Attribute(BaseModel):
    """A property of one entity."""

    entity: Annotated[Name, _told("name of an entity")]
    name: Annotated[Name, _told("an attribute of the schema")]
    value: Annotated[Name, _told("a few words from the passage")]


class NewType(BaseModel):
    """A type that the schema lacks, as the model sees it."""

    kind: Annotated[str, _told("entity, relation or attribute")]
    name: Annotated[str, _told("short general name")]
    description: Annotated[Text, _told("what it means")] = ""
    confidence: Share = 0.0


class Bound(BaseModel):
    """What `schema` asks for."""

    entities: list[Thing] = []
    attributes: list[Attribute] = []
    triples: list[Triple] = []
    new_types: list[NewType] = []
