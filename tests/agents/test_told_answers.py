"""Without a model: a sentence that tells it in other words is believed, one about a sibling not."""

from pathlib import Path

import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.reader.span_reader import READER_FILE, SpanReader

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not READER_FILE.is_file(), reason="the reader's weights are not installed"),
]
NOTES = {
    "Kiln": "The kiln was bought from a school in Orm for 2,300 euros. Berta Voss inspected it in "
    "May. She keeps the key in her drawer.",
    "Wheels": "There are seven wheels and two benches in the shed. The wheels are oiled by Tarek.",
    "Courses": "Nine people may join a course. The courses are paid for in advance.",
}


RECORDS = {
    "Dairy": "There are 44 cows and three bulls at the dairy. In 2018 the dairy made 610 cheeses, "
    "in 2019 it made 745.",
    "Glaze": "The glaze dries twice: six hours on the rack and one hour in the oven.",
    "Founder": "The dairy was named after the farmer Ebbe Rask (died 1911).",
}


async def build(tmp_path: Path, notes: dict[str, str]) -> KnowledgeBase:
    files = []
    for name, text in notes.items():
        files.append(tmp_path / f"{name.lower()}.md")
        files[-1].write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
    kb = await KnowledgeBase.open(Settings(kb=tmp_path / "kb"), create=True)
    await kb.add(files)
    kb.reader = SpanReader.load()
    return kb


@pytest.fixture
async def pottery(tmp_path: Path) -> KnowledgeBase:
    return await build(tmp_path, NOTES)


@pytest.fixture
async def records(tmp_path: Path) -> KnowledgeBase:
    return await build(tmp_path, RECORDS)


@pytest.mark.parametrize(
    ("question", "short"),
    [
        ("How many cows are there at the dairy?", "44"),
        ("How many cheeses did the dairy make in 2019?", "745"),
        ("How long does the glaze dry in the oven?", "one hour"),
    ],
)
async def test_the_amount_of_what_is_asked_about_is_told(
    records: KnowledgeBase, question: str, short: str
) -> None:
    assert short in (await records.ask(question)).candidate


@pytest.mark.parametrize(
    "question",
    [
        "How many goats are there at the dairy?",
        "How many cheeses did the dairy make in 2016?",
        "When was Ebbe Rask born?",
    ],
)
async def test_the_amount_or_date_of_something_else_is_not_told(
    records: KnowledgeBase, question: str
) -> None:
    assert (await records.ask(question, mode="reject")).verdict == "refused"


@pytest.mark.parametrize(
    ("question", "short"),
    [
        ("What did the kiln cost?", "2,300 euros"),
        ("Where does the kiln come from?", "Orm"),
        ("Who inspected the kiln?", "Berta Voss"),
        ("Who is in charge of oiling the wheels?", "Tarek"),
        ("Where is the key kept?", "drawer"),
        ("How many wheels are there?", "seven"),
    ],
)
async def test_what_one_sentence_tells_is_answered_in_other_words(
    pottery: KnowledgeBase, question: str, short: str
) -> None:
    answer = await pottery.ask(question, mode="reject")
    assert answer.verdict == "answered"
    assert short in answer.candidate


@pytest.mark.parametrize(
    "question",
    [
        "Who inspected the wheels?",
        "What did the benches cost?",
        "How many ovens are there in the shed?",
        "Who oils the kiln?",
    ],
)
async def test_what_is_said_of_a_sibling_is_refused(pottery: KnowledgeBase, question: str) -> None:
    answer = await pottery.ask(question, mode="reject")
    assert answer.verdict == "refused"


async def test_a_word_that_is_said_elsewhere_counts_against_an_answer(
    pottery: KnowledgeBase,
) -> None:
    right = await pottery.ask("Who inspected the kiln?")
    other = await pottery.ask("Who inspected the wheels?")
    assert right.signals["strayed"] == 0
    assert other.signals["strayed"] > 0
    assert other.confidence < right.confidence / 2


async def test_a_chain_goes_on_with_what_mentions_the_name_it_reached(
    pottery: KnowledgeBase, tmp_path: Path
) -> None:
    letters = {
        "Tower of Arnvik": "The tower of Arnvik was designed by Tove Lind. It has nine floors.",
        "Old letters": "A letter of 1902 says that Tove Lind grew up in Skarn beside the sea.",
    }
    files = [tmp_path / f"{name}.md" for name in letters]
    for file, (name, text) in zip(files, letters.items(), strict=True):
        file.write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
    await pottery.add(files)
    answer = await pottery.ask("Where did the designer of the Tower of Arnvik grow up?")
    steps = [step.step for step in answer.trace]
    assert answer.candidate == "Skarn"
    assert steps.count("retrieve") == 1
    assert "find page" in steps
