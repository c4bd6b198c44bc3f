"""Relations that hold both ways: told from either end, and known by what they are called."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from clew.context import Context
from clew.engine import KnowledgeBase
from clew.llm.embed_local import LocalEmbedder
from clew.reader.query_scorer import SCORER_FILE, QueryScorer
from clew.retrieve.mutual import is_mutual
from clew.retrieve.order_sides import tail_order
from clew.testing.word_scorer import WordScorer

_ROWS = """
Otter Pen	sits_next_to	Heron Pool
Heron Pool	sits_next_to	Lynx Rock
Seal Bay	sits_next_to	Owl Barn
Otter Pen	keeper	Ida Voss
Heron Pool	next_stop	Owl Barn
Owl Barn	next_stop	Seal Bay
"""


@pytest.fixture
async def park(base: KnowledgeBase, tmp_path: Path) -> KnowledgeBase:
    graph = tmp_path / "park.tsv"
    graph.write_text(_ROWS.lstrip(), "utf-8")
    await base.import_graph(graph)
    return base


@pytest.mark.skipif(not SCORER_FILE.is_file(), reason="the scorer's weights are not installed")
@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("Does Otter Pen sit next to Heron Pool?", "Yes"),  # as the graph says it
        ("Does Heron Pool sit next to Otter Pen?", "Yes"),
        ("Does Otter Pen sit next to Owl Barn?", "No"),
    ],
)
async def test_what_is_next_to_something_is_no_order(
    park: KnowledgeBase, question: str, right: str
) -> None:
    park.scorer = QueryScorer.load()
    answer = await park.ask(question, recipe="lego-12")
    assert answer.candidate == right


@pytest.mark.parametrize("phrase", ["Heron Pool sits next to ?", "? sits next to Heron Pool"])
async def test_both_directions_are_told_whichever_is_likelier(
    park: KnowledgeBase, phrase: str
) -> None:
    question = "What does Heron Pool sit next to?"
    park.scorer = WordScorer({question: [phrase]})
    answer = await park.ask(question, recipe="lego-12")
    assert "Otter Pen" in answer.answer and "Lynx Rock" in answer.answer


async def test_an_order_keeps_its_direction(park: KnowledgeBase) -> None:
    question = "What is the next stop after Owl Barn?"
    park.scorer = WordScorer({question: ["Owl Barn next stop ?"]})
    answer = await park.ask(question, recipe="lego-12")
    assert "Seal Bay" in answer.answer and "Heron Pool" not in answer.answer


def test_next_to_is_a_place_and_next_an_order() -> None:
    assert tail_order("next stop") == 1
    assert tail_order("is next to") == 0


@pytest.fixture(scope="module")
def learnt() -> dict[str, object]:
    """What is learnt once per knowledge base: the examples of both kinds are embedded for it."""
    return {}


@pytest.mark.parametrize(
    ("label", "mutual"),
    [
        ("grows beside", True),
        ("twinned with", True),
        ("shares a wall with", True),
        ("bonded to", True),
        ("upstream of", False),
        ("shipped to", False),
        ("reviewed by", False),
        ("", False),
    ],
)
async def test_relations_that_hold_both_ways_are_known_by_meaning(
    local_embedder: LocalEmbedder, learnt: dict[str, object], label: str, mutual: bool
) -> None:
    ctx: Any = SimpleNamespace(view=SimpleNamespace(memo=learnt), embed=local_embedder)
    assert await is_mutual(cast("Context", ctx), label) is mutual
