"""Vectors are stored as 16-bit numbers, those of passages as 32-bit ones; old files are read."""

import os
from pathlib import Path

import numpy as np
import pytest

from clew import kernels
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import StoreError
from clew.index.cosines import score_rows
from clew.store import vector_files
from clew.store.memory import MemoryStore
from clew.store.sqlite.store import SqliteStore
from clew.store.vector_files import VectorFile
from clew.testing.fakes import HashEmbed
from clew.text.unicode import digest
from conftest import VALLEY, stream

NAMES = [digest(str(n)) for n in range(8)]
QUESTION = "Who designed the Marrow Bridge?"


def unit_vectors(count: int, width: int = 12) -> np.ndarray:
    found = np.random.default_rng(count).standard_normal((count, width), np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def write_earlier_file(path: Path, names: list[str], vectors: np.ndarray) -> None:
    """A file as earlier versions wrote it: 32-bit numbers, with checksums."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(vector_files, "STORED", np.dtype(np.float32))
        VectorFile(path).append(names, vectors)


@pytest.mark.parametrize("kind", ["chunk", "fact", "entity"])
def test_vectors_have_16_bits(tmp_path: Path, kind: str) -> None:
    table, vectors = VectorFile(tmp_path / f"{kind}.npy"), unit_vectors(8)
    table.append(NAMES[:5], vectors[:5])
    table.append(NAMES[5:], vectors[5:])
    assert (tmp_path / f"{kind}.npy").stat().st_size == 128 + 8 * 12 * 2
    for reader in (table, VectorFile(tmp_path / f"{kind}.npy")):
        assert reader.matrix().dtype == (np.float32 if kernels.COMPILED is None else "f2")
        np.testing.assert_allclose(reader.matrix(), vectors, atol=3e-4)
        assert reader.count_checked_rows() == 8


def test_the_stores_round_alike(tmp_path: Path) -> None:
    stores = MemoryStore(), SqliteStore(tmp_path, create=True, durable=False)
    for store in stores:
        store.vectors("model", "fact").append(NAMES, unit_vectors(8))
    one, other = (store.vectors("model", "fact").matrix() for store in stores)
    np.testing.assert_array_equal(one, other)


def test_many_vectors_stay_mapped_and_score_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors, rows = unit_vectors(8), np.array([7, 0, -1, 3])
    table = VectorFile(tmp_path / "fact.npy")
    table.append(NAMES, vectors)
    with monkeypatch.context() as without:
        without.setattr(kernels, "COMPILED", None)
        assert table.matrix().dtype == np.float32
        few = score_rows(table.matrix(), rows, vectors[0])
    monkeypatch.setattr(vector_files, "MAX_WIDE_ROWS", 4)
    assert table.matrix().dtype == np.float16
    np.testing.assert_allclose(score_rows(table.matrix(), rows, vectors[0]), few, atol=1.1e-5)
    assert few.argmax() == 1 and few[2] == -1


def test_a_file_of_32_bits_is_read_and_rewritten_when_it_grows(tmp_path: Path) -> None:
    path, vectors = tmp_path / "fact.npy", unit_vectors(8)
    write_earlier_file(path, NAMES[:6], vectors[:6])
    reader = VectorFile(path)
    np.testing.assert_array_equal(reader.matrix(), vectors[:6].astype(np.float16))
    VectorFile(path).append(NAMES[6:], vectors[6:])
    assert path.stat().st_size == 128 + 8 * 12 * 2
    fresh = VectorFile(tmp_path / "new" / "fact.npy")
    fresh.append(NAMES, vectors)
    for again in (reader, VectorFile(path)):  # also one that was open meanwhile
        np.testing.assert_array_equal(again.matrix(), fresh.matrix())
        assert again.find_rows(NAMES).tolist() == list(range(8))
        assert again.count_checked_rows() == 8


@pytest.mark.parametrize("number", range(1, 10))
def test_a_rewriting_that_stops_anywhere_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path, vectors = tmp_path / "fact.npy", unit_vectors(8)
    write_earlier_file(path, NAMES[:6], vectors[:6])
    calls, sync = iter(range(1, 100)), os.fsync

    def failing(handle: int) -> None:
        if next(calls) == number:
            raise OSError(28, "No space left")
        sync(handle)

    with monkeypatch.context() as patched:
        patched.setattr("clew.store.append_files.os.fsync", failing)
        with pytest.raises(StoreError, match="stored vectors are unchanged"):
            VectorFile(path).append(NAMES[6:], vectors[6:])
    again = VectorFile(path)
    assert again.count_checked_rows() == 6
    np.testing.assert_allclose(again.matrix(), vectors[:6], atol=3e-4)
    again.append(NAMES[6:], vectors[6:])
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 64
    path.write_bytes(raw)
    with pytest.raises(StoreError, match="1 vectors have another checksum"):
        VectorFile(path).matrix()


async def test_a_knowledge_base_of_an_earlier_version_becomes_as_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_kb(name: str) -> KnowledgeBase:
        settings = Settings(kb=tmp_path / name, extractor="offline")
        store = SqliteStore(settings.kb, create=True, durable=False)
        return KnowledgeBase(store, settings, HashEmbed())

    with monkeypatch.context() as patched:
        patched.setattr(vector_files, "STORED", np.dtype(np.float32))
        await open_kb("old").take(stream(VALLEY[:3]))
    old, new = open_kb("old"), open_kb("new")
    assert (await old.search(QUESTION, recipe="clew")).evidence.chunks
    for base in (old, new):
        await base.take(stream(VALLEY))
        assert await base.verify() == []
    found = [(await base.search(QUESTION, recipe="clew")).evidence for base in (old, new)]
    assert [(c.id, c.score) for c in found[0].chunks] == [(c.id, c.score) for c in found[1].chunks]
