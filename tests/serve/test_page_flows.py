"""The page in a browser, longer ways: estimates, deleting, trying again, undoing, open reports."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from browsing import QUESTION, browsing, opened_browser, writing_model
from serving import fill, fork, make_server

from clew.config import ModelSettings, ReadSettings
from clew.serve.core.folders import Folders
from clew.serve.core.server import Server
from clew.serve.http_server import StoppableServer
from clew.serve.run import bind
from clew.testing.hashed_kb import open_hashed

pytestmark = pytest.mark.slow
CELL = {"mean": 0.5, "low": 0.25, "high": 0.75, "p": 0.04, "mark": "*", "best": True}
ROW = {"recall@5": 0.5, "n": 2, "failed": 0, "seconds_per_query": 0.6, "seconds_p95": 0.7}


@pytest.fixture
def server(tmp_path: Path) -> Server:
    fill(tmp_path / "valley")
    return make_server(tmp_path)


def send_file(page: Any, name: str, text: bytes) -> None:
    file = {"name": name, "mimeType": "text/markdown", "buffer": text}
    page.locator("input[type=file]").set_input_files(files=[file])


def test_a_second_visit_shows_the_same_estimate(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        page.goto(f"{url}/#/documents")
        send_file(page, "saltgate.md", b"The Saltgate Bridge was designed by Otto Reeve.")
        page.locator(".plan dl").wait_for()
        for _ in range(2):
            page.goto(f"{url}/#/schema")
            page.locator("main h1", has_text="Schema").wait_for()
            page.goto(f"{url}/#/documents")
            page.locator(".plan dl").wait_for()
        assert [job.kind for job in server.ledger.newest("valley")] == ["plan"]
        assert errors == []


def test_after_a_delete_the_next_row_has_the_focus(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        page.goto(f"{url}/#/documents")
        rows = page.locator(".list li")
        rows.first.wait_for()
        for left in range(rows.count() - 1, -1, -1):
            rows.first.get_by_role("button", name="Delete").click()
            rows.first.get_by_role("button", name="Delete for good").press("Enter")
            gone = page.locator(f".list li:nth-child({left + 1})")
            gone.wait_for(state="detached")
            wanted = ".list li:first-child :focus" if left else "h1:focus"
            page.locator(wanted).wait_for(state="attached")
        assert errors == []


def test_a_file_that_failed_is_built_when_the_cause_is_gone(server: Server) -> None:
    settings = server.settings.model_copy(update={"read": ReadSettings(file_bytes=1000)})
    strict = Server(settings, Folders(server.folders.root), open_hashed, start_process=fork)
    text = b"The Saltgate Bridge was designed by Otto Reeve. " * 40
    with browsing(strict) as (page, url, _):
        page.goto(f"{url}/#/documents")
        send_file(page, "saltgate.md", text)
        page.get_by_role("button", name="Build now").click()
        page.locator(".state.failed").wait_for()
    with browsing(make_server(server.folders.root)) as (page, url, errors):
        page.goto(f"{url}/#/documents")
        page.get_by_role("button", name="Try again: saltgate.md").click()
        page.locator(".list li", has_text="saltgate.md").get_by_role("link").wait_for()
        assert page.locator(".state.failed").count() == 0
        assert errors == []


def test_a_split_is_undone(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        page.goto(f"{url}/#/graph?name=Marrow Bridge")
        page.locator(".inspect h2", has_text="Marrow Bridge").wait_for()
        page.get_by_text("Correct the names").click()
        page.get_by_label("Another name of the same").fill("Ilse Brandvik")
        page.get_by_role("button", name="Merge").click()
        page.get_by_text("are one entity now.").wait_for()
        page.goto(f"{url}/#/graph?name=Brandvik")
        page.get_by_text("Correct the names").click()
        page.get_by_role("button", name="Split off").first.click()
        row = page.locator(".corrections li", has_text="was split off from")
        row.get_by_role("button", name="Undo").click()
        page.get_by_text("Undone.").wait_for()
        row.wait_for(state="detached")
        page.goto(f"{url}/#/schema")
        page.goto(f"{url}/#/graph?name=Brandvik")
        page.get_by_text("Correct the names").click()
        page.get_by_role("button", name="Split off").first.wait_for()  # they are one again
        assert errors == []


def test_a_report_is_read_from_a_file_in_words(server: Server, tmp_path: Path) -> None:
    cells = {name: {"recall@5": CELL} for name in ("clew", "bm25")}
    significance = {"reference": {"recall@5": "bm25"}, "cells": cells}
    recipes = {"clew": ROW, "bm25": ROW | {"seconds_per_query": 0.2}}
    report = {"dataset": "d", "questions": 2, "recipes": recipes, "significance": significance}
    (tmp_path / "table.json").write_text(json.dumps(report), encoding="utf-8")
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    with browsing(server) as (page, url, errors):
        page.goto(f"{url}/#/compare")
        field = page.locator("input[type=file]")
        field.set_input_files(str(tmp_path / "other.json"))
        page.get_by_text("“other.json” is no report").wait_for()
        field.set_input_files(str(tmp_path / "table.json"))
        page.locator("th[scope=row]", has_text="Recall at 5").wait_for()
        page.locator("figure.curve svg").wait_for()
        page.locator("details details summary", has_text="More").click()
        names = page.locator("th[scope=row]").all_inner_texts()
        assert "Seconds, 95 % of the questions" in names and "seconds_p95" not in names
        assert "`" not in page.locator("main").inner_text()
        assert errors == []


def test_what_is_read_is_listed_and_no_path(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with (
        writing_model(0.4) as models,
        browsing(make_server(tmp_path, models=models)) as (page, url, _),
    ):
        page.goto(url)
        page.get_by_label("Recipe").first.select_option("bm25")  # which walks no path
        page.fill("textarea", QUESTION)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Read so far").wait_for()
        assert page.locator("svg.thread").count() == 0
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("Stopped.").wait_for()
        assert page.locator("svg.thread").count() == 0
        page.locator(".panel ul.docs button").first.click()
        page.locator("dialog .text").wait_for()


def serve_valley(root: Path, models: ModelSettings, port: int) -> None:
    StoppableServer(make_server(root, models=models)).run([bind("127.0.0.1", port)])


@contextmanager
def killed_at_end(root: Path, models: ModelSettings, port: int) -> Iterator[str]:
    """A server as a process of its own, which is killed: it has no time to finish answers."""
    process = fork(serve_valley, root, models, port)
    url = f"http://127.0.0.1:{port}"
    try:
        while process.is_alive():
            try:
                httpx.get(url)
            except httpx.ConnectError:
                time.sleep(0.05)
            else:
                break
        yield url
    finally:
        process.kill()
        process.join()


def test_a_question_is_asked_again_when_the_server_is_back(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with writing_model(0.2) as models, opened_browser() as browser:
        page = browser.new_page()
        page.set_default_timeout(90_000)
        with killed_at_end(tmp_path, models, port) as url:
            page.goto(url)
            page.get_by_label("Recipe").first.select_option("reader")
            page.fill("textarea", QUESTION)
            page.keyboard.press("Enter")
            page.locator(".answer", has_text="Ilse").wait_for()
        page.get_by_text("The connection was lost before").wait_for()
        assert "Ilse" in page.locator(".answer").inner_text()
        assert page.locator(".reasoning .open").count() == 0
        page.get_by_role("button", name="Ask again").click()  # it is not back yet
        page.locator(".reasoning").wait_for(state="detached")
        page.get_by_text("The connection was lost before").wait_for()
        with killed_at_end(tmp_path, models, port):
            page.get_by_role("button", name="Ask again").click()
            page.locator(".figures").wait_for()  # what comes with a complete answer
            assert page.get_by_text("The connection was lost").count() == 0


def test_the_language_is_readable_on_a_phone(server: Server) -> None:
    with browsing(server) as (page, url, _):
        page.set_viewport_size({"width": 360, "height": 740})
        page.goto(url)
        page.get_by_label("Language").wait_for()
        needed = page.get_by_label("Language").evaluate(
            """select => {
              const [own, free] = [select.getBoundingClientRect().width, select.cloneNode(true)];
              Object.assign(free.style, { flex: "none", width: "max-content", maxWidth: "none" });
              select.parentNode.append(free);
              return free.getBoundingClientRect().width - own;
            }"""
        )
        assert needed <= 0.5
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_without_documents_the_page_says_so(tmp_path: Path) -> None:
    fill(tmp_path / "valley", documents=[])
    with browsing(make_server(tmp_path)) as (page, url, errors):
        page.goto(url)
        page.fill("textarea", QUESTION)
        page.keyboard.press("Enter")
        page.get_by_text("Not answered: there are no documents yet.").wait_for()
        assert errors == []
