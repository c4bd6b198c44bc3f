"""The server as a process: start, signals, several workers, and what it refuses."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from serving import fill


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


def test_a_public_address_without_a_key_is_refused(tmp_path: Path) -> None:
    fill(tmp_path / "root" / "valley")
    command = [sys.executable, "-m", "clew", "serve", "--root", "root", "--host", "0.0.0.0"]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True)
    assert done.returncode == 1
    assert "there is no key" in done.stderr and "clew keys add" in done.stderr


def test_a_key_made_on_the_command_line_opens_the_server(tmp_path: Path) -> None:
    fill(tmp_path / "root" / "valley")

    def keys(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "clew", "keys", *words, "--root", "root"]
        return subprocess.run(command, cwd=tmp_path, text=True, capture_output=True)

    made = keys("add", "chat page", "--workspace", "valley", "--expires", "30d")
    token = made.stdout.strip()
    assert token.startswith("clew_")
    assert keys("add", "x", "--scope", "all").returncode == 1
    assert "chat page" in keys("list").stdout and token not in keys("list").stdout
    with serving(tmp_path) as (_, url):
        headers = {"Authorization": f"Bearer {token}"}
        with urlopen(Request(f"{url}/workspaces/valley", headers=headers)) as reply:
            assert json.load(reply)["documents"] == 6
        try:
            urlopen(f"{url}/workspaces/valley").close()
            raise AssertionError("no key was needed")
        except HTTPError as error:
            assert error.code == 401
            error.close()


def test_headers_that_never_end_are_refused(tmp_path: Path) -> None:
    fill(tmp_path / "root" / "valley")
    with serving(tmp_path) as (_, url):
        address = ("127.0.0.1", int(url.rsplit(":")[-1]))
        with socket.create_connection(address, timeout=30) as endless:
            endless.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
            reply = b""
            try:
                for _ in range(100_000):
                    endless.sendall(b"X-A: " + b"a" * 1000 + b"\r\n")
                    if select.select([endless], [], [], 0)[0]:
                        reply = endless.recv(1000)
                        break
            except ConnectionError:  # it was closed while we were sending
                reply = b" 431 "
            assert b" 431 " in reply, "a hundred megabytes of headers were taken"
        with socket.create_connection(address, timeout=30) as several:
            for _ in range(100):  # many requests on one connection are not one large request
                several.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: ")
                several.sendall(b"a" * 1000 + b"\r\n\r\n")
                reply = b""
                while not reply.endswith(b"}"):
                    reply += several.recv(10_000)
                assert b" 200 " in reply
