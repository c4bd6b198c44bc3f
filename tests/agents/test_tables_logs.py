"""Logs of events: what "how many bikes" counts, whose row is meant, and what nobody said."""

import sqlite3
from collections.abc import Iterator

import pytest

import clew
from conftest import one_in_three

REPAIRS = """repair,customer,bike,received,collected,parts_cost
R1,Ann Hall,cargo bike,2025-06-02,2025-06-05,40
R2,Bo Lee,road bike,2025-06-09,2025-06-11,25
R3,Bo Lee,road bike,2025-06-20,,45
R4,Cy Dunn,cargo bike,2025-07-01,,60
R5,Ann Hall,road bike,2025-07-03,2025-07-09,10
R6,Bo Lee,cargo bike,2025-08-03,,12
"""
SHELTER = """no,cat,keeper,arrived,left
1,tabby,Ann,2025-06-02,
2,tabby,Bo,2025-06-20,2025-07-01
3,siamese,Ann,2025-06-28,
4,tabby,Cy,2025-03-11,2025-04-01
5,manx,Bo,2025-06-30,
"""
STAYS = """stay,dog,owner,food_kg
1,Rex,Ann Hall,3.5
2,Fido,Bo Lee,9.5
3,Rex,Ann Hall,7
4,Luna,Cy Dunn,2
5,Rex,Ann Hall,4
"""
WARDS = """shift,nurse,doctor,ward,patients
S1,Ida Moe,Tom Reed,North,12
S2,Una Boyd,Tom Reed,South,9
S3,Ida Moe,Eva Lind,North,30
S4,Una Boyd,Eva Lind,South,7
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, clew.Kb]]:
    opened = {}
    for name, text in (
        ("repairs", REPAIRS),
        ("shelter", SHELTER),
        ("kennel", STAYS),
        ("shifts", WARDS),
    ):
        folder = tmp_path_factory.mktemp(name)
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
        opened[name] = clew.open(folder / "kb")
        opened[name].add([folder / f"{name}.csv"])
    yield opened
    for base in opened.values():
        base.close()


@pytest.mark.parametrize(
    ("log", "question", "told", "beside"),
    one_in_three(
        [
            ("repairs", "How many bikes were received in June?", "3", "2 different"),
            ("repairs", "How many bikes have not been collected yet?", "3", "2 different"),
            ("repairs", "How many different bikes were received in June?", "2", ""),
            ("repairs", "How many customers were there in June?", "2", "in 3 rows"),
        ]
    ),
)
def test_rows_are_counted_where_each_is_a_thing_of_a_kind_and_both_counts_are_told(
    logs: dict[str, clew.Kb], log: str, question: str, told: str, beside: str
) -> None:
    answer = logs[log].ask(question)
    assert answer.candidate == told
    assert answer.confidence >= 0.5
    assert answer.answer.startswith(f"{told} ({beside})" if beside else f"{told} [")


def test_kinds_that_may_be_things_are_not_counted_with_confidence(logs: dict[str, clew.Kb]) -> None:
    answer = logs["shelter"].ask("How many cats arrived in June?")
    assert answer.candidate == "4" or answer.confidence < 0.5
    assert "3" in answer.answer and "4" in answer.answer


@pytest.mark.parametrize(
    ("log", "question", "told"),
    [
        ("repairs", "Whose repair had the highest parts cost?", "Cy Dunn"),
        ("repairs", "Which customer had the highest total parts cost?", "Bo Lee"),
    ],
)
def test_whose_repair_asks_for_one_row(
    logs: dict[str, clew.Kb], log: str, question: str, told: str
) -> None:
    assert logs[log].ask(question).candidate == told


def test_whose_dog_is_not_answered_by_the_dog_nor_by_the_numbers_of_rows(
    logs: dict[str, clew.Kb],
) -> None:
    answer = logs["kennel"].ask("Whose dog ate the most food in one stay?")
    assert answer.candidate not in ("Rex", "Fido", "Luna")
    assert answer.confidence < 0.5 or answer.candidate == "Bo Lee"


def test_whose_is_unsure_where_two_columns_name_somebody(logs: dict[str, clew.Kb]) -> None:
    answer = logs["shifts"].ask("Whose shift had the most patients?")
    assert answer.confidence < 0.5 or not answer.computed


def test_a_condition_that_nobody_said_is_not_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("lights")
    with sqlite3.connect(folder / "lights.sqlite") as db:
        db.execute("create table lighthouse (id integer primary key, name, built, automated)")
        rows = [
            (1, "Gull Rock", 1870, "1987-05-01"),
            (2, "Farrow Head", 1903, None),
            (3, "Tern Ness", 1911, None),
            (4, "Skerry", 1888, "1990-03-02"),
        ]
        db.executemany("insert into lighthouse values (?, ?, ?, ?)", rows)
        db.execute("create table inspection (id integer primary key, lighthouse_id, day, faults)")
        seen = [(1, 1, "2024-02-01", 2), (2, 2, "2024-03-01", 0), (3, 4, "2024-04-01", 5)]
        db.executemany("insert into inspection values (?, ?, ?, ?)", seen)
    with clew.open(folder / "kb") as base:
        base.add([folder / "lights.sqlite"])
        answer = base.ask("Which lighthouses are still manned, with no automation date?")
        assert answer.confidence < 0.5 or set(answer.candidate.split(", ")) == {
            "Farrow Head",
            "Tern Ness",
        }
        assert base.ask("Which lighthouse has never been inspected?").candidate == "Tern Ness"
