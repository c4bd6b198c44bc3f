"""What the server writes: for its owner alone, and nothing where it refuses."""

import http.client
import json
import sqlite3
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from serving import Listening, fill, make_key, make_server, running
from test_documents import wait_for
from test_serve_run import call, serving

from clew.errors import StoreError
from clew.serve.core.database import ServerDatabase

AT = "/workspaces/valley"


def find_readable(folder: Path) -> list[str]:
    """Files and folders that others than their owner may use."""
    found = [one for one in (folder, *folder.rglob("*")) if not one.is_symlink()]
    return sorted(one.name for one in found if stat.S_IMODE(one.stat().st_mode) & 0o77)


def test_only_the_owner_may_read_what_keys_and_requests_create(tmp_path: Path) -> None:
    made = call(tmp_path, "keys", "add", "admin", "--scope", "admin")
    assert made.exit_code == 0, made.output
    assert find_readable(tmp_path / "root") == []


@pytest.mark.slow
def test_only_the_owner_may_read_what_the_server_creates(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "1") as (_, url):
        connection = http.client.HTTPConnection(url.removeprefix("http://"))

        def send(method: str, path: str, body: bytes = b"") -> Any:
            connection.request(method, path, body)
            return json.loads(connection.getresponse().read())

        assert send("PUT", AT)["name"] == "valley"
        text = b"Ilse Brandvik designed the Marrow Bridge in Hallowmere."
        job = send("POST", f"{AT}/documents?name=a.md&build=true", text)["job"]["id"]
        while (state := send("GET", f"{AT}/jobs/{job}")["state"]) in ("queued", "running"):
            time.sleep(0.1)
        assert state == "done" and send("GET", f"{AT}/documents")["documents"]
        connection.close()
        assert find_readable(tmp_path / "root") == []


def test_of_builds_at_once_one_is_taken_and_nothing_is_kept_of_the_others(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    headers = make_key(server, {"valley": "write"})
    statuses: list[int] = []
    together = threading.Barrier(8)

    def send(number: int) -> None:
        connection = http.client.HTTPConnection(url.removeprefix("http://"))
        body = b"Marta Quill built ferry %d." % number
        connection.putrequest("POST", f"{AT}/documents?name={number}.md&build=true")
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            connection.putheader(name, value)
        connection.endheaders(body[:5])
        together.wait()
        connection.send(body[5:])
        statuses.append(connection.getresponse().status)
        connection.close()

    with Listening(server) as url:
        senders = [threading.Thread(target=send, args=(number,)) for number in range(8)]
        for one in senders:
            one.start()
        for one in senders:
            one.join()
        assert sorted(statuses) == [201] + [409] * 7
        assert len(server.uploads.list("valley")) == 1
        assert len(list(tmp_path.glob(".server/uploads/valley/*"))) == 1


def test_a_refused_build_leaves_the_earlier_upload_and_failed_files(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    server.runner.is_leaving = True  # no job is started yet
    with running(server) as client:
        client.post(f"{AT}/documents", params={"name": "a.md"}, content=b"The Otter Ferry sank.")
        first = server.uploads.list("valley")[0]
        server.uploads.finish("valley", first, [], "cannot be read")
        server.ledger.add("valley", "build", "local", {"names": []})
        replaced = {"name": "a.md", "build": True}
        assert client.post(f"{AT}/documents", params=replaced, content=b"New.").status_code == 409
        assert client.post(f"{AT}/builds", json={"retry": True}).status_code == 409
        held = server.uploads.list("valley")
        assert [(one.hash, one.state) for one in held] == [(first.hash, "failed")]
        assert server.uploads.path("valley", "a.md", first.hash).exists()
        server.runner.is_leaving = False
        wait_for(client, server.ledger.newest("valley")[0].id)


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    (tmp_path / ".server").mkdir()
    (tmp_path / ".server" / "server.sqlite").write_bytes(b"nonsense " * 1000)
    with pytest.raises(StoreError, match="server.sqlite: file is not a database"):
        ServerDatabase(tmp_path / ".server")


def test_a_transaction_within_another_is_a_part_of_it(tmp_path: Path) -> None:
    database = ServerDatabase(tmp_path)
    with pytest.raises(sqlite3.IntegrityError), database.transaction():
        with database.transaction() as db:
            db.execute("INSERT INTO spending VALUES ('a', 'b', 1, 1)")
        database.change("INSERT INTO spending VALUES ('a', 'b', 1, 1)")
    assert database.rows("SELECT * FROM spending") == []
