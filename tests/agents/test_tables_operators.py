"""What cells and questions may say: yes and no, money, totals, keys, times, ranks, languages."""

import sqlite3
from collections.abc import Iterator

import pytest

import clew
from clew.agents.tables.load import Column
from clew.agents.tables.spaced import find_language
from clew.agents.tables.values import read_truths
from clew.text.quantities import choose_decimal, split_unit, to_float
from conftest import one_in_three

pytestmark = pytest.mark.usefixtures("rules_only")

BOATS = (
    "boat;harbour;price;mast (m);launched;insured\n"
    "Petrel;Arvik;€ 1.250.000,50;12,5;2015-03-01;yes\n"
    "Skua;Arvik;€ 830.400,00;9,25;2015-12-30;no\n"
    "Tern;Lomma;€ 412.900,25;14,0;2018-02-20;no\n"
    "Auk;Lomma;€ 0,00;7,75;2011-06-06;yes\n"
    "Total;;€ 2.493.700,75;;;\n"
)
DISKS = "disk,size,used,checked\nalpha,3.2 GB,12%,✓\nbeta,850 MB,45%,\ngamma,4.1 GB,80%,✓\n"
CLUB = """
create table members(id integer primary key, name text, born date, email text);
create table courts(id integer primary key, title text, seats int);
create table bookings(id integer primary key, member_id int, court_id int, hours real);
insert into members values (1,'Olga Pires','1990-01-15','o@example.org'),
 (2,'Ben Ashby','2001-08-20',null), (3,'Mei Tan','1984-02-02','m@example.org');
insert into courts values (10,'Clay',40), (11,'Grass',90), (12,'Hall',20);
insert into bookings values (1,1,10,2), (2,1,11,1.5), (3,2,10,1), (4,3,12,3);
"""
TABLES = {"boats.csv": BOATS, "disks.csv": DISKS}
CITIES = {
    "städte.csv": "Stadt;Land;Einwohner\nGraz;Österreich;292000\nLinz;Österreich;207000\n"
    "Bonn;Deutschland;331000\n",
    "magasins.csv": "Magasin;Ville;Chiffre\nSoleil;Lyon;1200\nLune;Nantes;800\nPluie;Lyon;450\n",
    "productos.csv": "Producto,Clase,Precio\nMesa,Muebles,120\nSilla,Muebles,45\nVela,Luz,30\n",
    "города.csv": "Город,Страна,Население\nМосква,Россия,13000000\nКазань,Россия,1250000\n"
    "Минск,Беларусь,1990000\n",
    "社員.csv": "名前,部署,給料\n佐藤,営業,420000\n鈴木,開発,510000\n高橋,開発,380000\n",
    "مدن.csv": "المدينة,البلد,السكان\nالقاهرة,مصر,10000000\nالإسكندرية,مصر,5200000\n"
    "الرباط,المغرب,580000\n",
}


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    folder = tmp_path_factory.mktemp("harbour")
    for name, text in TABLES.items():
        (folder / name).write_text(text, encoding="utf-8")
    with sqlite3.connect(folder / "club.sqlite") as connection:
        connection.executescript(CLUB)
    connection.close()
    with clew.open(folder / "kb") as base:
        base.add([folder / name for name in (*TABLES, "club.sqlite")])
        yield base


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How many boats are insured?", "2"),
        ("How many boats are not insured?", "2"),
        ("Which boats are uninsured?", "Skua, Tern"),
        ("Which disks are not checked?", "beta"),
        ("Is Petrel insured?", "Yes"),
        ("Is Skua insured?", "No"),
        ("What is the total price of the boats in Arvik?", "€2080400.50"),
        ("What is the average mast?", "10.88 m"),
        ("Which boat has the highest price?", "Petrel"),
        ("Which boats have no price?", "Auk"),
        ("How many boats have a price above 400000 euros?", "3"),
        ("How many boats are there?", "4"),
        ("What percentage of boats are in Lomma?", "50%"),
        ("Which harbour has the highest total price?", "Arvik"),
        ("Which boats were launched after 2015?", "Tern"),
        ("Which boats were launched since 2015?", "Petrel, Skua, Tern"),
        ("Which boats were launched until 2015?", "Petrel, Skua, Auk"),
        ("How many boats were launched after March 2015?", "2"),
        ("Which boat has the second highest price?", "Skua"),
        ("What are the top 2 boats by price?", "Petrel, Skua"),
        ("Which two boats have the lowest price?", "Auk, Tern"),
        ("Does Petrel have a higher mast than Tern?", "No"),
        ("What is the difference in price between Petrel and Skua?", "€419600.50"),
        ("What is the maximum mast minus the minimum mast?", "6.25 m"),
        ("Which disk is the largest?", "gamma"),
        ("How many disks are larger than 1 GB?", "2"),
        ("What is the total size of the disks?", "8.15 GB"),
        ("Which disks have used above 50%?", "gamma"),
        ("Who is the youngest member?", "Ben Ashby"),
        ("Who is the oldest member?", "Mei Tan"),
        ("Which members have no email?", "Ben Ashby"),
        ("Which members booked Clay?", "Olga Pires, Ben Ashby"),
        ("Which member has the most bookings?", "Olga Pires"),
    ],
)
def test_cells_are_read_for_what_they_say(harbour: clew.Kb, question: str, said: str) -> None:
    answer = harbour.ask(question)
    assert (answer.candidate, answer.computed) == (said, True), answer.note


@pytest.mark.parametrize(
    "question",
    one_in_three(
        [
            "What is the average harbour?",
            "Which boat has the highest and the lowest price?",
            "How many boats have a price above average?",
            "What is the variance of the price?",
            "Which boats are not there?",
        ]
    ),
)
def test_an_operator_that_no_plan_uses_is_not_dropped(harbour: clew.Kb, question: str) -> None:
    assert not harbour.ask(question).computed


def test_a_guessed_word_lowers_the_confidence(harbour: clew.Kb) -> None:
    sure = harbour.ask("Which members have no email?")
    guessed = harbour.ask("Which members rented Hall?")
    assert guessed.computed
    assert guessed.confidence < sure.confidence


@pytest.fixture(scope="module")
def cities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    folder = tmp_path_factory.mktemp("cities")
    for name, text in CITIES.items():
        (folder / name).write_text(text, encoding="utf-8")
    with clew.open(folder / "kb") as base:
        base.add([folder / name for name in CITIES])
        yield base


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Wie viele Städte liegen in Österreich?", "2"),
        ("Welche Stadt hat die meisten Einwohner?", "Bonn"),
        ("Welche Städte haben mehr als 250000 Einwohner?", "Graz, Bonn"),
        ("Combien de magasins y a-t-il à Lyon ?", "2"),
        ("Quel magasin a le chiffre le plus élevé ?", "Soleil"),
        ("Quel est le total du chiffre à Lyon ?", "1650"),
        ("¿Cuál es el precio promedio?", "65"),
        ("¿Qué producto tiene el precio más alto?", "Mesa"),
        ("Сколько городов в России?", "2"),
        ("Какие города имеют население больше 1500000?", "Москва, Минск"),
        ("給料が最も高い社員は誰ですか？", "鈴木"),
        ("給料の合計はいくらですか？", "1310000"),
        ("給料が400000以上の社員は誰ですか？", "佐藤, 鈴木"),
        ("كم عدد المدن في مصر؟", "2"),
        ("ما مجموع السكان في مصر؟", "15200000"),
    ],
)
def test_other_languages_ask_tables(cities: clew.Kb, question: str, said: str) -> None:
    answer = cities.ask(question)
    assert (answer.candidate, answer.computed) == (said, True), answer.note


def test_the_language_of_a_question() -> None:
    assert find_language("Was ist der höchste Preis?") == "de"
    assert find_language("Was the price above 30 in Lyon?") == ""
    assert find_language("Which disk is the largest?") == ""


def test_numbers_are_read_by_the_decimal_sign_of_their_column() -> None:
    assert choose_decimal(["1.250.000,50", "830.400"]) == ","
    assert choose_decimal(["1,250", "3.5"]) == "."
    assert to_float("1 234,5", ",") == 1234.5
    assert to_float("1,23.5", ".") is None
    for text, digits, unit in (("$39.90", "39.90", "$"), ("12%", "12", "%"), ("-3 km", "-3", "km")):
        found = split_unit(text)
        assert found is not None and (found.digits, found.unit) == (digits, unit)
    assert split_unit("A-10") is None and split_unit("Town 7") is None
    assert Column("release", ("20.04 LTS", "19.10", "18.04 LTS")).type == "text"


def test_columns_of_yes_and_no() -> None:
    assert read_truths(["ja", "nein", None]) == {"ja": True, "nein": False}
    assert read_truths([1, 0, 1]) == {1: True, 0: False}
    assert read_truths(["✓", None]) == {"✓": True}
    assert read_truths([1, 2, 0]) is None and read_truths(["yes", "maybe"]) is None
