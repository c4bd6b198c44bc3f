"""`clew add` a second time says what went, and does not read what is Clew's own."""

import json
from pathlib import Path

import pytest
from in_process import clew

from clew.testing.fakes import HashEmbed


@pytest.fixture(autouse=True)
def _quick_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.opening.embedder", lambda settings, cache: HashEmbed())


def test_rows_that_went_are_counted(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"text": "Alice lives in Paris."}\n{"text": "Bob lives in Rome."}\n')
    assert "gone" not in clew("add", "rows.jsonl", cwd=tmp_path)
    rows.write_text('{"text": "Alice lives in Paris."}\n')
    assert "1 gone from their files" in clew("add", "rows.jsonl", "--dry-run", cwd=tmp_path)
    assert "1 gone from their files" in clew("update", "rows.jsonl", cwd=tmp_path)
    done = json.loads(clew("add", "rows.jsonl", "--json", cwd=tmp_path))
    assert (done["removed"], done["unchanged"], done["counts"]["documents"]) == (0, 1, 1)


def test_keys_and_knowledge_bases_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Alice lives in Paris.")
    (tmp_path / "clew.toml").write_text('[models]\napi_key = "sk-secret"\n')
    for _ in range(2):
        said = clew("add", ".", cwd=tmp_path)
        assert "skipped clew.toml" in said
    assert "skipped kb: is a knowledge base" in said
    assert "1 documents" in said
