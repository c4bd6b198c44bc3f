"""A sentence with the words of a question says yes only if they belong together there."""

import pytest

from clew.agents.core.confidence import save_models
from clew.engine import KnowledgeBase
from clew.testing.word_reader import CONFIDENCE
from clew.testing.word_scorer import WordScorer
from conftest import OpenFilled, document, stream

PAGES = {
    "Decisions": "We chose Postgres over Derby because of its security. Reports are kept for 30 "
    "days, audit reports for 400 days. The fee is 14,200 euros.",
    "Town": "The museum is open on Tuesdays, the library on Thursdays. Adults pay 4 pounds, "
    "students pay 2 pounds. The rent fell from 90 pounds to 70 pounds.",
    "Fair": "The fair is on 14 September.",
    "News": "The fair is on 21 September.",
}


async def fill_town(base: KnowledgeBase) -> None:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in PAGES.items()]))
    await save_models(base.store, CONFIDENCE)


@pytest.fixture
async def town(open_filled: OpenFilled) -> KnowledgeBase:
    base = await open_filled(fill_town)
    base.scorer = None
    return base


@pytest.mark.parametrize(
    "question",
    [
        "Was Derby chosen?",
        "Are audit reports kept for 30 days?",
        "Is the library open on Tuesdays?",
        "Is the museum open on Thursdays?",
        "Do students pay 4 pounds?",
        "Did the rent fall to 90 pounds?",
    ],
)
async def test_words_that_are_said_of_something_else_give_no_yes(
    town: KnowledgeBase, question: str
) -> None:
    assert (await town.ask(question)).candidate != "yes"


@pytest.mark.parametrize(
    "question",
    [
        "Was Postgres chosen?",
        "Are reports kept for 30 days?",
        "Are audit reports kept for 400 days?",
        "Is the museum open on Tuesdays?",
        "Is the library open on Thursdays?",
        "Do students pay 2 pounds?",
        "Did the rent fall to 70 pounds?",
        "Is the fee 14,200 euros?",
    ],
)
async def test_words_that_belong_together_give_a_yes(town: KnowledgeBase, question: str) -> None:
    assert (await town.ask(question)).candidate == "yes"


async def test_another_value_of_what_is_asked_about_is_a_no(town: KnowledgeBase) -> None:
    assert (await town.ask("Are audit reports kept for 30 days?")).candidate == "no"


async def test_a_yes_that_another_page_contradicts_is_less_sure(town: KnowledgeBase) -> None:
    disputed = await town.ask("Is the fair on 14 September?")
    assert disputed.signals.get("disputed") == 1.0


async def test_a_yes_that_the_scorer_contradicts_is_not_proven(town: KnowledgeBase) -> None:
    question = "Was Postgres chosen?"
    assert "close" in (await town.ask(question)).signals
    town.scorer = WordScorer({question: ["Postgres"]}, denied=["Postgres"])
    assert "close" not in (await town.ask(question)).signals
