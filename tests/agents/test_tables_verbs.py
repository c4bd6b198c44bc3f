"""Table questions with verbs, keys, demonyms and times that no column is called by."""

from collections.abc import Iterator

import pytest

import clew
from conftest import one_in_three, open_tables

pytestmark = pytest.mark.usefixtures("rules_only")

TABLES = {
    "guides.csv": "guide_id,name,skill,pay_eur\n"
    "G-1,Ida Brandt,Climbing,2100\nG-2,Leo Castro,Rafting,1900\nG-3,Noor Aziz,Climbing,2400\n",
    "tours.csv": "tour_no,date,animal,guide_id,load_kg,length_km\n"
    "1,2024-03-02,mule,G-1,120,14\n2,2024-03-20,mule,G-2,90,800\n3,2024-05-11,llama,G-1,40,22\n"
    "4,2024-06-01,mule,G-1,105,9\n",
    "huts.csv": "hut,country,last repair,door_m,altitude_m\n"
    "Alva,Norway,2019-06-01,2,1200\nBrek,Sweden,2023-08-12,1.9,900\nCima,Italy,2011-05-30,2.1,2450\n"
    "Dalen,Norway,2021-07-07,2,640\n",
    "machines.csv": "machine,hall\nLathe,A\nMill,B\n",
}


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    with open_tables(tmp_path_factory.mktemp("trips"), TABLES) as base:
        yield base


@pytest.mark.parametrize(
    ("question", "said"),
    one_in_three(
        [
            ("Which guide had the most tours?", "Ida Brandt"),
            ("Which guide led tour 2?", "Leo Castro"),
            ("Which guide never led a tour?", "Noor Aziz"),
            ("Which animal was seen most often?", "mule"),
            ("How many tours took place in March 2024?", "2"),
            ("How many animals carried a load of more than 100 kg?", "2"),
            ("What do the guides in Climbing earn together?", "4500 EUR"),
            ("What was the length of tour 3?", "22 km"),
            ("List the Norwegian huts", "Alva, Dalen"),
            ("What is the average altitude of the Norwegian huts?", "920"),
            ("Which hut was repaired last?", "Brek"),
            ("Which hut has gone longest without repair?", "Cima"),
            ("How many huts are above 1000 m?", "2"),
        ]
    ),
)
def test_verbs_and_keys_are_understood(trips: clew.Kb, question: str, said: str) -> None:
    answer = trips.ask(question)
    assert (answer.candidate, answer.computed) == (said, True), answer.note


@pytest.mark.parametrize(
    "question",
    one_in_three(
        [
            "Which guide trained Leo Castro?",
            "How many French huts are there?",
            "Where does Ida Brandt shop?",
            "Which machine cost the most?",
            "How many huts burned in 2019?",
            "Which hut was besieged most often?",
        ]
    ),
)
def test_what_a_verb_or_noun_adds_is_not_ignored(trips: clew.Kb, question: str) -> None:
    assert not trips.ask(question).computed


YARD = {
    "welders.csv": "welder_id,name\nW1,Ada Stone\nW2,Bo Lund\n",
    "sheds.csv": "shed,welder_id,site,welded_on\n"
    "Gull,W1,North Yard,2018-04-02\nHeron,W2,South Yard,2022-05-01\n"
    "Stork,W1,South Yard,2023-06-09\n",
    "boats.csv": "boat,mechanic,material,year_made\n"
    "Wren,Eva Rask,oak,1998\nSwift,Olaf Birk,pine,2004\nRobin,Eva Rask,pine,2011\n",
}


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    with open_tables(tmp_path_factory.mktemp("yard"), YARD) as base:
        yield base


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Who repaired the Swift?", "Olaf Birk"),
        ("Who welded the Stork?", "Ada Stone"),  # not `welded_on`
        ("What is the Wren made of?", "oak"),  # not the year
        ("Which sheds came out of the South Yard?", "Heron, Stork"),  # nothing is denied
    ],
)
def test_a_verb_asks_for_who_did_it_and_what_of(yard: clew.Kb, question: str, said: str) -> None:
    answer = yard.ask(question)
    assert (answer.candidate, answer.computed) == (said, True), answer.note
