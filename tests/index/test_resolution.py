"""Names become things the same way whatever the order, and homonyms stay apart."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.graph.csr import build_csr
from clew.graph.entity_resolution import find_common_entities, find_senses
from clew.index.derive import derive_arrays
from clew.index.homonyms import split_homonyms
from clew.store.memory import MemoryStore
from clew.store.merge import entity_id
from clew.store.protocol import SENSE_STRIDE, Addition, Change, Store, Tables
from clew.store.resolved_entities import RESOLUTION_KIND, SENSES_KIND, MergeDecision
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import read_content, read_snapshot
from clew.text.unicode import digest
from clew.types import HEAD, TAIL, Chunk, Document, Extraction, RawEntity, RawFact


def page(name: str, listed: Sequence[RawEntity | str], facts: Sequence[RawFact] = ()) -> Addition:
    """A document of one chunk that mentions these entities."""
    entities = tuple(RawEntity(one) if isinstance(one, str) else one for one in listed)
    text = f"{name}: " + ", ".join(one.name for one in entities)
    document = Document(digest(text), text, "", (name,))
    chunk = Chunk(digest(document.id, "0"), document.id, 0, len(text), text)
    return Addition(document, (chunk,), (Extraction(entities, tuple(facts)),), "s")


def vector(name: str) -> np.ndarray:
    """Letters as a vector: the same words in another order lie close."""
    found = np.zeros(64, np.float32)
    for word in name.lower().replace(".", " ").replace(",", " ").split():
        found[sum(map(ord, word)) % 64] += 1
    return found / max(float(np.linalg.norm(found)), 1e-6)


async def things(store: Store) -> dict[str, tuple[str, ...]]:
    async with store.snapshot() as now:
        found = await read_snapshot(now)
    return {f"{e.name} ({e.type})": e.aliases for e, _ in found["entities"].values()}


async def built(*additions: Addition, store: Store | None = None) -> Store:
    store = store or MemoryStore()
    extractions = [x for a in additions for x in a.extractions]
    # As a build does: every name gets a vector, also those that only facts speak of.
    names = {e.name for x in extractions for e in x.entities}
    names |= {name for x in extractions for fact in x.facts for name, _ in fact.members}
    await store.set("manifest", {"embedder": "letters"})
    table = store.vectors("letters", "entity")
    fresh = [name for name in sorted(names) if table.find_rows([digest(name)])[0] < 0]
    if fresh:
        table.append([digest(name) for name in fresh], np.stack([vector(n) for n in fresh]))
    await store.write(Change(add=additions), derive_arrays)
    return store


async def test_spellings_meet_and_the_most_said_name_stands_for_them() -> None:
    store = await built(
        page("a", ["J. R. R. Tolkien"]),
        page("b", ["J. R. R. Tolkien"]),
        page("c", ["J.R.R. Tolkien"]),
    )
    assert await things(store) == {"J. R. R. Tolkien ()": ("J.R.R. Tolkien",)}


async def test_one_name_in_two_classes_and_companies_is_two_things() -> None:
    metal = RawEntity("Mercury", "chemical element", "A liquid metal.")
    planet = RawEntity("Mercury", "planet", "The innermost planet.")
    store = await built(
        page("a", [metal, "Amalgam", "Gold"]),
        page("b", [metal, "Thermometer"]),
        page("c", [planet, "Venus", "Orbit"]),
        page("d", ["Mercury", "Venus"]),
    )
    async with store.snapshot() as now:
        found = (await read_snapshot(now))["entities"]
    both = {e.type: (e, facts) for e, facts in found.values() if e.name == "Mercury"}
    assert set(both) == {"chemical element", "planet"}
    assert both["planet"][0].description == "The innermost planet."
    assert both["chemical element"][0].description == "A liquid metal."
    # The mention without a class goes where its company is.
    assert len(both["planet"][1]) == 2


async def test_different_words_for_one_type_in_the_same_company_are_one_thing() -> None:
    store = await built(
        page("a", [RawEntity("Oslo", "city"), "Norway", "Fjord"]),
        page("b", [RawEntity("Oslo", "organisation"), "Norway", "Fjord"]),
    )
    assert sum(name.startswith("Oslo") for name in await things(store)) == 1


async def test_an_alias_claimed_once_merges_and_claimed_twice_does_not() -> None:
    planet = RawEntity("Mercury (planet)", aliases=("Mercury",))
    store = await built(page("a", [planet]), page("b", ["Mercury"]))
    assert len(await things(store)) == 1
    await built(page("c", [RawEntity("Mercury (element)", aliases=("Mercury",))]), store=store)
    assert len(await things(store)) == 3


async def test_a_document_may_say_that_two_names_are_one() -> None:
    stated = RawFact(
        "WHO stands for World Health Organization",
        (("WHO", HEAD), ("World Health Organization", TAIL)),
        "stands for",
    )
    store = await built(page("a", ["WHO", "World Health Organization"], [stated]))
    assert len(await things(store)) == 1


async def test_likeness_needs_the_same_company_and_never_the_same_place() -> None:
    one, other = "Count Otto I of Guelders", "Otto I, Count of Guelders"
    apart = await built(page("a", [one, "Zutphen"]), page("b", [other, "Paris"]))
    assert len(await things(apart)) == 4
    together = await built(page("a", [one, "Zutphen"]), page("b", [other, "Zutphen"]))
    assert len(await things(together)) == 2
    listed = await built(page("a", [one, other, "Zutphen"]))
    assert len(await things(listed)) == 3


async def test_numbered_namesakes_are_never_alike() -> None:
    store = await built(
        page("a", ["Otto I, Count of Guelders", "Zutphen"]),
        page("b", ["Otto II, Count of Guelders", "Zutphen"]),
        page("c", ["Otto V, Count of Guelders", "Zutphen"]),
    )
    assert len(await things(store)) == 4


async def test_decisions_outlive_the_documents_they_were_made_on() -> None:
    store = await built(page("a", ["NYC"]), page("b", ["New York City"]))
    ids = entity_id("NYC"), entity_id("New York City")
    same = MergeDecision(*ids, same=True, by="user")
    await store.set(RESOLUTION_KIND, {same.key: same.to_json()})
    await store.write(Change(), derive_arrays)
    assert len(await things(store)) == 1
    await store.write(Change(remove=["a"]), derive_arrays)
    assert list(await things(store)) == ["New York City ()"]
    await built(page("a", ["NYC"]), store=store)
    assert len(await things(store)) == 1


async def test_a_fact_whose_chunks_mean_different_things_goes_with_the_most() -> None:
    fact = RawFact("Fox knows Otto", (("Fox", HEAD), ("Otto", TAIL)), "knows")
    pages = [page(name, ["The Fox"], [fact]) for name in "abc"]
    senses = {entity_id("Fox"): f'{{"{pages[0].document.id}": 16}}'}
    facts = []
    for order in (pages, pages[::-1]):
        store = MemoryStore()
        await store.set(SENSES_KIND, senses)
        await built(*order, store=store)
        facts.append((await read_content(store))["facts"])
    assert facts[0] == facts[1]
    (knows, _), *_ = facts[0].values()
    assert "#" not in knows.participants[0].entity


NAMES = st.sampled_from(["a", "b", "c", "d"])
SAID = st.builds(
    RawEntity,
    st.sampled_from(
        ["The Fox", "Fox", "fox", "U.S. Army", "US Army", "Mercury", "Otto, Count", "Count Otto"]
    ),
    st.sampled_from(["", "person", "city", "film"]),
    st.sampled_from(["", "x", "y"]),
    aliases=st.sampled_from([(), (), ("Fox",), ("Mercury",)]),
)
FACTS = st.lists(
    st.builds(
        lambda a, r, b: RawFact(f"{a} {r} {b}", ((a, HEAD), (b, TAIL)), r),
        st.sampled_from(["Fox", "Mercury"]),
        st.sampled_from(["knows", "also known as"]),
        st.sampled_from(["U.S. Army", "Count Otto"]),
    ),
    max_size=1,
)
PAGES = st.builds(page, NAMES, st.lists(SAID, min_size=1, max_size=3), FACTS)
STEPS = st.lists(
    st.tuples(st.lists(PAGES, max_size=2), st.lists(NAMES, max_size=1)), min_size=1, max_size=5
)


@settings(max_examples=settings.default.max_examples // 6, deadline=None)
@given(STEPS)
def test_any_order_gives_what_a_fresh_build_gives(
    steps: list[tuple[list[Addition], list[str]]],
) -> None:
    first: dict[str, Addition] = {}
    for added, _ in steps:
        for one in added:
            first.setdefault(one.document.id, one)
    fox = entity_id("Fox")
    bar = MergeDecision(fox, entity_id("The Fox"), same=False, by="user")

    async def check() -> None:
        with tempfile.TemporaryDirectory() as folder:
            store: Store = SqliteStore(Path(folder) / "kb", create=True, durable=False)
            left: dict[str, Addition] = {}
            await store.set(RESOLUTION_KIND, {bar.key: bar.to_json()})
            await store.set(SENSES_KIND, {fox: f'{{"{next(iter(first), "")}": 16}}'})
            for added, removed in steps:
                same = [first[one.document.id] for one in added]
                await store.write(Change(remove=removed), derive_arrays)
                await built(*same, store=store)
                left = {name: one for name, one in left.items() if name not in removed}
                left |= {one.document.names[0]: one for one in same}
            fresh = MemoryStore()
            await fresh.set(RESOLUTION_KIND, {bar.key: bar.to_json()})
            await fresh.set(SENSES_KIND, {fox: f'{{"{next(iter(first), "")}": 16}}'})
            await built(*reversed(left.values()), store=fresh)
            assert await read_content(store) == await read_content(fresh)
            assert isinstance(store, SqliteStore)
            assert [p for p in await store.find_problems() if "no vector" not in p] == []
            await store.close()

    asyncio.run(check())


def test_senses_are_those_found_with_the_company_of_all_chunks() -> None:
    rng, split = np.random.default_rng(5), 0
    for _ in range(40):
        pairs = np.unique(rng.integers(0, (20, 40), (120, 2)), axis=0)
        who, where, kinds = *pairs.T, rng.integers(0, 4, len(pairs))
        zeros, none = np.zeros(len(pairs), np.int64), np.zeros((0, 6), np.int64)
        entities, chunks = np.zeros((20, 8), np.int64), np.zeros((40, 4), np.int64)
        entities[:, 0], chunks[:, 0] = np.arange(20) + 1, np.arange(40) + 1
        mentions = np.stack([who + 1, where + 1, zeros + 1, zeros, kinds], axis=1)
        rest = none[:, :3], none[:, :3], none[:, :4]
        moved = split_homonyms(Tables(chunks, entities, none, mentions, *rest)).moved
        company, common = build_csr(40, where, who), find_common_entities(who, 20, 40)
        sense = find_senses((who, where, kinds), company, common, np.arange(20))
        np.testing.assert_array_equal(moved[:, 2] // SENSE_STRIDE, sense[sense > 0])
        np.testing.assert_array_equal(moved[:, :2] - 1, pairs[sense > 0])
        split += bool(len(moved))
    assert split > 5
