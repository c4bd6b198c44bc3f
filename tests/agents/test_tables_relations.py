"""Table questions about whose rows they are, what several of them cost, and who is behind a key."""

from collections.abc import Iterator

import pytest

import clew
from conftest import one_in_three, open_tables

pytestmark = pytest.mark.usefixtures("rules_only")

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


SHOP = {
    "looms.csv": "loom,weaver,wool,shed,cloth_kg,since\nAsp,Ida Moe,grey sheep,North,31,2001\n"
    "Birk,Per Lie,alpaca,North,5,2004\nEik,Ida Moe,grey sheep,South,11,2010\n"
    "Lind,Per Lie,merino,South,14,2012\nSelje,Per Lie,alpaca,North,6,2015\n",
    "pickers.csv": "picker_id,name,duty\nP1,Olga Reiss,hayfork hand\nP2,Juan Diez,driver\n"
    "P3,Mette Holm,driver\n",
    "rounds.csv": "round,day,sort,minutes,guided_by\nR11,2024-05-01,early cherry,40,P1\n"
    "R12,2024-05-09,late plum,55,P2\nR13,2024-06-02,early cherry,35,P2\n"
    "R14,2024-06-20,red pear,70,P2\n",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    with open_tables(tmp_path_factory.mktemp("shop"), SHOP) as base:
        yield base


@pytest.mark.parametrize(
    "question",
    one_in_three(
        [
            "How many sheep live in Asp?",
            "How many looms did Ida Moe sell?",
            "How many hays were there?",
        ]
    ),
)
def test_a_part_of_a_value_or_an_unknown_deed_is_not_told(shop: clew.Kb, question: str) -> None:
    answer = shop.ask(question)
    assert not answer.computed or answer.confidence < 0.5


def test_the_least_of_a_group_is_of_its_sum(shop: clew.Kb) -> None:
    assert shop.ask("Which shed made the least cloth?").candidate == "South"


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Who guided the red pear?", "Juan Diez"),
        ("Who guided the most rounds?", "Juan Diez"),
        ("How many rounds did Juan Diez guide?", "3"),
        ("Who guided round R11?", "Olga Reiss"),
        ("How many early cherries were there?", "2"),
    ],
)
def test_short_codes_link_tables(shop: clew.Kb, question: str, said: str) -> None:
    answer = shop.ask(question)
    assert (answer.candidate, answer.computed) == (said, True), answer.note


def test_a_value_is_told_with_the_unit_of_its_column(shop: clew.Kb) -> None:
    assert shop.ask("What is the cloth of Lind?").candidate == "14 kg"
