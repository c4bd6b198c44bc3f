"""Sums of prices take each as often as its row says, and totals are of the table that is named."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import clew
from conftest import open_tables

SALES = """sale_id,buyer,town,ware,quantity,unit_price,status
1,Odo,Lund,rope,10,2.00,paid
2,Odo,Arvik,sail,1,90.00,paid
3,Ines,Arvik,rope,50,2.00,open
"""
WAGES = """worker,harbour,salary_eur
Kai,Lund,30000
Una,Arvik,36000
Tor,Arvik,31000
"""


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    folder: Path = tmp_path_factory.mktemp("prices")
    with open_tables(folder, {"sales.csv": SALES, "wages.csv": WAGES}) as base:
        yield base


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("How much did Odo spend?", "110"),
        ("What is the total revenue from rope?", "120"),
        ("What is the sum of the unit prices?", "94"),
        ("What is the average unit price of the sales of Odo?", "46"),
    ],
)
def test_prices_are_multiplied_where_money_is_added_up(
    kb: clew.Kb, question: str, told: str
) -> None:
    assert kb.ask(question).candidate == told


def test_a_computed_product_says_so(kb: clew.Kb) -> None:
    assert "unit_price times quantity" in kb.ask("How much did Odo spend?").note


def test_another_tables_column_is_not_told_as_sure(kb: clew.Kb) -> None:
    assert kb.ask("What is the total salary per town?").confidence < 0.5


def test_names_are_no_numbers_of_rows(kb: clew.Kb) -> None:
    counted = kb.ask("How many sales were there in each town?")
    assert counted.candidate == "Lund: 1, Arvik: 2" and counted.confidence >= 0.5
    assert kb.ask("List everyone in town.").confidence < 0.5
