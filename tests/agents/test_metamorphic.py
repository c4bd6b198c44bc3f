"""Another wording changes neither what is found nor what is answered, or the confidence falls."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from clew.agents.core.confidence import save_models
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.reader.span_reader import READER_FILE, SpanReader
from clew.testing.word_reader import CONFIDENCE
from clew.types import Document
from conftest import OpenFilled, document, one_in_three, stream

HARBOUR: Sequence[Document] = (
    document(
        "tern",
        "Tern Tower is a lighthouse on the island of Orm. It was designed by Liv Strand. "
        "Tern Tower was built in 1904.",
        "Tern Tower",
    ),
    document(
        "gull",
        "Gull Tower is a lighthouse in the town of Sarn. It was designed by Per Holt. "
        "Gull Tower was built in 1921.",
        "Gull Tower",
    ),
    document(
        "liv",
        "Liv Strand was a Norwegian architect. She was born in Bergen. She died in 1933.",
        "Liv Strand",
    ),
    document("per", "Per Holt was a Swedish engineer. He was born in Lund.", "Per Holt"),
    document("orm", "Orm is an island with two harbours and a school.", "Orm"),
    document("sarn", "Sarn is a market town. Its mill was built in 1870.", "Sarn"),
)
GENERAL: dict[str, Callable[[str], str]] = {
    "lower case": str.lower,
    "no mark": lambda text: text.rstrip("?"),
    "courtesy before": lambda text: f"Could you please tell me: {text}",
    "courtesy around": lambda text: f"Hello! {text} Thank you!",
    "upper case": str.upper,
}
ANSWERS = {
    "Who designed Gull Tower?": "Per Holt",
    "Where was Liv Strand born?": "Bergen",
    "When was Tern Tower built?": "1904",
    "Where was the designer of Tern Tower born?": "Bergen",
    "Which was built first, Tern Tower or Gull Tower?": "Tern Tower",
}
OTHER_WORDS = [
    ("Who designed Gull Tower?", "By whom was Gull Tower designed?"),
    ("Who designed Gull Tower?", "Gull Tower was designed by whom?"),
    ("Where was Liv Strand born?", "In which town was Liv Strand born?"),
    ("When was Tern Tower built?", "In what year was Tern Tower built?"),
    (
        "Which was built first, Tern Tower or Gull Tower?",
        "Which was built first, Gull Tower or Tern Tower?",
    ),
    (
        "Which was built first, Tern Tower or Gull Tower?",
        "Of Gull Tower and Tern Tower, which was built earlier?",
    ),
    (
        "Where was the designer of Tern Tower born?",
        "Where was Tern Tower's designer born?",
    ),
]


async def fill_harbour(base: KnowledgeBase) -> None:
    """Two lighthouses, who designed them, and where they stand."""
    await base.take(stream(HARBOUR))
    await save_models(base.store, CONFIDENCE)


@pytest.fixture
async def harbour(open_filled: OpenFilled) -> KnowledgeBase:
    """Two lighthouses, who designed them, and where they stand."""
    return await open_filled(fill_harbour)


async def check_pair(kb: KnowledgeBase, plain: str, reworded: str, said: str) -> None:
    """Ask both; the second must be answered alike, or with less confidence."""
    one, two = await kb.ask(plain), await kb.ask(reworded)
    assert one.candidate == said
    same = two.candidate.casefold() == said.casefold()
    assert same or two.confidence < min(0.5, one.confidence), (two.candidate, two.confidence)
    found = {passage.doc for passage in one.evidence.chunks[:3]}
    assert found & {passage.doc for passage in two.evidence.chunks[:3]}


@pytest.mark.parametrize("way", one_in_three(GENERAL))
@pytest.mark.parametrize("question", ANSWERS)
async def test_manners_change_no_answer(harbour: KnowledgeBase, question: str, way: str) -> None:
    await check_pair(harbour, question, GENERAL[way](question), ANSWERS[question])


@pytest.mark.parametrize(("plain", "reworded"), one_in_three(OTHER_WORDS))
async def test_other_words_for_the_same(harbour: KnowledgeBase, plain: str, reworded: str) -> None:
    await check_pair(harbour, plain, reworded, ANSWERS[plain])


@pytest.mark.parametrize("question", one_in_three(ANSWERS))
async def test_a_stranger_in_the_place_of_a_name_lowers_the_confidence(
    harbour: KnowledgeBase, question: str
) -> None:
    strange = question.replace("Gull Tower", "Vang Mill").replace("Tern Tower", "Vang Mill")
    strange = strange.replace("Liv Strand", "Gundula Pfefferkorn")
    known, unknown = await harbour.ask(question), await harbour.ask(strange)
    assert unknown.confidence < min(0.5, known.confidence)


@pytest.mark.slow
@pytest.mark.skipif(not READER_FILE.is_file(), reason="the reader's weights are not installed")
@pytest.mark.parametrize("way", GENERAL)
async def test_the_real_reader_keeps_its_answers(tmp_path: Path, way: str) -> None:
    kb = await KnowledgeBase.open(Settings(kb=tmp_path / "kb"), create=True)
    kb.reader = SpanReader.load()
    await kb.take(stream(HARBOUR))
    try:
        for question in ANSWERS:
            one, two = await kb.ask(question), await kb.ask(GENERAL[way](question))
            same = one.candidate.casefold() == two.candidate.casefold()
            assert same or two.confidence < max(0.5, one.confidence)
    finally:
        await kb.close()
