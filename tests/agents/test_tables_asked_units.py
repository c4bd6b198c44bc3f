"""A unit that a question says is converted into the columns', and the answer back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import clew
from conftest import one_in_three, open_tables

BARRELS = """cask,cellar,contents_litres,weight_kg,price_eur
Alder,north,225,260,900
Birch,north,500,560,1600
Cedar,south,1200,1350,3100
"""


@pytest.fixture
def casks(tmp_path: Path) -> Iterator[clew.Kb]:
    with open_tables(tmp_path, {"casks.csv": BARRELS}) as base:
        yield base


@pytest.mark.parametrize(
    ("question", "told"),
    one_in_three(
        [
            ("What is the weight of Cedar in tonnes?", "1.35 tonnes"),
            ("What are the contents of Birch in hectolitres?", "5 hectolitres"),
            ("What is the total weight of the casks in tonnes?", "2.17 tonnes"),
            ("Which casks have contents above 4 hectolitres?", "Birch, Cedar"),
            ("What is the weight of Alder in kilograms?", "260 kg"),
            ("What are the contents of Cedar in cubic metres?", "1.2 cubic metres"),
        ]
    ),
)
def test_a_unit_of_the_same_kind_is_converted(casks: clew.Kb, question: str, told: str) -> None:
    answer = casks.ask(question)

    assert answer.candidate == told
    assert answer.confidence >= 0.5


@pytest.mark.parametrize(
    "question", ["What is the weight of Alder in litres?", "What is the price of Alder in yen?"]
)
def test_what_cannot_be_converted_is_told_with_doubt_in_its_own_unit(
    casks: clew.Kb, question: str
) -> None:
    answer = casks.ask(question)

    assert answer.confidence < 0.5
    assert "yen" not in answer.candidate
    assert "litre" not in answer.candidate
