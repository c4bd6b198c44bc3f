"""A build on a Ray cluster: actors that read, extract and embed; Ray places and replaces them.

Tasks go to actors, which keep models and weights loaded. An actor that dies with its node is
started again elsewhere, and its task is tried again: what it had paid for is in its reply cache
only if that is shared (a knowledge base in PostgreSQL), so prefer one for builds with a model.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import ray

from clew.cluster.handle import TaskHandler
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError, ModelError, StoreError
from clew.ingest.remote import TaskKind
from clew.kb_address import DatabaseAddress
from clew.llm.factory import find_embedder
from clew.store.memory import MemoryStore
from clew.store.protocol import Store
from clew.stores.opening import open_located_store

_TRIES = 5  # of one task, on actors that die
_PATIENCE = 180.0  # seconds in which a lost actor is started again, if all were lost at once
_LONGEST_PAUSE = 5.0  # between tries
_TASKS_PER_ACTOR = 16
_AVOIDED_SECONDS = 30.0  # for which a lost actor is given no task, if there are others


class TaskActor:
    """Does tasks in a process of the cluster."""

    def __init__(self, settings: Settings, held: str) -> None:
        self._settings = settings
        self._held = held
        self._handler: TaskHandler | None = None

    async def run(self, kind: str, payload: bytes) -> tuple[bytes, str]:
        """Run one task; return its result and the node it ran on."""
        if self._handler is None:
            self._handler = TaskHandler(self._open())
        result = await self._handler(kind, payload)
        return result, ray.get_runtime_context().get_node_id()

    def _open(self) -> KnowledgeBase:
        """A knowledge base to work for: replies are shared where all nodes reach its store."""
        shared = isinstance(self._settings.kb, DatabaseAddress)
        store: Store = open_located_store(self._settings) if shared else MemoryStore()
        return KnowledgeBase(store, self._settings, find_embedder(self._settings, self._held))


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
        except ray.exceptions.RayError as error:
            why = str(getattr(error, "cause", error)).strip().splitlines()[-1]
            raise StoreError(f"the cluster could not derive the arrays ({why})") from error
        for _, node in found:
            self.nodes[node] = self.nodes.get(node, 0) + 1
        return [result for result, _ in found]


def _compute_part(
    function: Callable[..., Any], part: tuple[Any, ...], *shared: Any
) -> tuple[Any, str]:
    return function(*part, *shared), str(ray.get_runtime_context().get_node_id())


@dataclass(eq=False)
class RayRunner:
    """Gives the tasks of a build to actors, the least busy first."""

    actors: list[Any]
    parts: RayParts
    nodes: dict[str, int] = field(default_factory=dict)
    """How many tasks ran on each node."""
    _busy: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """All actors are idle at first."""
        self._busy = [0] * len(self.actors)
        self._lost_at = [-_AVOIDED_SECONDS] * len(self.actors)
        self._slots = asyncio.Semaphore(_TASKS_PER_ACTOR * len(self.actors))

    async def run(self, kind: TaskKind, payload: bytes) -> bytes:
        """Run one task on an actor; on another one if that dies, or on itself once it is back."""
        async with self._slots:
            first_lost, lost = 0.0, 0
            while True:
                at = self._choose_actor()
                self._busy[at] += 1
                try:
                    result, node = await self.actors[at].run.remote(kind, payload)
                except ray.exceptions.RayTaskError as error:
                    raise _to_own_error(error) from error
                except ray.exceptions.RayError as error:
                    now = self._lost_at[at] = monotonic()
                    first_lost, lost = first_lost or now, lost + 1
                    if lost >= _TRIES and now - first_lost > _PATIENCE:
                        raise ModelError(f"the cluster lost a task {lost} times") from error
                    await asyncio.sleep(min(_LONGEST_PAUSE, 0.5 * 2**lost))
                else:
                    self.nodes[node] = self.nodes.get(node, 0) + 1
                    return bytes(result)
                finally:
                    self._busy[at] -= 1

    def _choose_actor(self) -> int:
        """The least busy actor; one that was just lost may have no node to start again on."""
        now = monotonic()
        return min(
            range(len(self.actors)),
            key=lambda at: (now - self._lost_at[at] < _AVOIDED_SECONDS, self._busy[at]),
        )


def _to_own_error(error: Any) -> Exception:
    """The error that was raised on the cluster, if it is ours."""
    cause = error.cause
    kinds = (ConfigError, ModelError)
    for kind in kinds:
        if isinstance(cause, kind):
            return kind(str(cause).splitlines()[-1])
    return ModelError(f"a task failed on the cluster: {str(cause).strip().splitlines()[-1]}")


def connect(address: str | None) -> bool:
    """Connect this process to a cluster, or to that of this machine; False if it already is."""
    if ray.is_initialized():
        return False
    # Of a Ray that is started here: by default its processes give way to all others.
    os.environ.setdefault("RAY_worker_niceness", "0")  # noqa: TID251  (Ray reads it there)
    ray.init(
        address=address, log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR
    )
    return True


@asynccontextmanager
async def open_ray_runner(
    base: KnowledgeBase, address: str | None = None, actors: int | None = None
) -> AsyncIterator[RayRunner]:
    """Start actors on a cluster; without an address on that of this machine, started if needed."""
    started = await asyncio.to_thread(connect, address)
    try:
        held = base.embed.name if base.embed else ""
        many = actors or max(1, int(ray.cluster_resources().get("CPU", 1)))
        gpus = ray.cluster_resources().get("GPU", 0) / many
        made = ray.remote(TaskActor).options(
            num_cpus=1,
            num_gpus=gpus,
            max_restarts=-1,
            max_concurrency=_TASKS_PER_ACTOR,
            scheduling_strategy="SPREAD",
        )
        actors_made = [made.remote(base.settings, held) for _ in range(many)]
        runner = RayRunner(actors_made, RayParts(max(2, many)))
        try:
            yield runner
        finally:
            for actor in actors_made:
                ray.kill(actor)
    finally:
        if started:
            await asyncio.to_thread(ray.shutdown)
