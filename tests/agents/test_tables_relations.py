"""Table questions about whose rows they are, what several of them cost, and who is behind a key."""

from collections.abc import Iterator

import pytest

import clew
from conftest import open_tables

TABLES = {
    "drivers.csv": "id,name,country\n1,Aino Salo,Finland\n2,Rui Prata,Portugal\n3,Elis Ek,Sweden\n",
    "entries.csv": "id,car,driver_id,stage,spent_eur\n1,Blue Comet,1,gravel,120\n"
    "2,Old Rust,2,snow,80.5\n3,Snowbird,1,snow,45\n4,Quick Fox,3,gravel,60\n5,Polar,1,ice,30\n",
}


@pytest.fixture(scope="module")
def rally(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    with open_tables(tmp_path_factory.mktemp("rally"), TABLES) as base:
        yield base


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How many entries are by drivers from Finland?", "3"),
        ("How many entries does Aino Salo have?", "3"),
        ("Which entries are by drivers from Finland?", "Blue Comet, Snowbird, Polar"),
        ("How many entries are there by stage?", "gravel: 2, snow: 2, ice: 1"),
    ],
)
def test_a_word_for_rows_names_the_table_called_so(
    rally: clew.Kb, question: str, said: str
) -> None:
    answer = rally.ask(question)
    assert (answer.candidate, answer.computed) == (said, True), answer.note
    assert answer.confidence >= 0.5


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How much did I spend for the snow entries?", "125.50 EUR"),
        ("How much did we spend on all the gravel entries?", "180 EUR"),
    ],
)
def test_what_was_paid_for_several_rows_is_added_up(
    rally: clew.Kb, question: str, said: str
) -> None:
    assert rally.ask(question).candidate == said
