"""Inverted lists: how many a query reads is measured when they are made, kept, and can be set."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from clew.config import IndexSettings
from clew.doctor import check_nearest
from clew.engine import KnowledgeBase
from clew.index import nearest
from clew.store import ivf_index, vector_files
from clew.store.ivf_index import IvfIndex, choose_lists
from clew.store.sign_bits import make_sign_bits
from clew.store.vector_files import VectorFile
from clew.text.unicode import digest

Floats = np.ndarray[Any, np.dtype[np.float32]]


class StubLists:
    """Stands for an index of faiss; row `r` is in list `r % nlist`, the first lists are read."""

    def __init__(self, vectors: Floats, nlist: int) -> None:
        self.vectors, self.nlist, self.ntotal = vectors, nlist, len(vectors)

    def search(self, queries: Floats, most: int, params: Any) -> tuple[None, Any]:
        scores = queries @ np.asarray(self.vectors, np.float32).T
        scores[:, np.arange(self.ntotal) % self.nlist >= params.nprobe] = -9
        return None, np.argsort(-scores, axis=1)[:, :most]


class FirstRow:
    """Stands for an index of faiss that finds its first row, and notes how many lists are read."""

    nlist, ntotal = 9, 1000

    def __init__(self) -> None:
        self.read: list[int] = []

    def search(self, queries: Floats, most: int, params: Any) -> tuple[None, Any]:
        self.read.append(params.nprobe)
        return None, np.zeros((len(queries), 1), np.int64)


@pytest.fixture
def stub_faiss(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(IVFRaBitQSearchParameters=SimpleNamespace)
    monkeypatch.setattr(ivf_index, "load_faiss", lambda: module)


def _make_vectors(count: int, seed: int, centres: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    found = rng.standard_normal((count, 64))
    if centres:
        found = found / 4 + rng.standard_normal((centres, 64))[rng.integers(0, centres, count)]
    unit: Floats = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
    return unit


def test_as_few_lists_are_read_as_hold_the_nearest_of_every_kind(stub_faiss: None) -> None:
    vectors = _make_vectors(8_000, 1)
    vectors[np.arange(8_000) % 400 >= 100] *= 0.01  # far from all: the nearest are in 100 lists
    lists = choose_lists(StubLists(vectors, 400), vectors, [vectors[:100]])
    assert 90 <= lists <= 150
    hidden = -vectors[np.arange(8_000) % 400 >= 300][:500]  # these are nearest to other rows
    vectors[np.arange(8_000) % 400 >= 380] *= 300
    assert choose_lists(StubLists(vectors, 400), vectors, [vectors[:100], hidden]) == 400


async def test_the_lists_that_are_read_can_be_set(
    valley: KnowledgeBase, monkeypatch: pytest.MonkeyPatch, stub_faiss: None
) -> None:
    for name, value in (("MIN_INDEXED", 1), ("CANDIDATES", 1), ("CANDIDATES_PER_HIT", 0)):
        monkeypatch.setattr(nearest, name, value)
    stub = FirstRow()
    none = make_sign_bits(_make_vectors(0, 1))
    monkeypatch.setattr(VectorFile, "row_index", lambda self: IvfIndex(stub, none, 5))
    await check_nearest(valley.settings)
    assert {*stub.read} == {5}
    stub.read.clear()
    chosen = valley.settings.model_copy(update={"index": IndexSettings(lists=7)})
    await check_nearest(chosen)
    assert {*stub.read} == {7}


def test_lists_made_by_faiss_keep_how_many_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("faiss")
    monkeypatch.setattr(vector_files, "MIN_IVF_ROWS", 10_000)
    monkeypatch.setattr(ivf_index, "FEWEST_READ", 2)
    monkeypatch.setattr(ivf_index, "CANDIDATES", 600)
    facts, names = _make_vectors(12_000, 2, centres=150), _make_vectors(500, 3)
    read = []
    for folder, beside in ((tmp_path / "alone", False), (tmp_path / "beside", True)):
        if beside:  # questions are unlike these facts, as names are
            other = VectorFile(folder / "entity.npy")
            other.append([digest(f"n{n}") for n in range(len(names))], names)
        table = VectorFile(folder / "fact.npy")
        table.append([digest(str(n)) for n in range(len(facts))], facts)
        table.save_index()
        index = VectorFile(folder / "fact.npy").row_index()
        assert isinstance(index, IvfIndex)
        read.append(index.lists)
    assert read[0] < read[1]
