"""Table questions whose words only seem to be meant, or need a second table or a role."""

from collections.abc import Iterator

import pytest

import clew
from conftest import one_in_three, open_tables

pytestmark = pytest.mark.usefixtures("rules_only")

TABLES = {
    "pets.csv": "name,species,age,weight_kg,arrived,adopted,vet\n"
    "Juno,cat,3,4.1,2024-01-10,yes,Dr. Abel\nRex,dog,7,28,2023-11-02,no,Dr. Boll\n"
    "Mimi,cat,1,2.9,2024-03-15,no,Dr. Abel\nHops,rabbit,2,1.8,2024-04-01,no,Dr. Abel\n",
    "books.csv": "book_id,title,author,price\nB1,The Tin Drum,Grass,14\nB2,Dune,Herbert,19\n"
    "B3,Emma,Austen,11\n",
    "readers.csv": "reader_id,name,street\nR1,Paul Weiss,Elm Street\nR2,Carla Dietz,Oak Lane\n",
    "loans.csv": "loan,book_id,reader_id,returned_on\n1,B1,R1,2024-01-20\n2,B2,R2,\n3,B3,R1,\n",
    "rounds.csv": "day,home,away,home_points,away_points,umpire\n"
    "2024-01-06,Valby,Skive,27,24,Nissen\n"
    "2024-01-13,Skive,Valby,30,31,Bech\n2024-01-20,Valby,Ringe,22,29,Nissen\n",
}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    with open_tables(tmp_path_factory.mktemp("mixed"), TABLES) as base:
        yield base


@pytest.mark.parametrize(
    ("question", "said"),
    one_in_three(
        [
            ("Who borrowed Dune?", "Carla Dietz"),
            ("Which loans were not returned?", "2, 3"),
            ("Who lives in Oak Lane?", "Carla Dietz"),
            ("How many points did Valby score at home?", "49"),
            ("How many away points did Valby score?", "31"),
            ("Who umpired the round on 2024-01-13?", "Bech"),
            ("What is the most expensive book?", "Dune"),
            ("What is the price of the cheapest book?", "11"),
            ("Which animals have not been adopted?", "Rex, Mimi, Hops"),
            ("Which vet looks after Hops?", "Dr. Abel"),
        ]
    ),
)
def test_roles_links_and_scattered_names_are_read(mixed: clew.Kb, question: str, said: str) -> None:
    answer = mixed.ask(question)
    assert (answer.candidate, answer.computed) == (said, True), answer.note
    assert answer.confidence >= (0.3 if "borrowed" in question else 0.5)  # a verb, and a link


@pytest.mark.parametrize(
    "question",
    one_in_three(
        [
            "How many parrots are among the pets?",
            "How many sofas are there?",
            "What medicine does Rex get?",
            "Who teaches the flute?",
            "Which books were stolen?",
            "What does Juno smell like?",
        ]
    ),
)
def test_a_word_that_nothing_accounts_for_is_not_told_with_confidence(
    mixed: clew.Kb, question: str
) -> None:
    answer = mixed.ask(question)
    assert answer.verdict == "refused" or answer.confidence < 0.5, answer.answer


def test_a_short_answer_from_a_row_is_a_cell(mixed: clew.Kb) -> None:
    cells = {
        cell for text in TABLES.values() for line in text.split("\n") for cell in line.split(",")
    }
    for question in ("Tell me about Juno the cat", "Juno's keeper?"):
        answer = mixed.ask(question)
        assert not answer.candidate or answer.candidate in cells
