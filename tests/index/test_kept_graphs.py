"""A graph over many passages is made once for a generation, not by every process."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.graph.csr import Csr, build_csr
from clew.graph.similar_names import SimilarNames, find_similar_names
from clew.index import view as views
from clew.index.view import View
from clew.retrieve import ppr
from clew.store.mapped_arrays import SUMS_FILE
from clew.testing.hashed_kb import open_hashed
from conftest import document, stream

PAGES = [
    document("mill", "Ada Lindberg built the Marrow Mill in Tarn.", "Marrow Mill"),
    document("tarn", "Tarn is a town. Ada Lindberg was born in Tarn.", "Tarn"),
]
QUESTION = "Where was Ada Lindberg born?"


@pytest.fixture
def every_graph_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MIN_KEPT", 1)


async def search(folder: Path) -> list[str]:
    base = await open_hashed(Settings(kb=folder), True)
    try:
        found = await base.search(QUESTION, recipe="hipporag2")
        return [f"{one.doc} {one.score:.4f}" for one in found.evidence.chunks]
    finally:
        await base.close()


async def build(folder: Path) -> None:
    base: KnowledgeBase = await open_hashed(Settings(kb=folder), True)
    await base.take(stream(PAGES))
    await base.close()


def kept_folders(folder: Path) -> list[Path]:
    return [path.parent for path in folder.glob(f"arrays/*.kept/ppr*/{SUMS_FILE}")]


@pytest.mark.usefixtures("every_graph_is_kept")
async def test_the_next_process_reads_the_graph_of_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await build(tmp_path)
    first = await search(tmp_path)
    assert first
    assert len(kept_folders(tmp_path)) == 1
    monkeypatch.setattr("clew.retrieve.ppr.find_similar_names", pytest.fail)
    assert await search(tmp_path) == first


@pytest.mark.usefixtures("every_graph_is_kept")
async def test_a_damaged_kept_graph_is_made_again(tmp_path: Path) -> None:
    await build(tmp_path)
    first = await search(tmp_path)
    [kept] = kept_folders(tmp_path)
    raw = (kept / "columns.npy").read_bytes()
    (kept / "columns.npy").write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    assert await search(tmp_path) == first


@pytest.mark.usefixtures("every_graph_is_kept")
async def test_a_write_leaves_no_graph_of_what_was_before(tmp_path: Path) -> None:
    await build(tmp_path)
    await search(tmp_path)
    base = await open_hashed(Settings(kb=tmp_path), True)
    await base.take(stream([document("holt", "Mara Holt owns the Marrow Mill.", "Mara Holt")]))
    await base.close()
    assert not kept_folders(tmp_path)


@pytest.mark.usefixtures("every_graph_is_kept")
async def test_after_a_write_only_new_names_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ppr, "MIN_KEPT", 1)
    later = document("holt", "Mara Holt owns the Marrow Mill.", "Mara Holt")
    fresh = tmp_path / "fresh"
    base = await open_hashed(Settings(kb=fresh), True)
    await base.take(stream([*PAGES, later]))
    await base.close()
    expected = await search(fresh)

    kb = tmp_path / "kb"
    await build(kb)
    await search(kb)
    base = await open_hashed(Settings(kb=kb), True)
    await base.take(stream([later]))
    await base.close()
    known = []

    def note(*given: Any) -> SimilarNames:
        known.append(given[3])
        return find_similar_names(*given)

    monkeypatch.setattr(ppr, "find_similar_names", note)
    assert await search(kb) == expected
    assert [len(held.keys) for held in known] == [3]


@pytest.mark.usefixtures("every_graph_is_kept")
def test_arrays_in_memory_keep_nothing() -> None:
    built: list[int] = []

    def build_one() -> Csr:
        built.append(1)
        return build_csr(2, np.array([0, 1]), np.array([1, 0]))

    arrays = {"chunk_keys": np.arange(3)}
    for _ in range(2):
        View(arrays, {}).ranked_graph("graph", build_one)
    assert len(built) == 2
