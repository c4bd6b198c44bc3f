"""Mentions that say nothing new about an entity are counted; the result is that of merging all."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.index.derive import derive_arrays
from clew.store.memory import MemoryStore
from clew.store.protocol import Addition, Change, Store
from clew.store.sqlite.store import SqliteStore
from clew.store.sqlite.write import SqliteWriter
from clew.testing.contracts import read_content
from clew.text.unicode import digest
from clew.types import Chunk, Document, Extraction, RawEntity

ENTITIES = st.builds(
    RawEntity,
    st.sampled_from(["Lyon", "LYON", "Rhone"]),
    st.sampled_from(["", "place", "river"]),
    st.sampled_from(["", "a town", "on two rivers"]),
    aliases=st.sampled_from([(), ("Lugdunum",)]),
    attributes=st.sampled_from([{}, {"country": "France"}, {"country": "Gaul"}]),
)
CHANGES = st.lists(
    st.tuples(
        st.lists(st.lists(ENTITIES, max_size=2), max_size=3),
        st.lists(st.integers(0, 8), max_size=2),
    ),
    min_size=2,
    max_size=4,
)


def make_addition(number: int, entities: list[RawEntity]) -> Addition:
    text = f"Text {number}."
    document = Document(digest("", text), text, "", (f"{number}.txt",))
    chunk = Chunk(digest(document.id, "0"), document.id, 0, len(text), text, "")
    return Addition(document, (chunk,), (Extraction(tuple(entities), ()),), "s")


def make_changes(given: list[tuple[list[list[RawEntity]], list[int]]]) -> list[Change]:
    found, number = [], 0
    for added, removed in given:
        numbered = [make_addition(number + n, one) for n, one in enumerate(added)]
        found.append(Change(add=numbered, remove=[f"{n}.txt" for n in removed if n < number]))
        number += len(added)
    return found


async def replay(store: Store, changes: list[Change]) -> dict[str, object]:
    for change in changes:
        await store.write(change, derive_arrays)
    return await read_content(store)


@settings(max_examples=settings.default.max_examples // 6, deadline=None)
@given(CHANGES)
def test_counting_mentions_equals_merging_them(
    given: list[tuple[list[list[RawEntity]], list[int]]],
) -> None:
    async def check() -> None:
        changes = make_changes(given)
        with tempfile.TemporaryDirectory() as folder:
            store = SqliteStore(Path(folder) / "kb", create=True, durable=False)
            assert await replay(store, changes) == await replay(MemoryStore(), changes)
            assert await store.find_problems() == []
            await store.close()

    asyncio.run(check())


async def test_a_frequent_name_is_not_merged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged: list[int] = []
    merge = SqliteWriter.merge_entities

    def record(writer: SqliteWriter, touched: set[int]) -> None:
        merged.append(len(touched))
        merge(writer, touched)

    monkeypatch.setattr(SqliteWriter, "merge_entities", record)
    lyon, other = RawEntity("Lyon", "place"), RawEntity("Lyon", "river")
    store = SqliteStore(tmp_path, create=True, durable=False)
    await replay(store, [Change(add=[make_addition(n, [lyon]) for n in range(5)])])
    merged.clear()
    await replay(store, [Change(add=[make_addition(5, [lyon])]), Change(remove=["1.txt"])])
    assert merged == [0, 0]
    found = await read_content(store)
    assert [entity.support for entity, _ in found["entities"].values()] == [5]
    await replay(store, [Change(add=[make_addition(6, [other])])])
    assert merged == [0, 0, 1]
    await store.close()
