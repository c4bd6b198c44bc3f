"""Maps the fields of nodes and edges to name, type, weight…; other fields become attributes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from clew.ingest.graphs.delimited import number_in
from clew.ingest.graphs.rows import Link, Node
from clew.text import clean

NAMES = ("name", "label", "title", "preflabel", "displayname")
TYPES = ("type", "kind", "category", "labels", "class")
DESCRIPTIONS = ("description", "comment", "summary")
ALIASES = ("aliases", "alias", "altlabel", "synonyms")
RELATIONS = (
    "relation",
    "relationship",
    "predicate",
    "label",
    "type",
    "name",
    "interaction",
    "labele",
)
WEIGHTS = ("weight", "score", "confidence")
UNNAMED = "related to"  # relation of an edge without one


def text_of(value: Any) -> str:
    """Return a cell as text; values other than strings as JSON."""
    if isinstance(value, str):
        return clean(value).strip()
    return "" if value is None else clean(json.dumps(value, ensure_ascii=False))


def plain_name(field: str) -> str:
    """Return a field name without case, space and underscore, for comparison."""
    return field.replace("_", "").replace(" ", "").casefold()


def _taken(fields: dict[str, Any], names: tuple[str, ...]) -> Any:
    """Remove and return the first of these fields that is not empty, else ""."""
    plain = {plain_name(key): key for key in fields}
    for name in names:
        if name in plain and text_of(fields[plain[name]]):
            return fields.pop(plain[name])
    return ""


def labelled(labels: Sequence[Any], fields: dict[str, Any]) -> str:
    """Return the first label as the type; the others are added to `fields`."""
    kind, *others = [label for label in map(text_of, labels) if label] or [""]
    if others:
        fields.setdefault("labels", ", ".join(others))
    return kind


def node_of(key: str, fields: Mapping[str, Any], kind: str = "") -> Node:
    """Make a node from its fields."""
    left = dict(fields)
    name = text_of(_taken(left, NAMES))
    kind = kind or text_of(_taken(left, TYPES))
    description = text_of(_taken(left, DESCRIPTIONS))
    aliases = _texts(_taken(left, ALIASES))
    attributes = {clean(str(k)).strip(): text_of(v) for k, v in left.items()}
    attributes = {k: v for k, v in attributes.items() if k and v}
    return Node(key, name, kind, description, aliases, attributes)


def link_of(head: str, tail: str, fields: Mapping[str, Any], relation: str = "") -> Link:
    """Make a link from its fields; unknown fields are added to its description."""
    left = dict(fields)
    relation = relation or text_of(_taken(left, RELATIONS)) or UNNAMED
    weight = number_in(text_of(_taken(left, WEIGHTS)) or "1")
    described = text_of(_taken(left, DESCRIPTIONS))
    keywords = _texts(_taken(left, ("keywords",)))
    text = text_of(_taken(left, ("text", "sentence")))
    more = [f"{text_of(k)}: {text_of(v)}" for k, v in left.items() if text_of(v)]
    described = "; ".join([*([described] if described else []), *more])
    return Link(head, relation, tail, 1.0 if weight is None else weight, described, keywords, text)


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            value = [value]
    many = value if isinstance(value, list | tuple) else [value]
    return tuple(text for text in map(text_of, many) if text)
