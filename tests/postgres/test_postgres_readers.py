"""Readers on several machines follow a writer; killed processes and lost connections harm none."""

import asyncio
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from clew.errors import NotPermitted
from clew.index.derive import derive_arrays
from clew.index.view import View
from clew.kb_address import DatabaseAddress
from clew.store.protocol import Change
from clew.testing.contracts import MARIE, PIERRE, make_addition

pytest.importorskip("psycopg", reason="psycopg is not installed")

from clew.store.postgres.store import PostgresStore

_PATIENCE = 60  # seconds: a busy machine is slow, a reader that does not follow never comes


async def _wait_until(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not check():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def _has_generation(folder: Path, number: int) -> bool:
    return (folder / "arrays" / str(number) / "chunk_keys.npy").exists()


async def test_a_reader_fetches_what_is_announced(address: DatabaseAddress, tmp_path: Path) -> None:
    writer = PostgresStore(address, tmp_path / "writer", create=True)
    reader = PostgresStore(address, tmp_path / "reader")
    await reader.follow()
    for number, addition in enumerate((MARIE, PIERRE), start=1):
        await writer.write(Change(add=[addition]), derive_arrays)
        await _wait_until(lambda at=number: _has_generation(tmp_path / "reader", at))
    # The listening connection is lost, with all others: it comes back.
    other = writer.database.connect()
    other.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'clew' AND pid != pg_backend_pid()"
    )
    other.close()
    await writer.write(Change(remove=["marie.txt"]), derive_arrays)
    await _wait_until(lambda: _has_generation(tmp_path / "reader", 3))
    await reader.close()
    await writer.close()


async def test_who_may_only_read_keeps_replies_for_this_process(
    address: DatabaseAddress, tmp_path: Path
) -> None:
    writer = PostgresStore(address, tmp_path / "writer", create=True)
    await writer.write(Change(add=[MARIE]), derive_arrays)
    owner = writer.database.connect()
    user = f"reads_{address.schema}"
    owner.execute(f'CREATE ROLE "{user}" LOGIN')
    try:
        owner.execute(f'GRANT USAGE ON SCHEMA "{address.schema}" TO "{user}"')
        owner.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{address.schema}" TO "{user}"')
        owner.execute(f'GRANT "{user}" TO CURRENT_USER')
        options = urlencode({"options": f"-c role={user}"}, quote_via=quote)
        url = f"{address.url}{'&' if '?' in address.url else '?'}{options}"
        reader = PostgresStore(DatabaseAddress(url, address.schema), tmp_path / "reader")
        await reader.set("reply", {"window": "4096"})
        await reader.increment("manifest", "calls", 1)
        assert await reader.get("reply", ["window", "other"]) == {"window": "4096"}
        with pytest.raises(NotPermitted, match="denied"):
            await reader.set("manifest", {"schema": "{}"})
        assert await writer.get("reply", ["window"]) == {}
        assert await writer.get("manifest", ["calls"]) == {}
        await reader.close()
    finally:
        owner.execute(f'DROP OWNED BY "{user}"')
        owner.execute(f'DROP ROLE "{user}"')
        owner.close()
        await writer.close()


def _read_on(
    address: DatabaseAddress, folder: Path, stop: Event, seen: "Queue[tuple[Any, ...]]"
) -> None:
    """Read generation after generation; every one must fit its own rows."""

    async def read() -> None:
        store = PostgresStore(address, folder)
        generations = 0
        newest = -1
        while not stop.is_set():
            async with store.snapshot() as now:
                keys = View(now.arrays, {}).keys("chunk").tolist() if now.arrays else []
                chunks = await now.chunks(keys)
                documents = await now.documents([c.document for c in chunks.values()])
                fits = len(chunks) == len(keys) and all(
                    documents[c.document].text[c.start : c.end] == c.text for c in chunks.values()
                )
                if not fits or now.generation < newest:
                    seen.put(("wrong", now.generation))
                generations += now.generation != newest
                newest = now.generation
        await store.close()
        seen.put(("done", generations, newest))

    asyncio.run(read())


@pytest.mark.slow
async def test_two_readers_and_a_writer_in_processes_of_their_own(
    address: DatabaseAddress, tmp_path: Path
) -> None:
    writer = PostgresStore(address, tmp_path / "writer", create=True)
    context = multiprocessing.get_context("spawn")
    stop, seen = context.Event(), context.Queue()
    readers = [
        context.Process(target=_read_on, args=(address, tmp_path / f"reader {n}", stop, seen))
        for n in range(2)
    ]
    for reader in readers:
        reader.start()
    for number in range(12):
        addition = make_addition(f"{number % 4}.txt", f"Version {number} of Marie and Pierre.")
        await writer.write(Change(add=[addition]), derive_arrays)
    stop.set()
    found = [await asyncio.to_thread(seen.get, True, _PATIENCE) for _ in readers]
    for reader in readers:
        reader.join(_PATIENCE)
    assert [one[0] for one in found] == ["done", "done"]
    assert await writer.find_problems() == []
    await writer.close()


def _write_on(address: DatabaseAddress, folder: Path, started: Event) -> None:
    async def write() -> None:
        store = PostgresStore(address, folder, patience=_PATIENCE)
        for number in range(10_000):
            started.set()
            addition = make_addition(f"{number % 3}.txt", f"Writing {number} of Marie.")
            await store.write(Change(add=[addition]), derive_arrays)

    asyncio.run(write())


@pytest.mark.slow
async def test_a_killed_writer_leaves_a_whole_generation(
    address: DatabaseAddress, tmp_path: Path
) -> None:
    store = PostgresStore(address, tmp_path / "reader", create=True, patience=_PATIENCE)
    context = multiprocessing.get_context("spawn")
    for attempt in range(6):
        started = context.Event()
        writer = context.Process(target=_write_on, args=(address, tmp_path / "writer", started))
        writer.start()
        assert await asyncio.to_thread(started.wait, _PATIENCE)
        await asyncio.sleep(0.05 * attempt)
        writer.kill()
        writer.join()
        assert await store.find_problems() == []
        await store.write(Change(add=[MARIE]), derive_arrays)
    await store.close()
