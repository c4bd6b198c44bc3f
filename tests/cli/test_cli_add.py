"""`clew rm` of folders, `clew update` where files are gone, `clew show` of merged names.

`clew add` a second time says what went, and does not read what is Clew's own.
`clew init`: settings for people to edit, with the same options as every command.
"""

import json
import sys
from pathlib import Path

import pytest
from in_process import clew

from clew.api import open as clew_open
from clew.config import load_settings
from clew.testing.fakes import HashEmbed
from ingest.test_readers_lost_text import write_row, write_workbook


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a knowledge base of five documents of four files."""
    monkeypatch.setattr("clew.llm.factory.create_embedder", lambda *_: HashEmbed())
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
    assert "removed 4; 1 document remains" in clew("rm", spelt, cwd=house)
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
    told = "1 file no longer exists; `clew rm 'notes/old/b c.txt'` removes its document"
    assert told in clew("update", "notes", cwd=house)
    assert told in clew("update", str(house / "notes"), cwd=house)  # however it is spelt
    assert "no longer" not in clew("update", "notes/a.txt", cwd=house)
    (house / "notes" / "rows.jsonl").unlink()
    (house / "notes.txt").unlink()  # beside the folder
    found = json.loads(clew("update", "notes", "--json", cwd=house))
    assert found["gone"] == ["notes/old/b c.txt", "notes/rows.jsonl"]
    assert "2 files no longer exist" in clew("update", "notes", cwd=house)
    clew("rm", *found["gone"], cwd=house)
    assert "no longer" not in clew("update", "notes", cwd=house)


def test_a_text_that_was_never_a_file_is_not_gone(house: Path) -> None:
    with clew_open(house / "kb") as kb:
        kb.add_texts([("thought", "Elms are tall."), ("notes/thought", "Oaks are old.")])
    (house / "notes.txt").unlink()
    assert "1 file no longer exists; `clew rm notes.txt`" in clew("update", ".", cwd=house)


def test_show_says_a_sentence_once_though_two_names_are_one(house: Path) -> None:
    (house / "zoe.md").write_text("# Zoë O’Brien 🎈\n\nZoë O’Brien was born in Cork in 1901.\n")
    clew("add", "zoe.md", cwd=house)
    said = clew("show", "Zoë O’Brien 🎈", cwd=house)
    assert said.count("was born in Cork") == 1
    assert "in 1 chunk\n" in said


@pytest.fixture(autouse=True)
def _quick_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.llm.factory.create_embedder", lambda *_: HashEmbed())


def test_rows_that_went_are_counted(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"text": "Alice lives in Paris."}\n{"text": "Bob lives in Rome."}\n')
    assert "gone" not in clew("add", "rows.jsonl", cwd=tmp_path)
    rows.write_text('{"text": "Alice lives in Paris."}\n')
    assert "1 removed" in clew("add", "rows.jsonl", "--dry-run", cwd=tmp_path)
    assert "1 removed" in clew("update", "rows.jsonl", cwd=tmp_path)
    done = json.loads(clew("add", "rows.jsonl", "--json", cwd=tmp_path))
    assert (done["removed"], done["unchanged"], done["counts"]["documents"]) == (0, 1, 1)


def test_keys_and_knowledge_bases_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Alice lives in Paris.")
    (tmp_path / "clew.toml").write_text('[models]\napi_key = "sk-secret"\n')
    for _ in range(2):
        said = clew("add", ".", cwd=tmp_path)
        assert "skipped clew.toml" in said
    assert "skipped kb: is a knowledge base" in said
    assert "1 document," in said


def test_it_takes_the_options_of_every_command(tmp_path: Path) -> None:
    told = clew("init", "--json", "--kb", 'my "own" bäse', cwd=tmp_path)
    assert json.loads(told) == {"file": "clew.toml"}
    assert load_settings(tmp_path / "clew.toml").kb == Path('my "own" bäse')
    assert "already exists" in clew("init", "--json", cwd=tmp_path, code=1)
    assert "wrote clew.toml" in clew("init", "--force", cwd=tmp_path)
    assert load_settings(tmp_path / "clew.toml").kb == Path("kb")


def test_a_broken_file_can_be_overwritten(tmp_path: Path) -> None:
    (tmp_path / "clew.toml").write_text("kb = [")
    clew("init", "--force", cwd=tmp_path)
    assert load_settings(tmp_path / "clew.toml").kb == Path("kb")


@pytest.mark.parametrize(
    ("words", "why"),
    [((), "cannot write clew.toml"), (("--kb", "caf\udce9"), "is not valid UTF-8")],
)
def test_what_cannot_be_written_is_one_sentence(
    tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    if not words:
        (tmp_path / "clew.toml").mkdir()
    assert why in clew("init", "--force", *words, cwd=tmp_path, code=1)


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
@pytest.mark.parametrize(
    "address", ["postgresql://joe:secret@db/x", "postgresql://joe@db/x?password=secret"]
)
def test_settings_with_a_password_are_for_their_owner_only(tmp_path: Path, address: str) -> None:
    file = tmp_path / "clew.toml"
    file.write_text("# an earlier one")
    file.chmod(0o644)
    told = clew("init", "--force", "--kb", address, cwd=tmp_path)
    assert "only you may read it" in told and "PGPASSWORD" in told and "secret" not in told
    assert "secret" in file.read_text() and file.stat().st_mode & 0o777 == 0o600
    file.unlink()
    told = clew("init", "--kb", "postgresql://joe@db/x", cwd=tmp_path)
    assert "only you" not in told and file.stat().st_mode & 0o444 == 0o444


def test_a_workbook_with_formulas_without_values_was_read(house: Path) -> None:
    rows = write_row(1, "Region", "Units", "Sum") + write_row(2, "North", "120", "=B2")
    write_workbook(house / "plan.xlsx", rows + write_row(3, "South", "80", "=B3") + "</w>")
    said = " ".join(clew("add", "plan.xlsx", cwd=house).split())
    assert "1 added, 0 updated, 0 unchanged, 0 skipped" in said
    assert "read plan.xlsx: 2 cells are empty: formulas without a stored value" in said
