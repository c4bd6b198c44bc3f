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


@pytest.fixture
async def pottery(tmp_path: Path) -> KnowledgeBase:
    files = []
    for name, text in NOTES.items():
        files.append(tmp_path / f"{name.lower()}.md")
        files[-1].write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
    kb = await KnowledgeBase.open(Settings(kb=tmp_path / "kb"), create=True)
    await kb.add(files)
    kb.reader = SpanReader.load()
    return kb


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
