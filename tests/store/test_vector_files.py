"""Vectors on disk: several who append, damage, a disk that is full."""

import asyncio
import os
from pathlib import Path

import numpy as np
import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import EmbedderMismatch, StoreError
from clew.index.view import View
from clew.llm.embed import EmbedRole, Vectors
from clew.store.merge import embedded_text
from clew.store.sqlite.store import SqliteStore
from clew.store.vector_files import VectorFile
from clew.store.vector_records import DamagedVectors
from clew.testing.fakes import HashEmbed
from clew.text.unicode import digest
from conftest import VALLEY, document, one_in_three, stream


def open_kb(folder: Path, embed: HashEmbed | None = None) -> KnowledgeBase:
    """A knowledge base as another process would open it."""
    return KnowledgeBase(
        SqliteStore(folder, create=True, durable=False),
        Settings(kb=folder, extractor="offline"),
        embed or HashEmbed(),
    )


async def find_wrong_vectors(base: KnowledgeBase) -> list[str]:
    """Chunks whose vector is not that of their text."""
    async with base.store.snapshot() as now:
        keys = View(now.arrays, {}).keys("chunk").tolist()
        chunks = await now.chunks(keys)
        rows = now.arrays["chunk_rows"].tolist()
        own = await HashEmbed()([embedded_text(chunks[key]) for key in keys])
        held = base.store.vectors("hash", "chunk").matrix()
    return [
        chunks[key].text
        for key, row, vector in zip(keys, rows, own, strict=True)
        if not 0 <= row < len(held) or not np.allclose(held[row], vector, atol=3e-4)
    ]


async def test_two_who_add_in_turn_keep_each_others_vectors(tmp_path: Path) -> None:
    one, two = open_kb(tmp_path), open_kb(tmp_path)
    await one.take(stream(VALLEY[:2]))
    await two.take(stream(VALLEY[2:5]))
    await one.take(stream(VALLEY[5:]))
    again = open_kb(tmp_path)
    assert await again.verify() == []
    assert await find_wrong_vectors(again) == []


class _Slow(HashEmbed):
    """Lets others run while it embeds."""

    async def __call__(self, texts: list[str], /, *, role: EmbedRole = "passage") -> Vectors:
        await asyncio.sleep(0)
        return await super().__call__(texts, role=role)


async def test_two_adds_at_once_on_one_knowledge_base(tmp_path: Path) -> None:
    base = open_kb(tmp_path, _Slow())
    added = await asyncio.gather(base.take(stream(VALLEY[:3])), base.take(stream(VALLEY[3:])))
    assert [one.added for one in added] == [3, 3]
    assert await base.verify() == []
    assert await find_wrong_vectors(base) == []


async def test_threads_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    table = VectorFile(tmp_path / "v.npy")
    names = [digest(str(n)) for n in range(40)]
    await asyncio.gather(
        *(
            asyncio.to_thread(table.append, [name], np.full((1, 3), n, np.float32))
            for n, name in enumerate(names)
        )
    )
    again = VectorFile(tmp_path / "v.npy")
    assert again.matrix()[again.find_rows(names)][:, 0].tolist() == list(range(40))


async def test_another_length_under_the_same_name_is_refused(valley: KnowledgeBase) -> None:
    other = KnowledgeBase(valley.store, valley.settings, HashEmbed("hash", 32))
    with pytest.raises(EmbedderMismatch, match="vectors of 32 dimensions"):
        await other.search("Where is Marrow Bridge?", recipe="naive")
    with pytest.raises(EmbedderMismatch, match="restore \\[embed\\]"):
        await other.take(stream([document("new", "Oda Falk lives in Vessen.")]))
    assert (await valley.search("Where is Marrow Bridge?", recipe="naive")).evidence.chunks


def _garbled(folder: Path) -> None:
    [path] = folder.glob("vectors/*/chunk.hash.npy")
    path.write_bytes(b"garbage" + path.read_bytes()[7:])


def _cut(folder: Path) -> None:
    [path] = folder.glob("vectors/*/chunk.npy")
    path.write_bytes(path.read_bytes()[:140])


def _without_hashes(folder: Path) -> None:
    [path] = folder.glob("vectors/*/chunk.hash.npy")
    path.write_bytes(path.read_bytes()[:-3])


def _gone(folder: Path) -> None:
    [path] = folder.glob("vectors/*/chunk.npy")
    path.unlink()


@pytest.mark.parametrize("mend", ["reembed", "repair"])
@pytest.mark.parametrize("damage", one_in_three([_garbled, _cut, _without_hashes, _gone]))
async def test_damaged_vectors_are_told_of_and_made_anew(
    valley: KnowledgeBase, damage, mend: str
) -> None:
    folder = valley.settings.kb
    damage(folder)
    hurt = open_kb(folder)
    [problem] = await hurt.verify()
    assert "is damaged" in problem
    await getattr(hurt, mend)()
    assert await open_kb(folder).verify() == []
    assert await find_wrong_vectors(open_kb(folder)) == []


async def test_a_search_over_damaged_vectors_names_the_way_out(valley: KnowledgeBase) -> None:
    _cut(valley.settings.kb)
    with pytest.raises(DamagedVectors, match="clew reembed"):
        await open_kb(valley.settings.kb).search("Where is Marrow Bridge?", recipe="naive")


async def test_a_full_disk_is_one_clear_error(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="cannot write vectors .* No space left"):
            await base.take(stream(VALLEY))
    assert (await base.take(stream(VALLEY))).added == len(VALLEY)
    assert await find_wrong_vectors(base) == []
