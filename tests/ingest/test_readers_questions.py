"""Questions and answers of plain text are read, found and quoted together."""

from pathlib import Path

import pytest

from clew.config import Settings
from clew.ingest.files import read
from clew.testing.hashed_kb import open_hashed
from clew.types import Document

POOL = """Swimming pool

Q:  When does the small basin
    open?

A:  At eight, but not on Sundays:
    then the club trains.

    Bring a cap.

Q:  What does a ticket cost?

A:  Three crowns for children and
    five for all others.

Q:  May I bring a dog?

A:  No.
"""


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        (
            POOL,
            "Swimming pool\n\nWhen does the small basin open?\n:   At eight, but not on Sundays:\n"
            "    then the club trains.\n\n    Bring a cap.\n\nWhat does a ticket cost?\n"
            ":   Three crowns for children and\n    five for all others.\n\n"
            "May I bring a dog?\n:   No.",
        ),
        (
            "Bad\n\nFrage: Wann?\nAntwort: Von acht\nbis neun.\n\nFrage: Wo?\nAntwort: Hier.\n",
            "Bad\n\nFrage: Wann?\n:   Antwort: Von acht\n    bis neun.\n\nFrage: Wo?\n"
            ":   Antwort: Hier.",
        ),
        (
            "问：几点开门？\n答：八点。\n问：多少钱？\n答：三元。",
            "几点开门？\n:   八点。\n\n多少钱？\n:   三元。",
        ),
        (
            "Ana: It is.\nBo: So.\nAna: Good.\nBo: Yes.",
            "Ana: It is.\nBo: So.\nAna: Good.\nBo: Yes.",
        ),
    ],
)
async def test_questions_are_the_terms_of_their_answers(
    tmp_path: Path, text: str, marked: str
) -> None:
    write(tmp_path / "a.txt", text)
    [found] = [item async for item in read([tmp_path / "a.txt"])]
    assert isinstance(found, Document)
    assert found.text.strip() == marked


async def test_an_answer_is_quoted_under_its_question(tmp_path: Path) -> None:
    write(tmp_path / "pool.txt", POOL)
    base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
    await base.add([tmp_path / "pool.txt"])
    answer = await base.ask("What does a ticket for the pool cost?")
    first = answer.citations[0]
    assert "Three crowns" in first.quote, answer.answer
    assert first.heading.endswith("What does a ticket cost?")
    await base.close()
