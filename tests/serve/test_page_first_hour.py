"""What a user meets in the first hour, in a browser: tables, conversations, documents, a phone."""

from pathlib import Path

import pytest
from browsing import QUESTION, browsing
from serving import fill, make_server

from clew.serve.core.server import Server
from conftest import VALLEY, document

pytestmark = pytest.mark.slow
LEAVE = "Each office has rules.\n\n| Grade: Junior | Days: 25 |\n| Grade: Senior | Days: 29 |\n"
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def server(tmp_path: Path) -> Server:
    handbook = document("handbook.md", LEAVE, "Handbook")
    fill(tmp_path / "valley", [*VALLEY, handbook])
    return make_server(tmp_path)


def test_a_cited_row_is_marked_in_its_table(server: Server) -> None:
    start = LEAVE.index("29")
    with browsing(server) as (page, url, errors):
        page.goto(f"{url}/#/documents?name=handbook.md&start={start}&end={start + 2}")
        page.locator("dialog tr.here").wait_for()
        assert page.locator("dialog thead th").all_inner_texts() == ["Grade", "Days"]
        assert page.locator("dialog tbody tr").count() == 2
        assert page.locator("dialog tr.here td").all_inner_texts() == ["Senior", "29"]
        assert page.locator("dialog tr.here mark").inner_text() == "29"
        assert "Each office has rules." in page.locator("dialog .prose").inner_text()
        assert errors == []


def test_conversations_are_kept_opened_renamed_and_deleted(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        page.goto(url)
        for asked in (QUESTION, "Where was Ilse Brandvik born?"):
            page.fill("textarea", asked)
            page.keyboard.press("Enter")
            page.locator(".conclusion").wait_for()
            page.locator("main").get_by_role("button", name="New conversation").click()
            page.locator(".turn").wait_for(state="detached")
        kept = page.locator(".conversations .open")
        assert kept.all_inner_texts() == ["Where was Ilse Brandvik born?", QUESTION]
        page.reload()
        page.locator(".conversations .open", has_text=QUESTION).click()
        assert page.locator(".turn > h2").all_inner_texts() == [QUESTION]
        page.locator(".conclusion").wait_for()
        page.get_by_role("button", name=f"Rename: {QUESTION}").click()
        page.get_by_label("Name of the conversation").fill("The bridge")
        page.keyboard.press("Enter")
        page.locator(".conversations .open", has_text="The bridge").wait_for()
        other = page.context.new_page()  # another tab has the same list, and no conversation open
        other.goto(url)
        other.locator(".conversations .open", has_text="The bridge").wait_for()
        assert other.locator(".turn").count() == 0
        page.get_by_role("button", name="Delete The bridge").click()
        page.get_by_role("button", name="Delete for good").click()
        page.locator(".turn").wait_for(state="detached")
        other.locator(".conversations .open", has_text="The bridge").wait_for(state="detached")
        assert kept.all_inner_texts() == ["Where was Ilse Brandvik born?"]
        assert errors == []


def test_documents_are_found_by_words_and_ordered(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        page.goto(f"{url}/#/documents")
        rows = page.locator(".list li")
        rows.nth(len(VALLEY)).wait_for()
        first = rows.first.inner_text()
        assert "characters" in first and "ready" in first
        page.get_by_label("Find a document").fill("handb")
        rows.nth(1).wait_for(state="detached")
        assert "handbook.md" in rows.first.inner_text()
        page.get_by_label("Status").select_option("failed")
        page.get_by_text("No document is like that").wait_for()
        assert errors == []


def test_on_a_phone_the_question_bar_leaves_the_reasoning_free(server: Server) -> None:
    with browsing(server) as (page, url, errors):
        page.set_viewport_size(PHONE)
        page.goto(url)
        page.fill("textarea", QUESTION)
        page.keyboard.press("Enter")
        page.locator(".conclusion").wait_for()
        page.evaluate("document.activeElement.blur()")
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        bar = page.locator(".composer").bounding_box()
        end = page.locator(".conclusion").bounding_box()
        assert bar and end and bar["height"] < 0.08 * PHONE["height"]
        assert end["y"] + end["height"] <= bar["y"]
        page.locator("button.narrow").click()
        page.locator("dialog .conversations .open", has_text=QUESTION).wait_for()
        assert errors == []


def test_the_reasoning_has_no_measures_of_the_method(server: Server) -> None:
    with browsing(server) as (page, url, _):
        page.goto(url)
        page.fill("textarea", QUESTION)
        page.keyboard.press("Enter")
        page.locator(".conclusion").wait_for()
        said = page.locator(".reasoning").first.inner_text()
        assert "-1.00" not in said and "(hops=" not in said and "chunks=" not in said
