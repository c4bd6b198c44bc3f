"""Without a model: what is said of another time, ordinal, sort or relation is not told as sure."""

from pathlib import Path

import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.reader.span_reader import READER_FILE, SpanReader

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not READER_FILE.is_file(), reason="the reader's weights are not installed"),
]
FERRY = """# Ferry rules

During loading the ramp stays open for forty minutes.
Every long-stay guest gets 12 vouchers a month. Short-stay guests buy theirs at the desk.
The first inspection of the hull took place in May 2018.
Every yellow card gives five crossings a week.
A lost ticket is replaced up to three times. After loading the ramp closes for ten minutes.
"""
BARGE = """# Barge

The barge has no engine. Tickets are not sold on the barge.
"""
PEOPLE = {
    "Runa Velt": "Runa Velt (born 1931 in Skarn) was a shipwright. She died in 1998. She was "
    "married to the pilot Odo Hark.",
    "Odo Hark": "Odo Hark was a pilot born in Lemvik in 1929. "
    "He was taught by the captain Ines Falk.",
    "Ines Falk": "Ines Falk was a captain. She was born in Tolm.",
    "Bram Oster": "Bram Oster is a politician. He won a medal at the 1988 regatta in Lemvik.",
    "Lemvik": "Lemvik is a market town with a lighthouse.",
    "Skarn": "Skarn is a fishing town in the county of Nordmark. Its harbour master is Tove Lind.",
}


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    made = tmp_path_factory.mktemp("restricted")
    texts = {"ferry": FERRY, "barge": BARGE}
    texts |= {name: f"# {name}\n\n{text}\n" for name, text in PEOPLE.items()}
    for name, text in texts.items():
        (made / f"{name.lower().replace(' ', '-')}.md").write_text(text, encoding="utf-8")
    return sorted(made.glob("*.md"))


@pytest.fixture
async def harbour(notes: list[Path], tmp_path: Path) -> KnowledgeBase:
    base = await KnowledgeBase.open(Settings(kb=tmp_path / "kb"), create=True)
    base.reader = SpanReader.load()
    await base.add(notes)
    return base


OTHERWISE = [
    "How long does the ramp stay open before loading?",
    "How many vouchers does a short-stay guest get?",
    "How many crossings a week does a purple card give?",
    "When did the second inspection of the hull take place?",
    "How many times is a lost ticket replaced on the barge?",
    "Who was the harbour master of Skarn before Tove Lind?",
    "Who was the first harbour master of Skarn?",
    "Where was Runa Velt's mother born?",
    "Where was Runa Velt's daughter born?",
    "In which country was Runa Velt born?",
    "In which county was Odo Hark born?",
    "How old was Runa Velt when she died?",
    "Are Odo Hark and Bram Oster from the same town?",
]
SAID = {
    "How long does the ramp stay open during loading?": "forty minutes",
    "When did the first inspection of the hull take place?": "May 2018",
    "How many vouchers a month does a long-stay guest get?": "12",
    "Where was Runa Velt's husband born?": "Lemvik",
    "In which county is Skarn?": "Nordmark",
    "Who is the harbour master of Skarn?": "Tove Lind",
}


async def test_another_time_ordinal_sort_or_relation_is_not_told(harbour: KnowledgeBase) -> None:
    answers = [await harbour.ask(question, mode="reject") for question in OTHERWISE]
    await harbour.close()
    told = [(one.question, one.candidate) for one in answers if one.verdict != "refused"]
    assert not told


async def test_what_a_restricted_question_asks_is_told(harbour: KnowledgeBase) -> None:
    answers = {question: await harbour.ask(question) for question in SAID}
    await harbour.close()
    assert {question: one.candidate for question, one in answers.items()} == SAID
    doubted = [q for q, one in answers.items() if one.signals.keys() & {"mismatch", "unsaid"}]
    assert not doubted
