"""A file of rows is one document for every command, and a row is a place in it."""

import json
from pathlib import Path

import pytest

from cli.in_process import clew
from ingest.test_readers_lost_text import write_row, write_workbook

OFFICES = "city,head,staff\nLisbon,Ana Prado,12\nOslo,Kari Vik,7\nGhent,Piet Maes,31\n"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    (tmp_path / "offices.csv").write_text(OFFICES)
    sheets = [
        write_row(1, "item", "price") + write_row(2, "bolt", price) + "</w>" for price in ("3", "4")
    ]
    write_workbook(tmp_path / "prices.xlsx", *sheets)
    said = clew("add", "offices.csv", "prices.xlsx", cwd=tmp_path)
    assert "2 added" in said
    return tmp_path


def test_a_file_of_rows_is_listed_shown_and_removed_as_one(house: Path) -> None:
    shown = clew("status", "--documents", cwd=house)
    assert "offices.csv\n" in shown and "prices.xlsx\n" in shown and "#" not in shown
    [document] = json.loads(clew("show", "offices.csv", "--json", cwd=house))["documents"]
    assert document["chunks"] == 3
    assert "removed 1; 1 document remains" in clew("rm", "offices.csv", cwd=house)
    assert clew("search", "Kari Vik", "--recipe", "bm25", cwd=house).count("offices.csv") == 0


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("offices.csv, row 3", "city: Oslo; head: Kari Vik; staff: 7."),
        ("prices.xlsx, S2, row 2", "item: bolt; price: 4."),
    ],
)
def test_a_row_is_shown_and_cited_by_its_place(house: Path, place: str, said: str) -> None:
    [row] = json.loads(clew("show", place, "--json", cwd=house))["documents"]
    assert row["text"] == said
    [file] = json.loads(clew("show", row["document"], "--json", cwd=house))["documents"]
    assert file["text"][row["start"] : row["end"]] == said
    asked = " ".join(word.strip(".;") for word in said.split() if ":" not in word)
    assert f"{place}, " in clew("search", asked, "--recipe", "bm25", cwd=house)
    [name] = place.split(", ")[:1]
    found = json.loads(clew("search", asked, "--recipe", "bm25", "--json", cwd=house))["chunks"]
    best = [one for one in found if one["text"] == said]
    assert best and best[0]["doc"] == name
    assert best[0]["heading"].split(" > ") == place.split(", ")[1:]


def test_a_row_that_changes_updates_its_file(house: Path) -> None:
    (house / "offices.csv").write_text(OFFICES.replace("Kari Vik", "Nora Dahl"))
    assert "0 added, 1 updated" in clew("add", "offices.csv", cwd=house)
    [row] = json.loads(clew("show", "offices.csv, row 3", "--json", cwd=house))["documents"]
    assert "Nora Dahl" in row["text"]
    assert "no document or entity" in clew("show", "Kari Vik", cwd=house, code=1)
    assert "no document or entity" in clew("show", "offices.csv, row 9", cwd=house, code=1)
    assert clew("verify", cwd=house).strip().endswith("OK")
