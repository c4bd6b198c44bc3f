"""Rows are written, arrays derived without a transaction, and both published by a short one."""

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Callable
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest

from clew.errors import StoreError
from clew.index.derive import derive_arrays
from clew.kb_address import DatabaseAddress
from clew.store.protocol import Arrays, Change, DeriveArrays, Tables
from clew.store.sqlite.keyvalue import COUNTED_KINDS
from clew.store.sqlite.store import SqliteStore
from clew.testing.contracts import MARIE, PIERRE, make_addition, read_content

pytest.importorskip("psycopg", reason="psycopg is not installed")

from clew.store.postgres.store import PostgresStore

_OPEN = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'clew' "
    "AND pid != pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)"
)
_PATIENCE = 60


@pytest.fixture
async def store(address: DatabaseAddress, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(address, tmp_path / "cache", create=True, patience=_PATIENCE)
    yield opened
    await opened.close()


def _derive_after(look: Callable[[], None]) -> DeriveArrays:
    def derive(tables: Tables) -> Arrays:
        made = derive_arrays(tables)
        look()
        return made

    return derive


async def _read_folder(folder: Path, changes: list[Change]) -> dict[str, Any]:
    other = SqliteStore(folder, create=True, durable=False)
    for change in changes:
        await other.write(change, derive_arrays)
    found = await read_content(other)
    await other.close()
    return found


async def test_no_transaction_is_open_while_arrays_are_derived(
    store: PostgresStore, address: DatabaseAddress, tmp_path: Path
) -> None:
    await store.write(Change(add=[MARIE]), derive_arrays)
    reader = PostgresStore(address, tmp_path / "reader")
    before = await read_content(reader)
    seen: list[Any] = []

    def look() -> None:
        db = store.database.connect()
        seen.append(db.execute(_OPEN).fetchone())
        db.close()
        seen.append(asyncio.run(read_content(reader)))

    await store.write(Change(add=[PIERRE], remove=["marie.txt"]), _derive_after(look))
    assert seen == [(0,), before]  # the rows are committed, and nobody sees them yet
    assert list(await reader.sources()) == ["pierre.txt"]
    with store.database.transaction() as db:  # and what was removed is gone
        found = db.execute("SELECT count(*) FROM documents_versions").fetchone()
    assert found == (1,)
    await reader.close()


async def test_a_derivation_that_fails_changes_nothing(
    store: PostgresStore, tmp_path: Path
) -> None:
    await store.write(Change(add=[MARIE, PIERRE]), derive_arrays)
    before = await read_content(store)

    def fail() -> None:
        raise MemoryError

    again = make_addition("marie.txt", "Marie Curie worked in Warsaw.")
    with pytest.raises(MemoryError):
        await store.write(Change(add=[again], remove=["pierre.txt"]), _derive_after(fail))
    assert await read_content(store) == before
    assert await store.find_problems() == []
    await store.write(Change(add=[again]), derive_arrays)
    changes = [Change(add=[MARIE, PIERRE]), Change(add=[again])]
    assert await read_content(store) == await _read_folder(tmp_path / "kb", changes)


def _derive_until_killed(address: DatabaseAddress, folder: Path, derived: Event) -> None:
    def wait() -> None:
        derived.set()
        multiprocessing.Event().wait(_PATIENCE)

    async def write() -> None:
        store = PostgresStore(address, folder, patience=_PATIENCE)
        await store.write(Change(add=[PIERRE], remove=["marie.txt"]), _derive_after(wait))

    asyncio.run(write())


@pytest.mark.slow
async def test_the_rows_of_a_killed_writer_are_undone_by_the_next(
    store: PostgresStore, address: DatabaseAddress, tmp_path: Path
) -> None:
    await store.write(Change(add=[MARIE]), derive_arrays)
    context = multiprocessing.get_context("spawn")
    derived = context.Event()
    given = (address, tmp_path / "killed", derived)
    writer = context.Process(target=_derive_until_killed, args=given)
    writer.start()
    assert await asyncio.to_thread(derived.wait, _PATIENCE)
    writer.kill()
    writer.join()
    assert list(await store.sources()) == ["marie.txt"]
    assert await store.find_problems() == []
    other = make_addition("other.txt", "Pierre Curie taught in Paris.")
    await store.write(Change(add=[other]), derive_arrays)
    changes = [Change(add=[MARIE]), Change(add=[other])]
    assert await read_content(store) == await _read_folder(tmp_path / "kb", changes)
    assert await store.find_problems() == []


async def test_a_writer_that_lost_its_lock_cannot_publish(
    store: PostgresStore, address: DatabaseAddress, tmp_path: Path
) -> None:
    await store.write(Change(add=[MARIE]), derive_arrays)
    other = PostgresStore(address, tmp_path / "other", patience=_PATIENCE)

    def take_over() -> None:
        db = store.database.connect()
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'clew' AND pid != pg_backend_pid()"
        )
        db.close()
        asyncio.run(other.write(Change(add=[PIERRE]), derive_arrays))

    late = make_addition("late.txt", "Late news of Marie Curie.")
    with pytest.raises(StoreError, match="another process has begun"):
        await store.write(Change(add=[late]), _derive_after(take_over))
    assert sorted(await store.sources()) == ["marie.txt", "pierre.txt"]
    assert await other.find_problems() == []
    await other.close()


@pytest.mark.parametrize("kind", sorted(COUNTED_KINDS))
async def test_lost_values_are_told(
    store: PostgresStore, address: DatabaseAddress, tmp_path: Path, kind: str
) -> None:
    await store.set(kind, {"one": "1", "two": "2"})
    await store.increment(kind, "three", 3)
    await store.increment(kind, "three", 0.5)
    assert await store.find_losses() == []
    with store.database.transaction() as db:
        db.execute("DELETE FROM memory WHERE kind = %s AND key = 'two'", (kind,))
    told = f"3 stored values of kind '{kind}' were written and 2 are there"
    assert [one[: len(told)] for one in await store.find_losses()] == [told]
    assert any(one.startswith(told) for one in await store.find_problems())
    assert await store.find_losses([kind])
    assert not await store.find_losses([one for one in COUNTED_KINDS if one != kind])
    await store.accept_losses()
    assert await store.find_losses() == []
    await store.set(kind, {"one": "other"})
    assert await store.find_losses() == []


async def test_lost_settings_are_noticed_when_it_is_opened(
    store: PostgresStore, address: DatabaseAddress, tmp_path: Path
) -> None:
    await store.set("manifest", {"embedder": "model", "dim": "4"})
    with store.database.transaction() as db:
        db.execute("DELETE FROM memory WHERE key = 'embedder'")
    with pytest.raises(StoreError, match="clew restore FILE"):
        PostgresStore(address, tmp_path / "cache")
    await PostgresStore(address, tmp_path / "cache", check=False).close()


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ("DELETE FROM counters WHERE name = 'facts'", "1 tables whose next key is unknown"),
        ("DELETE FROM meta WHERE key = 'generation'", "newest generation is missing"),
    ],
)
async def test_lost_numbers_are_told(store: PostgresStore, lost: str, told: str) -> None:
    await store.write(Change(add=[MARIE]), derive_arrays)
    with store.database.transaction() as db:
        db.execute(lost.encode())
    try:
        found = await store.find_problems()
    except StoreError as error:
        found = [str(error)]
    assert any(told in one for one in found)
    with pytest.raises(StoreError, match="clew restore FILE"):
        await store.write(Change(add=[PIERRE]), derive_arrays)
