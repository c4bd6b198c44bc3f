"""The schema: its file, extraction bounded by it, growth decided by code, and the way back."""

import json
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import ConfigError
from clew.extract.response_models import SchemaAnswer
from clew.extract.schema import (
    DEFAULT_SCHEMA,
    Schema,
    SchemaType,
    dump_schema,
    load_schema,
    parse_schema,
)
from clew.extract.schema_bounded import Bounded, apply_schema, collect_proposals
from clew.extract.schema_growth import (
    AdmissionRule,
    Proposal,
    SchemaGrowth,
    SchemaHistory,
    grow_schema,
    parse_history,
    record_edit,
    record_growth,
    revert_step,
)
from clew.testing.fakes import ScriptedChat
from clew.types import Chunk, Document

SMALL = parse_schema(
    {
        "entities": {"Person": "a human being", "place": ""},
        "relations": {"born in": "place of birth"},
        "attributes": {"occupation": ""},
    }
)
TEXT = "Ilse Brandvik, an engineer, was born in Hallowmere in 1881. The comet Arn shone."
CHUNK = Chunk("c", "d", 0, len(TEXT), TEXT)
REPLY = {
    "entities": [
        {"name": "Ilse Brandvik", "type": "person", "description": "An engineer."},
        {"name": "Hallowmere", "type": "Place"},
        {"name": "Arn", "type": "comet"},
        {"name": "1881", "type": "year"},
    ],
    "attributes": [
        {"entity": "Ilse Brandvik", "name": "Occupation", "value": "engineer"},
        {"entity": "ilse brandvik", "name": "occupation", "value": "builder"},
        {"entity": "Ilse Brandvik", "name": "height", "value": 180},
        {"entity": "Arn", "name": "occupation", "value": "comet"},
    ],
    "triples": [
        {"head": "Ilse Brandvik", "relation": "born_in", "tail": "Hallowmere"},
        {"head": "Ilse Brandvik", "relation": "bornIn", "tail": "1881"},
        {"head": "Ilse Brandvik", "relation": "saw", "tail": "Hallowmere"},
        {"head": "Ilse Brandvik", "relation": "born in", "tail": "Arn"},
        {"head": "Anton Reeve", "relation": "born in", "tail": "Hallowmere"},
    ],
    "new_types": [
        {"kind": "entity type", "name": "comet", "confidence": 0.95, "description": "in the sky"},
        {"kind": "whatever", "name": "x", "confidence": 1},
    ],
}

# -- the file


@pytest.mark.parametrize("form", ["toml", "json"])
@pytest.mark.parametrize("schema", [SMALL, DEFAULT_SCHEMA])
def test_a_schema_is_written_and_read_back(
    tmp_path: Path, schema: Schema, form: Literal["toml", "json"]
) -> None:
    file = tmp_path / f"schema.{form}"
    file.write_text(dump_schema(schema, form), encoding="utf-8")
    assert load_schema(file) == schema


@given(st.dictionaries(st.text(min_size=1, max_size=9), st.text(max_size=9), min_size=1))
def test_any_name_and_description_survive_toml(table: dict[str, str]) -> None:
    import tomllib

    try:
        schema = parse_schema({"entities": table})
    except ConfigError:
        return  # an empty or doubled name
    assert parse_schema(tomllib.loads(dump_schema(schema))) == schema


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[entities", "cannot be parsed"),
        ("[people]\na = 'b'", r"\[people\]: use \[entities\], \[relations\], \[attributes\]"),
        ("[entities]\nperson = 5", "the description of 'person' must be"),
        ("entities = 5", r"\[entities\] in .* is not a table"),
        ("[relations]\nx = ''", "add at least one under"),
        ("[entities]\nPerson = ''\nperson = ''", "'person' twice"),
        ('[entities]\n" " = ""', "has a type named ' '"),
        ('[entities]\n"\\u0000" = 5', "must be a quoted string"),
    ],
)
def test_a_wrong_file_is_one_clear_sentence(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        load_schema(file)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_schema(tmp_path / "none.toml")
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_schema(tmp_path / "x.toml")


def test_lists_of_names_do_too() -> None:
    assert parse_schema({"entities": ["person"]}).types_of("entity") == (
        SchemaType("entity", "person"),
    )


def test_spellings_of_a_type_are_one() -> None:
    for spelling in ("born in", "born_in", "bornIn", "Born-In", " BORN  IN "):
        assert SMALL.find("relation", spelling) == SchemaType(
            "relation", "born in", "place of birth"
        )
    assert SMALL.find("entity", "born in") is None


# -- extraction


async def test_what_is_outside_the_schema_is_dropped_and_counted() -> None:
    chat = ScriptedChat([json.dumps(REPLY)])
    extractor = Bounded(chat, SMALL)
    (found,) = await extractor(Document("d", TEXT, "", ("d",)), [CHUNK])
    assert [(e.name, e.type) for e in found.entities] == [
        ("Ilse Brandvik", "Person"),
        ("Hallowmere", "place"),
        ("1881", "date"),
        ("Anton Reeve", ""),  # forgotten in the list, not outside the schema
    ]
    assert found.entities[0].attributes == {"occupation": "engineer; builder"}
    assert [fact.text for fact in found.facts] == [
        "Ilse Brandvik born in Hallowmere",
        "Ilse Brandvik born in 1881",
        "Anton Reeve born in Hallowmere",
    ]
    assert extractor.dropped == {
        "entity type outside the schema": 1,
        "relation outside the schema": 1,
        "attribute outside the schema": 2,
        "triple with an entity outside the schema": 1,
    }
    asked = chat.requests[0].messages[-1].content
    assert "- Person: a human being\n- place\nrelations:\n- born in: place of birth" in asked


async def test_an_answer_can_be_bounded_anew_once_its_types_are_admitted() -> None:
    heard: list[tuple[str, SchemaAnswer]] = []
    chat = ScriptedChat([json.dumps(REPLY)])
    extractor = Bounded(
        chat, SMALL, on_answer=lambda chunk, answer: heard.append((chunk.id, answer))
    )
    await extractor(Document("d", TEXT, "", ("d",)), [CHUNK])
    ((chunk, answer),) = heard
    proposals = collect_proposals(chunk, answer)
    assert proposals == [Proposal("entity", "comet", 0.95, "c", "in the sky")]
    growth = grow_schema(SMALL, proposals, AdmissionRule(min_support=1))
    kept = SchemaAnswer.model_validate_json(answer.model_dump_json())
    found = apply_schema(kept, growth.schema, "", CHUNK, Counter())
    assert "Arn" in [e.name for e in found.entities]
    assert "Ilse Brandvik born in Arn" in [fact.text for fact in found.facts]


def test_the_stamp_follows_the_seed_and_not_the_growth() -> None:
    chat = ScriptedChat([], name="m at http://localhost:1/v1")
    one = Bounded(chat, SMALL)
    assert repr(one) == (f"Bounded(seed='{SMALL.digest()}', max_tokens=4096, version=1, model='m')")
    more = SMALL.with_types([SchemaType("entity", "comet")])
    assert repr(Bounded(chat, more, seed=SMALL.digest())) == repr(one)
    assert repr(Bounded(chat, more)) != repr(one)


async def test_an_echo_or_nonsense_is_one_failed_chunk() -> None:
    chat = ScriptedChat(lambda _: "I cannot do that.")
    (found,) = await Bounded(chat, SMALL)(Document("d", TEXT, "", ("d",)), [CHUNK])
    assert "try a larger model" in found.failed


async def test_chinese_text_takes_the_chinese_prompt() -> None:
    chat = ScriptedChat(['{"entities": [{"name": "鲁迅", "type": "person"}]}'])
    text = "鲁迅出生于绍兴。"
    (found,) = await Bounded(chat, SMALL)(
        Document("d", text, "", ("d",)), [Chunk("c", "d", 0, len(text), text)]
    )
    assert chat.requests[0].messages[0].content.startswith("你在给定的模式")
    assert [(e.name, e.type) for e in found.entities] == [("鲁迅", "Person")]


# -- growth


def seen(
    name: str, confidence: float = 0.95, chunks: int = 3, kind: str = "entity"
) -> list[Proposal]:
    return [Proposal(kind, name, confidence, f"{name}{n}") for n in range(chunks)]


def near(one: str, other: str) -> float:
    return 0.9 if {one, other} in ({"town", "place"}, {"comet", "meteor"}) else 0.1


def reasons(growth: SchemaGrowth) -> dict[str, str]:
    return {refused.type.name: refused.reason for refused in growth.rejected}


def test_code_decides_what_comes_in() -> None:
    proposals = [
        *seen("comet", chunks=5),
        *seen("meteor", chunks=4),
        *seen("town"),
        *seen("rare", chunks=2),
        *seen("doubtful", 0.89),
        *seen("person"),
        *seen("a very long phrase that is no type", chunks=9),
        *seen("occupation", kind="relation"),
    ]
    growth = grow_schema(SMALL, proposals, similar=near)
    assert [(a.type.kind, a.type.name, a.support) for a in growth.admitted] == [
        ("entity", "comet", 5),
        ("relation", "occupation", 3),
    ]
    assert reasons(growth) == {
        "a very long phrase that is no type": "its name is too long",
        "meteor": "it is too similar to 'comet' (0.90)",
        "town": "it is too similar to 'place' (0.90)",
        "doubtful": "confidence 0.89 is below 0.9",
        "rare": "found in 2 chunks, below 3",
    }
    assert growth.schema.types[: len(SMALL.types)] == SMALL.types
    assert growth.schema.find("entity", "Comet")


def test_one_chunk_speaks_once() -> None:
    shouting = [Proposal("entity", "comet", 0.95, "same")] * 10
    assert not grow_schema(SMALL, shouting).admitted


@given(st.permutations([*seen("comet", chunks=4), *seen("Comet"), *seen("meteor", chunks=4)]))
def test_the_order_of_proposals_does_not_matter(proposals: list[Proposal]) -> None:
    expected = grow_schema(SMALL, sorted(proposals, key=repr), similar=near)
    assert grow_schema(SMALL, proposals, similar=near) == expected


def test_every_step_is_recorded_and_can_be_taken_back() -> None:
    history, _ = record_growth(SchemaHistory(SMALL), seen("comet"))
    history, _ = record_growth(history, seen("ship"))
    assert [step.number for step in history.steps] == [1, 2]
    assert history.steps[0].why == ("3 chunks, confidence 0.95",)
    back = revert_step(history, 1)
    assert back.schema.find("entity", "comet") is None
    assert back.schema.find("entity", "ship")
    # What a person threw out does not come back by itself.
    again, growth = record_growth(back, seen("comet", chunks=50))
    assert again == back
    assert reasons(growth) == {"comet": "it was reverted before"}
    with pytest.raises(ConfigError, match="no step 7: its steps are 1, 2"):
        revert_step(back, 7)


def test_edits_are_steps_too() -> None:
    smaller = parse_schema({"entities": {"Person": "anyone", "ship": ""}})
    history = record_edit(SchemaHistory(SMALL), smaller)
    assert set(history.schema.types) == set(smaller.types)
    assert record_edit(history, history.schema) == history
    assert "place" in {one.name for one in history.barred_types()}
    assert "Person" not in {one.name for one in history.barred_types()}
    assert set(revert_step(history, 1).schema.types) == set(SMALL.types)


def test_a_history_survives_json() -> None:
    history, _ = record_growth(SchemaHistory(SMALL), seen("comet"))
    history = revert_step(record_edit(history, SMALL), 1)
    assert parse_history(json.loads(json.dumps(history.to_json()))) == history
