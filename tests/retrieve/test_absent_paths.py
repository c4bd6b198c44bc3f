"""What a graph does not say of the thing asked about, and says of its neighbours."""

from pathlib import Path

import pytest

from clew.engine import KnowledgeBase
from clew.reader.query_scorer import SCORER_FILE, QueryScorer
from clew.testing.word_scorer import WordScorer
from conftest import one_in_three

needs_scorer = pytest.mark.skipif(
    not SCORER_FILE.is_file(), reason="the scorer's weights are not installed"
)
_ROWS = """
Ida Moor	supervises	Leo Hart
Ida Moor	supervises	Mia Vance
Ida Moor	office	Room 12
Leo Hart	office	Room 14
Leo Hart	mother_tongue	Danish
Mia Vance	mother_tongue	Welsh
Tom Birk	supervises	Ida Moor
Tom Birk	mother_tongue	Dutch
Room 12	floor	second
Room 14	floor	first
"""
_TOLD = 0.5


@pytest.fixture
async def staff(base: KnowledgeBase, tmp_path: Path) -> KnowledgeBase:
    graph = tmp_path / "staff.tsv"
    graph.write_text(_ROWS.lstrip(), "utf-8")
    await base.import_graph(graph)
    return base


@needs_scorer
@pytest.mark.parametrize(
    ("question", "right"),
    one_in_three(
        [
            ("What is the mother tongue of Ida Moor?", ""),  # those whom she supervises have one
            ("What does Mia Vance supervise?", ""),
            ("In which office is Tom Birk?", ""),
            ("What is the mother tongue of Leo Hart?", "Danish"),
            ("Who supervises Leo Hart?", "Ida Moor"),
            ("On which floor is Ida Moor's office?", "second"),
            ("Leo Hart's boss", "Ida Moor"),
        ]
    ),
)
async def test_what_only_neighbours_have_is_not_told(
    staff: KnowledgeBase, question: str, right: str
) -> None:
    staff.scorer = QueryScorer.load()
    answer = await staff.ask(question, recipe="lego-12")
    assert (answer.confidence >= _TOLD) == bool(right)
    assert right in answer.answer


@pytest.mark.parametrize(
    ("asked", "is_less"),
    [
        (["Ida Moor mother tongue ?"], True),  # what those have who supervise somebody
        (["Ida Moor floor ?"], False),  # only rooms have it
    ],
)
async def test_only_what_such_things_have_is_missed(
    staff: KnowledgeBase, asked: list[str], is_less: bool
) -> None:
    question = "In which languages do they dream at Ida Moor's?"
    exist = ["Leo Hart mother tongue ?", "Mia Vance mother tongue ?"]
    staff.scorer = WordScorer({question: exist})
    before = await staff.ask(question, recipe="lego-12")
    staff.scorer = WordScorer({question: [*exist, *asked]})
    after = await staff.ask(question, recipe="lego-12")
    assert (after.confidence < before.confidence) == is_less
