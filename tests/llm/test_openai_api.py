"""A request written from remembered parts is the same JSON as one written anew."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from clew.llm.chat import Message, OutputMode, Request, ResponseFormat
from clew.llm.openai_api import build_body, encode_body, to_strict_schema

SCHEMA = {"type": "object", "properties": {"names": {"type": "array"}}}
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
MODES = st.sampled_from([None, "schema", "tool", "json"])


@given(st.lists(TEXTS, min_size=1, max_size=3), MODES, TEXTS)
def test_the_body_is_what_it_would_be(texts: list[str], mode: OutputMode | None, stop: str) -> None:
    shape = ResponseFormat(mode, "find", SCHEMA) if mode else None
    turns = tuple(Message("user", text) for text in texts)
    request = Request(turns, max_tokens=7, stop=(stop,), response_format=shape)
    body = build_body("m", request)
    assert json.loads(encode_body(body, request)) == json.loads(json.dumps(body))


def test_what_the_settings_send_along_wins_over_the_shape() -> None:
    request = Request(
        (Message("user", "hi"),), response_format=ResponseFormat("json", "find", SCHEMA)
    )
    body: dict[str, Any] = build_body("m", request) | {"response_format": {"type": "mine"}}
    assert json.loads(encode_body(body, request))["response_format"] == {"type": "mine"}


def test_half_a_character_does_not_stop_a_request() -> None:
    request = Request((Message("user", "cut \ud83d off"),))
    assert json.loads(encode_body(build_body("m", request), request))["messages"][0]["content"]


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
