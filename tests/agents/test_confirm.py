"""Yes or no without a model: a sentence says it, a sentence denies it, or it is refused."""

import pytest

from clew.agents.core.confidence import save_models
from clew.engine import KnowledgeBase
from clew.testing.word_reader import CONFIDENCE
from conftest import OpenFilled, document, stream

PAGES = {
    "Ada Brink": "Ada Brink was a Danish surveyor. She was born in Ribe in 1871 and married the "
    "painter Ole Lund. She never learned to swim.",
    "Ole Lund": "Ole Lund was a painter. Born in Odense, he taught Ada Brink. He had two sons.",
    "Storm Works": "Storm Works is a maker of pumps. It was founded in 1953 by Ada Brink. "
    "Its prize is awarded every two years. A pump has a valve and a lamp but no alarm.",
    "Rules": "Travel by taxi is not reimbursed. Receipts are kept for ten years. The office is "
    "open from 8 to 16. It is closed on Sundays.",
}


async def fill_works(base: KnowledgeBase) -> None:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in PAGES.items()]))
    await save_models(base.store, CONFIDENCE)


@pytest.fixture
async def works(open_filled: OpenFilled) -> KnowledgeBase:
    base = await open_filled(fill_works)
    base.scorer = None  # what sentences prove without it
    return base


@pytest.mark.parametrize(
    ("question", "short", "quoted"),
    [
        ("Was Ada Brink born in Ribe?", "yes", "born in Ribe"),
        ("was ada brink born in ribe", "yes", "born in Ribe"),
        ("Is it true that Ada Brink was a surveyor?", "yes", "Danish surveyor"),
        ("Could you tell me whether Ada Brink was a surveyor?", "yes", "Danish surveyor"),
        ("Did Ada Brink marry Ole Lund?", "yes", "married"),
        ("Does Storm Works make pumps?", "yes", "maker of pumps"),
        ("Did Ada Brink found Storm Works?", "yes", "by Ada Brink"),
        ("Wasn't Storm Works founded in 1953?", "yes", "1953"),
        ("Has a pump a lamp?", "yes", "lamp"),
        ("Is the office closed on Sundays?", "yes", "It is closed"),
        ("Has a pump an alarm?", "no", "no alarm"),
        ("Did Ada Brink learn to swim?", "no", "never learned"),
        ("Is travel by taxi reimbursed?", "no", "not reimbursed"),
        ("Was Storm Works founded in 1900?", "no", "1953"),
        ("Was Ada Brink born in Odense?", "no", "born in Ribe"),
        ("Was Ada Brink never born in Ribe?", "no", "born in Ribe"),
    ],
)
async def test_a_sentence_says_or_denies_it(
    works: KnowledgeBase, question: str, short: str, quoted: str
) -> None:
    answer = await works.ask(question)
    assert answer.candidate == short
    assert any(quoted in citation.quote for citation in answer.citations)


@pytest.mark.parametrize(
    "question",
    [
        "Was Ada Brink a chemist?",
        "Is the bank closed on Sundays?",
        "Did Ole Lund teach Storm Works?",
        "Did Ole Lund marry a surveyor?",
        "Has Ole Lund three sons?",
        "Is the prize of Storm Works awarded every year?",
        "Was Storm Works founded by Ole Lund?",
    ],
)
async def test_silence_is_no_denial(works: KnowledgeBase, question: str) -> None:
    assert (await works.ask(question, mode="reject")).verdict == "refused"
    assert (await works.ask(question)).candidate == ""
