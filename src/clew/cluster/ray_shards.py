"""Shards that actors of a Ray cluster hold, each cut from the store where the actor runs."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from clew.cluster.ray_tasks import connect
from clew.cluster.sharded_graph import Question
from clew.cluster.sharded_view import spread_view
from clew.cluster.shards import Shard, cut_shard, find_owners
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.errors import StoreError
from clew.index.view import View
from clew.ingest.embedding import load_view
from clew.store.protocol import Snapshot
from clew.stores.opening import open_located_store
from clew.types import Kind

_PLACEMENTS = 4  # attempts to have each shard on the node that it is meant for
_PATIENCE = (
    180.0  # seconds until an actor that is lost has been started again, elsewhere if need be
)
_KEPT = 600.0  # seconds that an older generation is kept for the questions that began with it


class ShardActor:
    """A shard of each generation in use; started again, it cuts the newest once more.

    One process for all generations: to start another takes longer than to cut a shard.
    """

    def __init__(self, settings: Settings, embedder: str, count: int, number: int) -> None:
        self._given = (settings, embedder, count, number)
        self._shards: dict[int, Shard] = {}
        self._opening = asyncio.Lock()

    async def kinds(self, generation: int) -> list[Kind]:
        """The kinds whose vectors it holds."""
        return list((await self._open(generation)).vectors)

    async def node(self) -> str:
        """The node that it runs on."""
        return str(ray.get_runtime_context().get_node_id())

    async def ask(self, generation: int, what: Question, given: tuple[Any, ...]) -> Any:
        """Answer with a method of the shard."""
        return getattr(await self._open(generation), what)(*given)

    async def _open(self, generation: int) -> Shard:
        async with self._opening:
            if generation not in self._shards:
                older = list(self._shards)
                self._shards[generation] = await self._cut(generation)
                for one in older:  # questions that began before are still answered from it
                    asyncio.get_running_loop().call_later(_KEPT, self._shards.pop, one, None)
            return self._shards[generation]

    async def _cut(self, generation: int) -> Shard:
        settings, embedder, count, number = self._given
        store = await asyncio.to_thread(open_located_store, settings)
        try:
            async with store.snapshot() as now:
                if now.generation != generation:
                    raise StoreError(f"generation {generation} is no longer the newest")
                view = await load_view(store, embedder, now)
                # Computed here, as nothing but the store is sure to outlive a lost node.
                return cut_shard(view, await find_owners(view, now, count), number)
        finally:
            await store.close()


@dataclass(frozen=True)
class RayShards:
    """The shards of one generation, which actors hold."""

    actors: Sequence[Any]
    generation: int
    on_lost: Callable[[bool], None]
    """Told whether the actors themselves are lost."""

    def __len__(self) -> int:
        """How many there are."""
        return len(self.actors)

    def ask(self, what: Question, given: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        """Ask all shards at once."""
        asked = [
            actor.ask.remote(self.generation, what, one)
            for actor, one in zip(self.actors, given, strict=True)
            if one is not None
        ]
        answers = iter(self.get(asked))
        return [None if one is None else next(answers) for one in given]

    def get(self, asked: list[Any]) -> list[Any]:
        """Wait for answers; shards that cannot be had again are made anew for the next question."""
        try:
            return _wait_for(asked)
        except StoreError as error:
            # An error that an actor raised itself tells that it is alive.
            self.on_lost(not isinstance(error.__cause__, ray.exceptions.RayTaskError))
            raise


def _wait_for(asked: list[Any]) -> list[Any]:
    """Wait for the answers of actors; StoreError if one is lost for good."""
    try:
        found: list[Any] = ray.get(asked, timeout=_PATIENCE)
    except ray.exceptions.RayError as error:
        why = str(getattr(error, "cause", error)).strip().splitlines()[-1]
        raise StoreError(f"a shard was lost ({why}); ask again") from error
    return found


@dataclass(eq=False)
class SpreadOverRay:
    """Spreads every generation over the same actors, as long as the cluster has the same nodes."""

    settings: Settings
    count: int
    embedder: str = ""
    forget_view: Callable[[], None] = lambda: None
    nodes: dict[str, int] = field(default_factory=dict)
    """How many shards each node has."""
    actors: list[Any] = field(default_factory=list)
    _cluster: list[str] = field(default_factory=list)
    """The nodes that there were when the actors were started."""

    async def __call__(self, view: View, now: Snapshot) -> View:
        """Let the actors cut their shards of one generation."""
        owners = await find_owners(view, now, self.count)
        actors = await asyncio.to_thread(self._require_actors)
        shards = RayShards(actors, view.generation, self._on_lost)
        asked = [one.kinds.remote(view.generation) for one in actors]
        kinds, *_ = await asyncio.to_thread(shards.get, asked)
        return spread_view(view, shards, owners, kinds)

    def _require_actors(self) -> list[Any]:
        nodes = sorted(node["NodeID"] for node in ray.nodes() if node["Alive"])
        if not self.actors or nodes != self._cluster:
            given = (self.settings, self.embedder, self.count)
            self.actors, where = _start_actors(given, self.count, nodes)
            self._cluster = nodes
            self.nodes = {node: where.count(node) for node in where}
        return self.actors

    def _on_lost(self, actors: bool) -> None:
        if actors:
            self.actors = []
        self.forget_view()


def _start_actors(
    given: tuple[Any, ...], count: int, nodes: Sequence[str]
) -> tuple[list[Any], list[str]]:
    """Start an actor for each shard, on one node after another; return where each is, too."""
    wanted = [nodes[number % len(nodes)] for number in range(count)]
    actors: list[Any] = [None] * count
    where = [""] * count
    for _ in range(_PLACEMENTS):
        # Ray takes the wish for a node lightly, as it may be lost later: asked for again.
        astray = [number for number in range(count) if where[number] != wanted[number]]
        for number in astray:
            actors[number] = _start_actor((*given, number), wanted[number])
        found = _wait_for([actors[number].node.remote() for number in astray])
        for number, node in zip(astray, found, strict=True):
            where[number] = node
    return actors, where


def _start_actor(given: tuple[Any, ...], node: str) -> Any:
    return (
        ray.remote(ShardActor)
        .options(
            num_cpus=0,
            max_restarts=-1,
            max_task_retries=-1,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=True),
        )
        .remote(*given)
    )


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
