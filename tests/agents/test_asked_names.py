"""What a question names decides what it is about: years, roles, several questions in one."""

import pytest

from clew.agents.answering.parts import split_questions
from clew.agents.reading.spans import keep_in_sentence
from clew.engine import KnowledgeBase
from conftest import document, stream

PAGES = {
    "Storm Works": "Storm Works makes pumps. The CEO is Ada Brink. In 2019 it had revenue of 92 "
    "million euros. In 2021 it bought Prism Labs for 12 million euros.",
    "Ada Brink": "Ada Brink was born in Ribe.",
}


@pytest.fixture
async def works(base: KnowledgeBase) -> KnowledgeBase:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in PAGES.items()]))
    return base


async def test_a_year_that_no_passage_mentions_is_missing(works: KnowledgeBase) -> None:
    answer = await works.ask("What was the revenue of Storm Works in 2024?", mode="reject")
    assert answer.verdict == "refused"
    assert "2024" in answer.missing
    known = await works.ask("What was the revenue of Storm Works in 2019?")
    assert known.signals["named"] == 1.0


async def test_a_role_is_no_part_of_a_name(works: KnowledgeBase) -> None:
    answer = await works.ask("Who is the CEO of Storm Works?")
    assert answer.signals["named"] == 1.0


async def test_a_pronoun_is_what_the_part_before_asked_for(works: KnowledgeBase) -> None:
    question = "Who is the CEO of Storm Works and where was she born?"
    assert split_questions(question) == ["Who is the CEO of Storm Works?", "where was she born?"]
    answer = await works.ask(question)
    assert [part.candidate for part in answer.parts] == ["Ada Brink", "Ribe"]


def test_a_span_ends_with_its_heading() -> None:
    text = "# Storm Works\nStorm Works makes pumps\nand lamps. It is old."
    start, end = keep_in_sentence(text, 2, 25)
    assert text[start:end] == "Storm Works"
    wrapped = text.index("pumps"), text.index("lamps") + 5
    assert keep_in_sentence(text, *wrapped) == wrapped
