"""What the page shows behind a line of the graph, of the schema, and of passages that failed."""

from pathlib import Path
from typing import Any

import pytest
from browsing import QUESTION, SENTENCES, browsing, writing_model
from serving import fill, make_server, running

from clew import sync
from clew.config import ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.extract.model_calls import extract_chunks, hear_chunks
from clew.testing.hashed_kb import open_hashed
from clew.types import Chunk, Document, Extraction, RawEntity, RawFact
from conftest import document, stream

AT = "/workspaces/ships"
TEXT = (
    "The Halcyon sailed in 1962. Ingrid Solheim was born in Oslo. Ingrid Solheim led the Halcyon."
)
BOTH = "Ingrid Solheim led the Halcyon."


class Passages:
    """Extracts sentences, each about the ship; or fails, where a passage has the word."""

    async def __call__(self, document: Document, chunks: Any, /) -> list[Extraction]:
        async def one(chunk: Chunk) -> Extraction:
            if "unreadable" in chunk.text:
                return Extraction(failed="the model replied with a poem")
            return _extract(chunk)

        return list(await extract_chunks(chunks, one))


def _extract(chunk: Chunk) -> Extraction:
    names = [name for name in ("Halcyon", "Ingrid Solheim", "Oslo") if name in chunk.text]
    facts, at = [], 0
    for sentence in chunk.text.split(". "):
        end = at + len(sentence)
        said = [name for name in names if name in sentence]
        members = tuple((name, "") for name in dict.fromkeys(["Halcyon", *said]))
        facts.append(RawFact(sentence, members, span=(chunk.start + at, chunk.start + end)))
        at = end + 2
    return Extraction(tuple(RawEntity(name, "thing") for name in names), tuple(facts))


def fill_ships(folder: Path, *documents: Document) -> None:
    """A knowledge base of facts that all have the ship, whether they name it or not."""

    async def build() -> None:
        base: KnowledgeBase = await open_hashed(Settings(kb=folder, models=ModelSettings()), True)
        await base.take(stream(documents), Passages())
        await base.close()

    sync.wait(build())


def test_lines_of_the_graph_rest_on_sentences_that_name_both_ends(tmp_path: Path) -> None:
    fill_ships(tmp_path / "ships", document("a", TEXT))
    with running(make_server(tmp_path)) as client:
        query = {"start": "Ingrid Solheim", "end": "Halcyon"}
        [path] = client.get(f"{AT}/paths", params=query).json()["paths"]
        assert BOTH.startswith(path["facts"][0]["text"]) and path["facts"][0]["states"]
        assert [(one["text"], one["states"]) for one in path["more"][0]] == [
            ("Ingrid Solheim was born in Oslo", False)
        ]
        ship, person = (one["key"] for one in path["entities"])
        near = f"{AT}/entities/{ship}/neighbours"
        [only] = client.get(near, params={"other": person}).json()["neighbours"]
        assert [fact["states"] for fact in only["facts"]] == [True, False]
        every = client.get(near).json()["neighbours"]
        assert only in every and all(one["facts"][0]["states"] for one in every)


def test_the_schema_counts_each_type_once_and_as_the_graph_does(tmp_path: Path) -> None:
    fill(tmp_path / "ships")
    with running(make_server(tmp_path)) as client:
        types = client.get(f"{AT}/schema").json()["types"]
        nodes = client.get(f"{AT}/overview", params={"limit": 20_000}).json()["nodes"]
    shown = [one["type"] for one in nodes if one["type"]]
    assert {one["name"]: one["count"] for one in types} == {t: shown.count(t) for t in shown}
    assert len({one["name"] for one in types}) == len(types) > 1


def test_failed_passages_are_listed_by_document_with_the_reason(tmp_path: Path) -> None:
    fill_ships(tmp_path / "ships", document("good", TEXT), document("bad", "This is unreadable."))
    with running(make_server(tmp_path)) as client:
        every = client.get(f"{AT}/documents").json()["documents"]
        failed = client.get(f"{AT}/documents", params={"failed": True}).json()["documents"]
    [row] = failed
    assert row in every and [one["name"] for one in every] == ["bad", "good"]
    assert row["failures"] == [{"reason": "the model replied with a poem", "passages": 1}]


def test_a_build_of_one_document_tells_how_many_passages_are_done(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []

    async def build() -> None:
        base = await open_hashed(Settings(kb=tmp_path / "kb"), True)
        long = document("a", "\n\n".join(f"{TEXT} Part {n}. " * 30 for n in range(5)))
        tell = lambda *step: told.append(step)  # noqa: E731
        await base.take(stream([long]), Passages(), progress=tell)
        await base.close()

    sync.wait(build())
    counts = [(done, total) for stage, done, total in told if stage == "passages"]
    assert [done for done, _ in counts] == list(range(1, counts[0][1] + 1))
    assert counts[0][1] > 1


def test_nobody_is_told_of_passages_after_a_listener_left() -> None:
    heard: list[int] = []

    async def nothing(chunk: Chunk) -> Extraction:
        return Extraction()

    async def work() -> None:
        some = [Chunk("c", "d", 0, 4, "text")]
        with hear_chunks(lambda: heard.append(1)):
            await extract_chunks(some, nothing)
        await extract_chunks(some, nothing)

    sync.wait(work())
    assert heard == [1]


@pytest.mark.slow  # a browser
def test_a_link_leads_to_its_workspace_in_an_open_page(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    fill_ships(tmp_path / "ships", document("good", TEXT), document("bad", "This is unreadable."))
    with browsing(make_server(tmp_path)) as (page, url, errors):
        chosen = page.locator(".side select").first
        page.goto(f"{url}/#/documents?ws=valley")
        page.locator(".list li").first.wait_for()
        assert chosen.input_value() == "valley"
        page.evaluate("location.hash = '#/documents?ws=ships'")
        page.locator(".failures", has_text="the model replied with a poem").wait_for()
        page.locator(".list li", has_text="failed passages: 1").wait_for()
        assert chosen.input_value() == "ships"
        chosen.select_option("valley")
        page.wait_for_url(f"{url}/#/documents")
        page.evaluate("location.hash = '#/documents?ws=nowhere'")
        page.get_by_text("There is no workspace “nowhere”").wait_for()
        assert chosen.input_value() == "valley" and errors == []


@pytest.mark.slow  # a browser
def test_the_thread_grows_while_one_question_is_answered(tmp_path: Path) -> None:
    fill(tmp_path / "valley")
    with writing_model(0.3) as models:
        with browsing(make_server(tmp_path, models=models)) as (page, url, errors):
            page.goto(url)
            page.fill("textarea", QUESTION)
            page.keyboard.press("Enter")
            page.locator(".thread.live .node", has_text="Marrow Bridge").wait_for()
            page.locator(".thread.live .edge", has_text="designed by").first.wait_for()
            ilse = SENTENCES[0].partition(" designed")[0]
            page.locator(".thread:not(.live) .node.last", has_text=ilse).wait_for()
            assert errors == []


@pytest.mark.slow  # a browser
def test_a_path_shows_all_facts_of_a_step(tmp_path: Path) -> None:
    fill_ships(tmp_path / "ships", document("a", TEXT))
    with browsing(make_server(tmp_path)) as (page, url, errors):
        page.goto(f"{url}/#/graph")
        page.get_by_text("Path between two entities").click()
        page.get_by_label("From").fill("Ingrid Solheim")
        page.get_by_label("To", exact=True).fill("Halcyon")
        page.get_by_role("button", name="Find the path").click()
        page.locator(".path").get_by_role("button", name=BOTH.rstrip(".")).wait_for()
        page.get_by_label("To", exact=True).fill("HALCYON")
        page.get_by_role("button", name="Find the path").click()
        page.locator(".path").get_by_role("button", name="all 2 facts").wait_for()
        assert page.get_by_label("To", exact=True).input_value() == "Halcyon"
        page.get_by_label("From").fill("the halcyon")
        page.get_by_role("button", name="Find the path").click()
        page.get_by_text("Both are the same entity.").wait_for()
        page.get_by_label("From").fill("solh")
        page.locator("#path-from-hits li", has_text="Ingrid Solheim").click()
        page.get_by_role("button", name="Find the path").click()
        page.locator(".path").get_by_role("button", name="all 2 facts").click()
        page.get_by_text("stated in the same passage: Ingrid Solheim was born in Oslo").wait_for()
        assert errors == []
