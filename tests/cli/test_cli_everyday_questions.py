"""Questions as people word them: courtesy, lists, steps, denials and nonsense; shipped models."""

import json
from pathlib import Path
from typing import Any

import pytest
from in_process import clew

from conftest import one_in_three

FILES = {
    "kiln.md": """# Kestrel K9 kiln

The Kestrel K9 is a pottery kiln for schools. It weighs 140 kg and reaches 1280 degrees. \
The lid is guaranteed for 24 months.

The K9 fires earthenware, stoneware, porcelain and raku.
""",
    "relining.md": """# Relining

Reline the chamber every two years, or when the bricks crumble.

1. Switch the kiln off at the wall.
2. Lift out the shelves.
3. Pull the old bricks from the chamber.
4. Set the new bricks dry, without mortar.

Never use cement: it bursts in the heat.
""",
    "codes.md": """# Fault codes

| Code | Meaning | What to do |
|------|---------|------------|
| F12 | Thermocouple broken | Fit a new thermocouple |
| F15 | Lid open | Close the lid |
| F31 | Element burnt out | Call the workshop |
""",
    "lending.md": """# Lending

The library lends books, maps and scores. A reader may borrow twelve items. \
An item that another reader has reserved cannot be renewed. Records are kept for 90 days. \
When the alarm sounds, the lift does not stop at the tower.

The map room is looked after by Sunniva Aalto.
""",
    "export.md": """# Exporting the catalogue

Lists are exported as CSV or JSON, by the option `shape`; CSV is the default.

Official readers exist for Linux, Android and Windows. The Linux reader is free.
""",
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    clew("add", ".", cwd=folder)
    return folder


def ask(desk: Path, question: str, mode: str = "open") -> dict[str, Any]:
    told: dict[str, Any] = json.loads(clew("ask", question, "--mode", mode, "--json", cwd=desk))
    return told


@pytest.mark.parametrize(
    ("question", "said"),
    one_in_three(
        [
            ("Would you mind telling me what F15 means?", "Lid open"),
            ("Do you happen to know how much the K9 weighs?", "140 kg"),
            ("Does anybody here know how many items a reader may borrow?", "twelve"),
        ]
    ),
)
def test_a_question_within_a_request_is_the_question(desk: Path, question: str, said: str) -> None:
    told = ask(desk, question)
    assert said in told["candidate"]
    assert told["confidence"] > 0.3


@pytest.mark.parametrize("question", one_in_three(["???", "Write a sonnet", "What does F99 mean?"]))
def test_open_mode_names_nothing_that_is_surely_wrong(desk: Path, question: str) -> None:
    told = ask(desk, question)
    assert told["verdict"] == "refused"
    assert told["candidate"] == ""
    assert told["missing"]
    assert told["citations"]
    assert "The closest passages are:" in told["answer"]


@pytest.mark.parametrize(
    ("question", "items"),
    [
        ("Which systems have an official reader?", "Linux, Android and Windows"),
        ("What shapes can an exported list have?", "CSV and JSON"),
    ],
)
def test_a_list_has_each_of_its_items_once(desk: Path, question: str, items: str) -> None:
    assert ask(desk, question)["candidate"] == items


def test_keywords_are_a_question(desk: Path) -> None:
    told = ask(desk, "map room caretaker", "reject")
    assert "not understood" not in told["missing"]
    assert ask(desk, "map room caretaker")["candidate"] == "Sunniva Aalto"


def test_a_refused_part_is_named_and_leaves_the_answer_incomplete(desk: Path) -> None:
    asked = "How much does the K9 weigh and what is the capital of Neptune?"
    told = ask(desk, asked, "reject")
    assert told["verdict"] == "answered"
    assert not told["complete"]
    assert "capital of Neptune?" in told["missing"]


@pytest.mark.parametrize(
    "question",
    [
        "How is the chamber relined?",
        "I have to reline the chamber, how do I do that?",
        "Could you walk me through relining the chamber",
        "Give me the steps to reline the chamber",
    ],
)
def test_steps_are_quoted_however_they_are_asked_for(desk: Path, question: str) -> None:
    told = ask(desk, question)
    assert "1. Switch the kiln off at the wall." in told["answer"]
    assert "4. Set the new bricks dry" in told["answer"]


def test_what_is_forbidden_is_denied(desk: Path) -> None:
    told = ask(desk, "Is cement allowed for relining?")
    assert told["candidate"] == "no"
    assert "Never use cement" in told["answer"]
    # Some items cannot be renewed: that denies nothing of the others.
    assert ask(desk, "Can I renew an item?")["candidate"] != "no"


def test_what_is_denied_in_a_case_is_denied_of_that_case_alone(desk: Path) -> None:
    assert ask(desk, "Does the lift stop at the tower?")["candidate"] != "no"
    assert ask(desk, "Does the lift stop at the tower when the alarm sounds?")["candidate"] == "no"


def test_a_table_that_says_nothing_of_a_question_leaves_it_to_the_documents(tmp_path: Path) -> None:
    (tmp_path / "ships.csv").write_text("ship,passengers\nMS Aud,120\nMS Bru,80\nMS Cay,210\n")
    (tmp_path / "lease.md").write_text(
        "# Lease\n\nThe lessor is Cove Trust; the lessee is Ida Vale.\n"
    )
    clew("add", "ships.csv", "lease.md", cwd=tmp_path)
    told = ask(tmp_path, "Who is the lessee?")
    assert "Ida Vale" in told["answer"] and "MS " not in told["answer"]
    assert ask(tmp_path, "Which ship has the fewest passengers?")["candidate"] == "MS Bru"
