from pydantic import BaseModel

from clew.llm.strict import to_strict_schema


class Thing(BaseModel):
    title: str
    default: list[tuple[str, str, str]] = []
    other: "Thing | None" = None


class Things(BaseModel):
    things: list[Thing] = []


def objects(schema):
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for part in schema.values():
            yield from objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects(part)


def test_every_object_is_closed_and_every_property_required():
    closed = to_strict_schema(Things.model_json_schema())
    found = list(objects(closed))
    assert len(found) == 2
    for part in found:
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])


def test_fields_may_be_called_like_annotations_and_tuples_become_lists():
    thing = to_strict_schema(Things.model_json_schema())["$defs"]["Thing"]
    assert set(thing["properties"]) == {"title", "default", "other"}
    inner = thing["properties"]["default"]["items"]
    assert inner == {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 3}
    assert "default" not in thing["properties"]["default"]


def test_what_stays_open_has_no_strict_form():
    class Mapped(BaseModel):
        counts: dict[str, int]

    class Mixed(BaseModel):
        pair: tuple[str, int]

    assert to_strict_schema(Mapped.model_json_schema()) is None
    assert to_strict_schema(Mixed.model_json_schema()) is None
