"""Embedding beside extraction: nothing twice, the same rows however the work is interleaved."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import ModelError
from clew.ingest import embedding
from clew.ingest.build import IngestPipeline
from clew.ingest.chunk import CHUNKERS
from clew.llm.embed import EmbedRole, Vectors
from clew.store.sqlite.store import SqliteStore
from clew.testing.fakes import HashEmbed
from clew.text.unicode import digest
from clew.types import Chunk, Document, Extraction, RawEntity, RawFact
from conftest import document

DOCUMENTS = [
    document(f"d{number}", f"Town {number % 5} lies near Hill {number}.", f"Town {number}")
    for number in range(40)
]


def said(chunk: Chunk) -> Extraction:
    words = chunk.text.rstrip(".").split()
    one, other = " ".join(words[:2]), " ".join(words[-2:])
    return Extraction(
        (RawEntity(one), RawEntity("1905", "date")),
        (RawFact(chunk.text, ((one, "head"), (other, "tail")), "lies near"),),
    )


class Shuffled:
    """Answers in an order that chance decides."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def __repr__(self) -> str:
        return "Shuffled"

    async def __call__(
        self, document: Document, chunks: Sequence[Chunk], /
    ) -> Sequence[Extraction]:
        for _ in range(self.chance.randrange(5)):
            await asyncio.sleep(0)
        return [said(chunk) for chunk in chunks]


class Counting(HashEmbed):
    """Remembers what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[str] = []

    async def __call__(self, texts: Sequence[str], /, *, role: EmbedRole = "passage") -> Vectors:
        self.given += texts
        return await super().__call__(texts, role=role)


async def built(folder: Path, seed: int, embed: HashEmbed) -> SqliteStore:
    store = SqliteStore(folder, create=True, durable=False)
    build = IngestPipeline(store, CHUNKERS["sentences"], Shuffled(seed), embed)

    async def stream():  # type: ignore[no-untyped-def]
        for one in DOCUMENTS:
            yield one

    await build.add(stream())
    return store


async def test_rows_do_not_depend_on_who_answers_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "BLOCK", 16)
    stores = [await built(tmp_path / str(seed), seed, Counting()) for seed in (1, 2)]
    for kind in ("chunk", "entity", "fact"):
        one, other = (store.vectors("hash", kind).matrix() for store in stores)  # type: ignore[arg-type]
        assert len(one) > 16
        np.testing.assert_array_equal(one, other)
    for store in stores:
        await store.close()


async def test_every_text_is_embedded_once_and_values_never(tmp_path: Path) -> None:
    embed = Counting()
    store = await built(tmp_path, 3, embed)
    given = embed.given[1:]  # the first asks for the dimension
    assert len(given) == len(set(given))
    assert {"Town 3", "Hill 39"} <= set(given)
    assert "1905" not in given
    again = Counting()
    await embedding.embed_texts(
        store, again, {"entity": ["Town 3", "Town 3", "somewhere new"]}, lambda *told: None
    )
    assert again.given == ["somewhere new"]
    await store.close()


async def test_a_text_of_two_kinds_is_embedded_once(tmp_path: Path) -> None:
    store, embed = SqliteStore(tmp_path / "kb", create=True, durable=False), Counting()
    texts = {"chunk": ["One.", "Two."], "fact": ["Two.", "Three."]}
    await embedding.embed_texts(store, embed, texts, lambda *told: None)
    assert sorted(embed.given) == ["One.", "Three.", "Two."]
    same = [store.vectors(embed.name, kind).matrix() for kind in ("chunk", "fact")]
    assert sum(bool(np.allclose(one, two, atol=1e-3)) for one in same[0] for two in same[1]) == 1
    await store.close()


async def test_embedding_goes_on_while_others_are_extracted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "BLOCK", 4)
    begun = asyncio.Event()

    class Telling(HashEmbed):
        async def __call__(
            self, texts: Sequence[str], /, *, role: EmbedRole = "passage"
        ) -> Vectors:
            if list(texts) != ["dimension"]:
                begun.set()
            return await super().__call__(texts, role=role)

    class LastWaits:
        def __repr__(self) -> str:
            return "LastWaits"

        async def __call__(
            self, document: Document, chunks: Sequence[Chunk], /
        ) -> Sequence[Extraction]:
            if document.names == ("d39",):
                await asyncio.wait_for(begun.wait(), 20)
            return [said(chunk) for chunk in chunks]

    async def stream():  # type: ignore[no-untyped-def]
        for one in DOCUMENTS:
            yield one

    store = SqliteStore(tmp_path, create=True, durable=False)
    added = await IngestPipeline(store, CHUNKERS["sentences"], LastWaits(), Telling()).add(stream())
    assert added.added == 40
    await store.close()


async def test_an_embedder_that_fails_stops_the_build_with_its_own_words(tmp_path: Path) -> None:
    class Failing(HashEmbed):
        async def __call__(
            self, texts: Sequence[str], /, *, role: EmbedRole = "passage"
        ) -> Vectors:
            if list(texts) != ["dimension"]:
                raise ModelError("no more vectors today")
            return await super().__call__(texts, role=role)

    with pytest.raises(ModelError, match="no more vectors today"):
        await built(tmp_path, 5, Failing())


async def test_answers_are_saved_before_the_slowest_call_ends(tmp_path: Path) -> None:
    """A kill while the last call is awaited loses none of the answers before it."""
    store = SqliteStore(tmp_path, create=True, durable=False)
    reader = SqliteStore(tmp_path)
    texts = [f"text {number}" for number in range(4)]

    def count_saved() -> int:
        return len(reader.vectors("hash", "entity").matrix())

    class LastWaits(HashEmbed):
        batch, concurrency = 1, 4
        saved = 0

        async def __call__(
            self, texts: Sequence[str], /, *, role: EmbedRole = "passage"
        ) -> Vectors:
            if "text 3" in texts:
                while self.saved < 3:  # without an end if they are saved only afterwards
                    await asyncio.sleep(0)
                    self.saved = count_saved()
            return await super().__call__(texts, role=role)

    async with asyncio.timeout(30):
        await embedding.embed_texts(store, LastWaits(), {"entity": texts}, lambda *told: None)
    assert count_saved() == 4
    await store.close()
    await reader.close()


async def test_an_answer_that_waits_for_a_slower_call_outlives_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "WAIT_SECONDS", 0.01)
    texts = [f"text {number}" for number in range(4)]
    first, second = SqliteStore(tmp_path, create=True, durable=False), SqliteStore(tmp_path)

    class FirstNeverAnswers(HashEmbed):
        batch, concurrency = 1, 4
        answered = 0

        async def __call__(
            self, texts: Sequence[str], /, *, role: EmbedRole = "passage"
        ) -> Vectors:
            if "text 0" in texts:
                await asyncio.Event().wait()
            found = await super().__call__(texts, role=role)
            self.answered += 1
            return found

    def count_kept() -> int:
        return len(second.vectors("hash (early)", "chunk").matrix())

    running = asyncio.ensure_future(
        embedding.embed_texts(first, FirstNeverAnswers(), {"entity": texts}, lambda *told: None)
    )
    while count_kept() < 3:  # noqa: ASYNC110  (without an end if they are not kept)
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(second.vectors("hash", "entity").matrix()) == 0

    class OneByOne(HashEmbed):
        batch, concurrency = 1, 4

    again = OneByOne()
    await embedding.embed_texts(second, again, {"entity": texts}, lambda *told: None)
    assert again.texts == 1
    assert second.vectors("hash", "entity").find_rows(
        [digest(text) for text in texts]
    ).tolist() == [*range(4)]
    kept = list(tmp_path.glob("vectors/*"))  # noqa: ASYNC240  (a folder of a test)
    assert len(kept) == 1  # what was kept aside is gone
    await first.close()
    await second.close()


async def test_an_add_tells_its_progress_while_one_block_is_embedded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "count_cores", lambda: 2)
    (tmp_path / "notes").mkdir()
    for number in range(300):
        text = f"Mast {number} stands in Harrow {number}. It was raised in {1700 + number}."
        (tmp_path / "notes" / f"{number}.txt").write_text(text)
    store = SqliteStore(tmp_path / "kb", create=True, durable=False)
    base = KnowledgeBase(store, Settings(kb=tmp_path / "kb"), HashEmbed())
    told: list[tuple[int, int]] = []

    def hear(stage: str, done: int, total: int) -> None:
        if stage == "embed":
            told.append((done, total))

    await base.add([tmp_path / "notes"], progress=hear)
    await base.close()
    total = told[-1][0]
    assert told[0] == (0, total) and told[-1] == (total, total)  # the total is known at once
    assert told == sorted(told) and len(told) > 4
