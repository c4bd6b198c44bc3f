"""An answer as asked for is read in one go, and comes out as patience would have read it."""

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator

from clew.errors import ParseError
from clew.extract.response_models import ExtractedGraph
from clew.llm.parse import NoJsonAnswer, example_json, json_schema, parse_answer


class Triples(BaseModel):
    entities: list[str] = []
    triples: list[tuple[str, str, str]]


class Thing(BaseModel):
    name: str
    kind: Literal["person", "place"] = "person"
    weight: float = 1.0
    tags: list[str] = []


class Things(BaseModel):
    things: list[Thing]
    note: str | None = Field(None, description="what else there is to say")


class Verdict(BaseModel):
    supported: bool
    scores: list[int] = []


def test_bad_items_are_dropped_and_counted_and_good_ones_kept():
    found = parse_answer(
        '{"triples": [["a","r","b"], ["c","r"], ["d","r","e","f"], ["g","r","h"], 7]}', Triples
    )
    assert found.value.triples == [("a", "r", "b"), ("g", "r", "h")]
    assert found.dropped >= 3


def test_a_bad_optional_field_costs_itself_and_a_bad_required_one_its_item():
    text = json.dumps(
        {
            "things": [
                {"name": "Ada", "weight": "heavy", "kind": "robot"},
                {"label": "no name"},
                {"name": "Bob", "tags": ["x", 5, "y"]},
            ]
        }
    )
    found = parse_answer(text, Things)
    assert found.value.things == [Thing(name="Ada"), Thing(name="Bob", tags=["x", "y"])]
    assert found.dropped == 4


def test_records_said_twice_are_said_once():
    text = '{"triples": [["a","r","a"], ["a","r","a"], ["a","r","b"]], "entities": ["a", "a"]}'
    found = parse_answer(text, Triples)
    assert found.value.triples == [("a", "r", "a"), ("a", "r", "b")]
    assert found.value.entities == ["a", "a"]


def test_a_loop_that_was_cut_off_is_undone():
    text = '{"entities": ["a", ' + '"b", ' * 50 + '"b'
    assert parse_answer(text + '"], "triples": []}', Triples).value.entities.count("b") == 51
    found = parse_answer(text.replace('{"ent', '{"triples": [["a","r","b"]], "ent'), Triples)
    assert (found.value.entities, found.truncated) == (["a", "b"], True)


def test_numbers_that_repeat_are_left_alone():
    assert parse_answer('{"supported": true, "scores": [1, 1, 0, 1', Verdict).value.scores == [
        1,
        1,
        0,
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{"Things": [{"name": "Ada"}]}',
        '{"answer": {"things": [{"name": "Ada"}]}}',
        '[{"things": [{"name": "Ada"}]}]',
        'First [1] a draft {"x": 1}, then {"things": [{"name": "Ada"}]}',
        '{"things": [{"name": "Ada"}], "more": "than asked"}',
    ],
)
def test_the_answer_is_found_wherever_it_is(text):
    assert parse_answer(text, Things).value.things == [Thing(name="Ada")]


def test_a_bare_list_stands_for_the_only_list():
    class Names(BaseModel):
        names: list[str]

    assert parse_answer('["Ada", "Bob"]', Names).value.names == ["Ada", "Bob"]


@pytest.mark.parametrize("text", ["", "  \n", "I cannot help with that.", '{"thi', "{", "[]"])
def test_nothing_is_no_answer(text):
    with pytest.raises(NoJsonAnswer):
        parse_answer(text, Things)


class Loose(BaseModel):
    names: list[str] = []


@pytest.mark.parametrize("out", [Things, Loose])
def test_the_schema_or_the_outline_given_back_is_no_answer(out):
    for echo in (
        json.dumps(json_schema(out)),
        example_json(out),
        f"```json\n{example_json(out)}\n```",
    ):
        with pytest.raises(NoJsonAnswer):
            parse_answer(echo, out)


def test_what_does_not_fit_says_why():
    with pytest.raises(ParseError, match="supported: Field required"):
        parse_answer('{"scores": [1]}', Verdict)
    with pytest.raises(ParseError, match="supported"):
        parse_answer('{"supported": "perhaps"}', Verdict)


def test_an_outline_shows_the_shape_in_the_words_of_the_fields():
    assert json.loads(example_json(Things)) == {
        "things": [{"name": "text", "kind": "person|place", "weight": 0, "tags": ["text"]}],
        "note": "what else there is to say",
    }
    assert json.loads(example_json(Triples))["triples"] == [["text", "text", "text"]]


def test_a_shape_that_holds_itself_has_an_outline():
    class Tree(BaseModel):
        name: str
        children: list["Tree"] = []

    assert json.loads(example_json(Tree))["children"][0]["name"] == "text"


@given(st.text(alphabet="{}[]\",:'\\ \ntriplesn0", max_size=200))
def test_nothing_but_a_parse_error_is_raised(text):
    for out in (Triples, Things, Verdict, Loose):
        try:
            found = parse_answer(text, out)
        except ParseError as error:
            assert str(error)
        else:
            assert isinstance(found.value, out)
            assert out.model_validate(found.value.model_dump(by_alias=True)) == found.value


@given(st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=6), st.data())
def test_a_cut_reply_keeps_its_complete_records_without_repeats(triples, data):
    text = json.dumps({"triples": triples})
    cut = data.draw(st.integers(14, len(text)))
    found = parse_answer(text[:cut], Triples).value.triples
    distinct = list(dict.fromkeys(triples))
    assert found == distinct[: len(found)]
    assert found == distinct or cut < len(text)


def test_an_answer_of_flags_and_numbers_is_no_echo() -> None:
    class Flags(BaseModel):
        found: bool
        count: int

    assert parse_answer('{"found": true, "count": 0}', Flags).value == Flags(found=True, count=0)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (r"\ud83d", "\ufffd"),
        (r"a \udc00 b", "a \ufffd b"),
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
    ],
)
@pytest.mark.parametrize("around", ['{"things": [{"name": "%s"}]}', '{things: [{"name": "%s",}]}'])
def test_half_a_character_is_replaced(written: str, name: str, around: str) -> None:
    value = parse_answer(around % written, Things).value
    assert value.things[0].name == name
    assert value.model_dump_json()


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
def test_the_same_answer_in_prose(said: dict[str, Any]) -> None:
    text = json.dumps(said)
    plain = parse_answer(text, ExtractedGraph)
    assert parse_answer(f"Here it is:\n{text}", ExtractedGraph) == plain


def test_records_said_twice_are_kept_once() -> None:
    ada = {"name": "Ada", "type": "person", "description": ""}
    said = json.dumps({"entities": [ada, ada], "relations": []})
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

    assert parse_answer('{"word": "ada"}', Shouted).value.word == "ADA"
