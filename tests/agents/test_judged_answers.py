"""Answers that the scorer finds to answer a question; a fake one is told which."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from clew.agents.core.confidence import LogisticModel, save_models
from clew.engine import KnowledgeBase
from clew.testing.word_reader import CONFIDENCE
from clew.testing.word_scorer import WordScorer
from conftest import OpenFilled, document, stream

PAGES = {
    "Handbook": "Guests may stay overnight. Dogs stay in the yard. Nobody smokes indoors, and the "
    "fire brigade is called at once. The gate shuts at nine.",
    "Harbour": "The old quay was built by Ida Storm. The new quay was built by Per Holm.",
}
QUAY = "Who built the quay?"


async def fill_house(base: KnowledgeBase) -> None:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in PAGES.items()]))
    kinds = ("judged rank", "judged answer", "judged quote")
    judged = {kind: LogisticModel({"judged": 4.0}) for kind in kinds}
    await save_models(base.store, {**CONFIDENCE, **judged})


@pytest.fixture
async def house(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_filled(fill_house)


@pytest.mark.parametrize("name", ["Ida Storm", "Per Holm"])
async def test_the_span_that_the_scorer_finds_to_answer_is_named(
    house: KnowledgeBase, name: str
) -> None:
    house.scorer = WordScorer({QUAY: [f"{name} — Harbour: "]})
    answer = await house.ask(QUAY)
    assert answer.candidate == name
    assert answer.signals["judged"] > 0


async def test_what_the_scorer_finds_no_answer_is_not_trusted(house: KnowledgeBase) -> None:
    house.scorer = WordScorer({QUAY: []})
    answer = await house.ask(QUAY)
    assert answer.signals["judged"] < 0
    assert answer.confidence < 0.5


async def test_without_a_scorer_no_answer_is_judged(house: KnowledgeBase) -> None:
    house.scorer = None
    answer = await house.ask(QUAY)
    assert answer.candidate
    assert "judged" not in answer.signals


@pytest.mark.parametrize(
    ("question", "phrase", "short"),
    [
        ("Can my sister sleep here?", "Guests may stay overnight.", "yes"),
        ("Am I allowed a cigarette in my room?", "Nobody smokes", "no"),
    ],
)
async def test_the_sentence_that_decides_is_quoted(
    house: KnowledgeBase, question: str, phrase: str, short: str
) -> None:
    house.scorer = WordScorer({question: [phrase]}, denied=["Nobody"])
    answer = await house.ask(question)
    assert answer.candidate == short
    assert phrase in answer.citations[0].quote


async def test_where_no_sentence_decides_nothing_is_said(house: KnowledgeBase) -> None:
    question = "Can my sister sleep here?"
    house.scorer = WordScorer({question: []})
    answer = await house.ask(question)
    assert answer.candidate not in ("yes", "no")
    assert answer.confidence < 0.5


MANUALS = {
    "Lease": "# Lease\n\n11. Subletting. The Tenant may not sublet the Premises as a whole. A part "
    "may be sublet with consent.\n\n12. Disputes. A dispute is first put to a mediator whom both "
    "parties choose. The mediator is paid by both.",
    "PCR": "# Primers\n\nThe forward primer is called BF-12 and the reverse primer is called BR-09."
    "\n\n## Steps\n\n1. Mix both.\n2. Heat to 94 °C.",
}


async def fill_manuals(base: KnowledgeBase) -> None:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in MANUALS.items()]))


@pytest.mark.parametrize(
    ("question", "judged"),
    [
        ("Who is the mediator?", True),
        ("What is the sequence of the forward primer?", True),
        ("What is a forward primer?", False),
    ],
)
async def test_a_quote_is_judged_where_one_value_is_asked_for(
    open_filled: OpenFilled, question: str, judged: bool
) -> None:
    base = await open_filled(fill_manuals)
    base.scorer = WordScorer({question: []})
    answer = await base.ask(question)
    assert not answer.candidate
    assert answer.citations
    assert ("judged" in answer.signals) is judged
    assert answer.confidence < 0.5 or not judged


class CountingScorer(WordScorer):
    """Counts the texts that it is asked about."""

    seen: ClassVar[list[str]] = []

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Remember the texts, and score them."""
        self.seen.extend(texts)
        return super().score(question, texts)


@pytest.mark.parametrize(("weight", "asked"), [(0.001, False), (9.0, True)])
async def test_the_scorer_judges_what_may_still_win(
    house: KnowledgeBase, weight: float, asked: bool
) -> None:
    question = "Who was called at the harbour?"
    names = ("Ada Berg", "Bo Dahl", "Cai Eng", "Dag Foss", "Eva Gran")
    text = " ".join(f"At {hour} {name} was called." for hour, name in enumerate(names))
    await house.take(stream([document("calls", text, title="Harbour calls")]))
    rank = LogisticModel({"judged": weight, "direct": 1.0, "covered": 1.0})
    await save_models(house.store, {**CONFIDENCE, "judged rank": rank})
    house.scorer = CountingScorer({question: ["no such phrase"]})
    CountingScorer.seen.clear()
    answer = await house.ask(question)
    assert answer.candidate in names
    assert any(name in text for name in names for text in CountingScorer.seen)
    # What is far behind is judged only where the scorer's opinion weighs enough to make it first.
    assert any("Handbook" in text for text in CountingScorer.seen) is asked
