"""Answers over graphs that hold a relation in parts, two conditions, and things compared."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

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


async def test_the_other_side_of_a_comparison_is_quoted_as_well(kin: KnowledgeBase) -> None:
    question = "Who is older, Eve Marr or Ben Lunn?"
    kin.scorer = WordScorer({question: ["Ben Lunn with the earliest"]})
    answer = await kin.ask(question, recipe="lego-12")
    assert answer.answer == "Ben Lunn [1][2]"
    assert ["1901" in one.quote for one in answer.citations] == [True, False]
    assert "1930" in answer.citations[1].quote


@pytest.mark.parametrize(
    ("question", "read", "told"),
    [
        ("Who is older, Eve Marr or Ben Lunn?", "Ben Lunn with the latest", "Ben Lunn"),
        ("Who is younger, Eve Marr or Ben Lunn?", "Ben Lunn with the earliest", "Eve Marr"),
        ("Is Ben Lunn older than Eve Marr?", "Ben Lunn is later than of Eve Marr", "Yes"),
    ],
)
async def test_of_dates_older_is_earlier_even_where_the_scorer_confuses_them(
    kin: KnowledgeBase, question: str, read: str, told: str
) -> None:
    assert (await ask(kin, question, [read])).startswith(told)


async def test_an_extreme_of_all_needs_no_name(kin: KnowledgeBase) -> None:
    question = "Who was born first?"
    kin.scorer = WordScorer({question: ["with the earliest birth year"]})
    answer = await kin.ask(question, recipe="lego-12")
    assert answer.candidate == "Cleo Marr"
    assert "names nothing" not in answer.note


async def test_what_names_nothing_and_compares_nothing_is_refused(kin: KnowledgeBase) -> None:
    answer = await ask(kin, "Who was paid first?", ["with the earliest salary"])
    assert "names nothing in this knowledge base" in answer


async def test_the_word_for_the_way_back_unites_what_the_scorer_finds_less_likely(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    class Unsure(WordScorer):
        def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
            chances = {"? kept by": 0.97, "keeper of ?": 0.3}
            known = [[c for said, c in chances.items() if said in text] for text in texts]
            return np.array([max(some, default=0.01) for some in known], np.float32)

    rows = ["Cape Light, kept by, Ann Rell", "Ann Rell, keeper of, Sow Light"]
    rows += [
        "Fen Light, kept by, Bo Teal",
        "Bo Teal, keeper of, Tor Light",
        "Ann Rell, born in, Ely",
    ]
    graph = tmp_path / "rows.tsv"
    graph.write_text("".join(row.replace(", ", "\t") + "\n" for row in rows), "utf-8")
    await base.import_graph(graph)
    question = "How many lights did Ann Rell keep?"
    base.scorer = Unsure({question: []})
    answer = await base.ask(question, recipe="lego-12")
    assert answer.candidate == "2"
