"""An answer as asked for is read in one go, and comes out as patience would have read it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator

from clew.extract.answers import CompletenessVerdict, ExtractedGraph, SchemaAnswer, Segments
from clew.llm import fit
from clew.llm.fit import NoJsonAnswer, example_json, parse_answer
from clew.llm.plain import parse_strict

TEXT = st.text(max_size=8)
THING = st.fixed_dictionaries({"name": TEXT, "type": TEXT, "description": TEXT})
RELATION = st.fixed_dictionaries(
    {
        **{name: TEXT for name in ("head", "relation", "tail", "description")},
        "keywords": st.lists(TEXT, max_size=3),
        "weight": st.floats(-1, 12) | st.integers(-1, 101),
    }
)
GRAPH = st.fixed_dictionaries(
    {"entities": st.lists(THING, max_size=4), "relations": st.lists(RELATION, max_size=4)}
)


@given(GRAPH)
def test_the_same_answer_either_way(said: dict[str, Any]) -> None:
    text = json.dumps(said)
    plain = parse_strict(text, ExtractedGraph)
    if plain is not None:
        assert plain == fit._fit_value(next(fit.iter_values(text)), ExtractedGraph).value


@pytest.mark.parametrize("out", [ExtractedGraph, Segments, SchemaAnswer, CompletenessVerdict])
def test_every_shape_of_the_extractors_can_be_read_so(out: type[BaseModel]) -> None:
    empty = (
        {"verdict": "complete"}
        if out is CompletenessVerdict
        else dict.fromkeys(out.model_fields, [])
    )
    assert parse_strict(json.dumps(empty), out) is not None


@pytest.mark.parametrize(
    "said",
    [
        '{"entities": []}',  # a field that lacks may go by another name
        '{"entities": ["Ada"], "relations": []}',
        '{"entities": [{"name": 1963, "type": "", "description": ""}], "relations": []}',
        '{"entities": [], "relations": []} and so on',
        '{"entities": [], "relations": [',
        "",
    ],
)
def test_whatever_needs_patience_is_turned_down(said: str) -> None:
    assert parse_strict(said, ExtractedGraph) is None


def test_records_said_twice_are_left_to_patience() -> None:
    ada = {"name": "Ada", "type": "person", "description": ""}
    said = json.dumps({"entities": [ada, ada], "relations": []})
    assert parse_strict(said, ExtractedGraph) is None
    assert len(parse_answer(said, ExtractedGraph).value.entities) == 1


def test_an_outline_given_back_is_no_answer() -> None:
    with pytest.raises(NoJsonAnswer):
        parse_answer(example_json(ExtractedGraph), ExtractedGraph)


def test_a_validator_that_may_change_things_is_never_left_out() -> None:
    class Shouted(BaseModel):
        word: str

        @field_validator("word", mode="before")
        @classmethod
        def _loud(cls, value: Any) -> Any:
            return str(value).upper()

    assert parse_strict('{"word": "ada"}', Shouted) is None
    assert parse_answer('{"word": "ada"}', Shouted).value.word == "ADA"
