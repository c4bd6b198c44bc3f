"""Of two parallel parts of a sentence the one is read that has the word asked about."""

from pathlib import Path

import pytest

from clew.agents.reading.parallel import find_parallel
from clew.config import Settings
from clew.reader.span_reader import READER_FILE, find_reader
from clew.testing.hashed_kb import open_hashed


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
