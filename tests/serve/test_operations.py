"""Health, metrics, errors, the graph's routes, and corrections of it."""

import errno
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from mcp import Client
from serving import Listening, fill, make_key, make_server, running

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError, Locked, ModelError, StoreError
from clew.serve.core.metrics import Tracer
from clew.serve.core.problems import describe_error
from clew.testing.hashed_kb import open_hashed

AT = "/workspaces/valley"


def test_metrics_count_requests_by_route(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    admin, reader = make_key(server, {"*": "admin"}), make_key(server, {"valley": "admin"})
    with running(server) as client:
        client.get(AT, headers=admin)
        client.get("/workspaces/nowhere", headers=admin)
        text = client.get("/metrics", headers=admin).text
        assert 'clew_requests_total{route="/workspaces/{workspace}",status="200"} 1' in text
        assert 'clew_requests_total{route="/workspaces/{workspace}",status="404"} 1' in text
        assert 'le="+Inf"' in text and "clew_open_workspaces 1" in text
        assert client.get("/metrics", headers=reader).status_code == 404


class SpanList(list[tuple[str, dict[str, str]]]):
    """A tracer that keeps names and attributes of its spans."""

    @contextmanager
    def start_as_current_span(self, name: str, attributes: dict[str, str]) -> Iterator[Any]:
        """Keep a span; attributes can be set until it ends."""
        held = dict(attributes)
        yield SimpleNamespace(set_attribute=held.__setitem__)
        self.append((name, held))


async def test_every_way_to_ask_has_one_span(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server, spans = make_server(tmp_path), SpanList()
    server.tracer = Tracer(spans)
    ask = {"question": "Where was Ilse Brandvik born?"}
    chat = {"model": "valley", "messages": [{"role": "user", "content": ask["question"]}]}
    with Listening(server) as url:
        async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
            for path, body in (
                (f"{AT}/ask", ask),
                (f"{AT}/ask", {**ask, "stream": True}),
                ("/v1/chat/completions", {**chat, "stream": True}),
                ("/v1/chat/completions", chat),
                ("/api/chat", chat),
                (f"{AT}/search", ask),
            ):
                assert (await client.post(path, json=body)).status_code == 200
        async with Client(f"{url}/mcp") as agent:
            await agent.call_tool("ask", {**ask, "recipe": "bm25"})
            await agent.call_tool("search", ask)
    default = {"clew.workspace": "valley", "clew.recipe": "clew"}
    chosen = {**default, "clew.recipe": "bm25"}
    asked = [("clew.ask", default)] * 5
    searched = ("clew.search", default)
    assert spans == [*asked, searched, ("clew.ask", chosen), searched]


def test_a_final_slash_is_answered_without_a_redirect(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    for prefix in ("", "/rag"):
        with running(make_server(tmp_path, root_path=prefix)) as client:
            client.follow_redirects = False
            for method, path in (("GET", f"{AT}/"), ("POST", "/mcp/"), ("GET", "/health/")):
                slash = client.request(method, f"{prefix}{path}")
                without = client.request(method, f"{prefix}{path[:-1]}")
                assert slash.status_code == without.status_code != 307, path
            assert client.get(f"{prefix}/").headers["content-type"].startswith("text/html")


def test_a_page_of_an_allowed_origin_may_call(tmp_path: Path) -> None:
    with running(make_server(tmp_path, origins=("https://chat.example",))) as client:
        asked = client.options(f"{AT}/ask", headers={"Origin": "https://chat.example"})
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == "https://chat.example"
        assert client.options(f"{AT}/ask", headers={"Origin": "https://x"}).status_code == 403


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 507),
        (StoreError("cannot write: no space left on device"), 507),
        (Locked("another process writes"), 409),
        (StoreError("damaged"), 409),
        (ConfigError("no such recipe"), 400),
        (ModelError("timed out"), 502),
        (sqlite3.OperationalError("database is locked"), 503),
        (sqlite3.OperationalError("database or disk is full"), 507),
        (RuntimeError("a secret"), 500),
    ],
)
def test_every_error_has_its_status(error: Exception, status: int) -> None:
    reply = describe_error(error)
    assert reply.status == status and "secret" not in reply.detail


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"not json", 422),
        (b"{}", 422),
        (b'{"question": ""}', 422),
        (b'{"question": "x", "k": 0}', 422),
        (b'{"question": "x", "k": "many"}', 422),
        (b'{"question": "x", "path": "/etc/passwd"}', 422),
        (b'{"question": "x", "recipe": "none-such"}', 400),
        (b'{"question": "   "}', 422),
    ],
)
def test_a_wrong_request_is_told_in_one_sentence(tmp_path: Path, body: bytes, status: int) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        kind = {"Content-Type": "application/json"}
        reply = client.post(f"{AT}/search", content=body, headers=kind)
        assert reply.status_code == status
        assert reply.headers["content-type"] == "application/problem+json"
        assert reply.json()["detail"] and "\n" not in reply.json()["detail"]


def test_the_graph_is_read_by_keys(tmp_path: Path) -> None:
    fill(tmp_path / "valley", trees=["dual"])
    with running(make_server(tmp_path)) as client:
        found = client.get(f"{AT}/entities", params={"query": "Ilse Brandvik"}).json()["entities"]
        ilse = found[0]
        assert ilse["name"] == "Ilse Brandvik"
        shown = client.get(f"{AT}/entities/{ilse['key']}").json()
        assert any("Hallowmere" in fact["text"] for fact in shown["facts"])
        near = client.get(f"{AT}/entities/{ilse['key']}/neighbours").json()["neighbours"]
        assert "Hallowmere" in [one["name"] for one in near]
        fact = near[0]["facts"][0]
        told = client.get(f"{AT}/facts/{fact['key']}").json()
        quote = told["evidence"][0]
        text = client.get(f"{AT}/documents/{quote['document']}/text").text
        assert text[quote["start"] : quote["end"]] == quote["quote"] != ""
        ends = {"start": "Marrow Bridge", "end": "Hallowmere"}
        [path, *_] = client.get(f"{AT}/paths", params=ends).json()["paths"]
        assert [one["name"] for one in path["entities"]][0] == "Marrow Bridge"
        assert client.get(f"{AT}/tree").json()["branches"]
        assert client.get(f"{AT}/tree", params={"tree": "raptor"}).status_code == 404
        assert client.get(f"{AT}/entities/999999").status_code == 404
        assert client.get(f"{AT}/paths", params={**ends, "end": "Nobody"}).status_code == 404
        assert client.get(f"{AT}/show", params={"name": "Nobody"}).status_code == 404
        exported = client.get(f"{AT}/export", params={"format": "jsonl"})
        assert '"kind": "entity"' in exported.text
        assert client.get(f"{AT}/export", params={"format": "exe"}).status_code == 422


def test_a_merge_can_be_undone(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        before = client.get(AT).json()["entities"]
        pair = {"one": "Hallowmere", "other": "Pellworth"}
        merged = client.post(f"{AT}/entities/merge", json=pair).json()
        assert merged["entities"] == before - 1
        assert client.post(f"{AT}/entities/merge", json=pair).status_code == 409
        assert client.post(f"{AT}/entities/undo", json=pair).json()["entities"] == before
        assert client.post(f"{AT}/entities/undo", json=pair).status_code == 409


def test_corrections_are_listed_and_undone_by_number(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    with running(server) as client:
        before = client.get(AT).json()["entities"]
        client.post(f"{AT}/entities/merge", json={"one": "Hallowmere", "other": "Pellworth"})
        name = client.get(f"{AT}/entities", params={"query": "Pellworth"}).json()["entities"][0]
        split = {"name": name["name"], "other": name["aliases"][0]}
        client.post(f"{AT}/entities/split", json=split)
    with running(make_server(tmp_path)) as client:  # it outlives the server
        listed = client.get(f"{AT}/entities/corrections").json()["corrections"]
        assert [one["what"] for one in listed] == ["split", "merge"]
        assert all(set(one["names"]) == {"Hallowmere", "Pellworth"} for one in listed)
        for one, left in zip(listed, (before - 1, before), strict=True):
            undone = client.post(f"{AT}/entities/undo", json={"correction": one["number"]})
            assert undone.json()["entities"] == left
        assert client.get(f"{AT}/entities/corrections").json()["corrections"] == []
        assert client.post(f"{AT}/entities/undo", json={"correction": 2}).status_code == 409
        assert client.post(f"{AT}/entities/undo", json={"one": "Pellworth"}).status_code == 422


def test_corrections_are_only_for_keys_that_see_every_document(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    few = make_key(server, {"valley": "write"}, ["team=a"])
    reads = make_key(server, {"valley": "read"})
    with running(server) as client:
        for headers in (few, reads):
            reply = client.get(f"{AT}/entities/corrections", headers=headers)
            assert reply.status_code == 403


def test_jobs_are_listed_by_kind(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    owner = "nobody"
    made = [server.ledger.add("valley", kind, owner, {}).id for kind in ("eval", "plan", "compare")]
    with running(server) as client:
        kinds = {"kind": ["eval", "compare"]}
        found = client.get(f"{AT}/jobs", params=kinds).json()["jobs"]
        assert {one["id"] for one in found} == {made[0], made[2]}
        rest = client.get(f"{AT}/jobs", params={**kinds, "offset": 1, "limit": 5}).json()["jobs"]
        assert [one["id"] for one in rest] == [found[1]["id"]]
        assert client.get(f"{AT}/jobs", params={"kind": "nap"}).status_code == 422


def test_a_workspace_is_created_once(tmp_path: Path) -> None:
    with running(make_server(tmp_path)) as client:
        assert client.put("/workspaces/fresh").status_code == 201
        assert client.put("/workspaces/fresh").status_code == 200
        assert client.get("/workspaces").json()["workspaces"] == [
            {"name": "fresh", "scope": "admin"}
        ]
        assert client.get("/workspaces/fresh").json()["documents"] == 0
        assert client.put("/workspaces/..").status_code in (404, 405)
        named = client.put("/workspaces/Fresh")
        assert named.status_code == 400 and "small letters" in named.json()["detail"]
        sent = {"Content-Type": "application/json"}
        body = client.post("/workspaces/fresh/search", content=b"[", headers=sent)
        assert body.status_code == 422 and body.json()["detail"].startswith("the body is not JSON")


def test_a_workspace_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    full = True

    async def open_kb(settings: Settings, create: bool) -> KnowledgeBase:
        base = await open_hashed(settings, create)
        if full and create:
            await base.close()
            raise OSError(errno.ENOSPC, "No space left on device")
        return base

    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    with running(make_server(tmp_path, open_kb)) as client:
        assert client.put("/workspaces/fresh").status_code == 507
        assert client.get("/workspaces").json() == {"workspaces": []}
        assert client.get("/workspaces/fresh").status_code == 404
        full = False
        assert client.put("/workspaces/fresh").status_code == 201
        assert client.put("/workspaces/taken").status_code == 409
    assert not list((tmp_path / ".server" / "new").iterdir())


def test_recipes_are_listed_and_shown(tmp_path: Path) -> None:
    with running(make_server(tmp_path)) as client:
        names = [one["name"] for one in client.get("/recipes").json()["recipes"]]
        assert "clew" in names and "graphsearch" in names
        assert client.get("/recipes/hipporag2").json()["steps"]
        assert client.get("/recipes/nonsense").status_code == 400


def test_a_database_that_is_busy_for_a_while_stops_nothing(tmp_path: Path) -> None:
    server = make_server(tmp_path)
    with running(server) as client:
        server.database.change("ALTER TABLE jobs RENAME TO gone")
        server.database.change("ALTER TABLE audit RENAME TO lost")
        client.put("/workspaces/fresh")
        with pytest.raises(sqlite3.OperationalError):
            server.records.flush()
        with pytest.raises(sqlite3.OperationalError):
            server.runner.tick()
        time.sleep(1)  # the server looks after both several times
        server.database.change("ALTER TABLE gone RENAME TO jobs")
        server.database.change("ALTER TABLE lost RENAME TO audit")
        assert client.get("/ready").status_code == 200
        for _ in range(100):
            if server.database.row("SELECT 1 FROM audit WHERE path = '/workspaces/fresh'"):
                break
            time.sleep(0.1)
        else:
            raise AssertionError("the line of the audit log is lost")
