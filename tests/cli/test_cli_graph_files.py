"""`clew import` and `clew export` as a user types them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from clew.cli.app import app


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.tsv").write_text("Ada\tknows\tBob\nbroken\nBob\tborn_in\tParis\n")
    return tmp_path


def _clew(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_import_update_remove(here: Path) -> None:
    done = _clew("import", "g.tsv", "--no-embed")
    assert done.exit_code == 0, done.output
    assert "2 rows of g.tsv (tsv)" in done.output
    assert "line 2 has 1 fields" in done.output
    assert "not embedded: relations, entities, chunks, facts" in done.output
    assert "unchanged" in _clew("import", "g.tsv", "--no-embed").output
    assert _clew("verify").exit_code == 0
    (here / "g.tsv").write_text("Ada\tknows\tCy\n")
    told = json.loads(_clew("import", "g.tsv", "--no-embed", "--json").stdout)
    assert (told["rows"], told["bad"], told["counts"]["facts"]) == (1, 0, 1)
    assert json.loads(_clew("show", "Cy", "--json").stdout)["entities"][0]["facts"]
    assert _clew("rm", "g.tsv").exit_code == 0
    assert json.loads(_clew("status", "--json").stdout)["facts"] == 0


def test_an_entity_is_shown_with_its_description_and_attributes(here: Path) -> None:
    node = {"id": "v", "name": "Mallory Vance", "description": "a surveyor", "shoe_size": "47"}
    link = {"head": "v", "relation": "works at", "tail": "Gate"}
    (here / "g.jsonl").write_text("\n".join(map(json.dumps, (node, link))))
    assert _clew("import", "g.jsonl", "--no-embed").exit_code == 0
    said = _clew("show", "Mallory Vance").output
    assert "  a surveyor\n" in said
    assert "  shoe_size: 47\n" in said


def test_strict_and_missing_are_one_sentence(here: Path) -> None:
    strict = _clew("import", "g.tsv", "--strict", "--no-embed")
    assert strict.exit_code == 1
    assert "line 2" in strict.output
    assert _clew("import", "nowhere.tsv", "--no-embed").exit_code == 1
    assert _clew("import", "g.tsv", "--format", "openie").exit_code == 2


@pytest.mark.parametrize("form", ["graphml", "jsonl", "cypher", "html", "tsv", "csv"])
def test_export(here: Path, form: str) -> None:
    _clew("import", "g.tsv", "--no-embed")
    done = _clew("export", f"out.{form}")
    assert done.exit_code == 0, done.output
    assert "3 entities, 2 facts" in done.output
    assert "Ada" in (here / f"out.{form}").read_text(encoding="utf-8")
    again = _clew("export", f"out.{form}")
    assert again.exit_code == 1
    assert "--force" in again.output


def test_rows_are_those_of_the_file(here: Path) -> None:
    (here / "typed.tsv").write_text(
        "head\trelation\ttail\thead_type\ttail_type\n"
        "Ada\tknows\tBob\tperson\tperson\nBob\tborn_in\tParis\tperson\ttown\n"
    )
    assert "2 rows of typed.tsv" in _clew("import", "typed.tsv", "--no-embed").output


def test_an_export_says_what_it_holds_and_makes_its_folder(here: Path) -> None:
    (here / "note.txt").write_text("Ilse Brandvik was born in Hallowmere in 1849.")
    _clew("import", "g.tsv", "--no-embed")
    assert _clew("add", "note.txt").exit_code == 0
    table = _clew("export", "new/folder/g.tsv").output
    assert "2 of 3 facts" in table and "1 facts are not triples" in table
    assert len((here / "new/folder/g.tsv").read_text().splitlines()) == 3
    page = _clew("export", "new/g.html", "--around", "Ilse Brandvik", "--top", "2").output
    assert "2 of 6 entities" in page
    (here / "file").write_text("")
    refused = _clew("export", "file/g.parquet")
    assert refused.exit_code == 1 and "cannot write file/g.parquet" in refused.output
    assert ".new" not in refused.output


def test_relations_with_a_domain_and_a_type_are_read_by_their_last_segment(here: Path) -> None:
    rows = [
        ("Ida Olsen", "/people/person/spouse_s", "Pavel Novak"),
        ("Pavel Novak", "/people/person/profession", "Violinist"),
        ("Pavel Novak", "/people/person/place_of_birth", "Brno"),
    ]
    (here / "people.tsv").write_text("\n".join(map("\t".join, rows)))
    assert _clew("import", "people.tsv", "--no-embed").exit_code == 0
    assert "Ida Olsen spouse Pavel Novak" in _clew("show", "Ida Olsen").output
    [shown] = json.loads(_clew("show", "Ida Olsen", "--json").stdout)["entities"]
    assert shown["facts"][0]["text"] == "Ida Olsen spouse Pavel Novak"
    assert shown["facts"][0]["relation"] == "/people/person/spouse_s"  # as the file has it
    assert _clew("make-questions", "--out", "made").exit_code == 0
    asked = [json.loads(row) for row in (here / "made/questions.jsonl").read_text().splitlines()]
    ends = "place of birth", "profession"
    possible = {f"What is the {end} of the spouse of Ida Olsen?" for end in ends}
    assert asked and {row["question"] for row in asked} <= possible
