"""What is said of a thing much like the one that is asked about is no answer."""

import pytest
from tests.conftest import stream

from clew.engine import KnowledgeBase
from clew.types import Document

PAGES = {
    "Sorrel Dairy": "Sorrel Dairy has two creameries. The Almby creamery was opened in 1961 and "
    "employs 35 people. The Ekeby creamery makes butter.",
    "RV scales": "The RV-10 weighs 4 kilograms and measures to the gram. Its guarantee lasts two "
    "years. The RV-20 has a wider plate.",
    "Kestrel Race": "The 2016 Kestrel Race was won by Dora Lund. It started at the mill. The 2017 "
    "race took place in the snow.",
    "The Thorn sisters": "Ada Thorn was a weaver born in Selby. She studied in Leeds. Her sister "
    "Edith Thorn kept bees in Ripon.",
    "Moorby": "The village school of Moorby was designed by Owen Pike and opened in 1931; the "
    "village chapel stands beside it.",
}


@pytest.fixture
async def pages(base: KnowledgeBase) -> KnowledgeBase:
    await base.take(stream(Document(name, text, name, (name,)) for name, text in PAGES.items()))
    return base


@pytest.mark.parametrize(
    ("question", "of_other"),
    [
        ("When was the Ekeby creamery opened?", "1961"),
        ("How many people does the Ekeby creamery employ?", "35"),
        ("How much does the RV-20 weigh?", "4"),
        ("How long does the guarantee of the RV-20 last?", "two years"),
        ("Who won the 2017 Kestrel Race?", "Dora Lund"),
        ("Where was Edith Thorn born?", "Selby"),
        ("Who designed the village chapel?", "Owen Pike"),
    ],
)
async def test_the_answer_of_another_is_not_told(
    pages: KnowledgeBase, question: str, of_other: str
) -> None:
    answer = await pages.ask(question, mode="reject")
    assert answer.verdict == "refused" or of_other not in answer.candidate


@pytest.mark.parametrize(
    ("question", "gold"),
    [
        ("When was the Almby creamery opened?", "1961"),
        ("How many people does the Almby creamery employ?", "35"),
        ("How much does the RV-10 weigh?", "4"),
        ("Who won the 2016 Kestrel Race?", "Dora Lund"),
        ("Where was Ada Thorn born?", "Selby"),
        ("Who designed the village school?", "Owen Pike"),
    ],
)
async def test_its_own_answer_is_told(pages: KnowledgeBase, question: str, gold: str) -> None:
    answer = await pages.ask(question, mode="reject")
    assert answer.verdict == "answered"
    assert gold in answer.candidate
