"""The server as a process: start, signals, several workers, and what it refuses."""

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from serving import Listening, fill, make_server, running
from typer.testing import CliRunner, Result

from clew import sync
from clew.cli.app import app
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.testing.stub_endpoint import StubEndpoint
from conftest import VALLEY, stream


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `clew serve` and yield the process and its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "clew", "serve", "--root", "root", "--port", str(port)]
    process = subprocess.Popen([*command, *options], cwd=folder, text=True, stderr=subprocess.PIPE)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                urlopen(f"{url}/ready").close()
                break
            except URLError:
                assert process.poll() is None, process.stderr and process.stderr.read()
                time.sleep(0.1)
        yield process, url
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def read(url: str) -> dict[str, object]:
    with urlopen(url) as reply:
        found: dict[str, object] = json.load(reply)
        return found


def test_one_process_serves_and_stops_cleanly(tmp_path: Path) -> None:
    fill(tmp_path / "root" / "valley")
    with serving(tmp_path) as (process, url):
        assert read(f"{url}/workspaces/valley")["documents"] == 6
        with socket.create_connection(("127.0.0.1", int(url.rsplit(":")[-1]))) as silent:
            silent.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
            assert read(f"{url}/health") == {"status": "ok"}
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert read(f"{url}/health") == {"status": "ok"}
    assert process.returncode == 0


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_a_hangup_replaces_all(tmp_path: Path) -> None:
    fill(tmp_path / "root" / "valley")
    with serving(tmp_path, "--workers", "2") as (process, url):

        def workers() -> set[int]:
            listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            named = {int(p): Path(f"/proc/{p}/cmdline").read_text() for p in listed}
            return {p for p, line in named.items() if "spawn_main" in line}

        def wait_for(fresh: int, old: set[int]) -> set[int]:
            for _ in range(600):
                if len(workers() - old) >= fresh:
                    return workers()
                time.sleep(0.1)
            raise AssertionError("no new worker")

        first = wait_for(2, set())
        os.kill(min(first), signal.SIGKILL)
        second = wait_for(1, first)
        assert read(f"{url}/workspaces/valley")["documents"] == 6
        process.send_signal(signal.SIGHUP)
        wait_for(2, second)
        assert read(f"{url}/workspaces/valley")["documents"] == 6
    assert process.returncode == 0


def start_over_damage(folder: Path) -> tuple["subprocess.Popen[str]", Path]:
    """Start two workers over a database that they cannot open; return it too."""
    database = folder / "root" / ".server" / "server.sqlite"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"nonsense " * 1000)
    command = [sys.executable, "-m", "clew", "serve", "--root", "root", "--port", "0"]
    return subprocess.Popen(
        [*command, "--workers", "2"], cwd=folder, text=True, stderr=subprocess.PIPE
    ), database


@pytest.mark.slow
def test_workers_that_fail_at_their_start_are_started_again(tmp_path: Path) -> None:
    process, database = start_over_damage(tmp_path)
    assert process.stderr is not None
    url = process.stderr.readline().split()[-1]
    for line in process.stderr:
        if "ended too soon" in line:
            break
        assert "file is not a database" in line
    database.unlink()
    for _ in range(600):
        try:
            assert read(f"{url}/ready")["status"] == "ready"
            break
        except (URLError, TimeoutError):
            time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.slow
def test_a_server_whose_workers_all_fail_ends_with_a_sentence(tmp_path: Path) -> None:
    process, _ = start_over_damage(tmp_path)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert said.splitlines()[-1].startswith("error: no worker process could be started in")
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_long_stream_outlives_a_reload(tmp_path: Path) -> None:
    sync.wait(fill_without_vectors(tmp_path / "root" / "valley"))
    with slow_model(tmp_path, seconds=1.0), serving(tmp_path, "--workers", "2") as (process, url):
        body = json.dumps({"question": "Who was Ilse?", "recipe": "bm25", "stream": True})
        asked = Request(
            f"{url}/workspaces/valley/ask", body.encode(), {"Content-Type": "application/json"}
        )
        with urlopen(asked) as events:
            assert events.readline().startswith(b"event: step-started")
            settings = (tmp_path / "clew.toml").read_text()
            (tmp_path / "clew.toml").write_text(settings + 'hosts = ["reloaded.example"]\n')
            process.send_signal(signal.SIGHUP)
            renamed = Request(f"{url}/workspaces", headers={"Host": "reloaded.example"})
            for _ in range(600):
                try:
                    urlopen(renamed).close()
                    break
                except HTTPError as error:  # the old workers still answer
                    assert error.code == 421
                    error.close()
                    time.sleep(0.1)
            assert b"event: answer" in events.read()
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_stop_refuses_callers_and_tells_those_who_wait(tmp_path: Path, workers: str) -> None:
    sync.wait(fill_without_vectors(tmp_path / "root" / "valley"))
    with (
        slow_model(tmp_path, seconds=60.0),
        serving(tmp_path, "--workers", workers) as (process, url),
    ):
        replies: dict[str, bytes] = {}

        def ask(name: str, path: str, body: dict[str, object]) -> None:
            kind = {"Content-Type": "application/json"}
            asked = Request(f"{url}{path}", json.dumps(body).encode(), kind)
            try:
                with urlopen(asked) as reply:
                    replies[name] = reply.read()
            except HTTPError as error:
                replies[name] = f"{error.code} ".encode() + error.read()

        question = {"question": "Who was Ilse?", "recipe": "bm25"}
        chat = {"model": "valley/bm25", "messages": [{"role": "user", "content": "Who was Ilse?"}]}
        asking = [
            threading.Thread(target=ask, args=one)
            for one in (
                ("stream", "/workspaces/valley/ask", {**question, "stream": True}),
                ("plain", "/workspaces/valley/ask", question),
                ("openai", "/v1/chat/completions", {**chat, "stream": True}),
                ("ollama", "/api/chat", chat),
            )
        ]
        for one in asking:
            one.start()
        time.sleep(1.0)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.6)
        with pytest.raises(URLError, match="refused"):
            urlopen(f"{url}/ready", timeout=5)
        for one in asking:
            one.join()
        _, said = process.communicate(timeout=30)
    assert process.returncode == 0
    assert said.splitlines()[1:] == [], "the log of a stop holds no traceback"
    assert replies["plain"].startswith(b"503 ")
    assert replies["stream"].splitlines()[-3] == b"event: error"
    for reply in replies.values():
        assert b"the server is stopping" in reply


async def fill_without_vectors(folder: Path) -> None:
    """Build a knowledge base that any embedder may open."""
    base = await KnowledgeBase.open(Settings(kb=folder), create=True, embed=False)
    await base.take(stream(VALLEY))
    await base.close()


@contextmanager
def slow_model(folder: Path, seconds: float) -> Iterator[None]:
    """An endpoint that takes its time, and settings that use it; a stop waits less long."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    stub = StubEndpoint(latency=seconds)
    asyncio.run_coroutine_threadsafe(stub.start(), loop).result()
    (folder / "clew.toml").write_text(
        f'[models]\nmodel = "stub"\nbase_url = "{stub.base_url}"\n[serve]\nshutdown_seconds = 1\n'
    )
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(stub.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def call(folder: Path, *words: str) -> Result:
    """Run a command in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return CliRunner().invoke(app, [*words, "--root", "root"])


def test_a_public_address_without_a_key_is_refused(tmp_path: Path) -> None:
    fill(tmp_path / "root" / "valley")
    done = call(tmp_path, "serve", "--host", "0.0.0.0")
    assert done.exit_code == 1
    assert "there is no key" in done.stderr and "clew keys add NAME --root root" in done.stderr


def test_a_key_made_on_the_command_line_opens_the_server(tmp_path: Path) -> None:
    fill(tmp_path / "root" / "valley")
    made = call(tmp_path, "keys", "add", "chat page", "--workspace", "valley", "--expires", "30d")
    token = made.stdout.strip()
    assert token.startswith("clew_")
    assert call(tmp_path, "keys", "add", "x", "--scope", "all").exit_code == 1
    listed = call(tmp_path, "keys", "list").stdout
    assert "chat page" in listed and token not in listed
    with running(make_server(tmp_path / "root")) as client:
        key = {"Authorization": f"Bearer {token}"}
        assert client.get("/workspaces/valley", headers=key).json()["documents"] == 6
        assert client.get("/workspaces/valley").status_code == 401


def test_headers_that_never_end_are_refused(tmp_path: Path) -> None:
    with Listening(make_server(tmp_path, header_seconds=0.3)) as url:
        address = ("127.0.0.1", int(url.rsplit(":")[-1]))
        with socket.create_connection(address, timeout=30) as endless:
            endless.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
            reply = b""
            try:
                for _ in range(10_000):
                    endless.sendall(b"X-A: " + b"a" * 1000 + b"\r\n")
                    if select.select([endless], [], [], 0)[0]:
                        reply = endless.recv(1000)
                        break
            except ConnectionError:  # it was closed while we were sending
                reply = b" 431 "
            assert b" 431 " in reply, "ten megabytes of headers were taken"
        with socket.create_connection(address, timeout=30) as several:
            for _ in range(100):  # many requests on one connection are not one large request
                head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: "
                several.sendall(head + b"a" * 1000 + b"\r\n\r\n")
                reply = b""
                while not reply.endswith(b"}"):
                    reply += several.recv(10_000)
                assert b" 200 " in reply
        with socket.create_connection(address, timeout=30) as silent:
            silent.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
            assert silent.recv(1000) == b"", "half a request was waited for"
