"""Converts JSON schemas to strict mode: every object closed, every property required."""

from collections.abc import Mapping
from typing import Any

ANNOTATION_KEYS = frozenset({"default", "title", "examples"})


class _NoStrictForm(Exception):  # noqa: N818  (never leaves this file)
    """The schema has an open object and no strict form."""


def to_strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Convert a schema to strict mode, or return None if it has no strict form."""
    try:
        return _close_objects(schema)
    except _NoStrictForm:
        return None


def _close_objects(schema: Mapping[str, Any]) -> dict[str, Any]:
    if schema.get("type") == "object" and "properties" not in schema:
        raise _NoStrictForm  # a mapping with any keys
    closed: dict[str, Any] = {}
    for key, part in schema.items():
        match key:
            case "properties" | "$defs":
                closed[key] = {name: _close_objects(each) for name, each in part.items()}
            case "anyOf" | "oneOf" | "allOf":
                closed[key] = [_close_objects(each) for each in part]
            case "items":
                closed[key] = _close_objects(part)
            case "prefixItems":
                closed["items"] = _close_objects(_shared_item_schema(part))
            case _ if key not in ANNOTATION_KEYS:
                closed[key] = part
    if "properties" in closed:
        closed |= {"additionalProperties": False, "required": list(closed["properties"])}
    return closed


def _shared_item_schema(parts: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Item schema of a tuple whose items are all alike: strict mode has no tuples."""
    first, *others = parts
    if any(other != first for other in others):
        raise _NoStrictForm
    return first
