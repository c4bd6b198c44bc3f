"""The commands work on a knowledge base in PostgreSQL as on one in a folder."""

import json
from pathlib import Path

import pytest
from in_process import clew

from clew.kb_address import DatabaseAddress
from clew.testing.fakes import HashEmbed

pytest.importorskip("psycopg", reason="psycopg is not installed")


def test_the_commands(
    address: DatabaseAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.llm.factory.create_embedder", lambda settings, cache: HashEmbed())
    (tmp_path / "clew.toml").write_text('cache = "cache"')
    (tmp_path / "bridge.txt").write_text("Marrow Bridge was designed by Ilse Brandvik in 1904.")
    kb = ("--kb", address.full_url, "--json")
    added = json.loads(clew("add", "bridge.txt", *kb, cwd=tmp_path))
    assert added["added"] == 1
    found = json.loads(clew("search", "Who designed Marrow Bridge?", *kb, cwd=tmp_path))
    assert "Ilse" in found["chunks"][0]["text"]
    assert json.loads(clew("status", *kb, cwd=tmp_path))["documents"] == 1
    assert json.loads(clew("verify", *kb, cwd=tmp_path))["problems"] == []
    copied = json.loads(clew("copy", address.full_url, "mine", "--json", cwd=tmp_path))
    assert copied["counts"]["documents"] == 1
    assert json.loads(clew("verify", "--kb", "mine", "--json", cwd=tmp_path))["problems"] == []
    said = clew("copy", "mine", address.full_url, cwd=tmp_path, code=1)
    assert "holds a knowledge base already" in said
    shown = clew("doctor", "--kb", address.full_url, cwd=tmp_path)
    assert "1 documents in postgresql://" in shown
