"""More of the page in a browser: live answers, drawn pages, corrections, keys, keyboard, size."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browsing import QUESTION, SENTENCES, browsing, opened_browser, writing_model
from serving import fill, make_key, make_server, running
from test_page_routes import LINES, add_file, make_pdf

from clew.serve.core.server import Server

pytestmark = pytest.mark.slow
FIRST_WORDS = " ".join(SENTENCES[0].split()[:2])


@pytest.fixture
def server(tmp_path: Path) -> Server:
    fill(tmp_path / "valley", trees=["dual"])
    return make_server(tmp_path)


def ask_model(page: Any, url: str) -> None:
    page.goto(url)
    page.get_by_label("Recipe").first.select_option("reader")
    page.fill("textarea", QUESTION)
    page.keyboard.press("Enter")


def test_words_are_shown_while_the_model_writes(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with (
        writing_model(0.3) as models,
        browsing(make_server(tmp_path, models=models)) as (page, url, errors),
    ):
        ask_model(page, url)
        page.locator(".answer", has_text=FIRST_WORDS).wait_for()
        seen = page.locator(".answer").inner_text()
        assert SENTENCES[1] not in seen and page.get_by_role("button", name="Stop").is_visible()
        page.locator(".answer meter").wait_for()
        value = page.locator(".answer meter").evaluate("meter => meter.value")
        assert f"{round(100 * value)} % sure" in page.locator(".figures").inner_text()
        assert "calls ·" in page.locator(".figures").inner_text()
        assert errors == []


def test_an_answer_is_stopped_and_a_server_that_goes_is_told(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with (
        writing_model(0.4) as models,
        browsing(make_server(tmp_path, models=models)) as (page, url, _),
    ):
        ask_model(page, url)
        page.locator(".answer", has_text=FIRST_WORDS).wait_for()
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("Stopped. What was found until then is shown.").wait_for()
        assert FIRST_WORDS in page.locator(".answer").inner_text()
        half = 'event: token\ndata: {"text": "Half of"}\n\n'
        page.route("**/ask", lambda r: r.fulfill(body=half, content_type="text/event-stream"))
        page.get_by_role("button", name="Ask again").click()
        page.get_by_text("The connection was lost before the answer was complete.").wait_for()
        assert "Half of" in page.locator(".answer").inner_text()


def test_a_citation_opens_the_drawn_page(server: Server) -> None:
    pytest.importorskip("pypdfium2")
    with running(server) as client:
        add_file(client, "saltgate.pdf", make_pdf([("First.",), LINES]))
    again = make_server(server.folders.root)
    with browsing(again) as (page, url, errors):
        page.goto(url)
        page.fill("textarea", "Which bridge did Otto Reeve design?")
        page.keyboard.press("Enter")
        page.locator(".source", has_text="Otto Reeve").first.click()
        page.locator(".sheet .marked").first.wait_for()
        picture = page.locator(".sheet img")
        assert picture.evaluate("image => image.naturalWidth") == 1200
        assert "Page 2 of 2" in page.locator("dialog").inner_text()
        page.get_by_role("button", name="Page before").click()
        page.get_by_text("Page 1 of 2").wait_for()
        page.get_by_role("button", name="Text").click()
        assert "Otto Reeve" in page.locator("mark.here").first.inner_text()
        assert errors == []


def open_entity(page: Any, url: str, name: str) -> None:
    page.goto(f"{url}/#/graph?name={name}")
    page.locator(".inspect h2", has_text=name).wait_for()


def test_expand_a_node_and_read_the_sentence_behind_a_link(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        open_entity(page, url, "Marrow Bridge")
        page.get_by_role("button", name="Expand").click()
        page.locator(".inspect .facts li button.soft").first.wait_for()
        page.locator(".inspect .group", has_text="Neighbours").locator("button.soft").first.click()
        page.get_by_role("heading", name="Evidence").wait_for()
        page.locator(".inspect .facts button", has_text="“").first.click()
        assert page.locator("mark.here").first.inner_text()
        assert errors == []


def test_a_path_is_found_between_two_entities(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        page.goto(f"{url}/#/graph")
        page.get_by_text("Path between two entities").click()
        page.get_by_label("From").fill("Marrow Bridge")
        page.get_by_label("To").fill("Ilse Brandvik")
        page.get_by_role("button", name="Find the path").click()
        page.locator(".path .shared b", has_text="Ilse Brandvik").first.wait_for()
        assert errors == []


def test_a_merge_is_split_again(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        open_entity(page, url, "Marrow Bridge")
        page.get_by_text("Correct the names").click()
        page.get_by_label("Another name of the same").fill("Ilse Brandvik")
        page.get_by_role("button", name="Merge").click()
        page.get_by_text("are one entity now.").wait_for()
        page.goto(f"{url}/#/graph?name=Brandvik")  # either name may be the entity's now
        page.get_by_text("Correct the names").click()
        page.get_by_role("button", name=re.compile("Split off")).first.click()
        page.get_by_text("was split off from").wait_for()
        assert errors == []


def test_a_link_holds_the_answer(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        page.goto(url)
        page.fill("textarea", QUESTION)
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Link", exact=True).click()
        page.get_by_text("Link copied").wait_for()
        link = page.evaluate("navigator.clipboard.readText()")
        answer = page.locator(".candidate").inner_text()
        page.get_by_role("button", name="Copy", exact=True).click()
        page.get_by_text("Copied as Markdown").wait_for()
        assert "[^1]: " in page.evaluate("navigator.clipboard.readText()")
        other = page.context.new_page()
        other.goto(link)
        other.get_by_text("This answer came with a link.").wait_for()
        assert other.locator(".candidate").inner_text() == answer
        # In a tab with a conversation the link shows the answer, and the conversation stays.
        page.fill("textarea", "Where was Ilse Brandvik born?")
        page.keyboard.press("Enter")
        page.locator(".turn").nth(1).locator(".figures").wait_for()
        page.goto(link)
        page.get_by_text("This answer came with a link.").wait_for()
        page.reload()
        page.get_by_text("This answer came with a link.").wait_for()
        assert page.locator(".turn").count() == 1
        page.get_by_role("link", name="Back to your conversation").click()
        page.locator(".turn").nth(1).wait_for()
        assert page.get_by_text("This answer came with a link.").count() == 0
        assert errors == []


def test_everything_by_keyboard(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        page.goto(url)
        page.locator("textarea").wait_for()
        page.keyboard.type(QUESTION)  # the field has the focus
        page.keyboard.press("Enter")
        page.locator("button.cite").first.wait_for()
        reach(page, "cite")
        page.keyboard.press("Enter")
        page.locator("mark.here").first.wait_for()
        page.keyboard.press("Escape")
        page.locator("dialog").wait_for(state="detached")
        page.locator("button.cite:focus").wait_for()
        for number, name in enumerate(("Ask", "Documents", "Graph", "Compare", "Tree"), start=1):
            page.keyboard.press(f"Alt+{number}")
            page.locator("main h1", has_text=name).wait_for(state="attached")
        page.keyboard.press("Alt+3")
        page.locator(".facts li").first.wait_for()
        page.keyboard.press("/")
        page.keyboard.type("Marrow")
        page.locator(".hits [role=option]").first.wait_for()
        page.keyboard.press("Enter")
        page.locator(".inspect h2", has_text="Marrow").wait_for()
        assert errors == []


def reach(page: Any, name: str) -> None:
    """Press Tab or Shift+Tab until an element of a class has the focus."""
    for _ in range(60):
        page.keyboard.press("Shift+Tab")
        if name in page.evaluate("document.activeElement.className"):
            return
    raise AssertionError(f"no key leads to .{name}")


def test_keys_are_made_and_revoked(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        page.goto(f"{url}/#/settings")
        for name in ("root", "reader"):
            page.get_by_text("New key").click()
            page.get_by_label("Name").fill(name)
            page.get_by_role("button", name="Make the key").click()
            page.locator(".token").wait_for()
            page.get_by_role("button", name="Done").click()
        row = page.locator("tr", has_text="reader")
        row.get_by_role("button", name="Revoke reader").click()
        row.get_by_role("button", name="Revoke for good").click()
        row.get_by_text("revoked").wait_for()
        assert {k.name: k.revoked is None for k in server.keys.list()} == {
            "root": True,
            "reader": False,
        }
        assert errors == []


def test_a_file_that_failed_is_tried_again_and_labels_filter(tmp_path: Path) -> None:
    fill(tmp_path / "valley", labels={"poet": ["team=legal"]})
    server = make_server(tmp_path)
    with browsing(server) as (page, url, errors):
        page.goto(f"{url}/#/documents")
        file = {"name": "x.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.4 broken"}
        page.locator("input[type=file]").set_input_files(files=[file])
        page.get_by_role("button", name="Build now").click()
        page.locator(".state.failed").wait_for(timeout=60_000)
        with page.expect_response("**/builds") as sent:
            page.get_by_role("button", name="Try again: x.pdf").click()
        assert json.loads(sent.value.request.post_data) == {"retry": True, "names": ["x.pdf"]}
        assert sent.value.status == 202
        page.locator(".state.failed").wait_for(timeout=60_000)
        page.goto(f"{url}/#/graph")
        with page.expect_response("**/overview?*label=*") as filtered:
            page.get_by_label("Label of the documents").select_option("team=legal")
        assert 0 < len(filtered.value.json()["nodes"])
        assert errors == []


def test_ten_thousand_nodes_are_drawn_and_moved(server: Server) -> None:
    nodes = [
        {"key": n, "name": f"Entity {n}", "type": "t", "facts": 1 + n % 9, "community": n % 12}
        for n in range(1, 10_001)
    ]
    edges = [[n, n // 2, 1] for n in range(1, 10_000)]
    communities = [{"name": f"C{n}", "summary": "", "size": 800} for n in range(12)]
    found = {"all": 10_000, "nodes": nodes, "edges": edges, "communities": communities}
    with browsing(server) as (page, url, errors):
        page.route("**/overview*", lambda route: route.fulfill(json=found))
        page.goto(f"{url}/#/graph")
        page.locator(".canvas[data-settled]").wait_for(timeout=240_000)
        page.mouse.move(500, 400)
        page.mouse.down()
        page.mouse.move(560, 430, steps=3)
        page.locator(".canvas.sliding").wait_for(state="attached")
        page.mouse.up()
        page.locator(".canvas:not(.sliding)").wait_for(state="attached")
        assert errors == []


def test_an_exported_graph_is_drawn_by_the_same_parts(server: Server, tmp_path: Path) -> None:
    headers = make_key(server, {"*": "admin"}, None)
    with running(server, headers) as client:
        page_text = client.get("/workspaces/valley/export", params={"format": "html"}).text
    (tmp_path / "graph.html").write_text(page_text, encoding="utf-8")
    with opened_browser() as browser:
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "graph.html").as_uri())
        page.get_by_label("Find a name").fill("marrow")
        page.keyboard.press("Enter")
        page.locator(".inspect h1", has_text="Marrow Bridge").wait_for()
        assert page.locator(".inspect .facts li").count() > 0
        assert [one for one in asked if not one.startswith(("file:", "data:"))] == []


def test_an_exported_graph_without_webgl_says_so_and_lists(server: Server, tmp_path: Path) -> None:
    headers = make_key(server, {"*": "admin"}, None)
    with running(server, headers) as client:
        page_text = client.get("/workspaces/valley/export", params={"format": "html"}).text
    (tmp_path / "graph.html").write_text(page_text, encoding="utf-8")
    with opened_browser("--disable-gpu", "--disable-3d-apis") as browser:
        page = browser.new_page()
        page.goto((tmp_path / "graph.html").as_uri())
        page.get_by_text("This browser has no WebGL").wait_for()
        page.locator(".inspect .facts button", has_text="Ilse Brandvik").first.click()
        page.locator(".inspect h1", has_text="Ilse Brandvik").wait_for()
        assert page.locator(".inspect .facts li").count() > 0


def test_a_link_of_a_chat_answer_opens_its_words(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        asked = {"model": "valley/clew", "messages": [{"role": "user", "content": QUESTION}]}
        reply = page.request.post(f"{url}/v1/chat/completions", data=asked).json()
        cited = reply["choices"][0]["message"]["annotations"][0]["url_citation"]
        page.goto(cited["url"])
        assert page.locator("mark.here").first.inner_text() == cited["quote"]
        assert errors == []
