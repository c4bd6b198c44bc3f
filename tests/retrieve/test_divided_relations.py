"""Answers over graphs that hold a relation in parts, two conditions, and things compared."""

from pathlib import Path

import pytest

from clew.engine import KnowledgeBase
from clew.testing.word_scorer import WordScorer

ROWS = [
    "Ada Lunn, parent of, Ben Lunn",
    "Cleo Marr, child of, Ada Lunn",
    "Ben Lunn, parent of, Dan Lunn",
    "Eve Marr, child of, Cleo Marr",
    "Ada Lunn, teacher of, Fay Orne",
    "Ben Lunn, lives in, Tarn",
    "Eve Marr, lives in, Tarn",
    "Eve Marr, trade, glazier",
    "Dan Lunn, trade, glazier",
    "Ben Lunn, birth year, 1901",
    "Cleo Marr, birth year, 1898",
    "Eve Marr, birth year, 1930",
]
CHILDREN = ["Ada Lunn parent of ?", "? child of Ada Lunn"]
GRANDCHILDREN = ["Ben Lunn parent of ?", "? child of Cleo Marr"]


@pytest.fixture
async def kin(base: KnowledgeBase, tmp_path: Path) -> KnowledgeBase:
    graph = tmp_path / "rows.tsv"
    graph.write_text("".join(row.replace(", ", "\t") + "\n" for row in ROWS), "utf-8")
    await base.import_graph(graph)
    return base


async def ask(kin: KnowledgeBase, question: str, meant: list[str]) -> str:
    kin.scorer = WordScorer({question: meant})
    return (await kin.ask(question, recipe="lego-12")).answer


@pytest.mark.parametrize(
    ("question", "meant", "told"),
    [
        ("Who are the children of Ada Lunn?", CHILDREN, {"Ben Lunn", "Cleo Marr"}),
        ("Who are the grandchildren of Ada Lunn?", GRANDCHILDREN, {"Dan Lunn", "Eve Marr"}),
    ],
)
async def test_chains_through_a_relation_and_its_inverse_are_united(
    kin: KnowledgeBase, question: str, meant: list[str], told: set[str]
) -> None:
    answer = await ask(kin, question, meant)
    names = {"Ben Lunn", "Cleo Marr", "Dan Lunn", "Eve Marr", "Fay Orne", "Tarn"}
    assert {name for name in names if name in answer.partition("\n")[0]} == told


async def test_what_is_united_is_counted_once(kin: KnowledgeBase) -> None:
    question = "How many grandchildren does Ada Lunn have?"
    assert (await ask(kin, question, GRANDCHILDREN)).startswith("2: ")


async def test_two_conditions_leave_what_meets_both(kin: KnowledgeBase) -> None:
    question = "Who lives in Tarn and works as a glazier?"
    both = ["? lives in Tarn and ? trade glazier", "? trade glazier and ? lives in Tarn"]
    answer = await ask(kin, question, both)
    assert answer.partition("\n")[0].startswith("Eve Marr")
    assert "Ben Lunn" not in answer
    assert "Dan Lunn" not in answer


@pytest.mark.parametrize(
    ("question", "meant", "short"),
    [
        ("Is Ben Lunn older than Cleo Marr?", "Ben Lunn is earlier than of Cleo Marr", "No"),
        ("Is Ben Lunn younger than Cleo Marr?", "Ben Lunn is later than of Cleo Marr", "Yes"),
        ("Who is older, Eve Marr or Ben Lunn?", "Ben Lunn with the earliest", "Ben Lunn"),
    ],
)
async def test_two_things_are_compared_by_what_they_have(
    kin: KnowledgeBase, question: str, meant: str, short: str
) -> None:
    assert (await ask(kin, question, [meant])).startswith(short)
