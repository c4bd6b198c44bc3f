"""A fact said of a sibling is not told; the scorer is asked without the word that restricts."""

import pytest

from clew.agents.core.confidence import LogisticModel, save_models
from clew.engine import KnowledgeBase
from clew.testing.word_reader import CONFIDENCE
from clew.testing.word_scorer import WordScorer
from conftest import OpenFilled, document, stream

PAGES = {
    "Dikes": "The sea dike was raised by Ida Storm. The river is deep.",
    "Mills": "The Holm mill was built by Per Lund.",
    "Vane": "Vane lies on the coast.",
}
MENDED = "Who raised the river dike?"
LEFT_OUT = "Who raised the dike?"


async def fill_coast(base: KnowledgeBase) -> None:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in PAGES.items()]))
    judged = {"judged rank": LogisticModel({"judged": 4.0})}
    judged["judged answer"] = LogisticModel({"foreign": -4.0}, 2.0)
    await save_models(base.store, {**CONFIDENCE, **judged})


@pytest.fixture
async def coast(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_filled(fill_coast)


async def test_what_answers_better_without_a_word_is_said_of_another_thing(
    coast: KnowledgeBase,
) -> None:
    coast.scorer = WordScorer({MENDED: [], LEFT_OUT: ["Ida Storm — Dikes"]})
    answer = await coast.ask(MENDED)
    assert answer.signals["foreign"] == 1
    assert answer.confidence < 0.5


async def test_what_answers_as_well_with_the_word_is_told(coast: KnowledgeBase) -> None:
    asked, said = "Who raised the long dike?", ["Ida Storm — Dikes"]
    coast.scorer = WordScorer({asked: said, LEFT_OUT: said})
    answer = await coast.ask(asked)
    assert answer.candidate == "Ida Storm"
    assert answer.signals["foreign"] == 0
    assert answer.confidence > 0.5


async def test_a_form_of_a_word_is_not_left_out(coast: KnowledgeBase) -> None:
    asked = "Who raises the sea dike?"
    coast.scorer = WordScorer({asked: ["Ida Storm — Dikes"]})
    answer = await coast.ask(asked)
    assert answer.signals["foreign"] == 0


async def test_a_name_that_the_cited_document_lacks_lowers_the_confidence(
    coast: KnowledgeBase,
) -> None:
    asked = "Who built the mill of Vane?"
    coast.scorer = WordScorer({asked: ["Per Lund — Mills"]})
    answer = await coast.ask(asked)
    assert answer.signals["foreign"] >= 0.5
    assert answer.confidence < 0.5
