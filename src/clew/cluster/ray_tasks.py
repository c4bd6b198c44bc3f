"""A build on a Ray cluster: actors that read, extract and embed; lost ones are replaced.

Tasks go to actors that have answered, which keep models and weights loaded. The task of an actor
that is lost goes to another one, while a new one is started wherever there is room: one that
answers is enough to finish. What extraction has paid for is kept in the knowledge base: by the
actors if they share its database, else by the build as soon as a task is done.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import ray

from clew.cluster.handle import SharedLimitChat, TaskHandler, share_budget, share_embedder
from clew.cluster.ray_connection import connect, last_line
from clew.cluster.ray_limits import RaySlots, ask_limits, start_limits
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import AuthError, ConfigError, ModelError, StoreError
from clew.extract.model_extractors import MODEL_EXTRACTORS
from clew.ingest.remote import TaskKind
from clew.kb_address import DatabaseAddress
from clew.llm.budget import BudgetExceeded
from clew.llm.factory import find_embedder
from clew.store.memory import MemoryStore
from clew.store.protocol import KeyValueStore, Store
from clew.stores.opening import open_located_store
from clew.text.unicode import digest
from clew.types import Usage

_TRIES = 5  # of one task, on actors that die
PATIENCE = 180.0
"""Seconds that a build waits while no actor answers."""
_START_SECONDS = 60.0  # in which an actor has answered, else another one is started for it
_SILENT_SECONDS = 60.0  # after which an actor that does not answer is given up
_LOOK_SECONDS = 5.0  # between two questions whether an actor is there
_GATHER_SECONDS = 10.0  # that the first actor waits for others, so that tasks are spread
_LONGEST_PAUSE = 5.0  # between starts of actors that die at once
_TASKS_PER_ACTOR = 16


class TaskActor:
    """Does tasks in a process of the cluster."""

    def __init__(self, settings: Settings, held: str, limits: Any, holder: str) -> None:
        self._settings = settings
        self._held = held
        self._slots = RaySlots(limits, holder)
        self._handler: TaskHandler | None = None

    async def node(self) -> str:
        """The node that it runs on; answered as soon as it is there."""
        return str(ray.get_runtime_context().get_node_id())

    async def run(self, kind: str, payload: bytes) -> tuple[bytes, str, dict[str, Usage]]:
        """Run one task; return its result, the node it ran on, and what all tasks have used."""
        if self._handler is None:
            self._handler = TaskHandler(self._open(), counted=True)
        result = await self._handler(kind, payload)
        return result, await self.node(), self._slots.totals

    def _open(self) -> KnowledgeBase:
        """A knowledge base to work for: replies are shared where all nodes reach its store."""
        shared = isinstance(self._settings.kb, DatabaseAddress)
        store: Store = open_located_store(self._settings) if shared else MemoryStore()
        base = KnowledgeBase(store, self._settings, find_embedder(self._settings, self._held))
        models = self._settings.models
        base.models.gate = partial(SharedLimitChat, slots=self._slots, settings=models)
        share_embedder(base.embed, self._slots, self._settings)
        return base


@dataclass(frozen=True)
class RayParts:
    """Computes the parts of a derivation as tasks, which Ray spreads over the nodes.

    A task that is lost with its node is done again elsewhere. What all parts need is put into
    Ray's object store once.
    """

    count: int
    nodes: dict[str, int] = field(default_factory=dict)
    """How many parts each node has computed."""

    def __call__(
        self,
        function: Callable[..., Any],
        parts: Sequence[tuple[Any, ...]],
        shared: tuple[Any, ...] = (),
    ) -> list[Any]:
        """The results, in the order of the parts."""
        held = [ray.put(one) for one in shared]
        # No processor of its own: the actors hold all of them, and are idle meanwhile.
        task = ray.remote(_compute_part).options(
            num_cpus=0, max_retries=_TRIES, scheduling_strategy="SPREAD"
        )
        try:
            found = ray.get([task.remote(function, part, *held) for part in parts])
        except (ray.exceptions.RayError, ConnectionError) as error:
            raise StoreError(
                f"the cluster could not derive the arrays ({last_line(error)}); the same command "
                "tries again, with what was finished"
            ) from error
        for _, node in found:
            self.nodes[node] = self.nodes.get(node, 0) + 1
        return [result for result, _ in found]


def _compute_part(
    function: Callable[..., Any], part: tuple[Any, ...], *shared: Any
) -> tuple[Any, str]:
    return function(*part, *shared), str(ray.get_runtime_context().get_node_id())


@dataclass(eq=False)
class _LiveActor:
    """An actor that has answered."""

    actor: Any
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    busy: int = 0

    async def call(self, kind: TaskKind, payload: bytes) -> Any:
        """Run a task; None if the actor is lost."""
        asked = asyncio.ensure_future(_wait_for(self.actor.run.remote(kind, payload)))
        losing = asyncio.ensure_future(self.lost.wait())
        self.busy += 1
        try:
            await asyncio.wait({asked, losing}, return_when=asyncio.FIRST_COMPLETED)
            if asked.done() and (found := asked.result()) is not None:
                return found
            self.lost.set()
            return None
        finally:
            self.busy -= 1
            asked.cancel()
            losing.cancel()


async def _wait_for(reference: Any) -> Any:
    """The answer of an actor; None if it is lost."""
    try:
        return await _await_reply(reference)
    except ray.exceptions.RayTaskError:
        raise
    except (ray.exceptions.RayError, ConnectionError):
        return None


@dataclass(eq=False)
class RayRunner:
    """Gives the tasks of a build to actors that answer, the least busy first."""

    start: Callable[[str], Any]
    """Starts an actor that calls itself so."""
    many: int
    parts: RayParts
    limits: Any
    on_usage: Callable[[Usage], None] = lambda usage: None
    """Told what the calls of actors have used since the last time."""
    kept: KeyValueStore | None = None
    """Where results are kept that were paid for, if actors do not keep them."""
    patience: float = PATIENCE
    nodes: dict[str, int] = field(default_factory=dict)
    """How many tasks ran on each node."""
    lost_calls: int = 0
    """Calls that were under way on actors that were lost."""
    _live: list[_LiveActor] = field(default_factory=list)
    _known: dict[str, Usage] = field(default_factory=dict)
    _why: str = "none has answered yet"

    def __post_init__(self) -> None:
        """Start all actors."""
        self._slots = asyncio.Semaphore(_TASKS_PER_ACTOR * self.many)
        self._news = asyncio.Event()
        self._keeping = [asyncio.create_task(self._keep_one()) for _ in range(self.many)]

    async def run(self, kind: TaskKind, payload: bytes) -> bytes:
        """Run one task on an actor; on another one if that is lost."""
        async with self._slots:
            key = self._key_of(kind, payload)
            if key and self.kept and (old := await self.kept.get("reply", [key])):
                return old[key].encode()
            for _ in range(_TRIES):
                live = await self._choose_actor()
                try:
                    found = await live.call(kind, payload)
                except ray.exceptions.RayTaskError as error:
                    raise _to_own_error(error) from error
                if found is not None:
                    result, node, totals = found
                    self.nodes[node] = self.nodes.get(node, 0) + 1
                    self._count(totals)
                    await self._keep_result(key, bytes(result))
                    return bytes(result)
        raise ConfigError(
            f"the cluster lost {_TRIES} actors with the same task, which may need more memory than "
            "its nodes have; the same command goes on with what was finished"
        )

    async def gather(self) -> None:
        """Wait until all actors have answered, but not long for those that come late."""
        with suppress(TimeoutError):
            async with asyncio.timeout(min(_START_SECONDS, self.patience)) as limit:
                while len(self._live) < self.many:
                    self._news.clear()
                    await self._news.wait()
                    if len(self._live) == 1:
                        limit.reschedule(asyncio.get_running_loop().time() + _GATHER_SECONDS)

    async def close(self) -> None:
        """End all actors."""
        for task in self._keeping:
            task.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)
        with suppress(ray.exceptions.RayError, ConnectionError):
            ray.kill(self.limits)

    async def _keep_one(self) -> None:
        """Keep one actor there: start another one whenever it is lost."""
        pause = 0.5
        while True:
            holder = uuid4().hex
            actor = self.start(holder)
            try:
                async with asyncio.timeout(_START_SECONDS):
                    await _await_reply(actor.node.remote())
                await self._use(actor)
                pause, self._why = 0.5, "the last one was lost"
            except TimeoutError:
                self._why = "no node has a processor free for one"
            except (ray.exceptions.RayError, ConnectionError) as error:
                self._why = last_line(error)
                pause = min(_LONGEST_PAUSE, 2 * pause)
            finally:
                with suppress(ray.exceptions.RayError, ConnectionError):
                    ray.kill(actor)
            await self._count_lost_calls(holder)
            await asyncio.sleep(pause)

    async def _use(self, actor: Any) -> None:
        """Let an actor that has answered have tasks until it is lost."""
        live = _LiveActor(actor)
        self._live.append(live)
        self._news.set()
        try:
            while not live.lost.is_set():
                try:
                    async with asyncio.timeout(_LOOK_SECONDS):
                        await live.lost.wait()
                except TimeoutError:
                    async with asyncio.timeout(_SILENT_SECONDS):
                        await _await_reply(actor.node.remote())
        finally:
            self._live.remove(live)
            live.lost.set()

    async def _choose_actor(self) -> _LiveActor:
        """The least busy actor that answers; wait for one if there is none."""
        while not (live := [one for one in self._live if not one.lost.is_set()]):
            self._news.clear()
            try:
                async with asyncio.timeout(self.patience):
                    await self._news.wait()
            except TimeoutError as error:
                raise ConfigError(
                    f"no actor of the cluster has answered for {self.patience:.0f} s "
                    f"({self._why}); see `ray status`, and give the same command again: it goes on "
                    "with what was finished"
                ) from error
        return min(live, key=lambda one: one.busy)

    async def _count_lost_calls(self, holder: str) -> None:
        with suppress(StoreError):  # else who loses the cluster is told by a task
            name, total = await ask_limits(self.limits, "drop", holder)
            self._count({name: total})
            self.lost_calls = await ask_limits(self.limits, "count_lost")

    def _count(self, totals: dict[str, Usage]) -> None:
        """Tell what was used; answers may overtake each other."""
        for name, total in totals.items():
            known = self._known.get(name, Usage())
            if total.calls > known.calls:
                self._known[name] = total
                self.on_usage(total - known)

    def _key_of(self, kind: TaskKind, payload: bytes) -> str:
        """The key of the result of a task that is paid for; "" of others."""
        if kind != "extract" or self.kept is None:
            return ""
        name = str(json.loads(payload)["extractor"])
        return f"task {digest(payload.decode())}" if name in MODEL_EXTRACTORS else ""

    async def _keep_result(self, key: str, result: bytes) -> None:
        if key and self.kept is not None:
            found = json.loads(result)["extractions"]
            if not any(one["failed"] for one in found):
                await self.kept.set("reply", {key: result.decode()})


async def _await_reply(reference: Any) -> Any:
    """Wait for a reply; who stops waiting leaves the call alone, which Ray's client answers yet."""
    loop, answered, reply = asyncio.get_running_loop(), asyncio.Event(), reference.future()

    def tell(_: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(answered.set)

    reply.add_done_callback(tell)
    await answered.wait()
    return reply.result()


def _to_own_error(error: Any) -> Exception:
    """The error that was raised on the cluster, if it is ours."""
    cause, kinds = error.cause, (ConfigError, AuthError, ModelError, StoreError)
    if isinstance(cause, BudgetExceeded):
        return BudgetExceeded(
            "the budget of this build is spent; what was paid for is kept, and the same command "
            "with a larger --budget goes on from there"
        )
    for kind in kinds:
        if isinstance(cause, kind):
            return kind(str(cause).splitlines()[-1])
    return ModelError(f"a task failed on the cluster: {last_line(error)}")


@asynccontextmanager
async def open_ray_runner(
    base: KnowledgeBase,
    address: str | None = None,
    actors: int | None = None,
    *,
    budget: float | None = None,
    patience: float = PATIENCE,
) -> AsyncIterator[RayRunner]:
    """Start actors on a cluster; without an address on that of this machine, started if needed.

    `budget` is the money that they may spend, `patience` how long none of them may answer.
    """
    count = share_budget(base, budget, base.models.meter.add)
    started = await asyncio.to_thread(connect, address)
    try:
        there = ray.cluster_resources()
        many = actors or max(1, int(there.get("CPU", 1)))
        made = ray.remote(TaskActor).options(
            num_cpus=1,
            num_gpus=there.get("GPU", 0) / many,
            max_concurrency=_TASKS_PER_ACTOR * many + many,  # if all but one are lost
            scheduling_strategy="SPREAD",
        )
        limits = start_limits(budget)
        held = base.embed.name if base.embed else ""
        kept = None if isinstance(base.settings.kb, DatabaseAddress) else base.store
        start = partial(made.remote, base.settings, held, limits)
        runner = RayRunner(
            start, many, RayParts(max(2, many)), limits, count, kept, patience=patience
        )
        try:
            await runner.gather()
            yield runner
        finally:
            await runner.close()
    finally:
        if started:
            await asyncio.to_thread(ray.shutdown)
