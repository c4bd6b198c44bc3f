"""Comparisons over tables that stand in documents, what is counted, and differences."""

from pathlib import Path

import pytest

from conftest import one_in_three, open_tables

JOINS = """# Join algorithms

We measured three joins on one machine.

| System | Time (s) | Memory (GB) |
|---|---|---|
| Otter | 41 | 3.1 |
| Hash | 77 | 9.8 |
| Merge | 120 | 1.2 |

The runs were repeated five times.
"""
BOATS = """<html><head><title>Boats for hire</title></head><body><h1>Boats for hire</h1>
<p>All boats lie in the east harbour.</p><table>
<tr><th>Boat</th><th>Length (m)</th><th>Price per day (EUR)</th></tr>
<tr><td>Svala</td><td>9.5</td><td>240</td></tr><tr><td>Tern</td><td>7.2</td><td>310</td></tr>
<tr><td>Lom</td><td>12.1</td><td>180</td></tr></table>
<p>Deposits are paid in cash.</p></body></html>
"""
ROOMS = "room,kind,floor,seats\nR1,lab,1,20\nR2,lab,2,16\nR3,hall,1,120\nR4,office,2,4\n"
BOOKINGS = "booking_id,room,person\n" + "".join(
    f"{100 + n},R{1 + n % 4},{['Ann', 'Bo', 'Cy'][n % 3]}\n" for n in range(40)
)
BUDGET = "Item,Planned,Actual,Owner\nTyres,120,134,Alma\nFuel,980,1105,Sofie\nTolls,150,96,Kofi\n"


@pytest.mark.parametrize(
    ("question", "expected"),
    one_in_three(
        [
            ("Which is faster, Otter or Merge?", "Otter"),
            ("Which is slower, Hash or Otter?", "Hash"),
            ("Is Otter faster than Merge?", "Yes"),
            ("How much faster is Otter than Merge?", "79 s"),
            ("Which system is the fastest?", "Otter"),
            ("Which is longer, Svala or Lom?", "Lom"),
            ("Is Svala cheaper than Lom?", "No"),
            ("How much longer is Lom than Svala?", "2.6 m"),
        ]
    ),
)
def test_table_in_a_document_is_compared_as_a_file_is(
    tmp_path: Path, question: str, expected: str
) -> None:
    with open_tables(tmp_path, {"joins.md": JOINS, "boats.html": BOATS}) as kb:
        found = kb.ask(question)
    assert found.candidate == expected
    assert found.confidence > 0.5
    assert found.citations and all("|" in one.quote for one in found.citations)


def test_difference_that_has_the_other_direction_is_not_told(tmp_path: Path) -> None:
    with open_tables(tmp_path, {"joins.md": JOINS}) as kb:
        assert kb.ask("How much faster is Merge than Otter?").confidence < 0.5


@pytest.mark.parametrize(
    ("question", "expected"),
    one_in_three(
        [
            ("How many offices are there?", "1"),
            ("How many halls are there?", "1"),
            ("How many labs do we have?", "2"),
            ("How many bookings were for labs?", "20"),
            ("How many seats do the labs have?", "36"),
        ]
    ),
)
def test_noun_behind_how_many_says_whose_rows_are_counted(
    tmp_path: Path, question: str, expected: str
) -> None:
    with open_tables(tmp_path, {"rooms.csv": ROOMS, "bookings.csv": BOOKINGS}) as kb:
        assert kb.ask(question).candidate == expected


def test_difference_of_two_columns_is_offered_with_doubt(tmp_path: Path) -> None:
    with open_tables(tmp_path, {"budget.csv": BUDGET}) as kb:
        found = kb.ask("By how much did Fuel exceed the plan?")
    assert found.candidate == "125"
    assert found.confidence < 0.5


@pytest.mark.parametrize("question", ["Which boat is the quickest?", "Is Lom better than Svala?"])
def test_comparison_by_no_column_of_the_table_is_not_told(tmp_path: Path, question: str) -> None:
    with open_tables(tmp_path, {"boats.html": BOATS}) as kb:
        assert kb.ask(question).confidence < 0.5


STOCK = """# Stock list

The shop keeps these goods:

| Item | Price | Quantity | Reorder level | Supplier |
|---|---|---|---|---|
| Lamp | 12.50 | 40 | 15 | Brill |
| Chair | 49.00 | 12 | 20 | Osten |
| Desk | 180.00 | 5 | 4 | Osten |
| Shelf | 75.00 | 9 | 10 | Brill |
"""
COSTS = """<html><body><h1>Budget 2024</h1><p>Planned and actual costs in euros.</p><table>
<tr><th>Department</th><th>Planned</th><th>Actual</th><th>Head</th></tr>
<tr><td>Sales</td><td>1200</td><td>1350</td><td>Ada Mohr</td></tr>
<tr><td>Support</td><td>800</td><td>760</td><td>Jan Riis</td></tr>
<tr><td>Research</td><td>2100</td><td>2400</td><td>Lea Tamm</td></tr></table></body></html>
"""


@pytest.mark.parametrize(
    ("question", "expected", "rows"),
    one_in_three(
        [
            ("What is the total of price times quantity of all goods?", "2663", 4),
            ("Which items have a quantity below the reorder level?", "Chair, Shelf", 2),
            ("How many items does Osten supply?", "2", 2),
            ("Which item supplied by Osten has the lowest quantity?", "Desk", 1),
            ("What is the difference between planned and actual costs of Sales?", "150", 1),
            ("Which departments have an actual above the planned?", "Sales, Research", 2),
        ]
    ),
)
def test_rows_in_a_document_are_counted_and_chosen_as_in_a_file(
    tmp_path: Path, question: str, expected: str, rows: int
) -> None:
    with open_tables(tmp_path, {"stock.md": STOCK, "plan.html": COSTS}) as kb:
        found = kb.ask(question)
    assert found.candidate == expected
    assert found.confidence > 0.5
    assert len(found.citations) == rows and all("|" in one.quote for one in found.citations)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which items exceed the planned costs?", ""),
        ("Which items have actual costs over the planned ones?", "Tyres, Fuel"),
        ("Which items have actual costs below the planned ones?", "Tolls"),
        ("What is planned times actual of Tolls?", "14400"),
    ],
)
def test_a_comparison_of_two_columns_has_the_direction_that_is_said(
    tmp_path: Path, question: str, expected: str
) -> None:
    with open_tables(tmp_path, {"budget.csv": BUDGET}) as kb:
        found = kb.ask(question)
    if expected:
        assert (found.candidate, found.confidence > 0.5) == (expected, True)
    else:  # may be left open, but not answered the other way round
        assert found.confidence < 0.5 or found.candidate == "Tyres, Fuel"
