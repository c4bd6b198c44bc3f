"""Sentences are embedded within their passages, and the result depends on no history."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.llm.embed import Passage, Vectors
from clew.store.memory import MemoryStore
from clew.store.protocol import QUOTED, Store
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed, QuotingEmbed
from clew.types import Document
from conftest import VALLEY, document, stream

SHARED = "Ilse Brandvik wrote about the Marrow Bridge."
TWICE = [
    document("first", f"{SHARED} She was born in Vessen."),
    document("second", f"The museum of Hallowmere opened in 1950. {SHARED}"),
    document("third", f"Jonas Petrell came later. {SHARED.replace(' about ', chr(10) + 'about ')}"),
]


class CountingEmbed(QuotingEmbed):
    """Counts the passages that it embeds."""

    def __init__(self, name: str = "context") -> None:
        super().__init__(name)
        self.passages = 0

    async def embed_quotes(self, passages: Sequence[Passage], /) -> Vectors:
        self.passages += len(passages)
        return await super().embed_quotes(passages)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return MemoryStore()
    return SqliteStore(tmp_path / "kb", create=True, durable=False)


def open_kb(store: Store, embed: HashEmbed | None = None) -> KnowledgeBase:
    return KnowledgeBase(store, Settings(extractor="offline"), embed or CountingEmbed())


async def read_facts(kb: KnowledgeBase) -> dict[str, list[float]]:
    """The vector of each fact, by its id."""
    async with kb.store.snapshot() as now:
        view = (await kb.context(now, "x")).view
        keys = view.keys("fact")
        facts = await now.facts([int(key) for key in keys])
        vectors = view.vectors("fact", np.arange(len(keys)))
        return {facts[int(key)].id: row.tolist() for key, row in zip(keys, vectors, strict=True)}


async def build(documents: Sequence[Document], embed: HashEmbed | None = None) -> KnowledgeBase:
    kb = open_kb(MemoryStore(), embed)
    await kb.take(stream(documents))
    return kb


async def test_a_sentence_is_embedded_within_its_passage(store: Store) -> None:
    kb = open_kb(store)
    await kb.take(stream(VALLEY))
    async with kb.store.snapshot() as now:
        view = (await kb.context(now, "x")).view
        facts = await now.facts([int(key) for key in view.keys("fact")])
        alone = await HashEmbed()([facts[int(key)].text for key in view.keys("fact")])
    held = np.array([*(await read_facts(kb)).values()])
    cosines = (held * alone).sum(axis=1)
    assert len(held) > 5 and (view.arrays["fact_rows"] >= 0).all()
    assert cosines.max() < 0.999 and cosines.min() > 0.5  # its own words, and those around it
    assert await kb.verify() == []
    assert (await kb.search("Who designed the Marrow Bridge?")).evidence.chunks


@pytest.mark.parametrize(
    "order", [(0, 1, 2), (2, 1, 0), pytest.param((1, 2, 0), marks=pytest.mark.slow)]
)
async def test_any_history_gives_what_a_fresh_build_does(store: Store, order: tuple[int]) -> None:
    kb = open_kb(store)
    for at in order:
        await kb.take(stream([TWICE[at]]))
    assert await read_facts(kb) == await read_facts(await build(TWICE))
    for at in order[:2]:
        await kb.remove(list(TWICE[at].names))
    assert await read_facts(kb) == await read_facts(await build([TWICE[order[2]]]))
    assert await kb.verify() == []


async def test_reembedding_and_repair_give_the_same(store: Store) -> None:
    kb = open_kb(store)
    await kb.take(stream(TWICE))
    fresh = await read_facts(kb)
    await kb.repair()
    assert await read_facts(kb) == fresh
    other = open_kb(store, CountingEmbed("renamed"))
    await other.reembed()
    assert await read_facts(other) == fresh
    await other.remove(list(TWICE[0].names))
    assert await read_facts(other) == await read_facts(await build(TWICE[1:]))
    assert await other.verify() == []


async def test_vectors_of_an_earlier_version_stay_until_they_are_made_again(store: Store) -> None:
    kb = open_kb(store, HashEmbed("context"))
    await kb.take(stream(TWICE[:2]))
    kb = open_kb(store)
    await kb.take(stream(TWICE[2:]))
    assert await read_facts(kb) == await read_facts(await build(TWICE, HashEmbed("context")))
    await kb.reembed()
    assert await read_facts(kb) == await read_facts(await build(TWICE))
    assert (await store.get("manifest", [QUOTED]))[QUOTED] == "fact"
    assert await kb.verify() == []


async def test_nothing_is_embedded_twice_and_facts_may_wait(store: Store) -> None:
    embed = CountingEmbed()
    kb = open_kb(store, embed)
    # One of many: what is removed of few is erased.
    others = [document(f"mill {at}", f"The mill {at} of Oslen is red.") for at in range(9)]
    await kb.take(stream([*TWICE, *others]))
    done = embed.passages
    await kb.remove(list(TWICE[0].names))
    await kb.take(stream(TWICE))
    assert embed.passages == done == 12
    later = Settings(extractor="offline", embed={"kinds": ["chunk"]})
    kb = KnowledgeBase(MemoryStore(), later, CountingEmbed())
    await kb.take(stream(TWICE))
    await kb.search("Who wrote about the bridge?")
    assert await read_facts(kb) == await read_facts(await build(TWICE))
