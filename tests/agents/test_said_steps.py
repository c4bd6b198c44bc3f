"""Each step of an answer over two sentences must say what the question asks."""

import pytest

from clew.agents.core.confidence import UNSAID_STEP, load_shipped_models
from clew.agents.reading.answer import RankedCandidate
from clew.agents.reading.bridges import find_unsaid_step
from clew.agents.reading.choose import Candidate
from clew.agents.reading.follow import Chain
from clew.agents.reading.spans import Reading
from clew.engine import KnowledgeBase
from clew.testing.word_scorer import WordScorer
from clew.types import Passage
from conftest import OpenFilled, document, stream

PAGES = {
    "Nora Vik": "Nora Vik was a kite maker. She married the sailor Omar Saad. Her mother was Ida "
    "Vik. She was born in Ribe.",
    "Omar Saad": "Omar Saad was a sailor. He was born in Tarn.",
    "Ida Vik": "Ida Vik was a baker. She was born in Moss.",
}
LED = "Who or what is the {} of Nora Vik?"


async def fill(base: KnowledgeBase) -> None:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in PAGES.items()]))


@pytest.fixture
async def kites(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_filled(fill)


def read(question: str, title: str, text: str) -> Reading:
    page = PAGES[title]
    home = Passage(title.lower(), title.lower(), title, 1.0, page, 0, len(page))
    start = page.rindex(text)
    return Reading(question, text, home, start, start + len(text), 3.0)


async def measure(
    kites: KnowledgeBase, question: str, best: RankedCandidate, *answered: str
) -> dict[str, float]:
    """Measure with a scorer that finds these questions of steps answered, and no others."""
    steps = [LED.format(one) for one in ("sister", "husband", "mother")]
    asked = dict.fromkeys([question, *steps, "Where was Ida Vik born?"], list[str]())
    kites.scorer = WordScorer({**asked, **dict.fromkeys(answered, [""])}, wrong=0.001)
    async with kites.store.snapshot() as snapshot:
        return await find_unsaid_step(await kites.context(snapshot, question), best)


def lead(question: str) -> RankedCandidate:
    """An answer on the page of Omar Saad, to which a sentence about his wife leads."""
    last = read(question, "Omar Saad", "Tarn")
    bridge = read("leads to", "Nora Vik", "Omar Saad")
    return RankedCandidate(Candidate("Tarn", together=last), {}, 0.9, bridge)


async def test_a_marriage_leads_to_no_sister(kites: KnowledgeBase) -> None:
    asked = "Where was the sister of Nora Vik born?"
    assert UNSAID_STEP in await measure(kites, asked, lead(asked))
    assert not await measure(kites, asked, lead(asked), LED.format("sister"))


async def test_a_marriage_leads_to_a_husband_whatever_the_scorer_finds(
    kites: KnowledgeBase,
) -> None:
    asked = "Where was the husband of Nora Vik born?"
    assert not await measure(kites, asked, lead(asked))


async def test_a_long_question_may_be_told_elsewhere(kites: KnowledgeBase) -> None:
    asked = "In which small harbour town was the younger sister of Nora Vik, who flew kites, born?"
    assert not await measure(kites, asked, lead(asked))


@pytest.mark.parametrize(
    ("title", "town", "unsaid"), [("Nora Vik", "Ribe", True), ("Ida Vik", "Moss", False)]
)
async def test_what_a_page_says_of_its_own_name_is_not_said_of_another(
    kites: KnowledgeBase, title: str, town: str, unsaid: bool
) -> None:
    asked, later = "Where was the mother of Nora Vik born?", "Where was Ida Vik born?"
    chain = Chain(later, (read(LED.format("mother"), "Nora Vik", "Ida Vik"),))
    best = Candidate(town, chain=chain, last=read(later, title, town))
    found = await measure(kites, asked, RankedCandidate(best, {}, 0.9))
    assert (UNSAID_STEP in found) is unsaid


def test_an_unsaid_step_is_told_as_unsure() -> None:
    signals = {"judged": 1.0, "lead": 0.6, "named": 1.0, "understood": 1.0}
    judge = load_shipped_models()["judged answer"]
    assert judge(signals) > 0.8
    assert judge({**signals, UNSAID_STEP: 1.0}) < 0.5
