"""Shards that actors of a Ray cluster hold, each cut from the store where the actor runs.

One more actor than there are shards is kept: it has opened the generation, and takes the place of
one that is lost, as to start a process takes seconds.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from threading import Lock, Timer
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from clew.cluster.ray_connection import connect, last_line
from clew.cluster.sharded_graph import Question
from clew.cluster.sharded_view import spread_view
from clew.cluster.shards import Owners, Shard, cut_shard, find_owners
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import StoreError
from clew.index.view import View
from clew.ingest.embedding import load_view
from clew.store.protocol import Snapshot
from clew.stores.opening import open_located_store
from clew.sync import run
from clew.types import Kind

_PLACEMENTS = 4  # attempts to have each shard on the node that it is meant for
_REPLACEMENTS = 5  # of actors that are lost during one call
_PATIENCE = 180.0  # seconds until an actor has answered, which may have to be started first
_KEPT = 600.0  # seconds that an older generation is kept for the questions that began with it
_THREADS = 16  # of an actor: questions are answered while a shard of a new generation is cut


class ShardActor:
    """Shards of each generation in use: that of its own number, or of an actor it replaces.

    One process for all generations: to start another takes longer than to cut a shard.
    """

    def __init__(self, settings: Settings, embedder: str, count: int) -> None:
        self._given = (settings, embedder, count)
        self._shards: dict[tuple[int, int], Shard] = {}
        self._opening = Lock()
        self._ready: tuple[int, View, Owners] | None = None

    def kinds(self, generation: int, number: int) -> list[Kind]:
        """The kinds whose vectors it holds."""
        return list(self._open(generation, number).vectors)

    def node(self) -> str:
        """The node that it runs on."""
        return str(ray.get_runtime_context().get_node_id())

    def ask(self, generation: int, number: int, what: Question, given: tuple[Any, ...]) -> Any:
        """Answer with a method of the shard."""
        return getattr(self._open(generation, number), what)(*given)

    def prepare(self, generation: int) -> None:
        """Open a generation, to cut any of its shards without delay."""
        with self._opening:
            ready = run(_load(*self._given, generation))
            cut_shard(ready[1], ready[2], 0)  # reads what is read at first use
            self._ready = ready

    def _open(self, generation: int, number: int) -> Shard:
        key = generation, number
        if (found := self._shards.get(key)) is not None:
            return found
        with self._opening:
            if key not in self._shards:
                older = [one for one in self._shards if one[0] != generation]
                self._shards[key] = self._cut(generation, number)
                for one in older:  # questions that began before are still answered from it
                    timer = Timer(_KEPT, self._shards.pop, (one, None))
                    timer.daemon = True
                    timer.start()
            return self._shards[key]

    def _cut(self, generation: int, number: int) -> Shard:
        ready, self._ready = self._ready, None
        if ready is None or ready[0] != generation:
            ready = run(_load(*self._given, generation))
        return cut_shard(ready[1], ready[2], number)


# Not a method: one coroutine makes Ray run all methods on an event loop, which costs every call.
async def _load(
    settings: Settings, embedder: str, count: int, generation: int
) -> tuple[int, View, Owners]:
    """Open a generation, and find the shard of each of its elements."""
    store = await asyncio.to_thread(open_located_store, settings)
    try:
        async with store.snapshot() as now:
            if now.generation != generation:
                raise StoreError(f"generation {generation} is no longer the newest")
            view = await load_view(store, embedder, now)
            # Computed here, as nothing but the store is sure to outlive a lost node.
            return generation, view, await find_owners(view, now, count)
    finally:
        await store.close()


@dataclass(eq=False)
class ShardActors:
    """The actors of all shards, and a spare one."""

    given: tuple[Settings, str, int]
    actors: list[Any]
    where: list[str]
    """The node of each."""
    spare: Any
    _changing: Lock = field(default_factory=Lock)

    def replace(self, number: int, lost: Any, generation: int) -> None:
        """Let the spare take the place of a lost actor, unless another question did that."""
        with self._changing:
            if self.actors[number] is not lost:
                return
            self.actors[number] = self.spare
            self.spare = _start_actor(self.given)
            self.spare.prepare.remote(generation)


@dataclass(frozen=True)
class RayShards:
    """The shards of one generation, which actors hold."""

    held: ShardActors
    generation: int
    on_lost: Callable[[bool], None]
    """Told whether the actors themselves are lost."""

    def __len__(self) -> int:
        """How many there are."""
        return len(self.held.actors)

    def ask(self, what: Question, given: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        """Ask all shards at once."""
        asked = {number: one for number, one in enumerate(given) if one is not None}

        def call(actor: Any, number: int) -> Any:
            return actor.ask.remote(self.generation, number, what, asked[number])

        found = self._call(asked, call)
        return [found.get(number) for number in range(len(given))]

    def cut(self) -> list[Kind]:
        """Let every actor cut its shard; return the kinds whose vectors they hold."""
        found = self._call(
            range(len(self)), lambda actor, number: actor.kinds.remote(self.generation, number)
        )
        return list(found[0])

    def _call(self, numbers: Collection[int], call: Callable[[Any, int], Any]) -> dict[int, Any]:
        """Call actors, and those that replace them; shards that cannot be had are made anew."""
        found: dict[int, Any] = {}
        try:
            for _ in range(_REPLACEMENTS):
                missing = [number for number in numbers if number not in found]
                actors = [self.held.actors[number] for number in missing]
                calls = [call(*one) for one in zip(actors, missing, strict=True)]
                answers = _wait_for(calls)
                for number, actor, answer in zip(missing, actors, answers, strict=True):
                    if answer is _LOST:
                        self.held.replace(number, actor, self.generation)
                    else:
                        found[number] = answer
                if len(found) == len(numbers):
                    return found
            raise StoreError("the shards were lost again and again while they were asked")
        except StoreError as error:
            # An error that an actor raised itself tells that it is alive.
            self.on_lost(not isinstance(error.__cause__, ray.exceptions.RayTaskError))
            raise


_LOST = object()
"""Stands for the answer of an actor that is lost."""


def _wait_for(asked: list[Any]) -> list[Any]:
    """Wait for the answers of actors."""
    try:
        found: list[Any] = ray.get(asked, timeout=_PATIENCE)
    except ray.exceptions.RayActorError:
        if len(asked) == 1:
            return [_LOST]
        return [answer for one in asked for answer in _wait_for([one])]
    except ray.exceptions.RayError as error:
        raise StoreError(f"a shard was lost ({last_line(error)}); ask again") from error
    return found


@dataclass(eq=False)
class SpreadOverRay:
    """Spreads every generation over the same actors, as long as the cluster has the same nodes."""

    settings: Settings
    count: int
    embedder: str = ""
    forget_view: Callable[[], None] = lambda: None
    actors: ShardActors | None = None
    _cluster: list[str] = field(default_factory=list)
    """The nodes that there were when the actors were started."""

    @property
    def nodes(self) -> dict[str, int]:
        """How many shards each node was given."""
        where = self.actors.where if self.actors is not None else []
        return {node: where.count(node) for node in where}

    async def __call__(self, view: View, now: Snapshot) -> View:
        """Let the actors cut their shards of one generation."""
        owners = await find_owners(view, now, self.count)
        actors = await asyncio.to_thread(self._require_actors)
        shards = RayShards(actors, view.generation, self._on_lost)
        kinds = await asyncio.to_thread(shards.cut)
        actors.spare.prepare.remote(view.generation)
        return spread_view(view, shards, owners, kinds)

    def _require_actors(self) -> ShardActors:
        nodes = sorted(node["NodeID"] for node in ray.nodes() if node["Alive"])
        if self.actors is None or nodes != self._cluster:
            self.actors = _start_actors((self.settings, self.embedder, self.count), nodes)
            self._cluster = nodes
        return self.actors

    def _on_lost(self, actors: bool) -> None:
        if actors:
            self.actors = None
        self.forget_view()


def _start_actors(given: tuple[Settings, str, int], nodes: Sequence[str]) -> ShardActors:
    """Start an actor for each shard, on one node after another, and one more."""
    count = given[2]
    wanted = [nodes[number % len(nodes)] for number in range(count)]
    actors: list[Any] = [None] * count
    where = [""] * count
    for _ in range(_PLACEMENTS):
        # Ray takes the wish for a node lightly, as it may be lost later: asked for again.
        astray = [number for number in range(count) if where[number] != wanted[number]]
        for number in astray:
            actors[number] = _start_actor(given, wanted[number])
        found = _wait_for([actors[number].node.remote() for number in astray])
        for number, node in zip(astray, found, strict=True):
            where[number] = str(node)
    return ShardActors(given, actors, where, _start_actor(given))


def _start_actor(given: tuple[Settings, str, int], node: str | None = None) -> Any:
    """Start an actor, on a node if it can be had."""
    where = NodeAffinitySchedulingStrategy(node, soft=True) if node else "SPREAD"
    made = ray.remote(ShardActor).options(
        num_cpus=0, max_concurrency=_THREADS, scheduling_strategy=where
    )
    return made.remote(*given)


@dataclass(frozen=True)
class OpenSpread:
    """Opens knowledge bases that are spread over a cluster; sent to child processes."""

    count: int
    address: str | None = None
    """Of a cluster; without one it is that of this machine, started if needed."""

    async def __call__(self, settings: Settings, create: bool) -> KnowledgeBase:
        """Open a knowledge base; its shards are made for the first question."""
        base = await KnowledgeBase.open(settings, create=create)
        await asyncio.to_thread(connect, self.address)
        spread_over_ray(base, self.count)
        return base


def spread_over_ray(base: KnowledgeBase, count: int) -> SpreadOverRay:
    """Let a knowledge base answer from shards on the running cluster."""
    embedder = base.embed.name if base.embed else ""
    made = SpreadOverRay(base.settings, count, embedder, base.forget_view)
    base.spread = made
    return made
