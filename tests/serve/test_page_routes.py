"""What the page asks the server for: pictures of pages, keys, retries, a filtered overview."""

import asyncio
import socket
import struct
import tempfile
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from serving import Listening, fill, make_key, make_server, running

from clew import sync
from clew.config import ReadSettings, Settings
from clew.export.formats import FORMATS
from clew.export.graph import ExportGraph
from clew.ingest.readers.pdf_image import find_words
from clew.serve.core.keys import KeyLimits
from clew.serve.core.originals import FILE_CHANGED, FILE_NOT_FOUND
from clew.testing.hashed_kb import open_hashed
from conftest import VALLEY, document

AT = "/workspaces/valley"
LINES = ("The Saltgate Bridge was designed by Otto Reeve.", "He was born in Mar-", "low in 1840.")


def make_pdf(pages: list[tuple[str, ...]]) -> bytes:
    """A PDF with these lines on each page."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, lines in enumerate(pages):
        shown = b" ".join(b"(%s) Tj 0 -20 Td" % line.encode() for line in lines)
        stream = b"BT /F1 14 Tf 72 700 Td %s ET" % shown
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * number),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        ]
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root 1 0 R >>\n" % (len(objects) + 1)
    return bytes(out + b"startxref\n%d\n%%%%EOF" % table)


def add_file(client: TestClient, name: str, content: bytes, **query: Any) -> dict[str, Any]:
    """Upload and build; return the finished job."""
    sent = client.post(f"{AT}/documents", params={"name": name, **query}, content=content)
    assert sent.status_code == 201, sent.text
    return finish(client, client.post(f"{AT}/builds", json={}).json()["id"])


def finish(client: TestClient, job: str) -> dict[str, Any]:
    client.get(f"{AT}/jobs/{job}/events")
    done: dict[str, Any] = client.get(f"{AT}/jobs/{job}").json()
    assert done["state"] == "done", done
    return done


def documents(client: TestClient, **headers: Any) -> dict[str, dict[str, Any]]:
    return {d["name"]: d for d in client.get(f"{AT}/documents", **headers).json()["documents"]}


@pytest.mark.slow  # three processes are started
def test_a_page_is_drawn_with_the_span_marked(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    admin = make_key(server, {"*": "admin"}, None)
    other = make_key(server, {"valley": "read"}, ["team=sales"])
    with running(server, admin) as client:
        add_file(client, "bridge.pdf", make_pdf([("First.",), LINES]), label="team=legal")
        at = f"{AT}/documents/{documents(client)['bridge.pdf']['id']}"
        text = client.get(f"{at}/text").text
        start = text.index("He was born")
        query = {"start": start, "end": len(text)}
        shown = client.get(f"{at}/pages/2", params=query).json()
        assert shown["image"].startswith("data:image/png;base64,iVBOR")
        assert (shown["width"], shown["height"], shown["pages"]) == (1200, 1600, 2)
        [first, second] = shown["boxes"]  # the words are on two lines
        assert first[0] == pytest.approx(72 / 600, abs=0.01)
        assert 105 / 800 < first[1] < second[1] < 150 / 800
        assert client.get(f"{at}/pages/1", params=query).json()["boxes"] == []
        assert client.get(f"{at}/pages/3").status_code == 404
        assert client.get(f"{at}/pages/2", headers=other).status_code == 404
        poet = documents(client)["poet"]["id"]
        assert client.get(f"{AT}/documents/{poet}/pages/1").status_code == 404


@pytest.mark.slow  # processes that read and draw are started
def test_a_pdf_of_the_command_line_is_drawn_while_it_is_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pypdfium2")
    root, files = tmp_path / "kbs", tmp_path / "files"
    files.mkdir()
    monkeypatch.chdir(files)
    Path("bridge.pdf").write_bytes(make_pdf([("First.",), LINES]))

    async def add() -> None:
        base = await open_hashed(Settings(kb=root / "valley"), True)
        await base.add(["bridge.pdf"])
        await base.close()

    sync.wait(add())

    def look(client: TestClient) -> tuple[bool, str, int, int]:
        reading = client.get(f"{AT}/reading", params={"name": "bridge.pdf"}).json()
        at = f"{AT}/documents/{reading['id']}"
        drawn = client.get(f"{at}/pages/2")
        sent = client.get(f"{at}/original")
        why = drawn.json().get("detail", reading["no_original"])
        return reading["original"], why, drawn.status_code, sent.status_code

    with running(make_server(root)) as client:
        assert look(client) == (True, "", 200, 200)
        Path("bridge.pdf").write_bytes(make_pdf([("Second.",), LINES]))
        assert look(client) == (True, FILE_CHANGED, 404, 404)
        Path("bridge.pdf").unlink()
        assert look(client) == (False, FILE_NOT_FOUND, 404, 404)
        (root / "bridge.pdf").write_bytes(make_pdf([("First.",), LINES]))  # not where it was
        assert look(client) == (False, FILE_NOT_FOUND, 404, 404)


@pytest.mark.parametrize(
    ("words", "share", "found"),
    [
        ("born in Marlow", 0.0, "born in Mar-\nlow"),
        ("BRIDGE", 0.0, "Bridge"),
        ("bridge", 0.9, "bridge"),
        ("the ﬁrst", 0.0, "The first"),
        ("a long ferry trip", 0.0, None),
        (
            "Reeve was an engineer from Turku who built many bridges",
            0.0,
            "Reeve was an engineer from Tur|12|ku who built many bridges",
        ),
        ("...", 0.0, None),
    ],
)
def test_words_are_found_whatever_stands_between_letters(
    words: str, share: float, found: str | None
) -> None:
    page = "The first Bridge. He was born in Mar-\nlow. "
    page += "Reeve was an engineer from Tur|12|ku who built many bridges"
    place = find_words(page, words, share)
    assert (None if place is None else page[slice(*place)]) == found


@pytest.mark.slow
def test_a_file_that_failed_is_tried_again(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    server.settings = server.settings.model_copy(update={"read": ReadSettings(file_bytes=1000)})
    long = b"<p>The Saltgate Bridge was designed by Otto Reeve.</p>" * 40
    with running(server) as client:
        add_file(client, "a.html", long)
        row = documents(client)["a.html"]
        assert row["state"] == "failed" and "limit" in row["reason"]  # [read] holds for uploads
        server.settings = server.settings.model_copy(update={"read": ReadSettings()})
        assert client.post(f"{AT}/builds", json={}).status_code == 409
        job = client.post(f"{AT}/builds", json={"retry": True, "names": ["a.html"]})
        finish(client, job.json()["id"])
        assert documents(client)["a.html"]["state"] == "added"


def test_the_overview_is_filtered_by_label_and_arrival(tmp_path: Path) -> None:
    fill(tmp_path / "valley", labels={"poet": ["team=legal"]})
    server = make_server(tmp_path)
    admin = make_key(server, {"*": "admin"}, None)
    reader = make_key(server, {"valley": "read"}, [])
    with running(server, admin) as client:
        every = client.get(f"{AT}/overview").json()
        legal = client.get(f"{AT}/overview", params={"label": "team=legal"}).json()
        assert every["labels"] == ["team=legal"]
        assert 0 < legal["all"] < every["all"]
        names = {node["name"] for node in legal["nodes"]}
        assert names < {node["name"] for node in every["nodes"]}
        hidden = client.get(f"{AT}/overview", params={"label": "team=legal"}, headers=reader).json()
        assert hidden["labels"] == [] and hidden["nodes"] == []


def test_arrivals_are_known_whichever_way_a_document_came(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    time.sleep(0.01)
    between = time.time()
    late = [document("ferry", "The Otter Ferry was built by Nils Hage.", "Otter Ferry")]
    fill(tmp_path / "valley", [*VALLEY, *late])  # the others are unchanged
    with running(make_server(tmp_path)) as client:
        add_file(client, "mill.md", b"The Saltgate Mill was built by Otto Reeve.")
        rows = {one["name"]: one for one in client.get(f"{AT}/documents").json()["documents"]}
        assert rows["bridge"]["arrived"] < between < rows["ferry"]["arrived"]
        assert rows["ferry"]["arrived"] < rows["mill.md"]["arrived"]
        assert rows["ferry"]["title"] == "Otter Ferry"
        found = client.get(f"{AT}/overview", params={"since": between}).json()
        names = {node["name"] for node in found["nodes"]}
        assert {"Nils Hage", "Otto Reeve"} < names and "Ilse Brandvik" not in names
        assert len(found["arrivals"]) > 2


def test_keys_are_listed_made_and_revoked_by_an_admin(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    fill(tmp_path / "hill")
    server = make_server(tmp_path)
    first = {"name": "first", "grants": {"valley": "read"}}
    with running(server) as client:
        refused = client.post("/keys", json=first)  # it would shut everybody out
        assert refused.status_code == 409
        root = client.post("/keys", json={"name": "root", "grants": {"*": "admin"}}).json()
        client.headers["Authorization"] = f"Bearer {root['token']}"
        local = client.post("/keys", json={"name": "local", "grants": {"valley": "admin"}}).json()
        mine = {"Authorization": f"Bearer {local['token']}"}
        made = client.post("/keys", json={**first, "labels": ["team=x"], "days": 1}, headers=mine)
        assert made.status_code == 201 and made.json()["labels"] == ["team=x"]
        assert [k["name"] for k in client.get("/keys", headers=mine).json()["keys"]] == [
            "local",
            "first",
        ]
        assert "token" not in client.get("/keys").json()["keys"][0]
        reader = {"Authorization": f"Bearer {made.json()['token']}"}
        assert client.get("/workspaces", headers=reader).status_code == 200
        assert client.get("/keys", headers=reader).status_code == 404
        for grants in ({"hill": "read"}, {"*": "read"}):
            sent = client.post("/keys", json={"name": "x", "grants": grants}, headers=mine)
            assert sent.status_code == 403
        assert client.delete(f"/keys/{root['id']}", headers=mine).status_code == 404
        assert client.delete(f"/keys/{local['id']}", headers=mine).status_code == 409
        assert client.delete(f"/keys/{made.json()['id']}", headers=mine).status_code == 200
        assert client.get("/workspaces", headers=reader).status_code == 401
        unknown = client.post("/keys", json={"name": "x", "grants": {"none": "read"}})
        assert unknown.status_code == 400


def test_a_new_key_sees_no_labelled_document_unless_that_is_asked_for(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    root = make_key(server, {"*": "admin"})
    reader: dict[str, Any] = {"name": "x", "grants": {"valley": "read"}}
    admin: dict[str, Any] = {"name": "x", "grants": {"valley": "admin"}}
    with running(server, root) as client:
        for body, seen in (
            (reader, []),
            ({**reader, "labels": None}, []),
            ({**reader, "all_labels": True}, None),
            (admin, None),
            ({**admin, "labels": ["team=x"]}, ["team=x"]),
            ({"name": "x", "grants": {"valley": "read", "*": "admin"}}, []),
        ):
            assert client.post("/keys", json=body).json()["labels"] == seen, body
        both = client.post("/keys", json={**reader, "labels": ["a=b"], "all_labels": True})
        assert both.status_code == 400


def test_a_key_is_told_its_own_limits(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    key = make_key(server, {"valley": "read"}, limits=KeyLimits(calls_per_day=7))
    with running(server, key) as client:
        own = client.get("/keys/own").json()
        assert own["limits"]["calls_per_day"] == 7 and own["spent"] == {"calls": 0, "money": 0.0}
        assert "token" not in own


def test_a_key_with_limits_makes_no_keys_and_none_outlives_its_maker(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    server = make_server(tmp_path)
    labelled = make_key(server, {"*": "admin"}, ["team=x"])
    short = make_key(server, {"*": "admin"}, None, expires=4_000_000_000.0)
    body = {"name": "x", "grants": {"valley": "read"}}
    with running(server) as client:
        assert client.post("/keys", json=body, headers=labelled).status_code == 403
        made = client.post("/keys", json={**body, "days": 3650 * 8 / 10}, headers=short).json()
        assert made["expires"] < 4_000_000_000.0
        assert client.post("/keys", json=body, headers=short).json()["expires"] == 4_000_000_000.0


def test_an_export_ends_when_nobody_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "valley")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    started, ended = threading.Event(), threading.Event()

    async def write_slowly(graph: ExportGraph, file: Path) -> int:
        await asyncio.to_thread(file.write_text, "half")
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return 0

    monkeypatch.setitem(FORMATS, "tsv", write_slowly)
    with Listening(make_server(tmp_path)) as url:
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as sent:
            sent.sendall(f"GET {AT}/export?format=tsv HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert started.wait(20)
            sent.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert ended.wait(20)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_picture_is_a_png(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    from clew.ingest.readers.pdf_image import draw_page
    from clew.ingest.readers.source import DEFAULT_BUDGET, SourceFile

    path = tmp_path / "a.pdf"
    path.write_bytes(make_pdf([LINES]))
    png = draw_page(SourceFile(path, "a.pdf"), DEFAULT_BUDGET, 1).png
    size = int.from_bytes(png[33:37])  # of the part with the lines, after the head
    lines = zlib.decompress(png[41 : 41 + size])
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and len(lines) == 1600 * (1 + 3 * 1200)
    assert 0 < lines.count(0) < len(lines) // 10  # black letters on white


def test_an_entity_is_found_by_a_part_of_its_name(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with running(make_server(tmp_path)) as client:
        found = client.get(f"{AT}/entities", params={"query": "brandv"}).json()["entities"]
        assert [one["name"] for one in found][0] == "Ilse Brandvik"
