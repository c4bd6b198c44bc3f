"""Relation paths that the query scorer finds asked; a fake one is told which."""

from pathlib import Path

import pytest

from clew.engine import KnowledgeBase
from clew.retrieve.paths.judged import say_path
from clew.testing.word_scorer import WordScorer

_ROWS = """
Hana Voss	mentored	Ivo Wick
Ivo Wick	mentored	Jo Xander
Hana Voss	mentored	Lena Ost
Ivo Wick	workshop	Kiln Lane
Kiln Lane	landlord	Ada Finch
"""


@pytest.fixture
async def lineage(base: KnowledgeBase, tmp_path: Path) -> KnowledgeBase:
    graph = tmp_path / "lineage.tsv"
    graph.write_text(_ROWS.lstrip(), "utf-8")
    await base.import_graph(graph)
    return base


@pytest.mark.parametrize(
    ("question", "phrase", "right"),
    [
        ("From whom did Ivo Wick learn the trade?", "? mentored Ivo Wick", "Hana Voss"),
        ("Who came to Ivo Wick to learn?", "Ivo Wick mentored ?", "Jo Xander"),
        ("Whom does Ivo Wick owe rent?", "Kiln Lane landlord ?", "Ada Finch"),
    ],
)
async def test_the_path_that_the_scorer_finds_asked_comes_first(
    lineage: KnowledgeBase, question: str, phrase: str, right: str
) -> None:
    lineage.scorer = WordScorer({question: [phrase]})
    found = await lineage.search(question, recipe="lego-12")
    assert right in found.evidence.paths[0].facts[-1]


def test_a_path_is_said_with_its_end_left_open() -> None:
    facts = [("A", "made by", "B"), ("C", "owns", "B")]
    assert say_path(facts, [False, True], ["C", "D"]) == "A made by B. ? owns B = C, D"


async def test_only_the_ends_of_the_path_that_is_asked_are_told(lineage: KnowledgeBase) -> None:
    question = "Who came to Hana Voss to learn?"
    lineage.scorer = WordScorer({question: ["Hana Voss mentored ?"]})
    answer = await lineage.ask(question, recipe="lego-12")
    told = answer.answer.partition("\n")[0]
    assert "Ivo Wick" in told and "Lena Ost" in told
    assert "Jo Xander" not in told and "Kiln Lane" not in told


@pytest.mark.parametrize(
    ("asked", "opened", "number"),
    [
        ("How many apprentices had Hana Voss?", "which apprentices had Hana Voss?", "2"),
        ("How many apprentices had Ivo Wick?", "which apprentices had Ivo Wick?", "1"),
    ],
)
async def test_how_many_counts_the_ends_of_a_path(
    lineage: KnowledgeBase, asked: str, opened: str, number: str
) -> None:
    lineage.scorer = WordScorer({asked: [], opened: ["Voss mentored ?", "Ivo Wick mentored ?"]})
    answer = await lineage.ask(asked, recipe="lego-12")
    assert answer.candidate == number


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ("Hana Voss", "Lena Ost", "Yes"),
        ("Ivo Wick", "Lena Ost", "No"),
        ("Lena Ost", "Hana Voss", "No"),  # the relation goes the other way
    ],
)
async def test_yes_or_no_asks_whether_the_path_leads_to_the_other_name(
    lineage: KnowledgeBase, first: str, second: str, verdict: str
) -> None:
    asked = f"Did {first} mentor {second}?"
    meant = {
        asked: [],
        f"{first} mentor what?": [f"{first} mentored ?"],
        f"what mentor {second}?": [f"? mentored {second}"],
    }
    lineage.scorer = WordScorer(meant)
    answer = await lineage.ask(asked, recipe="lego-12")
    assert answer.candidate == verdict


async def test_a_path_passes_a_name_again_by_another_fact(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    graph = tmp_path / "films.tsv"
    rows = (
        "The Quay\tdirected by\tAnn Roe",
        "The Quay\twritten by\tAnn Roe",
        "Reed\tdirected by\tAnn Roe",
    )
    graph.write_text("\n".join(rows), "utf-8")
    await base.import_graph(graph)
    question = "What did the author of The Quay direct?"
    base.scorer = WordScorer({question: ["The Quay written by Ann Roe. ? directed by Ann Roe"]})
    answer = await base.ask(question, recipe="lego-12")
    told = answer.answer.partition("\n")[0]
    assert "Reed" in told and "The Quay" in told
