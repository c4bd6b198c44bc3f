"""Rows and groups that a question names, compared with each other, with all or with a number."""

from collections.abc import Iterator

import pytest

import clew
from clew.api import Kb
from conftest import one_in_three

LIFTS = """lift,valley,metres,cabins,built
Almbahn,Ober,820,40,1998
Gratbahn,Ober,1150,64,2011
Seelift,Unter,310,12,1975
Talbahn,Unter,540,30,2003
Waldlift,Unter,260,9,1969
"""
RIDERS = """rider_id,rider,club
1,Jelena Orr,Falke
2,Bo Tamm,Falke
3,Sami Quint,Luchs
"""
RIDES = """ride_no,rider_id,ridden_on,minutes,fare_eur
F01,1,2024-02-03,40,12.5
F02,2,2024-02-10,25,9
F03,1,2024-03-02,65,20
F04,3,2024-03-09,30,11
F05,3,2024-03-16,15,6
F06,1,2024-04-06,20,8
"""
MILLS = """goods,mill,tonnes
corn meal,Steg,4
corn oil,Steg,2
rye flour,Brugg,7
"""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kb]:
    folder = tmp_path_factory.mktemp("compared")
    files = {"lifts": LIFTS, "riders": RIDERS, "lift_rides": RIDES, "mill_goods": MILLS}
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    with clew.open(folder / "kb") as kb:
        kb.add([folder / f"{name}.csv" for name in files])
        yield kb


@pytest.mark.parametrize(
    ("question", "expected"),
    one_in_three(
        [
            ("How many cabins more does Gratbahn have than Almbahn?", "24"),
            ("How many more cabins does Gratbahn have than Almbahn?", "24"),
            ("Does Talbahn have more cabins than Seelift?", "Yes"),
            ("Does Waldlift have more cabins than Seelift?", "No"),
            ("Was Seelift built before Talbahn?", "Yes"),
            ("Is Gratbahn the lift with the most cabins?", "Yes"),
            ("Is Ober the valley with the most lifts?", "No"),
            ("Did Jelena Orr ride more often than Sami Quint?", "Yes"),
        ]
    ),
)
def test_what_is_named_is_compared(tables: Kb, question: str, expected: str) -> None:
    found = tables.ask(question)
    assert found.computed
    assert found.candidate == expected


def test_month_with_its_year_is_one_condition_of_the_table_that_is_named(
    tables: Kb,
) -> None:
    found = tables.ask("How many lift rides were there in March 2024?")
    assert (found.candidate, found.confidence >= 0.5) == ("3", True)


def test_measure_is_told_where_its_unit_is_asked_for(tables: Kb) -> None:
    assert tables.ask("What is the longest ride of Sami Quint in minutes?").candidate == "30"


def test_number_behind_a_comparison_is_no_other_column(tables: Kb) -> None:
    found = tables.ask("How many rides lasted more than 25 minutes?")
    assert (found.candidate, found.confidence >= 0.5) == ("3", True)


def test_question_of_yes_or_no_is_answered_so(tables: Kb) -> None:
    assert tables.ask("Did Bo Tamm ride in April 2024?").candidate in ("No", "")


def test_kind_of_goods_is_not_counted_by_their_rows(tables: Kb) -> None:
    assert tables.ask("How many corns does Steg have?").confidence < 0.5
