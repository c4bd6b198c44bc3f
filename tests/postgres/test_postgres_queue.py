"""The queue of jobs: leases, slots, and answers of the database that come late or never."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from clew.config import ModelSettings
from clew.errors import StoreError
from clew.kb_address import DatabaseAddress
from clew.llm.chat import Message, Request
from clew.testing.fakes import ScriptedChat

pytest.importorskip("psycopg", reason="psycopg is not installed")

from clew.cluster.handle import ModelSlots, SharedLimitChat
from clew.cluster.queue import JobListener, QueueRunner
from clew.store.postgres.jobs import JobQueue
from clew.store.postgres.store import PostgresStore
from clew.types import Usage

NOTHING = Usage()


def test_a_job_whose_worker_is_silent_goes_to_another(
    address: DatabaseAddress, tmp_path: Path
) -> None:
    store = PostgresStore(address, tmp_path / "cache", create=True)
    silent, other = JobQueue(store.database, lease=0.0), JobQueue(store.database)
    run = silent.begin_run()
    [job] = silent.enqueue(run, [("embed", b"payload")])
    assert [one.id for one in silent.take(5)] == [job]
    [again] = other.take(5)
    assert (again.id, again.attempts, again.payload) == (job, 2, b"payload")
    assert not silent.finish(job, b"too late")
    assert silent.heartbeat([job]) == set()
    assert other.finish(job, b"in time")
    assert [(one.id, one.result) for one in other.collect(run)] == [(job, b"in time")]
    assert [one.id for one in other.collect(run)] == [job]  # until it is said to be used
    assert other.collect(run, [job]) == []
    store.database.close()


def test_slots_of_a_silent_worker_are_free_again(address: DatabaseAddress, tmp_path: Path) -> None:
    store = PostgresStore(address, tmp_path / "cache", create=True)
    one, other = JobQueue(store.database), JobQueue(store.database)
    run = one.begin_run()
    one.heartbeat([])
    assert one.take_slot(1, "model", run, 1, 60)
    assert not other.take_slot(2, "model", run, 1, 60)
    assert other.take_slot(3, "another", run, 1, 60)
    one.leave()
    assert other.take_slot(4, "model", run, 1, 60)
    store.database.close()


class EagerQueue(JobQueue):
    """A worker is done with a job before the build has been told its number."""

    def enqueue(self, run: str, tasks: Sequence[tuple[str, bytes]]) -> list[int]:
        """Add jobs, do them, and return only when their results could have been collected."""
        ids = super().enqueue(run, tasks)
        for job in self.take(len(tasks)):
            assert self.finish(job.id, job.payload.upper())
        time.sleep(0.2)
        return ids


async def test_a_result_may_come_before_its_job_is_known(
    address: DatabaseAddress, tmp_path: Path
) -> None:
    store = PostgresStore(address, tmp_path / "cache", create=True)
    queue = EagerQueue(store.database)
    listener = JobListener(queue)
    runner = QueueRunner(queue, queue.begin_run(), listener)
    collecting = asyncio.create_task(runner.collect())
    async with asyncio.timeout(30):
        assert await runner.run("embed", b"payload") == b"PAYLOAD"
    collecting.cancel()
    await listener.close()
    store.database.close()


async def test_a_cancelled_caller_leaves_the_jobs_of_others_to_be_sent(
    address: DatabaseAddress, tmp_path: Path
) -> None:
    store = PostgresStore(address, tmp_path / "cache", create=True)
    queue = EagerQueue(store.database)
    listener = JobListener(queue)
    runner = QueueRunner(queue, queue.begin_run(), listener)
    collecting = asyncio.create_task(runner.collect())
    first = asyncio.create_task(runner.run("embed", b"first"))
    await asyncio.sleep(0)  # it is sending
    other = asyncio.create_task(runner.run("embed", b"other"))
    await asyncio.sleep(0)
    first.cancel()
    async with asyncio.timeout(30):
        assert await other == b"OTHER"
    collecting.cancel()
    await runner.stop()
    await listener.close()
    store.database.close()


class SlowQueue(JobQueue):
    """A slot is taken in the database, and the answer is late or lost."""

    lost: ClassVar[bool] = False

    def take_slot(
        self, slot: int, model: str, run: str, most: int, seconds: float, about: Usage = NOTHING
    ) -> bool:
        """Take it, and answer late."""
        taken = super().take_slot(slot, model, run, most, seconds, about)
        time.sleep(0.2)
        if self.lost:
            raise StoreError("the connection was lost")
        return taken

    def free_slot(self, slot: int, run: str, used: Usage) -> None:
        """Fail if the connection is lost."""
        if self.lost:
            raise StoreError("the connection was lost")
        super().free_slot(slot, run, used)


@pytest.mark.parametrize("lost", [False, True])
async def test_a_slot_is_free_again_when_its_call_was_given_up(
    address: DatabaseAddress, tmp_path: Path, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore(address, tmp_path / "cache", create=True)
    queue = SlowQueue(store.database)
    run = queue.begin_run()
    queue.heartbeat([])
    monkeypatch.setattr(SlowQueue, "lost", lost)
    slots = ModelSlots(queue)
    chat = SharedLimitChat(ScriptedChat(["reply"]), "model", slots, ModelSettings(concurrency=1))
    calling = asyncio.create_task(chat(Request((Message("user", "question"),))))
    await asyncio.sleep(0.1)  # the slot is being taken
    if not lost:
        calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)
    monkeypatch.setattr(SlowQueue, "lost", False)
    await slots.settle()  # as every heartbeat does
    assert JobQueue(store.database).take_slot(7, chat.name, run, 1, 60)
    store.database.close()


def test_a_job_that_ends_every_worker_is_given_up(address: DatabaseAddress, tmp_path: Path) -> None:
    store = PostgresStore(address, tmp_path / "cache", create=True)
    queue = JobQueue(store.database, lease=0.0, most_attempts=3)
    run = queue.begin_run()
    queue.enqueue(run, [("embed", b"")])
    assert [len(queue.take(1)) for _ in range(4)] == [1, 1, 1, 0]
    [ended] = queue.collect(run)
    assert ended.error == "its workers were lost 3 times"
    store.database.close()


def _read_totals(store: PostgresStore) -> dict[str, float]:
    with store.database.transaction() as db:
        rows = db.execute(
            "SELECT key, value FROM memory WHERE kind = 'manifest' "
            "AND key IN ('calls', 'tokens', 'spent')"
        ).fetchall()
    return {key: float(value) for key, value in rows}


def test_a_call_that_ends_after_its_build_is_counted_once(
    address: DatabaseAddress, tmp_path: Path
) -> None:
    store = PostgresStore(address, tmp_path / "cache", create=True)
    queue = JobQueue(store.database)
    run = queue.begin_run()
    queue.heartbeat([])
    assert queue.take_slot(1, "model", run, 2, 60, Usage(1, 10, money=0.1))
    queue.end_run(run)
    for _ in range(2):  # again, as if the first answer had been lost
        queue.free_slot(1, run, Usage(1, 12, 3, money=0.25))
    assert _read_totals(store) == {"calls": 1, "tokens": 15, "spent": 0.25}
    store.database.close()


def test_the_call_of_a_killed_worker_is_counted_as_it_was_expected(
    address: DatabaseAddress, tmp_path: Path
) -> None:
    store = PostgresStore(address, tmp_path / "cache", create=True)
    killed, other = JobQueue(store.database, lease=0.0), JobQueue(store.database, lease=0.0)
    run = killed.begin_run()
    killed.heartbeat([])
    assert killed.take_slot(1, "model", run, 2, 60, Usage(1, 10, money=0.1))
    for _ in range(2):
        other.count_lost_calls()  # as every heartbeat does
    killed.free_slot(1, run, Usage(1, 12, 3, money=0.25))  # it was only cut off
    assert _read_totals(store) == {"calls": 1, "tokens": 10, "spent": 0.1}
    assert other.read_usage(run) == Usage(1, 10, money=0.1)
    store.database.close()
