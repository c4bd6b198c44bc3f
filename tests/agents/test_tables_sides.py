"""Table questions whose preposition chooses between two columns that have the same values."""

from collections.abc import Iterator

import pytest

import clew
from conftest import open_tables

FLIGHTS = """[
 {"no": "KX 101", "from": {"city": "Riga", "code": "RIX"},
  "to": {"city": "Porto", "code": "OPO"}, "price": 189.9},
 {"no": "KX 205", "from": {"city": "Porto", "code": "OPO"},
  "to": {"city": "Oslo", "code": "OSL"}, "price": 149.0},
 {"no": "KX 330", "from": {"city": "Riga", "code": "RIX"},
  "to": {"city": "Malaga", "code": "AGP"}, "price": 221.5},
 {"no": "KX 412", "from": {"city": "Oslo", "code": "OSL"},
  "to": {"city": "Riga", "code": "RIX"}, "price": 99.0}
]"""


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    with open_tables(tmp_path_factory.mktemp("board"), {"flights.json": FLIGHTS}) as base:
        yield base


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Which flight goes to Oslo?", "KX 205"),
        ("Which flight leaves from Oslo?", "KX 412"),
        ("Which flight goes to OSL?", "KX 205"),
        ("Which flights go from Riga to Porto?", "KX 101"),
        ("How many flights go to Riga?", "1"),
        ("How many flights leave from Riga?", "2"),
        ("What does the flight to Oslo cost?", "149"),
        ("What is the cheapest flight from Riga?", "KX 101"),
    ],
)
def test_a_preposition_chooses_the_column_that_it_names(
    board: clew.Kb, question: str, said: str
) -> None:
    answer = board.ask(question)
    assert (answer.candidate, answer.computed) == (said, True), answer.note
    assert answer.confidence >= 0.3
