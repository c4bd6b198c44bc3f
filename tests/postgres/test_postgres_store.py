"""A knowledge base in PostgreSQL keeps the contract of every store, and equals one in a folder."""

import asyncio
import multiprocessing
import tempfile
from collections.abc import AsyncIterator
from itertools import count
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings

from clew.errors import Locked, StoreError, VersionError
from clew.index.derive import derive_arrays
from clew.kb_address import DatabaseAddress, parse_location
from clew.store.protocol import Change, Store
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import MARIE, PIERRE, StoreContract, read_content
from clew.text.unicode import digest
from store_changes import CHANGES, make_consistent

pytest.importorskip("psycopg", reason="psycopg is not installed")

from clew.store.postgres.store import PostgresStore

_NUMBERS = count(1000)


@pytest.fixture
async def store(address: DatabaseAddress, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(address, tmp_path / "cache", create=True, patience=0.2)
    yield opened
    await opened.close()


class TestPostgresStore(StoreContract):
    """The contract, over a real server."""


async def _replay(store: Store, changes: list[Change]) -> dict[str, Any]:
    for change in changes:
        await store.write(change, derive_arrays)
    content = await read_content(store)
    async with store.snapshot() as now:
        return content | {"arrays": {name: now.arrays[name].tolist() for name in now.arrays}}


@hypothesis_settings(
    max_examples=hypothesis_settings.default.max_examples // 8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(CHANGES)
def test_it_gives_the_same_arrays_as_a_folder(server: str, changes: list[Change]) -> None:
    consistent = make_consistent(changes)

    async def check() -> None:
        with tempfile.TemporaryDirectory() as folder:
            address = parse_location(f"{server}&schema=same{next(_NUMBERS)}")
            assert isinstance(address, DatabaseAddress)
            one = PostgresStore(address, Path(folder) / "cache", create=True)
            other = SqliteStore(Path(folder) / "kb", create=True, durable=False)
            assert await _replay(one, consistent) == await _replay(other, consistent)
            assert await one.find_problems() == []
            await one.close()
            await other.close()

    asyncio.run(check())


async def test_a_stream_of_additions_equals_one_write(
    store: PostgresStore, server: str, tmp_path: Path
) -> None:
    await store.write(Change(bulk=iter([MARIE, PIERRE])), derive_arrays)
    other = SqliteStore(tmp_path / "kb", create=True, durable=False)
    await other.write(Change(add=[MARIE, PIERRE]), derive_arrays)
    assert await read_content(store) == await read_content(other)


async def test_another_machine_sees_rows_vectors_and_arrays(
    store: PostgresStore, address: DatabaseAddress, tmp_path: Path
) -> None:
    table = store.vectors("model", "chunk")
    table.append([digest("one"), digest("two")], np.eye(2, 4, dtype=np.float32))
    await store.write(Change(add=[MARIE]), derive_arrays)
    other = PostgresStore(address, tmp_path / "other machine")
    other.vectors("model", "chunk").append([digest("three")], np.full((1, 4), 3, np.float32))
    assert await read_content(other) == await read_content(store)
    assert table.find_rows([digest("three")]).tolist() == [2]
    assert table.matrix()[2].tolist() == [3, 3, 3, 3]
    await other.close()


@pytest.mark.parametrize("where", ["", "folder", "memory://files"])
async def test_files_may_be_anywhere(address: DatabaseAddress, tmp_path: Path, where: str) -> None:
    files = str(tmp_path / where) if where == "folder" else where
    one = PostgresStore(address, tmp_path / "one", create=True, files=files)
    one.vectors("model", "fact").append([digest("x")], np.ones((1, 3), np.float32))
    for addition in (MARIE, PIERRE, MARIE):
        await one.write(Change(add=[addition]), derive_arrays)
    other = PostgresStore(address, tmp_path / "two", files=files)
    assert await read_content(other) == await read_content(one)
    assert other.vectors("model", "fact").find_rows([digest("x")]).tolist() == [0]
    assert await other.find_problems() == []
    await one.close()
    await other.close()


async def test_damaged_copies_are_fetched_again(
    store: PostgresStore, address: DatabaseAddress, tmp_path: Path
) -> None:
    await store.set("manifest", {"embedder": "model", "dim": "4"})
    hashes = [digest(f"{MARIE.document.title}\n{MARIE.document.text}")]
    store.vectors("model", "chunk").append(hashes, np.ones((1, 4), np.float32))
    await store.write(Change(add=[MARIE]), derive_arrays)
    await store.close()
    for file in ("arrays/1/chunk_keys.npy",):
        (tmp_path / "cache" / file).write_bytes(b"damage")
    again = PostgresStore(address, tmp_path / "cache")
    assert (await again.counts()).chunks == 1
    [vectors] = (tmp_path / "cache" / "vectors").glob("*/chunk.npy")
    raw = bytearray(vectors.read_bytes())
    raw[-1] ^= 255
    vectors.write_bytes(raw)
    once_more = PostgresStore(address, tmp_path / "cache")
    assert "checksum" in (await once_more.find_problems())[0]
    assert once_more.vectors("model", "chunk").repair()
    assert once_more.vectors("model", "chunk").matrix().tolist() == [[1, 1, 1, 1]]
    await again.close()
    await once_more.close()


async def test_damage_in_the_tables_is_found(store: PostgresStore) -> None:
    await store.write(Change(add=[MARIE, PIERRE]), derive_arrays)
    with store.database.transaction() as db:
        db.execute("UPDATE entities SET name = 'Marja' WHERE name = 'Marie'")
        db.execute("DELETE FROM mentions WHERE surface = 'Paris'")
    problems = await store.find_problems()
    assert "1 entities with a wrong checksum" in problems
    assert "1 entities without a mention" in problems
    with pytest.raises(StoreError, match="damaged"):
        await read_content(store)


def test_a_missing_knowledge_base_names_the_way_out(
    address: DatabaseAddress, tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match="clew add"):
        PostgresStore(address, tmp_path)


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    address = parse_location("postgresql://clew:secret@127.0.0.1:1/kb")
    assert isinstance(address, DatabaseAddress)
    with pytest.raises(StoreError, match="127.0.0.1:1/kb failed") as caught:
        PostgresStore(address, tmp_path, create=True)
    assert "secret" not in str(caught.value)


async def test_a_newer_format_is_refused(
    store: PostgresStore, address: DatabaseAddress, tmp_path: Path
) -> None:
    with store.database.transaction() as db:
        db.execute("UPDATE meta SET value = '999' WHERE key = 'format'")
    with pytest.raises(VersionError, match="upgrade clew"):
        PostgresStore(address, tmp_path / "cache")


async def test_two_knowledge_bases_in_one_database_do_not_meet(
    store: PostgresStore, address: DatabaseAddress, tmp_path: Path
) -> None:
    other = PostgresStore(address.beside("more"), tmp_path / "more", create=True, patience=0.2)
    async with store.write_lock():
        await other.write(Change(add=[PIERRE]), derive_arrays)
    await store.write(Change(add=[MARIE]), derive_arrays)
    assert list(await other.sources()) == ["pierre.txt"]
    assert list(await store.sources()) == ["marie.txt"]
    await other.close()


def _hold_lock(address: DatabaseAddress, folder: Path, held: Event, free: Event) -> None:
    async def hold() -> None:
        store = PostgresStore(address, folder)
        async with store.write_lock():
            held.set()
            await asyncio.to_thread(free.wait, 30)

    asyncio.run(hold())


async def test_another_process_that_writes_is_waited_for(
    store: PostgresStore, address: DatabaseAddress, tmp_path: Path
) -> None:
    context = multiprocessing.get_context("spawn")
    held, free = context.Event(), context.Event()
    child = context.Process(target=_hold_lock, args=(address, tmp_path / "child", held, free))
    child.start()
    try:
        assert await asyncio.to_thread(held.wait, 30)
        with pytest.raises(Locked, match="is writing to"):
            await store.write(Change(add=[MARIE]), derive_arrays)
        child.kill()  # the server gives the lock back
        child.join()
        patient = PostgresStore(address, tmp_path / "cache", patience=20)
        assert (await patient.write(Change(add=[MARIE]), derive_arrays)).documents == 1
        await patient.close()
    finally:
        child.kill()
        child.join()


async def test_a_connection_that_the_server_ended_is_replaced(store: PostgresStore) -> None:
    await store.write(Change(add=[MARIE]), derive_arrays)
    other = store.database.connect()
    other.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'clew' AND pid != pg_backend_pid()"
    )
    other.close()
    assert (await store.counts()).documents == 1
    assert list(await store.sources()) == ["marie.txt"]
