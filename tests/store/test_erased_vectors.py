"""Vectors of what was removed are erased; all others stay where they are."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.store import erased_rows
from clew.store import vector_files as vector_files_module
from clew.store.vector_files import VectorFile
from clew.testing.hashed_kb import open_hashed
from clew.text.unicode import digest
from clew.types import Document

KEPT = 12  # of 18 documents
BRIDGES = ("0.txt", "6.txt", "12.txt")
QUESTION = "Who designed the Marrow Bridge?"


def _make_documents() -> list[Document]:
    places = "Marrow Bridge", "Kell Harbour", "Oslen Mill", "Vessen Tower", "Tarn Lock", "Aske Weir"
    texts = [
        f"{place} {number} was designed by Ada Lind{number} in 190{number}. It is in Hall{number}."
        for number in range(3)
        for place in places
    ]
    return [Document(digest(text), text, names=(f"{at}.txt",)) for at, text in enumerate(texts)]


async def _stream(documents: list[Document]) -> AsyncIterator[Document]:
    for one in documents:
        yield one


async def _open(folder: Path) -> KnowledgeBase:
    return await open_hashed(Settings(kb=folder, extractor="offline"), create=True)


def _read_files(folder: Path) -> dict[str, np.ndarray]:
    found = {}
    for path in folder.glob("vectors/*/*.npy"):
        if path.name in ("chunk.npy", "entity.npy", "fact.npy"):
            found[path.stem] = np.load(path).astype(np.float32)
    return found


async def _count_unused(base: KnowledgeBase) -> dict[str, tuple[int, int]]:
    """How many rows that no element has hold something, and how many rows there are."""
    found = {}
    async with base.store.snapshot() as now:
        for kind, rows in _read_files(base.settings.kb).items():
            table = now.arrays[f"raw_{'entities' if kind == 'entity' else kind + 's'}"]
            unused = np.setdiff1d(np.arange(len(rows)), table[:, 1])
            found[kind] = int(rows[unused].any(axis=1).sum()), len(rows)
    return found


@pytest.mark.parametrize("holes", [True, False])
async def test_vectors_of_removed_documents_are_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holes: bool
) -> None:
    if not holes:
        monkeypatch.setattr(erased_rows, "find_fallocate", lambda: None)
    base, documents = await _open(tmp_path / "kb"), _make_documents()
    await base.take(_stream(documents))
    sizes = {kind: count for kind, (_, count) in (await _count_unused(base)).items()}
    reader = await _open(tmp_path / "kb")  # read it before, as another process does
    assert (await reader.search(QUESTION)).evidence.chunks
    await base.remove([one.names[0] for one in documents[KEPT:]])
    assert await _count_unused(base) == {kind: (0, count) for kind, count in sizes.items()}
    for one in (base, reader, await _open(tmp_path / "kb")):
        found = await one.search(QUESTION)
        assert {chunk.doc for chunk in found.evidence.chunks} <= {f"{n}.txt" for n in range(KEPT)}
        assert found.evidence.chunks[0].doc in BRIDGES
    assert await base.verify() == []
    # Whoever held the hashes takes none of the erased rows for a text.
    await reader.take(_stream(documents[KEPT:]))
    assert await reader.verify() == []
    fresh = await _open(tmp_path / "fresh")
    await fresh.take(_stream(documents))
    scores = [
        [(hit.doc, hit.score) for hit in (await one.search(QUESTION)).evidence.chunks]
        for one in (reader, fresh)
    ]
    assert scores[0] == scores[1]


async def test_few_unused_vectors_stay_until_a_repair(tmp_path: Path) -> None:
    base, documents = await _open(tmp_path / "kb"), _make_documents()
    await base.take(_stream(documents))
    await base.remove([documents[-1].names[0]])
    assert (await _count_unused(base))["chunk"][0] == 1
    await base.repair()
    assert all(held == 0 for held, _ in (await _count_unused(base)).values())
    assert await base.verify() == []
    assert (await base.search(QUESTION)).evidence.chunks[0].doc in BRIDGES


async def test_an_erasure_that_was_killed_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = VectorFile(tmp_path / "v.npy")
    hashes = [digest(str(number)) for number in range(20)]
    table.append(hashes, np.ones((20, 8), np.float32))

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(vector_files_module, "erase_rows", stop)
        with pytest.raises(KeyboardInterrupt):
            table.erase_unused(np.arange(10), 0.2)
    again = VectorFile(tmp_path / "v.npy")
    assert (again.find_rows(hashes) < 0).tolist() == [False] * 10 + [True] * 10
    assert again.erase_unused(np.arange(10), 0) == 10
    assert again.matrix().any(axis=1).tolist() == [True] * 10 + [False] * 10
    assert again.count_checked_rows() == 20
    assert again.erase_unused(np.arange(10), 0) == 0
    again.append(hashes[10:12], np.full((2, 8), 2, np.float32))
    assert again.find_rows(hashes[9:12]).tolist() == [9, 20, 21]


async def test_sign_bits_of_erased_vectors_are_gone(tmp_path: Path) -> None:
    count = 2 * vector_files_module.MIN_SIGNED_ROWS
    table = VectorFile(tmp_path / "v.npy")
    vectors = np.random.default_rng(4).standard_normal((count, 64)).astype(np.float32)
    table.append([digest(str(number)) for number in range(count)], vectors)
    table.save_index()
    before = os.stat(tmp_path / "v.npy").st_blocks
    assert table.erase_unused(np.arange(0, count // 2), 0.2) == count // 2
    signs = np.load(tmp_path / "v.signs.npy")
    assert not signs[len(signs) // 2 :].any()
    assert signs[: len(signs) // 2].any()
    assert table.has_right_indexes()
    assert os.stat(tmp_path / "v.npy").st_blocks <= before
