"""The command line of asking: traces, histories, budgets, conversations, calibration."""

import json
from pathlib import Path
from typing import Any

import pytest
from in_process import clew

PAGES = {
    "bridge.txt": "Marrow Bridge is a bridge over the Tarn. It was designed by Ilse Brandvik.",
    "ilse.txt": "Ilse Brandvik was an engineer. She was born in Hallowmere in 1870.",
    "town.txt": "Hallowmere is a fishing town on the Grey Coast.",
}
ASKED = "Where was the designer of Marrow Bridge born?"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a knowledge base of three small files."""
    folder = tmp_path_factory.mktemp("talk")
    (folder / "docs").mkdir()
    for name, text in PAGES.items():
        (folder / "docs" / name).write_text(text)
    clew("add", "docs", cwd=folder)
    return folder


def asked(house: Path, *words: str) -> Any:
    return json.loads(clew("ask", ASKED, "--json", *words, cwd=house))


def test_the_trace_is_a_tree(house: Path) -> None:
    found = asked(house, "--recipe", "steps")
    step = next(s for s in found["trace"] if s["step"] == "sub-question")
    assert [inner["step"] for inner in step["steps"]] == ["retrieve"]
    assert {"step", "input", "output", "seconds", "usage"} <= set(step)
    drawn = clew("ask", ASKED, "--recipe", "steps", "--trace", cwd=house)
    assert "├── plan by rules" in drawn
    assert "└── retrieve" in drawn


def test_a_budget_is_taken(house: Path) -> None:
    found = asked(house, "--max-calls", "3", "--max-seconds", "60", "--max-tokens", "100")
    assert found["complete"] is True


def test_a_history_file_is_read_and_continued(house: Path) -> None:
    history = house / "talk.jsonl"
    history.write_text('{"question": "Who was Ilse Brandvik?", "answer": "An engineer."}\n')
    words = ("ask", "Where was she born?", "--history", "talk.jsonl", "--json")
    found = json.loads(clew(*words, cwd=house))
    assert found["trace"][0]["step"] == "condense"
    assert "Ilse Brandvik" in found["trace"][0]["output"]
    turns = [json.loads(line) for line in history.read_text().splitlines()]
    assert [turn["question"] for turn in turns] == ["Who was Ilse Brandvik?", "Where was she born?"]
    (house / "bad.jsonl").write_text("no json\n")
    assert "bad.jsonl:1" in clew("ask", "x", "--history", "bad.jsonl", cwd=house, code=1)


def test_a_conversation_ends_with_an_empty_line(house: Path) -> None:
    said = clew("chat", cwd=house, told="Who was Ilse Brandvik?\nWhere was she born?\n\n")
    assert "Ilse Brandvik was an engineer." in said
    assert "Hallowmere" in said


def test_calibration_is_measured_and_kept(house: Path) -> None:
    good = ["Who designed Marrow Bridge?", "Who is Ilse Brandvik?", "Where is Hallowmere?"]
    bad = ["Who won the Derby at Epsom?", "What is the boiling point of Neon?", "Who is Pelé?"]
    (house / "good.txt").write_text("\n".join(good))
    (house / "bad.jsonl").write_text("\n".join(json.dumps({"question": one}) for one in bad))
    found = json.loads(clew("calibrate", "good.txt", "bad.jsonl", "--json", cwd=house))
    assert (found["recall"], found["precision"]) == (1.0, 1.0)
    assert (found["good"], found["bad"]) == (3, 3)
    (house / "few.txt").write_text("One?\n")
    assert "few.txt holds 1" in clew("calibrate", "few.txt", "bad.jsonl", cwd=house, code=1)
    assert "no file" in clew("calibrate", "none.txt", "bad.jsonl", cwd=house, code=1)


def test_agents_are_listed_and_shown_as_tables(house: Path) -> None:
    listed = json.loads(clew("recipes", "--json", cwd=house))
    kinds = {(row["name"], row["kind"]) for row in listed}
    assert {("graphsearch", "agent"), ("rograg", "agent"), ("clew", "retriever")} <= kinds
    rows = json.loads(clew("recipes", "graphsearch+naive", "--json", cwd=house))
    assert {"GraphSearch", "Dense"} <= {row["step"] for row in rows}
    assert "no agent" in clew("ask", "x", "--recipe", "nobody+clew", cwd=house, code=1)
