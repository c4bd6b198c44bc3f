"""What only the store on disk has: versions, locks, damage, other processes."""

import multiprocessing
import sqlite3
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
import pytest

from clew.errors import Locked, StoreError, VersionError
from clew.index.derive import derive_arrays
from clew.index.view import View
from clew.store.protocol import Change
from clew.store.sqlite.store import SqliteStore
from clew.store.vector_files import VectorFile
from clew.store.write_lock import WriterLock
from clew.testing.contracts import MARIE, PIERRE, read_content
from clew.text.unicode import digest


def test_a_missing_knowledge_base_names_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="clew add"):
        SqliteStore(tmp_path / "kb")


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    SqliteStore(tmp_path, create=True)
    with sqlite3.connect(tmp_path / "kb.sqlite") as db:
        db.execute("PRAGMA user_version = 999")
    with pytest.raises(VersionError, match="upgrade clew"):
        SqliteStore(tmp_path)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "kb.sqlite").write_bytes(b"not a database, by far" * 50)
    with pytest.raises(StoreError, match="not a knowledge base"):
        SqliteStore(tmp_path)


async def test_it_survives_reopening(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True)
    await store.write(Change(add=[MARIE, PIERRE]), derive_arrays)
    before = await read_content(store)
    await store.close()
    again = SqliteStore(tmp_path)
    assert await read_content(again) == before
    assert await again.find_problems() == []


async def test_damage_is_found_and_repaired(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True)
    await store.write(Change(add=[MARIE, PIERRE]), derive_arrays)
    np.save(tmp_path / "arrays" / "1" / "fact_keys.npy", np.array([7]))
    [problem] = await SqliteStore(tmp_path).find_problems()
    assert problem.startswith("fact_keys.npy is damaged (its size is wrong)")
    await store.write(Change(rebuild=True), derive_arrays)
    assert await SqliteStore(tmp_path).find_problems() == []


async def test_missing_arrays_do_not_stop_the_next_write(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True)
    await store.write(Change(add=[MARIE]), derive_arrays)
    for path in (tmp_path / "arrays" / "1").iterdir():
        path.unlink()
    again = SqliteStore(tmp_path)
    await again.write(Change(add=[PIERRE]), derive_arrays)
    assert await again.find_problems() == []
    async with again.snapshot() as now:
        assert View(now.arrays, {}).bm25.scores(["radium"]).max() > 0


def _hold(folder: Path, held: Event, enough: Event) -> None:
    with WriterLock(folder / "writer.lock", 5):
        held.set()
        enough.wait(20)


async def test_the_second_writer_is_told_who_writes(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, create=True, patience=0.1)
    fork = multiprocessing.get_context("spawn")
    held, enough = fork.Event(), fork.Event()
    other = fork.Process(target=_hold, args=(tmp_path, held, enough))
    other.start()
    try:
        assert held.wait(20)
        with pytest.raises(Locked, match=f"process {other.pid} is writing"):
            await store.write(Change(add=[MARIE]), derive_arrays)
        assert (await store.counts()).documents == 0
    finally:
        enough.set()
        other.join()
    assert (await store.write(Change(add=[MARIE]), derive_arrays)).documents == 1


async def test_a_backup_is_a_whole_truth(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "kb", create=True)
    await store.write(Change(add=[MARIE]), derive_arrays)
    copy = tmp_path / "copy" / "kb.sqlite"
    copy.parent.mkdir()
    assert await store.backup(copy) == copy.stat().st_size
    with pytest.raises(StoreError, match="already exists"):
        await store.backup(copy)
    restored = SqliteStore(copy.parent)
    await restored.write(Change(rebuild=True), derive_arrays)
    assert (await read_content(restored))["chunks"] == (await read_content(store))["chunks"]


def test_a_torn_append_leaves_the_earlier_rows(tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    VectorFile(path).append([digest("a")], np.ones((1, 3), np.float32))
    with path.open("r+b") as file:  # rows were written, the header that admits them was not
        file.seek(0, 2)
        file.write(b"\x07" * 12)
    table = VectorFile(path)
    assert table.matrix().tolist() == [[1, 1, 1]]
    table.append([digest("b")], np.full((1, 3), 2, np.float32))
    assert VectorFile(path).matrix().tolist() == [[1, 1, 1], [2, 2, 2]]


def test_vectors_begun_and_killed_are_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "chunk.npy"
    path.touch()
    path.with_suffix(".hash.npy").touch()
    table = VectorFile(path)
    assert len(table.matrix()) == 0
    table.append(["ab" * 16], np.ones((1, 3), np.float32))
    assert VectorFile(path).find_rows(["ab" * 16]).tolist() == [0]
