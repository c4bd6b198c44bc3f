"""Maps the fields of nodes, edges and n-ary facts to name, type, weight…; others are attributes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from clew.ingest.graphs.delimited import parse_number
from clew.ingest.graphs.rows import Link, Node, Row, UnreadableRow
from clew.text.unicode import clean

NAME_FIELDS = ("name", "label", "title", "preflabel", "displayname")
TYPE_FIELDS = ("type", "kind", "category", "labels", "class")
DESCRIPTION_FIELDS = ("description", "comment", "summary")
ALIAS_FIELDS = ("aliases", "alias", "altlabel", "synonyms")
RELATION_FIELDS = tuple(
    "relation relationship predicate label type name interaction labele".split()
)
WEIGHT_FIELDS = ("weight", "score", "confidence")
MEMBERS_FIELD = "clew_members"  # the (name, role) pairs of an n-ary fact in our own exports
DEFAULT_RELATION = "related to"  # relation of an edge without one


def to_text(value: Any) -> str:
    """Return a cell as text; values other than strings as JSON."""
    if isinstance(value, str):
        return clean(value).strip()
    return "" if value is None else clean(json.dumps(value, ensure_ascii=False))


def normalize_field_name(field: str) -> str:
    """Return a field name without case, space and underscore, for comparison."""
    return field.replace("_", "").replace(" ", "").casefold()


def _pop_first(fields: dict[str, Any], names: tuple[str, ...]) -> Any:
    """Remove and return the first of these fields that is not empty, else ""."""
    plain = {normalize_field_name(key): key for key in fields}
    for name in names:
        if name in plain and to_text(fields[plain[name]]):
            return fields.pop(plain[name])
    return ""


def type_from_labels(labels: Sequence[Any], fields: dict[str, Any]) -> str:
    """Return the first label as the type; the others are added to `fields`."""
    kind, *others = [label for label in map(to_text, labels) if label] or [""]
    if others:
        fields.setdefault("labels", ", ".join(others))
    return kind


def make_node(key: str, fields: Mapping[str, Any], kind: str = "") -> Node:
    """Make a node from its fields."""
    left = dict(fields)
    name = to_text(_pop_first(left, NAME_FIELDS))
    kind = kind or to_text(_pop_first(left, TYPE_FIELDS))
    description = to_text(_pop_first(left, DESCRIPTION_FIELDS))
    aliases = _to_texts(_pop_first(left, ALIAS_FIELDS))
    attributes = {clean(str(k)).strip(): to_text(v) for k, v in left.items()}
    attributes = {k: v for k, v in attributes.items() if k and v}
    return Node(key, name, kind, description, aliases, attributes)


def make_link(head: str, tail: str, fields: Mapping[str, Any], relation: str = "") -> Link:
    """Make a link from its fields; unknown fields are added to its description."""
    left = dict(fields)
    relation = relation or to_text(_pop_first(left, RELATION_FIELDS)) or DEFAULT_RELATION
    weight = parse_number(to_text(_pop_first(left, WEIGHT_FIELDS)) or "1")
    described = to_text(_pop_first(left, DESCRIPTION_FIELDS))
    keywords = _to_texts(_pop_first(left, ("keywords",)))
    text = to_text(_pop_first(left, ("text", "sentence")))
    more = [f"{to_text(k)}: {to_text(v)}" for k, v in left.items() if to_text(v)]
    described = "; ".join([*([described] if described else []), *more])
    return Link(head, relation, tail, 1.0 if weight is None else weight, described, keywords, text)


def _to_texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            value = [value]
    many = value if isinstance(value, list | tuple) else [value]
    return tuple(text for text in map(to_text, many) if text)


def make_nary_fact(fields: Mapping[str, Any], line: int) -> Row:
    """Make an n-ary fact; `clew_members` are pairs, or JSON of pairs."""
    left = dict(fields)
    members = left.pop(MEMBERS_FIELD)
    try:
        pairs = json.loads(members) if isinstance(members, str) else members
        participants = tuple((str(name).strip(), str(role).strip()) for name, role in pairs)
    except (ValueError, TypeError):
        return UnreadableRow(line, "has members that are not pairs of name and role")
    if not participants or not all(name for name, _ in participants):
        return UnreadableRow(line, "has no members")
    relation = left.pop("relation", "") or ""
    made = make_link(participants[0][0], "", left, relation or "-")
    text = made.text or " ".join(name for name, _ in participants)
    return replace(made, relation=str(relation), text=text, members=participants)
