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
