"""Contract tests: subclass one and give its fixture to check your implementation."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from clew.arrays import arrays_of
from clew.errors import StoreError
from clew.store.merge import entity_id
from clew.store.protocol import Addition, Change, Snapshot, Store
from clew.text import digest
from clew.types import (
    HEAD,
    MEMBER,
    TAIL,
    Chunk,
    Document,
    Extraction,
    FoundEntity,
    FoundFact,
)
from clew.view import View


def addition(
    name: str, text: str, *, title: str = "", facts: Sequence[FoundFact] = (), stamp: str = "s"
) -> Addition:
    """Make a document of one chunk whose capitalised words are its entities."""
    document = Document(digest(title, text), text, title, (name,))
    chunk = Chunk(digest(document.id, "0"), document.id, 0, len(text), text, title)
    entities = []
    at = 0
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        if word[:1].isupper():
            entities.append(FoundEntity(word.strip(".,"), "word", spans=((start, at),)))
    return Addition(document, (chunk,), (Extraction(tuple(entities), tuple(facts)),), stamp)


def triple(head: str, relation: str, tail: str, span: tuple[int, int] = (0, 1)) -> FoundFact:
    """Make a fact with a head and a tail."""
    members = ((head, HEAD), (tail, TAIL))
    return FoundFact(f"{head} {relation} {tail}", members, relation, span=span)


MARIE = addition(
    "marie.txt",
    "Marie found Radium.",
    title="Marie",
    facts=(triple("Marie", "found", "Radium", (0, 18)),),
)
PIERRE = addition(
    "pierre.txt",
    "Pierre married Marie in Paris.",
    facts=(
        FoundFact(
            "Pierre married Marie in Paris.",
            (("Pierre", MEMBER), ("Marie", MEMBER), ("Paris", MEMBER)),
            span=(0, 30),
        ),
    ),
)


class StoreContract:
    """Contract of every store; give a `store` fixture with an empty store."""

    async def test_what_is_added_can_be_read(self, store: Store) -> None:
        counts = await store.write(Change(add=[MARIE, PIERRE]), arrays_of)
        assert (counts.documents, counts.chunks, counts.entities, counts.facts) == (2, 2, 4, 2)
        async with store.snapshot() as now:
            chunks = await now.chunks(View(now.arrays, {}).keys("chunk").tolist())
            assert {c.text for c in chunks.values()} == {
                "Marie found Radium.",
                "Pierre married Marie in Paris.",
            }
            assert {c.title for c in chunks.values()} == {"Marie", ""}
            document = (await now.documents([MARIE.document.id]))[MARIE.document.id]
            assert (document.text, document.names) == ("Marie found Radium.", ("marie.txt",))

    async def test_adding_twice_changes_nothing(self, store: Store) -> None:
        await store.write(Change(add=[MARIE, PIERRE]), arrays_of)
        before = await content(store)
        await store.write(Change(add=[PIERRE, MARIE]), arrays_of)
        assert await content(store) == before

    async def test_every_element_knows_where_it_is_said(self, store: Store) -> None:
        await store.write(Change(add=[MARIE, PIERRE]), arrays_of)
        async with store.snapshot() as now:
            [at] = View(now.arrays, {}).named(["marie"])[0]
            key = int(View(now.arrays, {}).keys("entity")[at])
            marie = (await now.entities([key]))[key]
            assert (marie.name, marie.support) == ("Marie", 2)
            spans = {(s.start, s.end) for s in (await now.supports("entity", [key]))[key]}
            assert spans == {(0, 5), (15, 20)}

    async def test_facts_keep_all_their_participants(self, store: Store) -> None:
        await store.write(Change(add=[MARIE, PIERRE]), arrays_of)
        async with store.snapshot() as now:
            facts = await now.facts(View(now.arrays, {}).keys("fact").tolist())
            wedding = next(f for f in facts.values() if not f.relation)
            assert [p.entity for p in wedding.participants] == [
                entity_id(name) for name in ("Pierre", "Marie", "Paris")
            ]
            found = next(f for f in facts.values() if f.relation)
            assert [p.role for p in found.participants] == [HEAD, TAIL]

    async def test_removing_leaves_what_a_fresh_build_would_give(self, store: Store) -> None:
        await store.write(Change(add=[MARIE]), arrays_of)
        before = await content(store)
        await store.write(Change(add=[PIERRE]), arrays_of)
        await store.write(Change(remove=["pierre.txt"]), arrays_of)
        assert await content(store) == before

    async def test_a_name_that_moves_to_other_content_updates(self, store: Store) -> None:
        await store.write(Change(add=[MARIE]), arrays_of)
        newer = addition("marie.txt", "Marie found Polonium.")
        await store.write(Change(add=[newer]), arrays_of)
        assert {n: s.document for n, s in (await store.sources()).items()} == {
            "marie.txt": newer.document.id
        }
        assert (await store.counts()).documents == 1

    async def test_the_same_content_under_two_names_is_one_document(self, store: Store) -> None:
        twin = addition("copy.txt", "Marie found Radium.", title="Marie", facts=_facts(MARIE))
        counts = await store.write(Change(add=[MARIE, twin]), arrays_of)
        assert (counts.documents, len(await store.sources())) == (1, 2)
        counts = await store.write(Change(remove=["marie.txt"]), arrays_of)
        assert counts.documents == 1
        assert (await store.write(Change(remove=["copy.txt"]), arrays_of)).documents == 0

    async def test_another_stamp_replaces_the_chunks(self, store: Store) -> None:
        await store.write(Change(add=[MARIE]), arrays_of)
        other = addition("marie.txt", "Marie found Radium.", title="Marie", stamp="other")
        counts = await store.write(Change(add=[other]), arrays_of)
        assert (counts.documents, counts.chunks, counts.facts) == (1, 1, 0)
        assert (await store.sources())["marie.txt"].stamp == "other"

    async def test_the_order_of_additions_does_not_show(self, store: Store) -> None:
        await store.write(Change(add=[PIERRE]), arrays_of)
        await store.write(Change(add=[MARIE]), arrays_of)
        before = await content(store)
        await store.write(Change(remove=["marie.txt", "pierre.txt"]), arrays_of)
        assert (await store.counts()).entities == 0
        await store.write(Change(add=[MARIE, PIERRE]), arrays_of)
        assert await content(store) == before

    async def test_a_snapshot_does_not_see_a_later_write(self, store: Store) -> None:
        await store.write(Change(add=[MARIE]), arrays_of)
        async with store.snapshot() as before:
            await store.write(Change(add=[PIERRE], remove=["marie.txt"]), arrays_of)
            chunks = await before.chunks(View(before.arrays, {}).keys("chunk").tolist())
            assert [c.text for c in chunks.values()] == ["Marie found Radium."]
        async with store.snapshot() as after:
            assert after.generation > before.generation

    async def test_a_failing_publish_changes_nothing(self, store: Store) -> None:
        await store.write(Change(add=[MARIE]), arrays_of)
        before = await content(store)

        def broken(_: object) -> dict[str, Any]:
            raise ZeroDivisionError

        try:
            await store.write(Change(add=[PIERRE], remove=["marie.txt"]), broken)
        except ZeroDivisionError:
            assert await content(store) == before
        else:
            raise AssertionError("the error of the publisher must come through")

    async def test_chunks_that_failed_are_listed_until_they_succeed(self, store: Store) -> None:
        failing = replace(MARIE, extractions=(Extraction(failed="no answer"),), stamp="broken")
        counts = await store.write(Change(add=[failing, PIERRE]), arrays_of)
        assert counts.failed == 1
        [failure] = await store.failures()
        assert (failure.document, failure.reason) == (MARIE.document.id, "no answer")
        assert (await store.write(Change(add=[MARIE]), arrays_of)).failed == 0
        assert await store.failures() == []

    async def test_what_is_remembered_comes_back(self, store: Store) -> None:
        await store.remember("reply", {"k": "võr 𝔘nicode\n'\"", "l": ""})
        assert await store.recall("reply", ["k", "l", "m"]) == {"k": "võr 𝔘nicode\n'\"", "l": ""}
        assert await store.recall("other", ["k"]) == {}

    async def test_what_many_add_up_is_all_there(self, store: Store) -> None:
        assert await store.recall("manifest", ["spent"]) == {}
        await asyncio.gather(*(store.add_up("manifest", "spent", 0.25) for _ in range(8)))
        await store.add_up("manifest", "spent", 0.1)
        assert float((await store.recall("manifest", ["spent"]))["spent"]) == 2.1

    async def test_tasks_write_one_after_another(self, store: Store) -> None:
        within: list[str] = []

        async def work(name: str) -> None:
            async with store.writing():
                within.append(name)
                assert within == [name]
                async with asyncio.TaskGroup() as group:  # started inside, so it need not wait
                    group.create_task(store.write(Change(), arrays_of))
                await store.write(Change(), arrays_of)
                within.remove(name)

        await asyncio.gather(work("one"), work("two"))
        assert (await store.counts()).generation == 4

    async def test_a_task_that_outlives_its_writer_waits_like_others(self, store: Store) -> None:
        async def late() -> str:
            await over.wait()
            async with store.writing():
                return "written"

        over = asyncio.Event()
        async with store.writing():
            left = asyncio.create_task(late())
        async with store.writing():
            over.set()
            for _ in range(10):  # gives it a chance to run
                await asyncio.sleep(0)
            assert not left.done()
        assert await left == "written"

    async def test_vectors_of_another_length_are_refused(self, store: Store) -> None:
        table = store.vectors("model", "chunk")
        table.append([digest("one")], np.ones((1, 4), np.float32))
        try:
            table.append([digest("two")], np.ones((1, 3), np.float32))
        except StoreError:
            assert table.rows([digest("two")]).tolist() == [-1]
            assert table.matrix().shape == (1, 4)
            assert not table.mend()
        else:
            raise AssertionError("they cannot stand in one matrix")

    async def test_vectors_are_found_by_content(self, store: Store) -> None:
        table = store.vectors("model", "chunk")
        one, two, three = digest("one"), digest("two"), digest("three")
        table.append([one, two], np.eye(2, 4, dtype=np.float32))
        table.append([two, three], np.full((2, 4), 7, np.float32))
        assert table.rows([three, one, digest("none")]).tolist() == [2, 0, -1]
        assert table.matrix()[1].tolist() == [0, 1, 0, 0]
        assert store.vectors("other", "chunk").rows([one]).tolist() == [-1]


async def content(store: Store) -> dict[str, Any]:
    """Read all that a store holds, without keys and numbers that depend on history."""
    async with store.snapshot() as now:
        return await content_of(now) | {"sources": await store.sources()}


async def content_of(now: Snapshot) -> dict[str, Any]:
    """Read all elements of a snapshot by id, with their supporting spans."""
    view = View(now.arrays, {})
    chunks = await now.chunks(view.keys("chunk").tolist())
    entities = await now.entities(view.keys("entity").tolist())
    facts = await now.facts(view.keys("fact").tolist())
    entity_spans = await now.supports("entity", list(entities)) | {}
    fact_spans = await now.supports("fact", list(facts))
    return {
        "chunks": {c.id: c for c in chunks.values()},
        "entities": {e.id: (e, sorted(entity_spans[key], key=repr)) for key, e in entities.items()},
        "facts": {f.id: (f, sorted(fact_spans[key], key=repr)) for key, f in facts.items()},
    }


def _facts(made: Addition) -> Sequence[FoundFact]:
    return made.extractions[0].facts
