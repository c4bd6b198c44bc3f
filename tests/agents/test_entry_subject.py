"""A row or an entry is told of the product, the year and the property that a question names."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import clew
from conftest import open_tables

WASHER = """# Halden 200 dishwasher

The Halden 200 replaces the Halden 100.

## Faults

|Code|Meaning|Remedy|
|:-|:-:|-:|
|H3|Door open|Close the door|
|H7|Inlet blocked|Clean the inlet filter|
"""
SENSOR = """# Arden M4 sensor

| Setting | Default | Range |
|---|---|---|
| scan_time | 25 | 5-90 |
| zone | inner | inner, outer |
"""
LIBRARIES = """# Torv district: libraries

| Site | Librarian | Books | Revenue 2021 (€) | Price of a card (€) |
| - | - | - | - | - |
| Elmgate | Sigrid Moe | 41,000 | 5,200 | 12 |
| Northbank | Paul Ekeren | 28,500 | 3,900 | 10 |

The profit of both together was small.
"""


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    folder: Path = tmp_path_factory.mktemp("entries")
    files = {"washer.md": WASHER, "sensor.md": SENSOR, "libraries.md": LIBRARIES}
    with open_tables(folder, files) as base:
        yield base


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What does H7 mean on the Halden 200?", "Inlet blocked"),
        ("What does H3 mean?", "Door open"),
        ("What is the default of scan_time on the Arden M4?", "25"),
        ("What was the revenue of Elmgate in 2021?", "5,200"),
        ("What is Elmgate's number of books?", "41,000"),
        ("What is the price of a card at Northbank?", "10"),
        ("Which librarian works at Northbank?", "Paul Ekeren"),
        ("Which library has 28,500 books?", "Northbank"),
    ],
)
def test_entry_of_what_is_named_is_told(kb: clew.Kb, question: str, expected: str) -> None:
    found = kb.ask(question)
    assert found.candidate == expected
    assert found.confidence > 0.5


@pytest.mark.parametrize(
    "question",
    [
        "What does H7 mean on the Halden 100?",  # the manual mentions it
        "What does H7 mean on the Torven 200?",
        "What does H3 mean on the Halden 300?",
        "What is the default of scan_time on the Arden M5?",
        "What is the range of scan_time on the M6?",
        "What was the profit of Elmgate in 2021?",
        "What was the tax of Northbank in 2021?",
        "How many books did Elmgate have in 1998?",
    ],
)
def test_entry_of_another_thing_is_not_told(kb: clew.Kb, question: str) -> None:
    assert kb.ask(question).confidence < 0.5


def test_line_that_lists_what_is_asked_is_quoted_before_the_steps_below(tmp_path: Path) -> None:
    file = tmp_path / "soup.md"
    steps = "1. Chop the leeks and half of the potatoes.\n2. Boil the soup.\n3. Stir it.\n"
    file.write_text(f"# Leek soup\n\nIngredients: leeks, potatoes, salt.\n\n{steps}", "utf-8")
    with clew.open(tmp_path / "kb") as base:
        base.add([file])
        found = base.ask("What are the ingredients of the leek soup?")
    assert found.citations[0].quote == "Ingredients: leeks, potatoes, salt."
