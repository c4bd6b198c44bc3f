"""What questions over graphs with divided relations mean, as the query scorer is trained on it."""

import random
from typing import Any

import pytest
from bench.query_scorer.asked import SmallGraph
from bench.query_scorer.divided import Meaning, Unfounded, read_meaning
from bench.query_scorer.graph_pairs import GraphWriter

TRIPLES = [
    ["Ada", "parent_of", "Ben"],
    ["Cleo", "child_of", "Ada"],
    ["Ben", "parent_of", "Dan"],
    ["Eve", "child_of", "Cleo"],
    ["Ben", "lives_in", "Tarn"],
    ["Eve", "lives_in", "Tarn"],
    ["Eve", "trade", "glass"],
    ["Dan", "trade", "glass"],
    ["Ben", "born", "1901"],
    ["Cleo", "born", "1898"],
    ["Eve", "born", "1930"],
]
CHILD = ["parent_of", "^child_of"]


def read(**ask: Any) -> Meaning | None:
    return read_meaning(SmallGraph.read({"triples": TRIPLES}), {"q": ["?"], **ask})


def test_every_way_through_alternatives_is_right() -> None:
    meaning = read(topic="Ada", path=[CHILD, CHILD])
    assert meaning is not None
    assert set(meaning.said) == {
        "Ada parent of Ben. Ben parent of ? = Dan",
        "Cleo child of Ada. ? child of Cleo = Eve",
    }
    assert frozenset({"Dan", "Eve"}) in meaning.answers


def test_two_conditions_are_said_as_one_query() -> None:
    other = {"topic": "glass", "path": ["^trade"]}
    meaning = read(topic="Tarn", path=["^lives_in"], **{"and": other})
    assert meaning is not None
    assert meaning.said == ("? lives in Tarn and ? trade glass = Eve",)


def test_comparisons_are_said_with_their_direction() -> None:
    older = read(compare=["Ben", "Cleo"], path=["born"], get="check-less")
    eldest = read(extreme="min", path=["born"], of=["Ben", "Cleo", "Eve"])
    assert older is not None
    assert older.said == ("whether born of Ben is earlier than of Cleo = no",)
    assert eldest is not None
    assert "Ben, Cleo, Eve with the earliest born = Cleo" in eldest.said


@pytest.mark.parametrize("ask", [{"topic": "Zoe"}, {"topic": "Dan", "path": ["lives_in"]}])
def test_what_does_not_fit_the_graph_is_left_out(ask: dict[str, Any]) -> None:
    with pytest.raises(Unfounded):
        read(**{"path": [CHILD], **ask})


def test_no_right_path_is_among_the_wrong_ones() -> None:
    asks = [
        {"q": ["Who are Ada's children?"], "topic": "Ada", "path": [CHILD]},
        {"q": ["Who lives in Tarn and makes glass?"], "topic": "Tarn", "path": ["^lives_in"]}
        | {"and": {"topic": "glass", "path": ["^trade"]}},
        {"q": ["Is Ben a child of Ada?"], "topic": "Ada", "path": [CHILD], "get": "check"}
        | {"is": "Ben"},
        {"q": ["Who is the eldest?"], "extreme": "min", "path": ["born"]}
        | {"of": ["Ben", "Cleo", "Eve"]},
    ]
    line = {"graph": "kin", "triples": TRIPLES, "asks": asks}
    rows = list(GraphWriter(random.Random(1)).write([line]))
    wrong = {row["q"]: {text for text, right, _ in row["items"] if not right} for row in rows}
    assert "? child of Ada = Cleo" not in wrong["Who are Ada's children?"]
    assert "? lives in Tarn = Ben, Eve" not in wrong["Who lives in Tarn and makes glass?"]
    assert {"Ben a child of what?", "what a child of Ada?"} <= set(wrong)
