"""Sections and pages as units beside chunks, in recipes that use them."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from clew.engine import KnowledgeBase
from clew.recipes.registry import RECIPES
from clew.retrieve.lookup import Lexical
from clew.retrieve.sections import BestSentence, RankSections, WholeSections
from clew.retrieve.step import Chain, Step
from clew.types import Document, Passage
from conftest import document, stream

Find = Callable[..., Awaitable[tuple[Passage, ...]]]
TOOLS = ((1, "hammer"), (2, "chisel"), (3, "file"))
FILLER = "Nothing else was written down about the harbour on that day. " * 30


@pytest.fixture
def find(base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> Find:
    async def search(question: str, *steps: Step) -> tuple[Passage, ...]:
        monkeypatch.setitem(RECIPES, "tried", Chain("tried", steps))
        return (await base.search(question, recipe="tried", k=10)).evidence.chunks

    return search


async def test_a_chunk_is_found_by_its_best_sentence(base: KnowledgeBase, find: Find) -> None:
    pages = [
        document("long", f"{FILLER} Gulls nest on the Selby mill.", "Notes"),
        document("short", "Gulls rest near a mill.", "A note"),
    ]
    await base.take(stream(pages))
    found = await find("Gulls nest on the Selby mill", BestSentence())
    assert "Gulls nest on the Selby mill" in found[0].text


def handbook() -> list[Document]:
    part = "The tide lamp burns oil. " + "Oil is bought in spring by the keeper of stores. " * 25
    wick = "The tide lamp has a wick and a glass. " + FILLER
    return [
        document("one", f"{part}\n\n{FILLER}\n\n{wick}\n\n{wick}", "Lamps"),
        document("other", "The tide lamp and its wick were sold.", "Sale"),
        document("far", f"{FILLER} A glass.", "Far"),
    ]


async def test_what_section_and_page_say_counts_too(base: KnowledgeBase, find: Find) -> None:
    await base.take(stream(handbook()))
    question = "a wick that was sold, a tide lamp with a glass"
    alone = await find(question, Lexical(content_only=True))
    assert alone[0].doc == "other"
    sections = RankSections(section=2.0, page=2.0)
    together = await find(question, Lexical(content_only=True), sections)
    assert together[0].doc == "one" and len(together) == len(alone)


async def test_the_whole_section_is_given_and_nothing_of_another(
    base: KnowledgeBase, find: Find, tmp_path: Path
) -> None:
    body = "".join(f"Step {n} of the repair needs a {w}. {FILLER}\n\n" for n, w in TOOLS)
    (tmp_path / "lamp.md").write_text(
        f"# Lamp\n\n## Care\n\nWipe the glass. {FILLER}\n\n## Repair\n\n{body}", encoding="utf-8"
    )
    await base.add([tmp_path / "lamp.md"])
    chunks = await find("repair needs a chisel", Lexical(top_k=1), WholeSections())
    assert "chisel" in chunks[0].text and len(chunks) > 1
    assert {chunk.heading for chunk in chunks} == {chunks[0].heading}
    starts = [chunk.start for chunk in chunks[1:]]
    assert starts == sorted(starts) and abs(starts[0] - chunks[0].start) > 0


async def test_the_recipe_runs_and_gives_neighbours(base: KnowledgeBase) -> None:
    await base.take(stream(handbook()))
    results = await base.search("What does the tide lamp burn?", recipe="small-to-big", k=10)
    assert "burns oil" in results.evidence.chunks[0].text
    assert any(passage.by == "same section" for passage in results.evidence.chunks)
