"""One file is one document, however its path is written."""

import os
from pathlib import Path

import pytest

from clew.engine import KnowledgeBase
from clew.ingest.files import read


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


async def names(base: KnowledgeBase) -> set[str]:
    return set(await base.store.sources())


@pytest.mark.parametrize("spelling", ["{}/a.txt", "../project/a.txt", "../link/a.txt"])
async def test_another_spelling_replaces_the_earlier_content(
    base: KnowledgeBase, here: Path, spelling: str
) -> None:
    (here.parent / "link").symlink_to(here)
    (here / "a.txt").write_text("Alice Smith lives in Paris.")
    await base.add(["a.txt"])
    (here / "a.txt").write_text("Alice Smith lives in Rome.")
    again = spelling.format(here)
    assert (await base.plan([again])).documents == 1
    done = await base.add([again])
    assert (done.added, done.updated, done.counts.documents) == (0, 1, 1)
    assert await names(base) == {"a.txt"}
    found = await base.search("Where does Alice Smith live?")
    assert [chunk.text for chunk in found.evidence.chunks] == ["Alice Smith lives in Rome."]
    assert (await base.add([here, "a.txt"])).unchanged == 1  # asked for twice, read once


async def test_rows_keep_the_name_of_their_file(base: KnowledgeBase, here: Path) -> None:
    (here / "rows.jsonl").write_text('{"text": "Alice lives in Paris."}\n{"text": "Bob left."}')
    await base.add([here / "rows.jsonl"])
    held = await names(base)
    (here / "rows.jsonl").write_text('{"text": "Alice lives in Rome."}')
    done = await base.add(["rows.jsonl"])
    assert (done.updated, done.removed) == (1, 1)
    assert await names(base) == {f"{here}/rows.jsonl#1"} < held


async def test_two_spellings_at_once_are_one_file(base: KnowledgeBase, here: Path) -> None:
    (here / "a.txt").write_text("Alice Smith lives in Paris.")
    done = await base.add(["a.txt", here / "a.txt"])
    assert done.added == 1
    assert await names(base) == {"a.txt"}


async def test_the_same_name_in_another_folder_is_another_file(
    base: KnowledgeBase, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "a.txt").write_text("Alice Smith lives in Paris.")
    await base.add(["a.txt"])
    there = here.parent / "there"
    there.mkdir()
    monkeypatch.chdir(there)
    (there / "a.txt").write_text("Bob Jones lives in Rome.")
    await base.add(["a.txt"])  # the name stands for this one now …
    done = await base.add([here / "a.txt"])  # … and the first is not taken for it
    assert done.added == 1
    assert await names(base) == {"a.txt", f"{here}/a.txt"}


async def test_a_file_and_a_link_to_it_keep_both_names(base: KnowledgeBase, here: Path) -> None:
    (here / "a.txt").write_text("Alice Smith lives in Paris.")
    (here / "b.txt").symlink_to("a.txt")
    await base.add([here])
    assert {Path(name).name for name in await names(base)} == {"a.txt", "b.txt"}


async def test_what_was_removed_comes_back_as_it_is_spelt(base: KnowledgeBase, here: Path) -> None:
    (here / "a.txt").write_text("Alice Smith lives in Paris.")
    await base.add(["a.txt"])
    await base.remove(["a.txt"])
    await base.add([here / "a.txt"])
    assert await names(base) == {f"{here}/a.txt"}


async def test_names_from_before_places_were_kept_stay(base: KnowledgeBase, here: Path) -> None:
    (here / "a.txt").write_text("Alice Smith lives in Paris.")
    for spelt in ("a.txt", here / "a.txt"):
        await base.take(read([spelt]))  # which keeps no place
    assert len(await names(base)) == 2
    (here / "a.txt").write_text("Alice Smith lives in Rome.")
    done = await base.add(["a.txt", here / "a.txt", "../project/a.txt"])
    assert (done.updated, done.counts.documents) == (2, 1)
    assert await names(base) == {"a.txt", f"{here}/a.txt"}


async def test_no_place_is_kept_in_clear(base: KnowledgeBase, here: Path) -> None:
    (here / "a.txt").write_text("Alice Smith lives in Paris.")
    await base.add(["a.txt"])
    await base.close()
    assert os.fsencode(here) not in (base.settings.kb / "kb.sqlite").read_bytes()
