"""Questions over periods of time: two dates of any precision, halves, quarters and seasons."""

from collections.abc import Iterator

import pytest

import clew
from clew.agents.rules.table_words import split_question
from clew.agents.tables.periods import find_periods
from conftest import open_tables

pytestmark = pytest.mark.usefixtures("rules_only")

TABLES = {
    "gifts.csv": "gift_no,giver,purpose,received_on,amount\n"
    'G01,Ada Brook,roof,2022-12-30,"$40.00"\n'
    'G02,Ivo Marsh,bell,2023-02-28,"$10.00"\n'
    'G03,Ivo Marsh,roof,2023-03-01,"$20.00"\n'
    'G04,Ivo Marsh,bell,2023-06-30,"$25.00"\n'
    'G05,Mei Tan,roof,2023-07-01,"$300.00"\n'
    'G06,Mei Tan,roof,2024-03-15,"$1.50"\n',
    "bridges.csv": "bridge,built,carts_per_year\nOld Span,1951,200\nFar Span,1964,300\n"
    "New Span,1999,700\n",
    "vendors.csv": "vendor,town,phone,serial_number\nAlt & Co,Weim,+49 36 11,V-1\n"
    "Verde,Giro,+34 97 22,V-2\n",
    "seeds.csv": "seed,kind,price_eur,stock,rating\nBasil,herb,2.50,10,3\nDill,herb,4.00,5,5\n"
    "Chili,pepper,3.00,0,4\n",
}


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    with open_tables(tmp_path_factory.mktemp("office"), TABLES) as base:
        yield base


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How many gifts were received from March to June 2023?", "2"),
        ("How many gifts were received between March and July 2023?", "3"),
        ("How many gifts were received between 1 March 2023 and 30 June 2023?", "2"),
        ("How many gifts were received between March 2, 2023 and July 1, 2023?", "2"),
        ("How many gifts were received from 2023-02-28 to 2023-03-01?", "2"),
        ("How many gifts were received from December to February 2023?", "2"),
        ("How many gifts were received from December 2022 until March?", "3"),
        ("How many gifts were received in the first half of 2023?", "3"),
        ("How many gifts were received in the first quarter of 2023?", "2"),
        ("How many gifts were received in Q3 2023?", "1"),
        ("How many gifts were received in spring 2023?", "1"),
        ("How many gifts were received from March to May?", "2"),
        ("What is the total amount received from May to July 2023?", "$325"),
        ("How many gifts were received after 1 March 2023?", "3"),
        ("How many gifts were received on 1 March 2023?", "1"),
        ("Which bridges were built from 1950 to 1970?", "Old Span, Far Span"),
        ("Which bridges were built in the 1960s?", "Far Span"),
        # A number that a column holds is told, not counted.
        ("What is the phone number of the vendor in Giro?", "+34 97 22"),
        ("What is the serial number of Alt & Co?", "V-1"),
        # A year behind "per" is no unit, and no year.
        ("How many carts per year does Far Span have?", "300"),
        # The kind behind a superlative asks for the row.
        ("What is the most expensive herb?", "Dill"),
        # What there is most of, where nothing says it, is the only amount.
        ("Which giver gave the most in total?", "Mei Tan"),
    ],
)
def test_periods_and_what_is_asked_are_read(office: clew.Kb, question: str, said: str) -> None:
    answer = office.ask(question)
    assert answer.candidate == said, answer.note
    assert answer.confidence >= 0.5


@pytest.mark.parametrize(
    ("words", "period"),
    [
        ("from 3 to 17 May 2024", "2024-05-03/2024-05-17"),
        ("March–May 2024", "2024-03-01/2024-05-31"),
        ("2019-2021", "2019-01-01/2021-12-31"),
        ("from November to February 2024", "2023-11-01/2024-02-29"),
        ("winter 2022", "2022-12-01/2023-02-28"),
        ("the second half of each year", "07-01/12-31"),
        ("in summer", "06-01/08-31"),
    ],
)
def test_a_period_is_completed(words: str, period: str) -> None:
    assert [one.value for one in find_periods(split_question(words))] == [period]


@pytest.mark.parametrize(
    "words",
    [
        "rooms 3 to 5",
        "from 5 to 7 pm",
        "in March and May 2024",
        "goals in the first half",
        "which leaves fall",
        "until May 2024",
        "between 10 and 20 cylinders",
    ],
)
def test_other_numbers_and_words_are_no_period(words: str) -> None:
    assert find_periods(split_question(words)) == []
