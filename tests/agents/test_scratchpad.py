"""The notebook keeps what concurrent sub-questions write in the order of the plan."""

import asyncio
from random import Random

import pytest

from clew.agents.core.scratchpad import Note, Notebook, Retrieval
from clew.agents.core.types import run_concurrently


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
