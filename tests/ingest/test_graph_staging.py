"""The staging database of a graph import: what happens when it cannot be opened."""

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
