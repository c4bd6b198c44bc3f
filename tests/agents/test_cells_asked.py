"""A cell of a table in a document is told where it is what was asked, and doubted elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import clew
from conftest import one_in_three, open_tables

STAFF = """# Staff

| Name | Room | Phone | Manager |
|---|---|---|---|
| Rosa Vint | 12 | 4417 | Olek Daum |
| Piet Sand | 9 | 4420 | Rosa Vint |
| Mara Quist | 14 | 4431 | Rosa Vint |
"""
FLEET = """# The fleet

| Ship | Built | Passengers | Captain |
|---|---|---|---|
| Morning Star | 1998 | 420 | Ida Stroem |
| Petrel | 2006 | 180 | Jonas Pike |
| Sandpiper | 2014 | 95 | Otto Brandt |
"""


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    folder: Path = tmp_path_factory.mktemp("cells")
    with open_tables(folder, {"staff.md": STAFF, "fleet.md": FLEET}) as base:
        yield base


@pytest.mark.parametrize(
    ("question", "expected"),
    one_in_three(
        [
            ("What is the phone number of Piet Sand?", "4420"),
            ("Who manages Piet Sand?", "Rosa Vint"),
            ("Who is Piet Sand's manager?", "Rosa Vint"),
            ("How many passengers does the Sandpiper carry?", "95"),
            ("When was the Petrel built?", "2006"),
            ("Who is the captain of the Morning Star?", "Ida Stroem"),
        ]
    ),
)
def test_cell_that_is_asked_for_is_told(kb: clew.Kb, question: str, expected: str) -> None:
    found = kb.ask(question)
    assert found.candidate == expected
    assert found.confidence > 0.5


@pytest.mark.parametrize(
    "question",
    one_in_three(
        [
            "When was the manager of Piet Sand born?",
            "Where does the manager of Piet Sand live?",
            "Why did Piet Sand's manager resign?",
            "How many windows does the room of Mara Quist have?",
            "How many crew members does the Sandpiper have?",
            "In which year was the captain of the Petrel born?",
        ]
    ),
)
def test_cell_beside_words_that_nothing_says_is_doubted(kb: clew.Kb, question: str) -> None:
    assert kb.ask(question).confidence < 0.5
    assert kb.ask(question, mode="reject").verdict == "refused"


@pytest.mark.parametrize(
    "question",
    ["What is the phone number of Piet Stone?", "Who is the captain of the Morning Sun?"],
)
def test_row_of_a_name_that_shares_a_word_is_doubted(kb: clew.Kb, question: str) -> None:
    assert kb.ask(question).confidence < 0.5


def test_column_of_names_leads_to_another_row_than_the_one_named(kb: clew.Kb) -> None:
    found = kb.ask("In which room is the manager of Piet Sand?")
    assert found.confidence < 0.5 or found.candidate == "12"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many people does Rosa Vint manage?", "2"),
        ("Whom does Rosa Vint manage?", "Piet Sand, Mara Quist"),
    ],
)
def test_who_is_managed_stands_in_the_rows_of_others(
    kb: clew.Kb, question: str, expected: str
) -> None:
    found = kb.ask(question)
    assert found.candidate == expected
    assert found.confidence > 0.5


def test_which_room_is_no_name(kb: clew.Kb) -> None:
    assert kb.ask("Which room has the most people?").confidence < 0.5
