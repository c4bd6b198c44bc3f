"""The command line as users and scripts meet it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from in_process import clew

from clew.llm.embed_local import LocalEmbedder

pytestmark = pytest.mark.usefixtures("_weights")


@pytest.fixture(scope="session")
def _weights() -> None:
    """Prepare the local weights once, so that no command pays for it."""
    _ = LocalEmbedder(cache=Path("~/.cache/clew").expanduser()).weights


def process(*words: str, cwd: Path, code: int = 0) -> str:
    """The same as `clew`, in a process of its own: for what only a start can show."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CLEW")}
    done = subprocess.run(
        [sys.executable, "-m", "clew", *words],
        cwd=cwd,
        env=environment | {"COLUMNS": "200", "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a knowledge base of three small files."""
    folder = tmp_path_factory.mktemp("house")
    docs = folder / "docs"
    docs.mkdir()
    (docs / "bridge.md").write_text(
        "# Marrow Bridge\n\nThe Marrow Bridge was designed by Ilse Brandvik."
    )
    (docs / "ilse.txt").write_text("Ilse Brandvik was born in Hallowmere in 1849.")
    (docs / "town.txt").write_text("Pellworth is a market town.")
    (docs / "broken.txt").write_bytes(b"\x00\x01\x02\x03" * 100)
    clew("add", "docs", cwd=folder)
    return folder


def test_add_counts_and_names_what_it_skips(house: Path) -> None:
    said = clew("add", "docs", cwd=house)
    assert "0 added, 0 updated, 3 unchanged, 1 skipped" in said
    assert "broken.txt" in said
    found = json.loads(clew("add", "docs", "--json", cwd=house))
    assert (found["unchanged"], len(found["skipped"])) == (3, 1)


def test_search_json_keeps_its_contract(house: Path) -> None:
    found = json.loads(clew("search", "Where was Ilse born?", "--json", "-k", "2", cwd=house))
    assert {
        "question",
        "recipe",
        "seconds",
        "usage",
        "chunks",
        "entities",
        "facts",
        "paths",
    } <= set(found)
    best = found["chunks"][0]
    assert {"id", "doc", "title", "score", "text", "start", "end"} <= set(best)
    assert best["doc"].endswith("ilse.txt")
    assert len(found["chunks"]) == 2


def test_search_prints_a_title_once(house: Path) -> None:
    said = clew("search", "Who designed the Marrow Bridge?", "-k", "1", cwd=house)
    assert said.splitlines()[0].startswith("1. Marrow Bridge")
    assert said.splitlines()[1].strip() == "The Marrow Bridge was designed by Ilse Brandvik."


def test_ask_json_keeps_its_contract(house: Path) -> None:
    asked = "In which town was the designer of the Marrow Bridge born?"
    found = json.loads(clew("ask", asked, "--json", cwd=house))
    assert found["verdict"] == "answered"
    assert {"doc", "chunk", "start", "end", "quote"} <= set(found["citations"][0])
    assert {"step", "input", "output", "seconds", "usage"} <= set(found["trace"][0])
    assert found["answer"]
    said = clew("ask", asked, "--trace", cwd=house)
    assert said.startswith("Hallowmere")
    assert "Cited" in said
    assert "Trace" in said


def test_status_json_keeps_its_contract(house: Path) -> None:
    found = json.loads(clew("status", "--json", cwd=house))
    assert {
        *("documents", "chunks", "entities", "facts", "communities", "embedder", "generation"),
        *("failed", "bytes", "spent"),
    } <= set(found)
    assert found["documents"] == 3


def test_the_small_commands(house: Path) -> None:
    assert "OK" in clew("verify", cwd=house)
    assert "Hallowmere" in clew("show", "Ilse Brandvik", cwd=house)
    assert "hybrid" in clew("recipes", cwd=house)
    assert "sharpness" in clew("recipes", "clew", cwd=house)
    assert "embedder" in clew("doctor", cwd=house)
    assert "docs/town.txt" in clew("status", "--documents", cwd=house)


def test_rm_removes(house: Path, tmp_path: Path) -> None:
    clew("add", str(house / "docs"), "--kb", "other", cwd=tmp_path)
    names = json.loads(clew("status", "--documents", "--json", "--kb", "other", cwd=tmp_path))
    clew("rm", names["names"][0], "--kb", "other", cwd=tmp_path)
    found = json.loads(clew("status", "--json", "--kb", "other", cwd=tmp_path))
    assert found["documents"] == 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("search", "x", "--kb", "nowhere"), 1, "no knowledge base in nowhere"),
        (("add", "nothing-here"), 1, "nothing-here"),
        (("search", "x", "--recipe", "nope"), 1, "no recipe 'nope'"),
        (("rm", "nope"), 1, "no document named 'nope'"),
        (("show", "nope"), 1, "no document or entity is named 'nope'"),
        (("search", ""), 1, "the question is empty"),
        (("search", "x", "-k", "0"), 1, "at least 1"),
        (("add", "docs", "--extractor", "magic"), 1, "unknown extractor 'magic'"),
        (("eval", "docs"), 1, "no questions.jsonl"),
        (("nonsense",), 2, "No such command"),
        (("search",), 2, "Missing argument"),
    ],
)
def test_errors_are_one_sentence(house: Path, words: tuple[str, ...], code: int, said: str) -> None:
    assert said in clew(*words, cwd=house, code=code)


def test_a_process_says_its_error_and_ends_with_its_code(tmp_path: Path) -> None:
    assert "no knowledge base in kb" in process("search", "x", cwd=tmp_path, code=1)


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "empty" in clew("add", "empty", cwd=tmp_path, code=1)


def test_eval_builds_and_then_reuses(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    rows = [
        {"id": 7, "title": "Marrow Bridge", "text": "It was designed by Ilse Brandvik."},
        {"id": 8, "title": "Ilse Brandvik", "text": "She was born in Hallowmere."},
        {"id": 9, "title": "Pellworth", "text": "A market town."},
    ]
    (data / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked = {"id": "q", "question": "Where was the designer of Marrow Bridge born?", "gold": [7, 8]}
    (data / "questions.jsonl").write_text(json.dumps(asked))
    words = ("eval", "data", "--recipe", "clew,bm25", "--metrics", "recall@2", "--json")
    found = json.loads(clew(*words, cwd=tmp_path))
    assert found["build"]["reused"] is False
    assert found["recipes"]["clew"]["recall@2"] == 1.0
    assert {"seconds_per_query", "calls", "tokens"} <= set(found["recipes"]["bm25"])
    assert json.loads(clew(*words, cwd=tmp_path))["build"]["reused"] is True


def test_init_writes_settings_that_load(tmp_path: Path) -> None:
    clew("init", cwd=tmp_path)
    assert "already exists" in clew("init", cwd=tmp_path, code=1)
    (tmp_path / "clew.toml").write_text("[chunk]\nsize = -3\n")
    assert "chunk.size" in clew("status", cwd=tmp_path, code=1)


def test_the_readme_shows_what_the_demo_prints(tmp_path: Path) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    shown = readme.split("prints\n\n```\n")[1].split("\n```")[0]
    printed = clew("demo", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
    # Both sentences are cited: the one that leads to the engineer, and the one about her.
    assert "[2] ilse-brandvik.md" in shown
    sure = re.compile(r"(well )?supported: confidence 0\.\d+")  # moves a little with new weights
    assert sure.sub("", shown) in sure.sub("", printed)
