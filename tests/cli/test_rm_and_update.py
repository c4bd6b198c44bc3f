"""`clew rm` of folders, `clew update` where files are gone, `clew show` of merged names."""

import json
from pathlib import Path

import pytest
from in_process import clew

from clew.api import open as clew_open
from clew.testing.fakes import HashEmbed


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a knowledge base of five documents of four files."""
    monkeypatch.setattr("clew.opening.embedder", lambda settings, cache: HashEmbed())
    (tmp_path / "notes" / "old").mkdir(parents=True)
    (tmp_path / "notes" / "a.txt").write_text("Pellworth is a market town.")
    (tmp_path / "notes" / "old" / "b c.txt").write_text("Upper Sarn is a village.")
    (tmp_path / "notes" / "rows.jsonl").write_text('{"text": "One Elm."}\n{"text": "Two Oaks."}\n')
    (tmp_path / "notes.txt").write_text("Hallowmere is a town.")
    clew("add", "notes", "notes.txt", cwd=tmp_path)
    return tmp_path


def documents(house: Path) -> list[str]:
    names: list[str] = json.loads(clew("status", "--documents", "--json", cwd=house))["names"]
    return names


@pytest.mark.parametrize("spelt", ["notes", "notes/", "./notes", "./notes//"])
def test_a_folder_is_removed_with_all_below_it(house: Path, spelt: str) -> None:
    assert "removed 4; 1 documents remain" in clew("rm", spelt, cwd=house)
    assert documents(house) == ["notes.txt"]


def test_names_that_overlap_are_removed_once(house: Path) -> None:
    said = clew("rm", "./notes/a.txt", "notes/rows.jsonl", "notes/a.txt", "--json", cwd=house)
    removed = sorted(json.loads(said)["removed"])
    assert removed == ["notes/a.txt", "notes/rows.jsonl#1", "notes/rows.jsonl#2"]
    assert documents(house) == ["notes.txt", "notes/old/b c.txt"]


@pytest.mark.parametrize("spelt", ["note", "notes/o", ".", "/"])
def test_a_part_of_a_name_is_no_folder(house: Path, spelt: str) -> None:
    assert f"no document named '{spelt}'" in clew("rm", spelt, "notes", cwd=house, code=1)
    assert len(documents(house)) == 5


def test_update_names_the_files_that_are_gone(house: Path) -> None:
    assert "no longer" not in clew("update", "notes", cwd=house)
    (house / "notes" / "old" / "b c.txt").unlink()
    told = "1 file is no longer there; `clew rm 'notes/old/b c.txt'` removes what it said"
    assert told in clew("update", "notes", cwd=house)
    assert told in clew("update", str(house / "notes"), cwd=house)  # however it is spelt
    assert "no longer" not in clew("update", "notes/a.txt", cwd=house)
    (house / "notes" / "rows.jsonl").unlink()
    (house / "notes.txt").unlink()  # beside the folder
    found = json.loads(clew("update", "notes", "--json", cwd=house))
    assert found["gone"] == ["notes/old/b c.txt", "notes/rows.jsonl"]
    assert "2 files are no longer there" in clew("update", "notes", cwd=house)
    clew("rm", *found["gone"], cwd=house)
    assert "no longer" not in clew("update", "notes", cwd=house)


def test_a_text_that_was_never_a_file_is_not_gone(house: Path) -> None:
    with clew_open(house / "kb") as kb:
        kb.add_texts([("thought", "Elms are tall."), ("notes/thought", "Oaks are old.")])
    (house / "notes.txt").unlink()
    assert "1 file is no longer there; `clew rm notes.txt`" in clew("update", ".", cwd=house)


def test_show_says_a_sentence_once_though_two_names_are_one(house: Path) -> None:
    (house / "zoe.md").write_text("# Zoë O’Brien 🎈\n\nZoë O’Brien was born in Cork in 1901.\n")
    clew("add", "zoe.md", cwd=house)
    said = clew("show", "Zoë O’Brien 🎈", cwd=house)
    assert said.count("was born in Cork") == 1
    assert "in 1 chunk\n" in said
