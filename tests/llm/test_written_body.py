"""A request written from remembered parts is the same JSON as one written anew."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clew.llm.chat import Message, OutputMode, Request, ResponseFormat
from clew.llm.openai_body import build_body, encode_body

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
