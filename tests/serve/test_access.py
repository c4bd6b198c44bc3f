"""Keys, scopes, workspaces: who may do what, on every route."""

import re
import select
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from serving import Listening, fill, make_key, make_server, running

from clew.config import ServeSettings, Settings
from clew.errors import ConfigError
from clew.serve.app import create_app
from clew.serve.core.folders import Folders
from clew.serve.core.server import Server
from clew.serve.run import check_bind

PARAMETERS = {"number": "1", "key": "1", "document": "a" * 32, "job": "b" * 16, "name": "clew"}
BODIES: dict[str, Any] = {
    "/search": {"question": "Who?"},
    "/ask": {"question": "Who?"},
    "/trees": {"trees": ["dual"]},
    "/evaluations": {"questions": [{"question": "Who?"}], "recipes": ["bm25"]},
    "/merge": {"one": "a", "other": "b"},
    "/undo": {"one": "a", "other": "b"},
    "/split": {"name": "a"},
    "/labels": {"labels": []},
}
QUERIES = {"name": "x", "start": "a", "end": "b"}


def routes_of(server: Server) -> list[tuple[str, str]]:
    """Every method and path of the app."""
    found = []
    pending = list(create_app(server).routes)
    while pending:
        route = pending.pop()
        pending += getattr(getattr(route, "original_router", None), "routes", [])
        if isinstance(route, APIRoute):
            found += [(method, route.path) for method in sorted(route.methods)]
    return sorted(found)


def call(client: Any, method: str, path: str, headers: dict[str, str]) -> Any:
    filled = re.sub(r"{(\w+)}", lambda found: PARAMETERS[found[1]], path)
    ending = "/" + filled.rsplit("/", 1)[-1]
    body = BODIES.get(ending, {}) if method in ("POST", "PUT") else None
    return client.request(method, filled, params=QUERIES, json=body, headers=headers)


def test_a_foreign_and_an_unknown_workspace_look_the_same_on_every_route(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    fill(tmp_path / "own")
    server = make_server(tmp_path)
    key = make_key(server, {"own": "admin"})
    paths = [(m, p) for m, p in routes_of(server) if "{workspace}" in p]
    assert len(paths) > 25
    with running(server) as client:
        for method, path in paths:
            foreign = call(client, method, path.replace("{workspace}", "valley"), key)
            unknown = call(client, method, path.replace("{workspace}", "nowhere"), key)
            assert foreign.status_code == unknown.status_code == 404, (method, path)
            assert foreign.json() == unknown.json()
            for name in ("..", "%2e%2e", "Valley", ".server", "valley%00"):
                odd = call(client, method, path.replace("{workspace}", name), key)
                # A client may shorten the path to that of the page, which everyone may see.
                page = method == "GET" and odd.url.path == "/"
                assert page or odd.status_code in (404, 405), (method, path, name)


def test_every_route_but_health_needs_a_key_where_there_is_one(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    make_key(server, {"valley": "read"})
    with running(server) as client:
        for method, path in routes_of(server):
            filled = path.replace("{workspace}", "valley")
            status = call(client, method, filled, {}).status_code
            assert status == (200 if path in ("/health", "/ready") else 401), (method, path)
            wrong = call(client, method, filled, {"Authorization": "Bearer clew_nonsense"})
            assert wrong.status_code == status, (method, path)


def test_a_reader_changes_nothing(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    key = make_key(server, {"valley": "read"})
    with running(server) as client:
        for method, path in routes_of(server):
            if "{workspace}" not in path or method == "GET" or path.endswith(("/search", "/ask")):
                continue
            status = call(client, method, path.replace("{workspace}", "valley"), key).status_code
            # Creating a workspace is not found for those who may not, as it may not exist.
            assert status == (404 if path == "/workspaces/{workspace}" else 403), (method, path)


def test_keys_expire_rotate_and_are_revoked(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    key, token = server.keys.create("one", {"valley": "read"})
    _, late = server.keys.create("late", {"valley": "read"}, expires=time.time() - 1)
    stored = (tmp_path / ".server" / "server.sqlite").read_bytes()
    assert token.encode() not in stored
    with running(server) as client:

        def status(sent: str) -> int:
            headers = {"Authorization": f"Bearer {sent}"}
            return client.get("/workspaces/valley", headers=headers).status_code

        assert (status(token), status(late)) == (200, 401)
        fresh = server.keys.rotate(key.id, grace=60)
        assert (status(token), status(fresh)) == (200, 200)
        newest = server.keys.rotate(key.id)
        assert (status(token), status(fresh), status(newest)) == (401, 401, 200)
        server.keys.revoke(key.id)
        assert status(newest) == 401
        with pytest.raises(ConfigError, match="no active key"):
            server.keys.rotate(key.id)


def test_a_public_address_needs_a_key(tmp_path: Path) -> None:
    settings = Settings(kb=tmp_path, serve=ServeSettings(host="0.0.0.0"))
    folders = Folders(tmp_path)
    with pytest.raises(ConfigError, match="clew keys add"):
        check_bind(settings, folders)
    check_bind(Settings(kb=tmp_path), folders)
    make_server(tmp_path).keys.create("one", {"*": "read"})
    check_bind(settings, folders)


@pytest.mark.parametrize("ended", ["revoked", "expired"])
def test_a_server_stays_closed_after_its_last_key(tmp_path: Path, ended: str) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    with running(server) as client:
        assert client.get("/workspaces/valley").status_code == 200
        late = time.time() - 1 if ended == "expired" else None
        key, _ = server.keys.create("one", {"*": "admin"}, expires=late)
        if ended == "revoked":
            server.keys.revoke(key.id)
        assert client.get("/workspaces/valley").status_code == 401


def test_a_public_server_is_never_open(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path, host="0.0.0.0")) as client:
        assert client.get("/workspaces/valley").status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1:80"}, 200),
        ({"Host": "["}, 421),
        ({"Host": "evil@127.0.0.1"}, 421),
        ({"Host": "127.0.0.1/evil"}, 421),
        ([("Host", "localhost"), ("Host", "evil.example")], 421),
        ({"Origin": "http://["}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost"}, 200),
        ({"Origin": "https://chat.example"}, 200),
        ({"X-Long": "x" * 40_000}, 431),
        ({"Authorization": "Basic abc"}, 401),
    ],
)
def test_host_origin_and_headers_are_checked(
    tmp_path: Path, headers: dict[str, str] | list[tuple[str, str]], status: int
) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path, origins=("https://chat.example",))) as client:
        reply = client.get("/workspaces", headers=headers)
        assert reply.status_code == status
        assert reply.headers["content-security-policy"].startswith("default-src 'none'")
        assert reply.headers["x-content-type-options"] == "nosniff"


def test_a_key_has_its_own_rate_and_budget(tmp_path: Path) -> None:
    from clew.serve.core.keys import KeyLimits
    from clew.types import Usage

    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    slow = make_key(server, {"valley": "read"}, limits=KeyLimits(requests_per_minute=6))
    none = make_key(server, {"valley": "read"}, limits=KeyLimits(requests_per_minute=0))
    paid = make_key(server, {"valley": "write"}, limits=KeyLimits(calls_per_day=2))
    with running(server) as client:
        replies = [client.get("/workspaces/valley", headers=slow) for _ in range(3)]
        assert [reply.status_code for reply in replies] == [200, 429, 429]
        assert int(replies[1].headers["retry-after"]) >= 1
        assert client.get("/workspaces/valley", headers=none).status_code == 429
        body = {"question": "Where was Ilse Brandvik born?"}
        assert client.post("/workspaces/valley/ask", json=body, headers=paid).status_code == 200
        key = server.keys.find(paid["Authorization"].split()[1])
        assert key is not None
        server.keys.spend(key.id, Usage(calls=2, money=0.1))
        spent = client.post("/workspaces/valley/ask", json=body, headers=paid)
        assert spent.status_code == 429 and "budget" in spent.json()["detail"]
        for recipe, status in (("bm25", 200), ("lightrag", 429)):  # one needs no model
            search = {**body, "recipe": recipe}
            reply = client.post("/workspaces/valley/search", json=search, headers=paid)
            assert reply.status_code == status
        asked = {"questions": [body], "recipes": ["bm25"]}
        at = "/workspaces/valley/evaluations"
        assert client.post(at, json=asked, headers=paid).status_code == 429


def test_changes_are_in_the_audit_log(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    with running(server) as client:
        client.put("/workspaces/other")
        client.get("/workspaces/nowhere")
        server.records.flush()
        rows = [
            (r["method"], r["path"], r["status"])
            for r in server.database.rows("SELECT * FROM audit ORDER BY time")
        ]
    assert rows == [("PUT", "/workspaces/other", 201), ("GET", "/workspaces/nowhere", 404)]


def test_refusals_without_a_key_are_one_line_of_the_audit_log(tmp_path: Path) -> None:
    server = make_server(tmp_path)
    make_key(server, {"*": "read"})
    with running(server) as client:
        for number in range(5):
            client.get(f"/workspaces/x{number}", headers={"Authorization": "Bearer clew_guess"})
        server.records.flush(at_end=True)
        (row,) = server.database.rows("SELECT * FROM audit")
    assert (row["key"], row["path"], row["status"]) == ("-", "/workspaces/x0", 401)
    assert row["request"].endswith(" and 4 more")


def test_more_requests_than_the_queue_holds_are_refused(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    fill(tmp_path / "valley")
    server = make_server(tmp_path, queue=2)
    with running(server) as client, ThreadPoolExecutor(16) as pool:
        body = {"question": "Who designed the Marrow Bridge?"}
        sent = [pool.submit(client.post, "/workspaces/valley/search", json=body) for _ in range(16)]
        replies = [one.result() for one in sent]
        statuses = {reply.status_code for reply in replies}
        assert statuses == {200, 429}
        assert all(r.headers.get("retry-after") for r in replies if r.status_code == 429)
        assert client.get("/health").status_code == 200


def test_workspaces_beyond_those_that_may_be_open_are_closed(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        fill(tmp_path / name)
    server = make_server(tmp_path, open_workspaces=2)
    with running(server) as client:
        for name in ("one", "two", "three", "one"):
            assert client.get(f"/workspaces/{name}").json()["documents"] == 6
            assert server.pool.open_count <= 2


def test_a_body_that_drips_is_refused(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with Listening(make_server(tmp_path, body_seconds=0.5)) as url:
        head = "POST /workspaces/valley/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000"
        with socket.create_connection(("127.0.0.1", int(url.rsplit(":")[-1])), 30) as slow:
            slow.sendall(f"{head}\r\n\r\n".encode())
            for _ in range(1000):  # each byte arrives well within the time
                slow.sendall(b" ")
                if select.select([slow], [], [], 0.05)[0]:
                    break
            assert b" 408 " in slow.recv(1000)
