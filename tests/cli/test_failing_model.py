"""A model that fails or hangs: the command line and the server say so, and answer without it."""

import asyncio
import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from in_process import clew, invoke

from clew.cli import progress
from clew.config import ModelSettings, ServeSettings, Settings
from clew.serve.app import create_app
from clew.serve.core.folders import Folders
from clew.serve.core.server import Server
from clew.testing.hashed_kb import open_hashed
from clew.testing.stub_endpoint import StubEndpoint
from clew.testing.stub_responses import HANG, Fault

QUESTION = "Tell me the birth town of the person behind Marrow Bridge, please."
PAGES = {
    "bridge.txt": "Marrow Bridge is a bridge over the Tarn. It was designed by Ilse Brandvik.",
    "ilse.txt": "Ilse Brandvik was an engineer. She was born in Hallowmere in 1870.",
}
REFUSED = Fault(401, message="no such key")
BUSY = Fault(503, message="overloaded")


@pytest.fixture
def stub() -> Iterator[StubEndpoint]:
    """An endpoint that listens in a thread."""
    loop, made = asyncio.new_event_loop(), StubEndpoint()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(made.start(), loop).result()
    yield made
    asyncio.run_coroutine_threadsafe(made.stop(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def house(tmp_path: Path, stub: StubEndpoint, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A knowledge base that rules have built, and settings with the endpoint's model."""
    monkeypatch.setattr("clew.llm.embed_weights.is_installed", lambda name: False)
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
    clew("add", *PAGES, cwd=tmp_path)
    (tmp_path / "clew.toml").write_text(
        f'[models]\nmodel = "stub"\nbase_url = "{stub.base_url}"\ntries = 2\ntimeout = 1\n'
    )
    return tmp_path


@pytest.mark.parametrize("fault", [REFUSED, Fault(500, message="broken"), HANG])
@pytest.mark.parametrize("mode", ["open", "reject"])
def test_every_failure_gives_the_answer_without_a_model_and_exit_code_1(
    house: Path, stub: StubEndpoint, fault: Fault, mode: str
) -> None:
    (house / "clew.toml").rename(house / "off.toml")
    without = json.loads(clew("ask", QUESTION, "--json", "--mode", mode, cwd=house))
    (house / "off.toml").rename(house / "clew.toml")
    assert without["model_error"] == ""
    stub.faults = lambda number: fault
    done = invoke("ask", QUESTION, "--json", "--mode", mode, cwd=house, code=1)
    found = json.loads(done.stdout)
    assert (found["answer"], found["citations"]) == (without["answer"], without["citations"])
    assert found["model_error"] and not found["complete"]
    assert "without the model" in found["note"]
    shown = invoke("ask", QUESTION, "--mode", mode, cwd=house, code=1)
    assert found["answer"].splitlines()[0] in shown.stdout
    assert "error: the model failed" in shown.stderr
    assert (fault.message if fault is not HANG else "did not answer") in shown.stderr


def test_a_spent_budget_is_no_failure(house: Path) -> None:
    done = invoke("ask", QUESTION, "--max-calls", "0", "--json", cwd=house)
    assert json.loads(done.stdout)["model_error"] == ""


def test_a_recipe_that_needs_its_model_fails(house: Path, stub: StubEndpoint) -> None:
    stub.faults = lambda number: REFUSED
    said = clew("ask", QUESTION, "--recipe", "llm", cwd=house, code=1)
    assert "no such key" in said


def test_a_conversation_goes_on_and_ends_with_exit_code_1(house: Path, stub: StubEndpoint) -> None:
    stub.faults = lambda number: REFUSED
    done = invoke("chat", cwd=house, told=f"{QUESTION}\n{QUESTION}\n", code=1)
    assert done.stderr.count("the model failed") == 2
    assert stub.stats.chat_calls >= 2  # the second question tried the key again


def test_waiting_and_retries_are_lines(
    house: Path, stub: StubEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_INTERVAL", 0.1)
    stub.faults = lambda number: HANG if number else BUSY
    said = invoke("ask", QUESTION, cwd=house, code=1).stderr
    assert "overloaded" in said and "asked again in" in said
    assert f"waiting for stub at {stub.base_url}" in said
    quiet = invoke("ask", QUESTION, "--json", cwd=house, code=1)
    assert "waiting" not in quiet.stderr and json.loads(quiet.stdout)


def test_a_terminal_shows_a_line_that_moves(house: Path, stub: StubEndpoint) -> None:
    stub.faults = lambda number: HANG
    mine, theirs = pty.openpty()
    words = [sys.executable, "-m", "clew", "ask", QUESTION]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(words, cwd=house, env=env, stdout=subprocess.PIPE, stderr=theirs) as run:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(mine, 10_000):
                shown += piece
        except OSError:  # its end
            pass
        assert run.stdout is not None
        answer = run.stdout.read()
    os.close(mine)
    assert b"waiting for stub" in shown and b" for 1 s" in shown
    assert b"waiting" not in answer and b"Hallowmere" in answer
    assert run.returncode == 1


@pytest.fixture
def client(house: Path, stub: StubEndpoint) -> Iterator[TestClient]:
    models = ModelSettings(model="stub", base_url=stub.base_url, tries=2, timeout=1)
    settings = Settings(kb=house / "kb", models=models, serve=ServeSettings())
    server = Server(settings, Folders(house / "kb", single=True), open_hashed)
    with TestClient(create_app(server), base_url="http://localhost") as made:
        yield made


def test_the_server_answers_without_the_model_and_tries_its_key_again(
    client: TestClient, stub: StubEndpoint
) -> None:
    stub.faults = lambda number: REFUSED if number == 0 else None
    asked = {"question": QUESTION}
    first = client.post("/workspaces/default/ask", json=asked)
    assert first.status_code == 200
    assert "no such key" in first.json()["model_error"] and not first.json()["complete"]
    again = client.post("/workspaces/default/ask", json=asked).json()
    assert again["model_error"] == "" and stub.stats.chat_calls > 1


def test_streams_and_chats_tell_of_the_failure(client: TestClient, stub: StubEndpoint) -> None:
    stub.faults = lambda number: BUSY
    asked = {"question": QUESTION, "stream": True}
    lines = client.post("/workspaces/default/ask", json=asked).text.splitlines()
    told = [
        json.loads(data.removeprefix("data: "))
        for name, data in zip(lines, lines[1:], strict=False)
        if name == "event: model"
    ]
    states = [one["state"] for one in told]
    assert states[:3] == ["sent", "failed", "sent"] or states[:3] == ["sent", "failed", "ended"]
    assert "overloaded" in told[1]["why"] and told[1]["seconds"] > 0
    body = {"model": "default", "messages": [{"role": "user", "content": QUESTION}]}
    reply = client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]
    assert "without the model" in reply["content"] and "overloaded" in reply["content"]
