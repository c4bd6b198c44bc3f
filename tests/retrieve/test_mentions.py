"""What passages mention, who mentions them, and what a model's facts leave out."""

import numpy as np
import pytest
from plain_graph import Told, joins, names_of

from clew.engine import KnowledgeBase
from clew.retrieve.mentions import (
    NO_FACT,
    Mentions,
    find_mentions,
    find_names_without_fact,
)
from clew.types import Document
from conftest import document, stream

NONE = np.zeros(0, np.int64)

FILMS = [
    document("film", "Night Ferry is a film by Mara Holt and Peter Vaal.", "Night Ferry"),
    document("vaal", "Peter Vaal was born in Vessen.", "Peter Vaal"),
    document("holt", "Mara Holt left Vessen. She married Peter Vaal.", "Mara Holt"),
]
# The model forgot Peter Vaal in the film, and said nothing at all about Mara Holt.
SAID = {
    "film": [joins("Night Ferry", "directed by", "Mara Holt")],
    "vaal": [joins("Peter Vaal", "born in", "Vessen")],
}


@pytest.fixture
async def told(base: KnowledgeBase) -> KnowledgeBase:
    await base.take(stream(FILMS), Told(SAID))
    return base


async def row_of(base: KnowledgeBase, wanted: Document) -> int:
    async with base.store.snapshot() as now:
        keys = (await base.context(now, "?")).view.keys("chunk").tolist()
        held = await now.chunks(keys)
        return next(at for at, key in enumerate(keys) if held[key].document == wanted.id)


async def read(base: KnowledgeBase, which: int, known: str = "") -> tuple[Mentions, list[str]]:
    """What the text of one document names beside its facts."""
    async with base.store.snapshot() as now:
        ctx = await base.context(now, "?")
        rows = np.array([await row_of(base, FILMS[which])])
        behind = ctx.view.first_namesake[ctx.view.find_by_own_name([known])[0]] if known else NONE
        more = await find_names_without_fact(
            ctx, rows, find_mentions(ctx.view, rows, behind), behind
        )
        return more, await names_of(base, more.entity.tolist())


async def test_names_that_a_model_left_out_are_read_in_the_text(told: KnowledgeBase) -> None:
    more, names = await read(told, 0)
    assert "Peter Vaal" in names
    assert "Mara Holt" not in names  # a fact says it already
    assert set(more.fact.tolist()) == {NO_FACT}
    assert set(more.row.tolist()) == {0}


async def test_a_passage_without_facts_is_read_too(told: KnowledgeBase) -> None:
    _, names = await read(told, 2)
    assert "Peter Vaal" in names
    assert "Peter Vaal" not in (await read(told, 2, known="Peter Vaal"))[1]


async def test_where_rules_made_the_sentences_nothing_is_left_to_read(base: KnowledgeBase) -> None:
    await base.take(stream(FILMS))
    more, _ = await read(base, 0)
    assert len(more) == 0


async def test_a_way_that_was_read_shows_no_path(told: KnowledgeBase) -> None:
    results = await told.search("Where was the director of Night Ferry born?", recipe="clew")
    assert {passage.doc for passage in results.evidence.chunks} == {"film", "vaal", "holt"}
    assert all(len(path.entities) == len(path.facts) + 1 for path in results.evidence.paths)


async def test_a_passage_does_not_lead_to_its_own_other_names(base: KnowledgeBase) -> None:
    pages = [
        document("holt", "Mara Holt, also known as Mary Holt, left Vessen.", "Mara Holt"),
        document("singer", "Mary Holt is a singer of the north.", "Mary Holt (singer)"),
    ]
    await base.take(stream(pages))
    rows = np.array([await row_of(base, pages[0])])
    async with base.store.snapshot() as now:
        said = find_mentions((await base.context(now, "?")).view, rows, NONE)
    names = await names_of(base, said.entity.tolist())
    assert "Vessen" in names and "Mary Holt" not in names
