"""Of two parallel parts of a sentence the one is read that has the word asked about."""

from pathlib import Path

import pytest

from clew.agents.answering.parts import split_halves
from clew.agents.reading.parallel import find_parallel
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.reader.span_reader import READER_FILE, find_reader
from clew.testing.hashed_kb import open_hashed
from conftest import OpenFilled, document, stream


@pytest.mark.parametrize(
    ("asked", "sentence", "read", "part"),
    [
        ("lessor", "The lessor is Ann; the lessee is Bo.", "Bo", "The lessor is Ann"),
        ("lessee", "The lessor is Ann; the lessee is Bo.", "Bo", ""),
        ("lower bearing", "The upper bearing has oil, the lower bearing fat.", "oil", "the lower"),
        ("payee levy", "The payer of the levy is Ann, and the payee is Bo.", "Ann", "and the p"),
        ("lessors", "The lessor is Ann and lives in the tower.", "tower", ""),
        ("tower", "Ann built the mill and Bo sold the tower.", "Ann", "and Bo sold"),
        ("tower", "Ann built a mill and Bo sold the tower.", "Ann", ""),
    ],
)
def test_the_part_with_the_word_asked_about_is_found(
    asked: str, sentence: str, read: str, part: str
) -> None:
    at = sentence.index(read)
    small = {"the", "is", "of", "and", "in", "has"}
    found = find_parallel(
        asked.split(), sentence, (at, at + len(read)), lambda word: word not in small
    )
    said = sentence[slice(*found)].strip(" ,") if found else ""
    assert said.startswith(part) if part else not said


@pytest.mark.skipif(not READER_FILE.is_file(), reason="the reader's weights are not installed")
@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Who is the assignor of the patent?", "Quill Optics"),
        ("Who is the assignee of the patent?", "Dara Voss"),
        ("Who is the promisor?", "Edda Kling"),
    ],
)
async def test_the_right_one_of_a_pair_is_named(tmp_path: Path, question: str, named: str) -> None:
    text = (
        "# Patent of the lens\n\nThe assignor is Quill Optics; the assignee is Dara Voss.\n\n"
        "The promisor is Edda Kling and the promisee is Dara Voss.\n"
    )
    (tmp_path / "patent.md").write_text(text, encoding="utf-8")
    kb = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    kb.reader = find_reader(None)
    await kb.add([tmp_path / "patent.md"])
    assert (await kb.ask(question)).candidate == named


@pytest.mark.parametrize(
    ("question", "halves"),
    [
        ("Where and when was N born?", ["Where was N born?", "When was N born?"]),
        ("Who founded N, and when?", ["Who founded N?", "When was N founded?"]),
        ("Who wrote the hymn and why?", ["Who wrote the hymn?", "Why was the hymn written?"]),
        ("When was N built and by whom?", ["When was N built?", "By whom was N built?"]),
        ("How long and how wide is N?", ["How long is N?", "How wide is N?"]),
        ("Wo und wann wurde N gebaut?", ["Wo wurde N gebaut?", "Wann wurde N gebaut?"]),
    ],
)
def test_two_question_words_of_one_thing_are_two_questions(
    question: str, halves: list[str]
) -> None:
    assert split_halves(question) == halves


@pytest.mark.parametrize(
    "question", ["Who founded N and M?", "What did N say and do?", "Where was N when M was born?"]
)
def test_what_asks_once_is_one_question(question: str) -> None:
    assert split_halves(question) == [question]


CHOIR = {
    "Lark Choir": "The Lark Choir was founded in 1931 by Ida Moe. It sings in Aldern.",
    "Finch Choir": "The Finch Choir was founded in 1958. It sings in Breck.",
}


async def fill_choirs(base: KnowledgeBase) -> None:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in CHOIR.items()]))


async def test_the_half_that_is_not_said_is_said_to_be_missing(open_filled: OpenFilled) -> None:
    choirs = await open_filled(fill_choirs)
    both = await choirs.ask("When and by whom was the Lark Choir founded?", mode="open", k=8)
    assert [part.candidate for part in both.parts] == ["1931", "Ida Moe"]
    half = await choirs.ask("When and by whom was the Finch Choir founded?", mode="open", k=8)
    when, whom = half.parts
    assert when.candidate == "1958" and when.confidence >= 0.5
    assert whom.verdict == "refused" and "By whom" in half.missing
