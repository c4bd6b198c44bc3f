"""What a newcomer meets: no embedder yet, wrong paths, an empty knowledge base, the doctor."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from in_process import clew, invoke

from clew.llm import embed_weights as weight_files
from clew.version import pip_install_command

ASKED = "Where was the designer of the Marrow Bridge born?"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "bridge.md").write_text(
        "# Marrow Bridge\n\nThe Marrow Bridge was designed by Ilse Brandvik."
    )
    (folder / "ilse.txt").write_text("Ilse Brandvik was born in Hallowmere in 1849.")
    return tmp_path


def _without_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    there = weight_files.is_installed
    monkeypatch.setattr(
        "clew.llm.embed_weights.is_installed", lambda name: name != "onnxruntime" and there(name)
    )


def test_without_an_embedder_words_alone_answer(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(notes)  # the command depends on where one stands
    bring = pip_install_command("local")
    _without_embedder(monkeypatch)
    assert "Marrow Bridge" in clew("demo", cwd=notes)  # quoted: there is no reader either
    assert "2 added" in clew("add", "notes", cwd=notes)
    found = json.loads(clew("search", ASKED, "--recipe", "bm25", "--json", cwd=notes))
    assert found["chunks"]
    told = json.loads(clew("ask", ASKED, "--json", cwd=notes))
    assert told["recipe"] == "keywords"
    assert told["citations"]
    assert told["candidate"] == ""
    said = clew("search", ASKED, "--recipe", "naive", cwd=notes, code=1)
    assert said.count("no embedder is installed") == 1
    assert f"error: this recipe needs an embedder; `{bring}`" in said
    assert "no embedder" not in clew(
        "search", ASKED, "--recipe", "naive", "--json", cwd=notes, code=1
    )
    assert "embedder: none, so only BM25 search works" in clew("doctor", cwd=notes)
    monkeypatch.undo()
    clew("add", "notes", cwd=notes)  # nothing changed, and yet it makes the vectors
    assert json.loads(clew("status", "--json", cwd=notes))["embedder"]
    assert "OK" in clew("verify", cwd=notes)
    _without_embedder(monkeypatch)
    assert "but there is no embedder" in clew("add", "notes", cwd=notes, code=1)
    assert "Ilse Brandvik" in clew("ask", ASKED, cwd=notes)


@pytest.mark.parametrize(
    "words",
    [
        ("add", "empty"),
        ("add", "missing.txt"),
        ("import", "missing.tsv"),
        ("import", "prose"),
        ("import", "rows.jsonl", "--corpus", "missing.jsonl"),
    ],
)
def test_what_cannot_be_read_leaves_no_knowledge_base(tmp_path: Path, words: tuple[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "prose").write_text("Only words.")
    (tmp_path / "rows.jsonl").write_text("{}")
    clew(*words, cwd=tmp_path, code=1)
    assert not (tmp_path / "kb").exists()


def test_an_empty_knowledge_base_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "blank.txt").write_text(" ")
    clew("add", "blank.txt", cwd=tmp_path, code=1)
    for words in (("ask", "Who?"), ("search", "Who?"), ("chat",)):
        assert "the knowledge base in kb is empty; add documents with `clew add" in clew(
            *words, cwd=tmp_path, code=1
        )


def test_a_row_that_is_skipped_is_named_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "A town."}\nno row\n')
    assert "skipped rows.jsonl, line 2: is not JSON" in clew("add", "rows.jsonl", cwd=tmp_path)


@pytest.mark.slow  # a process of its own
def test_the_history_is_kept_though_nobody_reads_the_answer(notes: Path) -> None:
    clew("add", "notes", cwd=notes)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("CLEW", "OPENAI"))}
    with subprocess.Popen(
        [sys.executable, "-m", "clew", "ask", ASKED, "--history", "turns.jsonl"],
        cwd=notes,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as asking:
        assert asking.stdout is not None
        asking.stdout.close()
        asking.wait(timeout=120)
    [turn] = (notes / "turns.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(turn)["question"] == ASKED


class _Lists(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status = 401 if self.headers.get("Authorization") == "Bearer old" else 200
        body = json.dumps({"data": [{"id": "small"}]}).encode()
        self.send_response(status if self.path == "/v1/models" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *told: object) -> None:
        pass


@pytest.fixture
def models() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Lists) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def _model(settings: str, cwd: Path, code: int = 0) -> list[str]:
    (cwd / "clew.toml").write_text(f"[models]\n{settings}\n")
    told = clew("doctor", cwd=cwd, code=code)
    return [line for line in told.splitlines() if "model" in line and "all-MiniLM" not in line]


def test_the_doctor_looks_at_models(tmp_path: Path, models: str) -> None:
    [none] = _model("", tmp_path)
    assert "model: none configured" in none
    [fine] = _model(f'base_url = "{models}"\nmodel = "small"', tmp_path)
    assert fine == f"✓ model small: {models} answers"
    [other] = _model(f'base_url = "{models}"\nmodel = "large"', tmp_path)
    assert other == f"– model large: {models} answers, but lists other models: small"
    both = _model(f'base_url = "{models}"\nmodel = "small"\njudge = "large"', tmp_path)
    assert [line.split(":")[0] for line in both] == [
        "✓ model small (extract, plan, answer)",
        "– model large (judge)",
    ]
    _model(f'base_url = "{models}"\nmodel = "small"\napi_key = "old"', tmp_path, code=1)
    _model('client = "llama"\nmodel = "no.gguf"', tmp_path, code=1)


def test_the_doctor_says_that_nobody_answers(tmp_path: Path) -> None:
    (tmp_path / "clew.toml").write_text(
        '[models]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "small"\n'
    )
    checks = json.loads(invoke("doctor", "--json", cwd=tmp_path, code=1).stdout)
    [model] = [check for check in checks if check["name"] == "model small"]
    assert model["state"] == "broken" and "cannot be reached" in model["message"]
    extras = {check["name"] for check in checks if check["name"].startswith("extra ")}
    assert extras >= {f"extra {name}" for name in ("tree", "rdf", "parquet", "llama", "train")}
