"""Uploads, builds, jobs and what becomes of documents."""

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from serving import fill, make_key, make_server, running

from clew import sync
from clew.config import ReadSettings, Settings
from clew.serve.core.server import Server
from clew.testing.hashed_kb import open_hashed
from clew.types import Document
from conftest import document, stream

BRIDGE = b"# Ferry\n\nThe Otter Ferry was built by Marta Quill in Vessen."
LONG_TEXT = b"\n\n".join(BRIDGE.replace(b"Otter", b"Otter %d" % n) for n in range(800))


def wait_for(client: TestClient, job: str, at: str = "/workspaces/valley") -> dict[str, Any]:
    """Follow a job to its end."""
    for _ in range(600):
        found: dict[str, Any] = client.get(f"{at}/jobs/{job}").json()
        if found["state"] not in ("queued", "running"):
            return found
        time.sleep(0.1)
    raise AssertionError("the job did not end")


def test_an_upload_is_built_found_read_and_removed(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        at = "/workspaces/valley"
        sent = client.post(f"{at}/documents", params={"name": "ferry.md"}, content=BRIDGE)
        assert sent.status_code == 201 and sent.json()["state"] == "uploaded"
        plan = client.post(f"{at}/builds", json={"dry_run": True}).json()
        assert wait_for(client, plan["id"])["result"]["documents"] == 1
        job = client.post(f"{at}/builds", json={}).json()
        done = wait_for(client, job["id"])
        assert done["state"] == "done" and done["result"]["added"] == 1
        body = {"question": "Who built the Otter Ferry?", "k": 1}
        found = client.post(f"{at}/search", json=body).json()["chunks"][0]
        assert found["doc"] == "ferry.md"
        listed = client.get(f"{at}/documents").json()["documents"]
        ferry = next(one for one in listed if one["name"] == "ferry.md")
        assert client.get(f"{at}/documents/{ferry['id']}").json()["title"] == "Ferry"
        text = client.get(f"{at}/documents/{ferry['id']}/text").text
        assert text[found["start"] : found["end"]] == found["text"]
        assert client.get(f"{at}/documents/{ferry['id']}/original").content == BRIDGE
        assert client.delete(f"{at}/documents/{ferry['id']}").json()["removed"] == ["ferry.md"]
        assert client.get(f"{at}/documents/{ferry['id']}").status_code == 404
        assert client.post(f"{at}/search", json=body).json()["chunks"][0]["doc"] != "ferry.md"


@pytest.mark.slow
def test_the_same_files_are_estimated_once(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    at = "/workspaces/valley"

    def plan() -> str:
        job = client.post(f"{at}/builds", json={"dry_run": True}).json()["id"]
        assert wait_for(client, job)["state"] == "done"
        return str(job)

    with running(make_server(tmp_path)) as client:
        client.post(f"{at}/documents", params={"name": "a.md"}, content=BRIDGE)
        first = plan()
        assert plan() == first
        client.post(f"{at}/documents", params={"name": "b.md"}, content=b"# B\n\nMore.")
        second = plan()
        client.post(f"{at}/documents", params={"name": "b.md"}, content=b"# B\n\nOther words.")
        third = plan()
        assert len({first, second, third}) == 3
        wait_for(client, client.post(f"{at}/builds", json={"names": ["a.md"]}).json()["id"])
        assert plan() != third
    with running(make_server(tmp_path)) as client:  # other models may have other prices
        assert plan() not in (first, second, third)


def test_the_limits_of_reading_hold_for_uploads(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    limits = ReadSettings(file_bytes=1_000)
    settings = server.settings.model_copy(update={"read": limits})
    limited = Server(settings, server.folders, open_hashed, start_process=server.start_process)
    with running(limited) as client:
        at = "/workspaces/valley"
        client.post(f"{at}/documents", params={"name": "long.md"}, content=LONG_TEXT)
        job = client.post(f"{at}/builds", json={}).json()
        result = wait_for(client, job["id"])["result"]
        assert result["added"] == 0 and "larger" in result["skipped"][0]["reason"]


def test_progress_is_streamed_and_resumes(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        at = "/workspaces/valley"
        client.post(f"{at}/documents", params={"name": "ferry.md"}, content=BRIDGE)
        job = client.post(f"{at}/builds", json={}).json()["id"]
        text = client.get(f"{at}/jobs/{job}/events").text
        ids = [int(line[4:]) for line in text.split("\n") if line.startswith("id: ")]
        assert ids == list(range(1, len(ids) + 1))
        assert '"state":"done"' in text.rstrip().split("\n")[-1]
        again = client.get(f"{at}/jobs/{job}/events", headers={"Last-Event-ID": str(ids[-2])}).text
        assert again.startswith(f"id: {ids[-1]}\n")
        endless = client.get(f"{at}/jobs/{job}/events", headers={"Last-Event-ID": "9" * 5000})
        assert endless.text == text
        wrong = client.get(f"{at}/jobs/{job}/events", params={"after": "9" * 5000})
        assert wrong.status_code == 422


def test_a_second_build_at_once_is_refused(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        at = "/workspaces/valley"
        assert client.post(f"{at}/builds", json={}).status_code == 409  # nothing waits
        client.post(f"{at}/documents", params={"name": "ferry.md"}, content=BRIDGE)
        first = client.post(f"{at}/builds", json={})
        second = client.post(f"{at}/builds", json={})
        assert (first.status_code, second.status_code) == (202, 409)
        assert second.headers["content-type"] == "application/problem+json"
        late = {"name": "late.md", "build": True}
        assert client.post(f"{at}/documents", params=late, content=b"Late.").status_code == 409
        names = [one["name"] for one in client.get(f"{at}/documents").json()["documents"]]
        assert "late.md" not in names and len(list(tmp_path.rglob("uploads/valley/*"))) == 1
        wait_for(client, first.json()["id"])


def test_a_build_whose_process_is_killed_goes_on(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    with running(server) as client:
        at = "/workspaces/valley"
        client.post(f"{at}/documents", params={"name": "ferry.md"}, content=LONG_TEXT)
        job = client.post(f"{at}/builds", json={}).json()["id"]
        while not server.runner.processes():
            time.sleep(0.02)
        for process in server.runner.processes():
            process.kill()
        again: dict[str, Any] = {"attempts": 1}
        while again["attempts"] < 2:
            again = client.get(f"{at}/jobs/{job}").json()
            assert again["state"] not in ("queued", "running") or again["finished"] is None
        done = wait_for(client, job)
        assert (done["state"], done["attempts"]) == ("done", 2)
        assert done["finished"] > done["started"]


def test_a_build_goes_on_after_the_server_was_stopped(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    with running(server) as client:
        client.post("/workspaces/valley/documents", params={"name": "f.md"}, content=BRIDGE)
        job = client.post("/workspaces/valley/builds", json={}).json()["id"]
        while server.ledger.get(job).state != "running":
            time.sleep(0.05)
    assert server.ledger.get(job).state in ("queued", "done")
    with running(make_server(tmp_path)) as client:
        done = wait_for(client, job)
        assert (done["state"], done["attempts"]) == ("done", 1)  # a stop is no failed attempt


def test_a_waiting_job_can_be_cancelled(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    job = server.ledger.add("valley", "tree", "local", {"trees": ["dual"]})
    server.ledger.cancel(job.id)
    with running(server) as client:
        assert wait_for(client, job.id)["state"] == "cancelled"


def test_recipes_are_evaluated_and_compared(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    questions = [
        {"question": "Where was Ilse Brandvik born?", "answers": ["Hallowmere"], "gold": ["ilse"]}
    ]
    body = {"questions": questions, "recipes": ["bm25", "clew"], "metrics": ["recall@2"]}
    with running(make_server(tmp_path)) as client:
        at = "/workspaces/valley"
        job = client.post(f"{at}/evaluations", json={**body, "compare": True}).json()
        done = wait_for(client, job["id"])
        assert done["result"]["recipes"]["bm25"]["recall@2"] == 1.0
        assert "significance" in done["result"]
        wrong = client.post(f"{at}/evaluations", json={**body, "recipes": ["none-such"]})
        assert wrong.status_code == 400 and "none-such" in wrong.json()["detail"]


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a/../../b", "a\\b", "a\x00b", "", "x" * 300, "a#1", "./a"]
)
def test_a_name_is_never_a_path(tmp_path: Path, name: str) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        sent = client.post("/workspaces/valley/documents", params={"name": name}, content=b"x")
        assert sent.status_code == 400
    assert not list((tmp_path / ".server" / "uploads").rglob("*.new"))


def test_a_file_that_cannot_be_read_fails_with_a_reason(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        at = "/workspaces/valley"
        client.post(f"{at}/documents", params={"name": "x.pdf"}, content=b"%PDF-1.4 broken")
        job = client.post(f"{at}/builds", json={}).json()["id"]
        assert wait_for(client, job)["state"] == "done"
        [row] = [
            one
            for one in client.get(f"{at}/documents").json()["documents"]
            if one["name"] == "x.pdf"
        ]
        assert row["state"] == "failed" and row["reason"]


def test_files_that_wait_are_listed_on_their_own_however_many_documents_there_are(
    tmp_path: Path,
) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        at = "/workspaces/valley/documents"
        for name in ("zz.md", "zzz.md"):
            client.post(at, params={"name": name}, content=BRIDGE)
        first = client.get(at, params={"limit": 1}).json()["documents"]
        assert [one["state"] for one in first] == ["added"]
        page = client.get(at, params={"limit": 1, "waiting": True}).json()
        assert [one["name"] for one in page["documents"]] == ["zz.md"]
        rest = client.get(at, params={"after": page["next"], "waiting": True}).json()
        assert [one["state"] for one in rest["documents"]] == ["uploaded"]
        assert rest["next"] is None


def test_documents_are_filtered_and_ordered_with_their_sizes(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        at = "/workspaces/valley/documents"
        client.post(at, params={"name": "notes/zebra.md"}, content=BRIDGE)
        job = client.post("/workspaces/valley/builds", json={}).json()["id"]
        assert wait_for(client, job)["state"] == "done"
        client.post(at, params={"name": "waits.md"}, content=BRIDGE + b" It waits.")

        def names(**asked: Any) -> list[str]:
            """All names, page by page."""
            found: list[str] = []
            after: str | None = ""
            while after is not None:
                page = client.get(at, params={"limit": 2, "after": after, **asked}).json()
                found += [one["name"] for one in page["documents"]]
                after = page["next"]
            return found

        every = names()
        assert every == sorted(every) and len(every) > 3
        assert names(query="ZEBRA") == ["notes/zebra.md"]  # in the name
        assert names(query="ferry") == ["notes/zebra.md"]  # in the title
        assert names(query="no such words") == []
        assert names(order="newest")[:2] == ["waits.md", "notes/zebra.md"]
        assert names(order="oldest")[-2:] == ["notes/zebra.md", "waits.md"]
        assert sorted(names(order="newest")) == every
        [row] = client.get(at, params={"query": "zebra"}).json()["documents"]
        assert row["bytes"] == len(BRIDGE) and row["state"] == "added" and row["arrived"]
        text = client.get(f"{at}/{row['id']}/text").text
        assert row["characters"] == len(text)
        assert client.get(at, params={"order": "colour"}).status_code == 422


def test_a_body_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path, upload_bytes=2000, body_bytes=1000)) as client:
        at = "/workspaces/valley"
        big = client.post(f"{at}/documents", params={"name": "a.txt"}, content=b"x" * 3000)
        assert big.status_code == 413

        def parts() -> Any:
            for _ in range(30):
                yield b"x" * 100

        chunked = client.post(f"{at}/documents", params={"name": "a.txt"}, content=parts())
        assert chunked.status_code == 413
        assert (
            client.post(f"{at}/search", content=json.dumps({"question": "x" * 1500})).status_code
            == 413
        )
        assert client.get(f"{at}/documents").json()["documents"][0]["name"] == "bridge"


def test_labels_are_set_by_an_admin(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    admin, reader = make_key(server, {"*": "admin"}), make_key(server, {"valley": "read"}, [])
    with running(server) as client:
        at = "/workspaces/valley/documents"
        poet = next(
            one
            for one in client.get(at, headers=admin).json()["documents"]
            if one["name"] == "poet"
        )
        assert client.get(f"{at}/{poet['id']}", headers=reader).status_code == 200
        url = f"{at}/{poet['id']}/labels"
        assert client.put(url, json={"labels": ["a=b"]}, headers=reader).status_code == 403
        assert client.put(url, json={"labels": ["nonsense"]}, headers=admin).status_code == 400
        assert client.put(url, json={"labels": ["a=b"]}, headers=admin).status_code == 200
        assert client.get(f"{at}/{poet['id']}", headers=reader).status_code == 404


def upload_and_build(client: TestClient, name: str, content: bytes, **params: str) -> None:
    """Send a file and wait until it is a document."""
    at = "/workspaces/valley"
    sent = client.post(f"{at}/documents", params={"name": name, **params}, content=content)
    assert sent.status_code == 201
    job = client.post(f"{at}/builds", json={"names": [name]}).json()
    assert wait_for(client, job["id"])["state"] == "done"


async def add_directly(folder: Path, one: Document) -> None:
    """Add a document without the server."""
    base = await open_hashed(Settings(kb=folder), False)
    await base.take(stream([one]))
    await base.close()


def test_an_original_is_only_shown_with_all_that_was_read_from_it(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    admin, reader = make_key(server, {"*": "admin"}), make_key(server, {"valley": "read"}, [])
    at = "/workspaces/valley/documents"
    rows = b"name,text\nAda,Ada Lund works in Oslo.\nBo,Bo Berg works in Rome.\n"
    with running(server, admin) as client:

        def ids(start: str) -> list[str]:
            listed = client.get(at, headers=reader).json()["documents"]
            return [one["id"] for one in listed if one["name"].startswith(start)]

        def original(document: str) -> int:
            return client.get(f"{at}/{document}/original", headers=reader).status_code

        upload_and_build(client, "people.csv", rows)
        one, other = ids("people.csv#")
        assert (original(one), original(other)) == (200, 200)
        client.put(f"{at}/{other}/labels", json={"labels": ["team=legal"]})
        assert (original(one), original(other)) == (404, 404)

        upload_and_build(client, "ferry.md", BRIDGE)
        (ferry,) = ids("ferry.md")
        assert original(ferry) == 200
        replaced = document("ferry.md", "The Otter Ferry was sold.", "")
        sync.wait(add_directly(tmp_path / "valley", replaced))  # as the command line does
        (ferry,) = ids("ferry.md")
        assert original(ferry) == 404
        upload_and_build(client, "ferry.md", BRIDGE)
        (ferry,) = ids("ferry.md")
        assert original(ferry) == 200
        newer = {"name": "ferry.md", "label": "team=legal"}
        client.post(at, params=newer, content=b"The price is secret.")
        assert original(ferry) == 404


def test_bytes_that_no_document_and_no_upload_uses_are_removed(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    at = "/workspaces/valley/documents"
    kept = tmp_path / ".server" / "uploads" / "valley"
    with running(make_server(tmp_path)) as client:
        for content in (b"one", b"two", b"two"):
            client.post(at, params={"name": "a.txt"}, content=content)
        assert [file.read_bytes() for file in kept.iterdir()] == [b"two"]
        client.delete(f"{at}/{hashlib.sha256(b'two').hexdigest()}")
        rows = b"name,text\nAda,Ada Lund works in Oslo.\nBo,Bo Berg works in Rome.\n"
        upload_and_build(client, "people.csv", rows)
        listed = client.get(at).json()["documents"]
        one, other = (row["id"] for row in listed if row["name"].startswith("people.csv#"))
        client.delete(f"{at}/{one}")
        assert [file.read_bytes() for file in kept.iterdir()] == [rows]
        client.delete(f"{at}/{other}")
        assert list(kept.iterdir()) == []
