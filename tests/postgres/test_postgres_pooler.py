"""Through pgbouncer, which gives each transaction another session, all is as without it."""

from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import pytest

from clew.errors import Locked
from clew.index.derive import derive_arrays
from clew.kb_address import DatabaseAddress, parse_location
from clew.store.protocol import Change
from clew.testing.contracts import MARIE, PIERRE, StoreContract, read_content
from clew.testing.postgres_server import has_pooler, start_pooler

pytest.importorskip("psycopg", reason="psycopg is not installed")

from clew.store.postgres.jobs import JobQueue
from clew.store.postgres.store import PostgresStore

_NUMBERS = count(1)


@pytest.fixture(scope="module")
def pooler(server: str) -> Iterator[str]:
    if not has_pooler():
        pytest.skip("pgbouncer is not installed")
    with start_pooler(server) as url:
        yield url


@pytest.fixture
def pooled(pooler: str) -> DatabaseAddress:
    found = parse_location(f"{pooler}&schema=pooled{next(_NUMBERS)}")
    assert isinstance(found, DatabaseAddress)
    return found


@pytest.fixture
async def store(pooled: DatabaseAddress, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(pooled, tmp_path / "cache", create=True, patience=0.2)
    yield opened
    await opened.close()


class TestThroughPooler(StoreContract):
    """The contract, through pgbouncer."""


async def test_the_lock_and_readers_work_through_a_pooler(
    store: PostgresStore, pooled: DatabaseAddress, tmp_path: Path
) -> None:
    other = PostgresStore(pooled, tmp_path / "other", patience=0.1)
    async with store.write_lock():
        with pytest.raises(Locked):
            await other.write(Change(add=[PIERRE]), derive_arrays)
        await store.write(Change(add=[MARIE]), derive_arrays)
    await other.write(Change(add=[PIERRE]), derive_arrays)
    assert await read_content(store) == await read_content(other)
    assert await store.find_problems() == []
    await other.close()


def test_jobs_go_through_a_pooler(pooled: DatabaseAddress, tmp_path: Path) -> None:
    database = PostgresStore(pooled, tmp_path / "cache", create=True).database
    queue = JobQueue(database)
    run = queue.begin_run()
    queue.enqueue(run, [("embed", b"one"), ("embed", b"two")])
    for job in queue.take(5):
        assert queue.finish(job.id, job.payload.upper())
    assert sorted(one.result for one in queue.collect(run)) == [b"ONE", b"TWO"]
    database.close()
