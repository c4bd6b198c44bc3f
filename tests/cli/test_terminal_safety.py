"""What documents, names and replies contain cannot command the terminal, nor a spreadsheet."""

import csv
import json
import re
from pathlib import Path

import pytest
from in_process import clew

from clew.cli.common import make_printable

ESCAPE, C1, BIDI = "\x1b]0;owned\x07", "\x9b31m", "\u202eevil\u2066"
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
TEXT = f"Ilse {ESCAPE}Brandvik{C1} was born in Vessen{BIDI}. Vessen is a town."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hostile")
    row = {"id": f"row{ESCAPE}", "title": f"Ilse{C1}{BIDI}", "text": TEXT}
    (made / "rows.jsonl").write_text(json.dumps(row))
    clew("add", "rows.jsonl", cwd=made)
    return made


@pytest.mark.parametrize(
    "words",
    [
        ("search", "Where was Ilse born?", "--recipe", "bm25", "--trace"),
        ("ask", "Where was Ilse born?", "--recipe", "bm25", "--trace"),
        ("ask", "Where was Ilse born?", "--recipe", "bm25", "--stream"),
        ("show", "Vessen"),
        ("status", "--documents"),
    ],
)
def test_no_command_reaches_the_terminal(folder: Path, words: tuple[str, ...]) -> None:
    said = clew(*words, cwd=folder)
    assert "Vessen" in said or "rows.jsonl" in said
    assert not COMMANDS.search(said)


def test_json_says_the_same_without_raw_controls(folder: Path) -> None:
    said = clew("search", "Where was Ilse born?", "--recipe", "bm25", "--json", cwd=folder)
    assert not COMMANDS.search(said)
    assert json.loads(said)["chunks"][0]["text"] == TEXT


def test_an_error_that_quotes_the_input_is_printable(folder: Path) -> None:
    assert not COMMANDS.search(clew("show", f"No{ESCAPE}body", cwd=folder, code=1))


@pytest.mark.parametrize("text", ["plain", "tab\tand\nline", "Zürich – 東京 العربية\u200f"])
def test_ordinary_text_is_printed_as_it_is(text: str) -> None:
    assert make_printable(text) == text


def test_formulas_are_exported_as_text_and_come_back_as_they_were(tmp_path: Path) -> None:
    names = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "'=quoted", "-5", "plain"]
    rows = [{"head": name, "relation": "knows", "tail": "Oda"} for name in names]
    (tmp_path / "graph.jsonl").write_text("\n".join(map(json.dumps, rows)))
    clew("import", "graph.jsonl", "--kb", "one", cwd=tmp_path)
    clew("export", "out.csv", "--kb", "one", cwd=tmp_path)
    with (tmp_path / "out.csv").open(newline="") as file:
        heads = [row["head"] for row in csv.DictReader(file)]
    assert not [head for head in heads if head[0] in "=+@" or head == "-2+3"]
    assert "-5" in heads
    clew("import", "out.csv", "--kb", "two", cwd=tmp_path)
    for name in names:
        assert json.loads(clew("show", "--json", "--kb", "two", "--", name, cwd=tmp_path))
