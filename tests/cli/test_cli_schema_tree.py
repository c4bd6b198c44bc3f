"""`clew tree` on the command line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clew.cli.app import app
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.store.sqlite.store import SqliteStore
from clew.sync import run
from clew.testing.fakes import HashEmbed
from conftest import VALLEY, stream


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("clew.llm.factory.create_embedder", lambda *_: HashEmbed())
    settings = Settings(kb=tmp_path / "kb")

    async def build() -> None:
        store = SqliteStore(settings.kb, create=True, durable=False)
        base = KnowledgeBase(store, settings, HashEmbed())
        await base.take(stream(VALLEY))
        await base.close()

    run(build())
    return settings.kb


def called(kb: Path, *words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["tree", "--kb", str(kb), *words])
    return result.exit_code, result.stdout, result.stderr


def test_without_a_tree_one_sentence_says_how_to_grow_it(kb: Path) -> None:
    code, _, err = called(kb)
    assert code == 1
    assert "clew tree --grow --by dual" in err


def test_it_grows_and_prints_as_deep_as_asked(kb: Path) -> None:
    code, out, _ = called(kb, "--grow")
    assert code == 0
    assert "communities" in out
    _, shallow, _ = called(kb, "--depth", "1", "--level", "0", "--most", "0")
    _, deep, _ = called(kb, "--depth", "3", "--most", "0")
    assert len(shallow.splitlines()) < len(deep.splitlines())
    assert "Anton Reeve" in deep
    assert "•" in deep
    assert "•" not in shallow


def test_json_holds_the_whole_tree(kb: Path) -> None:
    grown = json.loads(called(kb, "--grow", "--by", "leiden", "--json")[1])
    assert grown["trees"]["leiden"]["communities"] > 0
    tree = json.loads(called(kb, "--by", "leiden", "--json", "--most", "0", "--depth", "4")[1])
    assert tree["tree"] == "leiden"
    assert sum(tree["levels"]) == tree["communities"]
    branch = tree["branches"][0]
    assert {"id", "name", "level", "size", "summary", "keywords", "below"} <= branch.keys()
    named = {word["name"] for one in tree["branches"] for word in one["keywords"]}
    assert "Marrow Bridge" in named


def test_wrong_words_are_told(kb: Path) -> None:
    assert called(kb, "--grow", "--by", "oak")[0] == 1
    assert called(kb, "--depth", "9")[0] == 2
    code, _, err = called(kb, "--describe")
    assert code == 1
    assert "no tree to describe" in err


def test_removing_a_document_leaves_the_tree_with_its_vectors(kb: Path) -> None:
    assert called(kb, "--grow")[0] == 0
    removed = CliRunner().invoke(app, ["rm", "moss", "--kb", str(kb)])
    assert removed.exit_code == 0, removed.stderr

    async def rows() -> list[int]:
        store = SqliteStore(kb)
        async with store.snapshot() as now:
            found: list[int] = now.arrays["community_rows"].tolist()
        await store.close()
        return found

    held = run(rows())
    assert held and min(held) >= 0


def test_growing_one_tree_tells_of_that_one(kb: Path) -> None:
    assert called(kb, "--grow", "--by", "leiden")[0] == 0
    code, told, _ = called(kb, "--grow", "--by", "raptor")
    assert code == 0
    assert [line.split(":")[0] for line in told.splitlines()] == ["raptor", "texts of all 2 trees"]
