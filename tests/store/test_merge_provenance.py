"""Facts and entities of several documents are merged, and stay as long as one states them."""

from dataclasses import replace
from pathlib import Path

import pytest

from clew.index.derive import derive_arrays
from clew.index.view import View
from clew.store.memory import MemoryStore
from clew.store.protocol import Change, Store
from clew.store.resolved_entities import LONG_DESCRIPTION, SUMMARY_KIND, summary_key
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import make_addition, make_triple, read_content
from clew.types import Entity, Fact

FOUND = make_triple("Marie", "found", "Radium", (0, 18))
ONE = make_addition(
    "one.txt",
    "Marie found Radium.",
    facts=[replace(FOUND, description="in a shed", keywords=("shed",), weight=2.0)],
)
TWO = make_addition(
    "two.txt",
    "Marie found Radium in Paris.",
    facts=[
        replace(FOUND, description="in Paris", keywords=("city",), weight=3.0),
        make_triple("Radium", "found in", "Paris", (12, 27)),
    ],
)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return MemoryStore()
    return SqliteStore(tmp_path / "kb", create=True, durable=False)


async def read_graph(store: Store) -> tuple[dict[str, Entity], dict[tuple[str, ...], Fact]]:
    """Return entities by name and facts by relation and text."""
    async with store.snapshot() as now:
        view = View(now.arrays, {})
        entities = await now.entities(view.keys("entity").tolist())
        facts = await now.facts(view.keys("fact").tolist())
    return (
        {one.name: one for one in entities.values()},
        {(one.relation, one.text): one for one in facts.values()},
    )


@pytest.mark.parametrize("together", [True, False])
async def test_a_fact_of_two_documents_is_merged(store: Store, together: bool) -> None:
    for change in [[ONE, TWO]] if together else [[ONE], [TWO]]:
        counts = await store.write(Change(add=change), derive_arrays)
    assert (counts.entities, counts.facts) == (3, 2)
    entities, facts = await read_graph(store)
    both = facts["found", "Marie found Radium"]
    assert (both.support, both.weight) == (2, 5.0)
    assert set(both.keywords) == {"shed", "city"}
    assert "shed" in both.description and "Paris" in both.description
    assert {name: one.support for name, one in entities.items()} == {
        "Marie": 2,
        "Radium": 2,
        "Paris": 1,
    }


@pytest.mark.parametrize("gone", ["one.txt", "two.txt"])
async def test_a_fact_stays_while_one_document_states_it(store: Store, gone: str) -> None:
    await store.write(Change(add=[ONE, TWO]), derive_arrays)
    counts = await store.write(Change(remove=[gone]), derive_arrays)
    stays = TWO if gone == "one.txt" else ONE
    _, facts = await read_graph(store)
    [stated] = [fact for fact in stays.extractions[0].facts if fact.relation == "found"]
    left = facts["found", "Marie found Radium"]
    assert (left.support, left.weight) == (1, stated.weight)
    assert (left.keywords, left.description) == (stated.keywords, stated.description)
    assert counts.facts == len(facts) == len(stays.extractions[0].facts)
    fresh = MemoryStore()
    await fresh.write(Change(add=[stays]), derive_arrays)
    assert await read_content(store) == await read_content(fresh)


async def test_the_content_does_not_depend_on_the_history(store: Store) -> None:
    await store.write(Change(add=[TWO]), derive_arrays)
    await store.write(Change(add=[ONE]), derive_arrays)
    await store.write(Change(remove=["two.txt"]), derive_arrays)
    await store.write(Change(add=[TWO]), derive_arrays)
    fresh = MemoryStore()
    await fresh.write(Change(add=[ONE, TWO]), derive_arrays)
    assert await read_content(store) == await read_content(fresh)


@pytest.mark.parametrize("gone", ["one.txt", "two.txt"])
async def test_a_bulk_removal_removes_all_that_only_the_document_stated(
    tmp_path: Path, gone: str
) -> None:
    store = SqliteStore(tmp_path / "kb", create=True, durable=False)
    await store.write(Change(add=[ONE, TWO]), derive_arrays)
    counts = await store.write(Change(remove=[gone], bulk=()), derive_arrays)
    assert (counts.documents, counts.chunks) == (1, 1)
    stays, left = (TWO, ONE) if gone == "one.txt" else (ONE, TWO)
    async with store.snapshot() as now:
        held = await now.documents([stays.document.id, left.document.id])
    assert set(held) == {stays.document.id}
    fresh = MemoryStore()
    await fresh.write(Change(add=[stays]), derive_arrays)
    assert await read_content(store) == await read_content(fresh)
    assert await store.find_problems() == []
    await store.close()


async def test_a_long_description_is_replaced_by_its_summary(store: Store) -> None:
    long = "It was found in a shed. " * (LONG_DESCRIPTION // 20)
    facts = [replace(FOUND, description=long), make_triple("Radium", "found in", "Paris")]
    await store.write(
        Change(add=[make_addition("one.txt", "Marie found Radium.", facts=facts)]), derive_arrays
    )
    _, before = await read_graph(store)
    [text] = [fact.description for fact in before.values() if fact.description]
    assert len(text) > LONG_DESCRIPTION
    await store.set(SUMMARY_KIND, {summary_key("another text"): "wrong"})
    assert (await read_graph(store))[1] == before
    await store.set(SUMMARY_KIND, {summary_key(text): "in a shed"})
    _, after = await read_graph(store)
    assert sorted(fact.description for fact in after.values()) == ["", "in a shed"]


async def test_a_bulk_removal_keeps_a_document_with_another_name(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "kb", create=True, durable=False)
    twin = replace(ONE, document=replace(ONE.document, names=("one.txt", "copy.txt")))
    await store.write(Change(add=[twin]), derive_arrays)
    counts = await store.write(Change(remove=["one.txt"], bulk=()), derive_arrays)
    assert (counts.documents, counts.chunks, counts.facts) == (1, 1, 1)
    assert set(await store.sources()) == {"copy.txt"}
    counts = await store.write(Change(remove=["copy.txt"], bulk=()), derive_arrays)
    assert (counts.documents, counts.chunks, counts.facts) == (0, 0, 0)
    await store.close()
