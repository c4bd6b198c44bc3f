"""A question typed without capitals gets them back from the texts."""

import pytest

from clew.engine import KnowledgeBase
from clew.retrieve.tidy import restore_capitals
from conftest import document, stream

PAGES = (
    document("genus", "Cotula is a genus of plants. A visitor saw Cotula by the road.", "Cotula"),
    document("song", "On Body and Soul is a song of the Grey Choir.", "On Body and Soul"),
    document("birth", "The place of birth is where one is born.", "Place of birth"),
    document("york", "He lived in York County. Every county has a seat.", "York County"),
    document("person", "The singer Élise Márquez was born in York.", "Élise Márquez"),
    document("mtv", "The clip was shown on MTV in spring."),
    *(document(f"brother{n}", f"Her brother had {n} ships.") for n in range(3)),
    document("band", "Brother is a band.", "Brother"),
)


async def restore(base: KnowledgeBase, question: str) -> str:
    await base.take(stream(PAGES))
    async with base.store.snapshot() as now:
        return await restore_capitals(await base.context(now, question), question)


@pytest.mark.parametrize(
    ("question", "restored"),
    [
        ("where does cotula grow?", "where does Cotula grow?"),
        ("who sang on body and soul?", "who sang On Body and Soul?"),
        (
            "what is the place of birth of élise márquez",
            "what is the place of birth of Élise Márquez",
        ),
        ("which county is york county?", "which county is York County?"),
        ("what was shown on mtv?", "what was shown on Mtv?"),
        ("who is her brother?", "who is her brother?"),
        ("Who sang On Body and Soul with élise?", "Who sang On Body and Soul with élise?"),
        ("谁是élise", "谁是Élise"),
        ("", ""),
    ],
)
async def test_capitals_are_those_of_the_texts(
    base: KnowledgeBase, question: str, restored: str
) -> None:
    assert await restore(base, question) == restored


@pytest.mark.parametrize(
    ("question", "tidied"),
    [
        ("WHERE DOES COTULA GROW?", "where does Cotula grow?"),
        ("Where does Cotula grow!!??", "Where does Cotula grow?"),
        ("Where does Cotula grow?!", "Where does Cotula grow?"),
        ("MTV", "MTV?"),
    ],
)
async def test_capitals_only_and_many_marks_are_tidied(
    base: KnowledgeBase, question: str, tidied: str
) -> None:
    await base.take(stream(PAGES))
    results = await base.search(question)
    assert [step.output for step in results.trace if step.step == "tidy question"] == [tidied]


async def test_an_empty_knowledge_base_knows_no_names(base: KnowledgeBase) -> None:
    async with base.store.snapshot() as now:
        ctx = await base.context(now, "where is york?")
        assert await restore_capitals(ctx, "where is york?") == "where is york?"
