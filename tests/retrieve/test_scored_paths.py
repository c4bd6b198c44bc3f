"""Relation paths that the query scorer finds asked; a fake one is told which."""

from pathlib import Path

import pytest

from clew.engine import KnowledgeBase
from clew.retrieve.paths.judged import say_path
from clew.testing.word_scorer import WordScorer

_ROWS = """
Hana Voss	mentored	Ivo Wick
Ivo Wick	mentored	Jo Xander
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
