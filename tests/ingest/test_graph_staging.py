"""The staging database of a graph import: what happens when it cannot be opened."""

import resource
from pathlib import Path

import pytest

from clew.errors import StoreError
from clew.ingest.graphs.import_graph import GraphImport
from clew.ingest.graphs.staging import GraphStage, StageProgress
from clew.store.memory import MemoryStore


def test_a_folder_in_place_of_the_database_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "stage").mkdir()
    with pytest.raises(StoreError, match="cannot open .*stage"):
        GraphStage(tmp_path / "stage", "seal")
    assert (tmp_path / "stage").is_dir()


def test_a_damaged_database_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "stage").write_bytes(b"no database" * 100)
    stage = GraphStage(tmp_path / "stage", "seal")
    assert stage.load_progress() == StageProgress()
    stage.delete()


async def test_an_import_that_cannot_be_staged_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "g.tsv"
    file.write_text("Ada\tknows\tBob\n", encoding="utf-8")
    store = MemoryStore()
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: None)  # so the folder stays missing
    with pytest.raises(StoreError, match="cannot open .*missing"):
        await GraphImport(store, tmp_path / "missing")(file)
    assert (await store.counts()).facts == 0


def test_a_disk_that_takes_no_more_is_a_store_error_and_the_stage_goes_on(tmp_path: Path) -> None:
    stage = GraphStage(tmp_path / "stage", "seal")
    stage.commit_rows([("a", "name", 0, "Ada")], [], StageProgress(rows=1))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limits[1]))  # writes beyond it fail
    try:
        with pytest.raises(StoreError, match=r"cannot write to .*is the disk full"):
            rows = [(f"n{n}", "name", 0, "x" * 1000) for n in range(3000)]
            stage.commit_rows(rows, [], StageProgress(rows=3001))
            stage.assign_names(stage.load_progress(), str)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert stage.load_progress().rows == 1
    stage.delete()
