"""The notebook keeps what concurrent sub-questions write in the order of the plan."""

import asyncio
from random import Random

import pytest

from clew.agents.core.scratchpad import Note, Notebook, RecordingRetriever, Retrieval
from clew.agents.base import run_concurrently
from clew.context import Context
from clew.engine import KnowledgeBase
from clew.types import Found


@pytest.mark.parametrize("seed", range(5))
async def test_the_order_does_not_depend_on_who_is_faster(seed: int) -> None:
    draw, book = Random(seed), Notebook()

    async def look_up(name: str) -> None:
        await asyncio.sleep(draw.random() / 100)
        book.add(Retrieval(name))
        await asyncio.sleep(draw.random() / 100)
        book.add(Note(name))

    async def channel(name: str) -> None:
        await asyncio.sleep(draw.random() / 100)
        await run_concurrently([look_up(f"{name}{number}") for number in range(3)])
        book.add(Note(f"{name} done"))

    book.add(Note("first"))
    await run_concurrently([channel("a"), channel("b")])
    book.add(Note("last"))
    assert [note.question for note in book.notes] == [
        "first",
        *("a0", "a1", "a2", "a done"),
        *("b0", "b1", "b2", "b done"),
        "last",
    ]
    assert [one.question for one in book.retrievals] == ["a0", "a1", "a2", "b0", "b1", "b2"]


async def test_the_page_about_a_name_is_found_without_a_retrieval(valley: KnowledgeBase) -> None:
    async def fail(_: Context, __: Found) -> Found:
        raise AssertionError("nothing is retrieved")

    book = Notebook()
    retriever = RecordingRetriever(fail, book, 3)
    async with valley.store.snapshot() as snapshot:
        ctx = await valley.context(snapshot, "x")
        page = await retriever.find_page(ctx, "Ilse Brandvik")
        assert [passage.title for passage in page] == ["Ilse Brandvik"]
        assert book.evidence().chunks == page
        assert await retriever.find_page(ctx, "Nobody Known") == ()
