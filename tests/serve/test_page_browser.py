"""The page in a browser: ask, read a citation, upload and build, correct, compare, errors."""

from pathlib import Path

import pytest
from browsing import QUESTION, browsing
from serving import fill, make_key, make_server

from clew.serve.core.server import Server

pytestmark = pytest.mark.slow
AXE = Path(__file__).parents[2] / "page" / "node_modules" / "axe-core" / "axe.min.js"
OPEN_DETAILS = "document.querySelectorAll('main details').forEach((d, n) => (d.open ||= n < 12))"
VIEWS = ("ask", "documents", "graph", "compare", "tree", "schema", "settings")


@pytest.fixture
def server(tmp_path: Path) -> Server:
    fill(tmp_path / "valley", trees=["dual"])
    return make_server(tmp_path)


def test_a_citation_opens_the_document_at_its_words(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        page.goto(url)
        page.fill("textarea", QUESTION)
        page.keyboard.press("Enter")
        page.locator("button.cite").first.wait_for()
        quote = page.locator(".source .quote").first.inner_text().strip("“”")
        page.locator("button.cite").first.click()
        assert page.locator("mark.here").first.inner_text() == quote
        page.keyboard.press("Escape")
        page.locator("dialog").wait_for(state="detached")
        assert errors == []


def test_upload_estimate_build_and_ask(server: Server) -> None:
    text = b"The Saltgate Bridge was designed by Otto Reeve. He was born in Marlow."
    with browsing(server) as (page, url, errors):
        page.goto(f"{url}/#/documents")
        file = {"name": "saltgate.md", "mimeType": "text/markdown", "buffer": text}
        page.locator("input[type=file]").set_input_files(files=[file])
        page.locator(".plan dl").wait_for()
        page.get_by_role("button", name="Build now").click()
        page.get_by_text("1 added").wait_for(timeout=60_000)
        page.locator(".list li", has_text="saltgate.md").get_by_role("link").wait_for()
        page.goto(f"{url}/#/ask")
        page.fill("textarea", "Which bridge did Otto Reeve design?")
        page.keyboard.press("Enter")
        page.locator(".source", has_text="Otto Reeve").first.wait_for()
        assert errors == []


def test_merge_is_undone(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        page.goto(f"{url}/#/graph")
        names = page.locator(".inspect .facts li button.plain")
        names.nth(1).wait_for()
        one, other = names.nth(0).inner_text(), names.nth(1).inner_text()
        names.nth(0).click()
        page.get_by_text("Correct the names").click()
        page.get_by_label("Another name of the same").fill(other)
        page.get_by_role("button", name="Merge").click()
        page.get_by_text(f"“{one}” and “{other}” are one entity now.").wait_for()
        page.get_by_role("button", name="Undo").click()
        page.get_by_text("Undone.").wait_for()
        assert errors == []


def test_recipes_are_compared(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        page.goto(f"{url}/#/compare")
        page.fill("textarea", QUESTION)
        page.locator("form button.main").first.click()
        page.locator(".column .evidence").nth(1).wait_for()
        assert errors == []


def test_a_wrong_key_is_refused_and_the_right_one_opens(server: Server) -> None:
    token = make_key(server, {"valley": "read"})["Authorization"].removeprefix("Bearer ")
    with browsing(server) as (page, url, errors):
        page.goto(url)
        page.get_by_label("Key").wait_for()
        assert errors == []  # nothing is refused before a key was given
        page.get_by_label("Key").fill("clew_wrong")
        page.get_by_role("button", name="Open").click()
        page.get_by_text("This key is not valid").wait_for()
        page.get_by_label("Key").fill(token)
        page.get_by_role("button", name="Open").click()
        page.locator("textarea").wait_for()
        assert page.locator(".side select").first.input_value() == "valley"


def test_a_lost_connection_is_told(server: Server) -> None:
    with browsing(server) as (page, url, _):
        page.goto(url)
        page.fill("textarea", QUESTION)
        page.wait_for_load_state("networkidle")
        page.context.set_offline(True)
        page.press("textarea", "Enter")
        page.get_by_text("The connection was lost").wait_for()
        page.context.set_offline(False)
        page.get_by_role("button", name="Ask again").click()
        page.locator(".source").first.wait_for()
        assert page.get_by_text("The connection was lost").count() == 0


def test_every_view_is_accessible_and_fits_a_narrow_screen(server: Server) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed; run `make page`")
    with browsing(server, bypass_csp=True) as (page, url, errors):
        found = []
        for view in VIEWS:
            page.goto(f"{url}/#/{view}")
            page.locator("main h1").wait_for(state="attached")
            page.wait_for_load_state("networkidle")
            if view == "ask":
                page.fill("textarea", QUESTION)
                page.press("textarea", "Enter")
                page.locator(".conclusion").wait_for()
            page.evaluate(OPEN_DETAILS)
            page.wait_for_load_state("networkidle")
            page.evaluate(AXE.read_text(encoding="utf-8"))
            result = page.evaluate("axe.run()")["violations"]
            page.set_viewport_size({"width": 360, "height": 740})
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, view
            result += page.evaluate("axe.run()")["violations"]
            found += [(view, one["id"], one["nodes"][0]["html"]) for one in result]
            page.set_viewport_size({"width": 1280, "height": 800})
        assert found == []
        assert errors == []
