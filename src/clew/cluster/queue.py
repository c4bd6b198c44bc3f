"""The queue in PostgreSQL: the build that waits for results, and the workers that make them."""

import asyncio
import contextlib
from asyncio import Future, Task
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Thread
from time import monotonic

import psycopg
from psycopg import sql

from clew.cluster.handle import (
    ModelSlots,
    SharedLimitChat,
    TaskHandler,
    share_budget,
    share_embedder,
)
from clew.engine import KnowledgeBase
from clew.errors import AuthError, ClewError, ConfigError, ModelError, StoreError
from clew.graph.parts import HERE, RunParts
from clew.ingest.remote import TaskKind
from clew.llm.budget import BudgetExceeded
from clew.store.postgres.jobs import Job, JobQueue
from clew.store.postgres.store import PostgresStore
from clew.types import Usage

_POLL_SECONDS = 0.5  # without a notification
_EARLY_SECONDS = 0.02  # while a result is there of which nobody knows yet
_RETRY_SECONDS = 2.0
_LAST_HEARTBEATS = 3  # per lease
_ALONE_SECONDS = 5.0  # that a build waits for a worker before it says that there is none


class JobListener:
    """Sets an asyncio event when jobs were added or ended, from a thread that listens."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="clew-jobs", daemon=True)
        self._thread.start()

    async def wait(self, seconds: float = _POLL_SECONDS) -> None:
        """Wait for news, but not longer than so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        self._news.clear()

    async def close(self) -> None:
        """Stop listening."""
        self._stopped.set()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                db = self._queue.database.connect()
                with contextlib.closing(db):
                    db.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._queue.channel)))
                    while not self._stopped.is_set():
                        for _ in db.notifies(timeout=_POLL_SECONDS, stop_after=1):
                            self._loop.call_soon_threadsafe(self._news.set)
            except (psycopg.Error, StoreError):
                self._stopped.wait(_RETRY_SECONDS)


@dataclass(eq=False)
class QueueRunner:
    """Gives the tasks of a build to workers, by the queue of its knowledge base."""

    queue: JobQueue
    run_name: str
    listener: JobListener
    on_usage: Callable[[Usage], None] = lambda usage: None
    """Told what the calls of workers have used since the last time."""
    _known: Usage = Usage()
    _waiting: dict[int, Future[bytes]] = field(default_factory=dict)
    _new: list[tuple[TaskKind, bytes, Future[bytes]]] = field(default_factory=list)
    _sending: Task[None] | None = None
    failure: ClewError | None = None
    on_alone: Callable[[], None] = lambda: None
    """Told that no worker is alive, once until there is one again."""
    parts: RunParts = HERE
    """Workers extract and embed; arrays are derived by the process that builds."""

    def __post_init__(self) -> None:
        """No worker was looked for yet."""
        self._looked_at, self._alone = monotonic(), False

    async def run(self, kind: TaskKind, payload: bytes) -> bytes:
        """Add a job and wait for its result."""
        if self.failure is not None:
            raise self.failure
        result: Future[bytes] = asyncio.get_running_loop().create_future()
        self._new.append((kind, payload, result))
        if self._sending is None or self._sending.done():
            # A task of its own: if this caller is cancelled, the jobs of others are sent all
            # the same.
            self._sending = asyncio.create_task(self._send())
        return await result

    async def _send(self) -> None:
        while self._new:  # what others add meanwhile goes with the next transaction
            sent, self._new = self._new, []
            tasks = [(kind, payload) for kind, payload, _ in sent]
            try:
                ids = await asyncio.to_thread(self.queue.enqueue, self.run_name, tasks)
            except ClewError as error:
                for _, _, result in sent:
                    _resolve(result, b"", error)
            else:
                for at, (_, _, result) in zip(ids, sent, strict=True):
                    self._waiting[at] = result

    async def collect(self) -> None:
        """Hand out results until cancelled; a lost connection is tried again.

        A worker may be done with a job before `_send` knows its number: such a result stays in
        the queue until somebody waits for it.
        """
        used: list[int] = []
        while True:
            try:
                ended = await asyncio.to_thread(self.queue.collect, self.run_name, used)
                # After the results: what a job's calls used is stored before its result.
                now = await asyncio.to_thread(self.queue.read_usage, self.run_name)
            except StoreError:
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            self.on_usage(now - self._known)
            self._known = now
            used = [job.id for job in ended if job.id in self._waiting]
            for job in ended:
                error = ModelError(job.error) if job.error else None
                _resolve(self._waiting.pop(job.id, None), job.result, error)
            if not used:
                await self._check_budget()
                await self._look_for_workers()
                await self.listener.wait(_EARLY_SECONDS if ended else _POLL_SECONDS)

    async def stop(self) -> None:
        """Wait for what is being sent: it must not be in the queue after the build has left it."""
        if self._sending is not None:
            await asyncio.wait([self._sending])

    async def _look_for_workers(self) -> None:
        """Say that no worker is there, if jobs wait for one."""
        if not self._waiting or monotonic() - self._looked_at < _ALONE_SECONDS:
            return
        self._looked_at = monotonic()
        with suppress(StoreError):
            alone = await asyncio.to_thread(self.queue.count_workers) == 0
            if alone and not self._alone:
                self.on_alone()
            self._alone = alone

    async def _check_budget(self) -> None:
        """Fail all waiting tasks once the money is spent: no worker will take them."""
        with suppress(StoreError):
            spent = await asyncio.to_thread(self.queue.is_out_of_money, self.run_name)
            if spent and self._waiting:
                self.failure = BudgetExceeded(
                    "the budget of this build is spent; what was paid for is kept, and the same "
                    "command with a larger --budget goes on from there"
                )
                for result in self._waiting.values():
                    _resolve(result, b"", self.failure)
                self._waiting.clear()


def _resolve(waiter: Future[bytes] | None, result: bytes, error: ClewError | None) -> None:
    if waiter is None or waiter.done():
        return
    if error is not None:
        waiter.set_exception(error)
    else:
        waiter.set_result(result)


def _open_queue(base: KnowledgeBase) -> JobQueue:
    if not isinstance(base.store, PostgresStore):
        raise ConfigError("workers share a database; use --kb postgresql://HOST/DATABASE")
    return JobQueue(base.store.database, lease=base.settings.store.lease)


@asynccontextmanager
async def open_queue_runner(
    base: KnowledgeBase,
    budget: float | None = None,
    on_alone: Callable[[], None] = lambda: None,
) -> AsyncIterator[QueueRunner]:
    """Begin a build whose tasks workers do.

    `budget` is the money that they may spend; `on_alone` is told if there are none.
    """
    queue = _open_queue(base)
    count = share_budget(base, budget, base.models.count_recorded)
    run = await asyncio.to_thread(queue.begin_run, budget)
    listener = JobListener(queue)
    runner = QueueRunner(queue, run, listener, count, on_alone=on_alone)
    collecting = asyncio.create_task(runner.collect())
    try:
        yield runner
    finally:
        collecting.cancel()
        with suppress(asyncio.CancelledError):
            await collecting
        await runner.stop()
        await listener.close()
        await asyncio.to_thread(queue.end_run, run)


@dataclass(eq=False)
class Worker:
    """Takes jobs as long as it runs; many at once, as models answer slowly."""

    base: KnowledgeBase
    queue: JobQueue
    slots: ModelSlots
    at_once: int
    on_done: Callable[[Job], None] = lambda job: None
    done: int = 0
    failure: ClewError | None = None
    """Why it has to stop: its settings or its key are wrong."""
    _held: dict[int, Task[None]] = field(default_factory=dict)

    @classmethod
    def of(cls, base: KnowledgeBase, at_once: int | None = None) -> "Worker":
        """A worker with the settings of a knowledge base."""
        queue = _open_queue(base)
        slots = ModelSlots(queue)
        base.models.gate = partial(SharedLimitChat, slots=slots, settings=base.settings.models)
        share_embedder(base.embed, slots, base.settings)
        return cls(base, queue, slots, at_once or base.settings.models.concurrency)

    async def work(self, *, until_idle: bool = False) -> int:
        """Take and do jobs until cancelled, or until there are none; return how many were done."""
        handler = TaskHandler(self.base, counted=True)
        listener = JobListener(self.queue)
        beating = asyncio.create_task(self._beat())
        try:
            while self.failure is None:
                taken = await self._take()
                for job in taken:
                    task = asyncio.create_task(self._do(handler, job))
                    self._held[job.id] = task
                    task.add_done_callback(partial(self._forget, job.id))
                if not taken and not self._held and until_idle:
                    return self.done
                if len(self._held) >= self.at_once:
                    await asyncio.wait(self._held.values(), return_when=asyncio.FIRST_COMPLETED)
                elif not taken:
                    await self._wait(listener)
            raise self.failure
        finally:
            beating.cancel()
            await self._give_back()
            await listener.close()

    def _forget(self, job: int, task: "Task[None]") -> None:
        self._held.pop(job, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error  # of our own code: the loop reports it

    async def _wait(self, listener: JobListener) -> None:
        """Wait for news, or for a job of our own to end."""
        waiting = asyncio.create_task(listener.wait())
        await asyncio.wait({waiting, *self._held.values()}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()

    async def _take(self) -> list[Job]:
        room = self.at_once - len(self._held)
        try:
            return await asyncio.to_thread(self.queue.take, room) if room > 0 else []
        except StoreError:
            await asyncio.sleep(_RETRY_SECONDS)  # the server may come back
            return []

    async def _do(self, handler: TaskHandler, job: Job) -> None:
        """Do one job; what fails for now is given back, what fails for good is told."""
        try:
            result = await handler(job.kind, job.payload, job.run)
            if await asyncio.to_thread(self.queue.finish, job.id, result):
                self.done += 1
                self.on_done(job)
        except (ConfigError, AuthError) as error:
            self.failure = error
            await self._release(job, failed=False)
        except (BudgetExceeded, StoreError):
            await self._release(job, failed=False)
        except ClewError as error:
            if job.attempts >= self.queue.most_attempts:
                await asyncio.to_thread(self.queue.fail, job.id, str(error))
            else:
                await self._release(job, failed=True)

    async def _release(self, job: Job, *, failed: bool) -> None:
        after = min(60.0, 0.5 * 2**job.attempts) if failed else 0.0
        with suppress(StoreError):  # else its lease ends
            await asyncio.to_thread(self.queue.release, job.id, after=after, failed=failed)

    async def _beat(self) -> None:
        """Keep the leases; stop the work on jobs that were given to another worker."""
        while True:
            held = list(self._held)
            with suppress(StoreError):
                kept = await asyncio.to_thread(self.queue.heartbeat, held)
                for at in set(held) - kept:
                    if (task := self._held.get(at)) is not None:
                        task.cancel()
                await self.slots.settle()
                await asyncio.to_thread(self.queue.count_lost_calls)
            await asyncio.sleep(self.queue.lease / _LAST_HEARTBEATS)

    async def _give_back(self) -> None:
        """Give unfinished jobs back at once, so that nobody waits for the lease to end."""
        held = dict(self._held)
        for task in held.values():
            task.cancel()
        await asyncio.gather(*held.values(), return_exceptions=True)
        with suppress(StoreError):
            for at in held:
                await asyncio.to_thread(self.queue.release, at)
            await asyncio.to_thread(self.queue.leave)
