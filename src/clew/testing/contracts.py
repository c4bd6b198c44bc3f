"""Contract tests: subclass one and give its fixture to check your implementation."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from clew.errors import StoreError
from clew.index.derive import derive_arrays
from clew.index.view import View
from clew.store.merge import entity_id
from clew.store.protocol import Addition, Change, Snapshot, Store
from clew.text.unicode import digest, mark_text
from clew.types import HEAD, MEMBER, TAIL, Chunk, Document, Extraction, FactText, RawEntity, RawFact


def make_addition(
    name: str, text: str, *, title: str = "", facts: Sequence[RawFact] = (), stamp: str = "s"
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
            entities.append(RawEntity(word.strip(".,"), "word", spans=((start, at),)))
    return Addition(document, (chunk,), (Extraction(tuple(entities), tuple(facts)),), stamp)


def make_triple(head: str, relation: str, tail: str, span: tuple[int, int] = (0, 1)) -> RawFact:
    """Make a fact with a head and a tail."""
    members = ((head, HEAD), (tail, TAIL))
    return RawFact(f"{head} {relation} {tail}", members, relation, span=span)


MARIE = make_addition(
    "marie.txt",
    "Marie found Radium.",
    title="Marie",
    facts=(make_triple("Marie", "found", "Radium", (0, 18)),),
)
PIERRE = make_addition(
    "pierre.txt",
    "Pierre married Marie in Paris.",
    facts=(
        RawFact(
            "Pierre married Marie in Paris.",
            (("Pierre", MEMBER), ("Marie", MEMBER), ("Paris", MEMBER)),
            span=(0, 30),
        ),
    ),
)


class StoreContract:
    """Contract of every store; give a `store` fixture with an empty store."""

    async def test_what_is_added_can_be_read(self, store: Store) -> None:
        counts = await store.write(Change(add=[MARIE, PIERRE]), derive_arrays)
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
        await store.write(Change(add=[MARIE, PIERRE]), derive_arrays)
        before = await read_content(store)
        await store.write(Change(add=[PIERRE, MARIE]), derive_arrays)
        assert await read_content(store) == before

    async def test_every_element_knows_where_it_is_said(self, store: Store) -> None:
        await store.write(Change(add=[MARIE, PIERRE]), derive_arrays)
        async with store.snapshot() as now:
            [at] = View(now.arrays, {}).find_by_own_name(["marie"])[0]
            key = int(View(now.arrays, {}).keys("entity")[at])
            marie = (await now.entities([key]))[key]
            assert (marie.name, marie.support) == ("Marie", 2)
            spans = {(s.start, s.end) for s in (await now.supports("entity", [key]))[key]}
            assert spans == {(0, 5), (15, 20)}

    async def test_facts_keep_all_their_participants(self, store: Store) -> None:
        await store.write(Change(add=[MARIE, PIERRE]), derive_arrays)
        async with store.snapshot() as now:
            facts = await now.facts(View(now.arrays, {}).keys("fact").tolist())
            wedding = next(f for f in facts.values() if not f.relation)
            assert [p.entity for p in wedding.participants] == [
                entity_id(name) for name in ("Pierre", "Marie", "Paris")
            ]
            found = next(f for f in facts.values() if f.relation)
            assert [p.role for p in found.participants] == [HEAD, TAIL]

    async def test_parts_of_elements_are_as_in_the_whole(self, store: Store) -> None:
        await store.write(Change(add=[MARIE, PIERRE]), derive_arrays)
        async with store.snapshot() as now:
            view = View(now.arrays, {})
            facts, chunks = view.keys("fact").tolist(), view.keys("chunk").tolist()
            assert await now.fact_texts(facts) == {
                key: FactText(one.id, one.text, one.relation, one.keywords, one.description)
                for key, one in (await now.facts(facts)).items()
            }
            assert await now.fact_spans(facts) == await now.supports("fact", facts)
            assert await now.chunk_documents(chunks) == {
                key: one.document for key, one in (await now.chunks(chunks)).items()
            }

    async def test_removing_leaves_what_a_fresh_build_would_give(self, store: Store) -> None:
        await store.write(Change(add=[MARIE]), derive_arrays)
        before = await read_content(store)
        await store.write(Change(add=[PIERRE]), derive_arrays)
        await store.write(Change(remove=["pierre.txt"]), derive_arrays)
        assert await read_content(store) == before

    async def test_a_name_that_moves_to_other_content_updates(self, store: Store) -> None:
        await store.write(Change(add=[MARIE]), derive_arrays)
        newer = make_addition("marie.txt", "Marie found Polonium.")
        await store.write(Change(add=[newer]), derive_arrays)
        assert {n: s.document for n, s in (await store.sources()).items()} == {
            "marie.txt": newer.document.id
        }
        assert (await store.counts()).documents == 1

    async def test_the_same_content_under_two_names_is_one_document(self, store: Store) -> None:
        twin = make_addition(
            "copy.txt", "Marie found Radium.", title="Marie", facts=_addition_facts(MARIE)
        )
        counts = await store.write(Change(add=[MARIE, twin]), derive_arrays)
        assert (counts.documents, len(await store.sources())) == (1, 2)
        counts = await store.write(Change(remove=["marie.txt"]), derive_arrays)
        assert counts.documents == 1
        assert (await store.write(Change(remove=["copy.txt"]), derive_arrays)).documents == 0

    async def test_another_stamp_replaces_the_chunks(self, store: Store) -> None:
        await store.write(Change(add=[MARIE]), derive_arrays)
        other = make_addition("marie.txt", "Marie found Radium.", title="Marie", stamp="other")
        counts = await store.write(Change(add=[other]), derive_arrays)
        assert (counts.documents, counts.chunks, counts.facts) == (1, 1, 0)
        assert (await store.sources())["marie.txt"].stamp == "other"

    async def test_the_order_of_additions_does_not_show(self, store: Store) -> None:
        await store.write(Change(add=[PIERRE]), derive_arrays)
        await store.write(Change(add=[MARIE]), derive_arrays)
        before = await read_content(store)
        await store.write(Change(remove=["marie.txt", "pierre.txt"]), derive_arrays)
        assert (await store.counts()).entities == 0
        await store.write(Change(add=[MARIE, PIERRE]), derive_arrays)
        assert await read_content(store) == before

    async def test_a_snapshot_does_not_see_a_later_write(self, store: Store) -> None:
        await store.write(Change(add=[MARIE]), derive_arrays)
        async with store.snapshot() as before:
            await store.write(Change(add=[PIERRE], remove=["marie.txt"]), derive_arrays)
            chunks = await before.chunks(View(before.arrays, {}).keys("chunk").tolist())
            assert [c.text for c in chunks.values()] == ["Marie found Radium."]
        async with store.snapshot() as after:
            assert after.generation > before.generation

    async def test_a_failing_publish_changes_nothing(self, store: Store) -> None:
        await store.write(Change(add=[MARIE]), derive_arrays)
        before = await read_content(store)

        def broken(_: object) -> dict[str, Any]:
            raise ZeroDivisionError

        try:
            await store.write(Change(add=[PIERRE], remove=["marie.txt"]), broken)
        except ZeroDivisionError:
            assert await read_content(store) == before
        else:
            raise AssertionError("the error of the publisher must come through")

    async def test_chunks_that_failed_are_listed_until_they_succeed(self, store: Store) -> None:
        failing = replace(MARIE, extractions=(Extraction(failed="no answer"),), stamp="broken")
        counts = await store.write(Change(add=[failing, PIERRE]), derive_arrays)
        assert counts.failed == 1
        [failure] = await store.failures()
        assert (failure.document, failure.reason) == (MARIE.document.id, "no answer")
        assert (await store.write(Change(add=[MARIE]), derive_arrays)).failed == 0
        assert await store.failures() == []

    async def test_what_is_remembered_comes_back(self, store: Store) -> None:
        await store.set("reply", {"k": "võr 𝔘nicode\n'\"", "l": ""})
        assert await store.get("reply", ["k", "l", "m"]) == {"k": "võr 𝔘nicode\n'\"", "l": ""}
        assert await store.get("other", ["k"]) == {}

    async def test_no_reply_that_may_quote_it_outlives_a_document(self, store: Store) -> None:
        for bulk in (None, ()):
            await store.write(Change(add=[MARIE, PIERRE]), derive_arrays)
            replies = {"k": "Marie found Radium.", "window of m": "8192"}
            made = {f"{mark_text(one.chunks[0].text)}k": "" for one in (MARIE, PIERRE)}
            await store.set("reply", replies | made)
            await store.write(Change(remove=["nothing"], bulk=bulk), derive_arrays)
            assert len(await store.get("reply", [*replies, *made])) == 4
            await store.write(Change(remove=["marie.txt"], bulk=bulk), derive_arrays)
            left = await store.get("reply", [*replies, *made])
            assert set(left) == {"window of m", list(made)[1]}

    async def test_what_many_add_up_is_all_there(self, store: Store) -> None:
        assert await store.get("manifest", ["spent"]) == {}
        await asyncio.gather(*(store.increment("manifest", "spent", 0.25) for _ in range(8)))
        await store.increment("manifest", "spent", 0.1)
        assert float((await store.get("manifest", ["spent"]))["spent"]) == 2.1

    async def test_tasks_write_one_after_another(self, store: Store) -> None:
        within: list[str] = []

        async def work(name: str) -> None:
            async with store.write_lock():
                within.append(name)
                assert within == [name]
                async with asyncio.TaskGroup() as group:  # started inside, so it need not wait
                    group.create_task(store.write(Change(), derive_arrays))
                await store.write(Change(), derive_arrays)
                within.remove(name)

        await asyncio.gather(work("one"), work("two"))
        assert (await store.counts()).generation == 4

    async def test_a_task_that_outlives_its_writer_waits_like_others(self, store: Store) -> None:
        async def late() -> str:
            await over.wait()
            async with store.write_lock():
                return "written"

        over = asyncio.Event()
        async with store.write_lock():
            left = asyncio.create_task(late())
        async with store.write_lock():
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
            assert table.find_rows([digest("two")]).tolist() == [-1]
            assert table.matrix().shape == (1, 4)
            assert not table.repair()
        else:
            raise AssertionError("they cannot stand in one matrix")

    async def test_vectors_are_found_by_content(self, store: Store) -> None:
        table = store.vectors("model", "chunk")
        one, two, three = digest("one"), digest("two"), digest("three")
        table.append([one, two], np.eye(2, 4, dtype=np.float32))
        table.append([two, three], np.full((2, 4), 7, np.float32))
        assert table.find_rows([three, one, digest("none")]).tolist() == [2, 0, -1]
        assert table.matrix()[1].tolist() == [0, 1, 0, 0]
        assert store.vectors("other", "chunk").find_rows([one]).tolist() == [-1]


async def read_content(store: Store) -> dict[str, Any]:
    """Read all that a store holds, without keys and numbers that depend on history."""
    async with store.snapshot() as now:
        return await read_snapshot(now) | {"sources": await store.sources()}


async def read_snapshot(now: Snapshot) -> dict[str, Any]:
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


def _addition_facts(made: Addition) -> Sequence[RawFact]:
    return made.extractions[0].facts
