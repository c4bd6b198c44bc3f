"""The graph as JSON: entities, their neighbours, facts with evidence, and paths between them.

Elements are named by their key, which stays the same while the knowledge base grows.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from clew.context import Context
from clew.engine import KnowledgeBase
from clew.errors import VectorsDeferred
from clew.graph.csr import Ints
from clew.graph.paths import EntityPathTable, shortest_paths
from clew.index.view import View
from clew.json_output import to_json_value
from clew.retrieve.graph_cache import build_traversal
from clew.serve.core.problems import Problem, not_found
from clew.show import describe_entity
from clew.types import Entity, Kind

_MAX_FACTS = 200  # facts of an entity that are looked at for its neighbours
_MAX_SCANNED = 20_000  # names that are looked through for a part
_MAX_PATHS = 10
_Pair = tuple[int, int]
"""The positions of two entities."""


@dataclass(frozen=True)
class GraphReader:
    """Reads one generation of a knowledge base."""

    ctx: Context

    @property
    def view(self) -> View:
        """The arrays of the generation."""
        return self.ctx.view

    async def list_entities(self, query: str, offset: int, limit: int) -> list[dict[str, Any]]:
        """Return the entities called like the query, or without one the most mentioned."""
        if not query:
            mentions = self.view.links("entity_chunk").degrees()
            order = np.argsort(-mentions, kind="stable")
            return await self._show_entities(order[offset : offset + limit].tolist())
        exact: list[int] = self.view.find_by_name_or_alias(query).tolist()
        near = await self._find_near(query, offset + limit)
        holding = await self._find_holding(query)
        found = list(dict.fromkeys([*exact, *holding, *near]))
        return await self._show_entities(found[offset : offset + limit])

    async def show_entity(self, key: int) -> dict[str, Any]:
        """Return one entity with its facts and where they are stated."""
        at = self.find("entity", key)
        return {"key": key, **await describe_entity(self.ctx.snapshot, self.view, at)}

    async def list_neighbours(
        self, key: int, limit: int, other: int | None = None
    ) -> list[dict[str, Any]]:
        """Return the entities that share a fact with this one, most facts first, or one of them."""
        at = self.find("entity", key)
        if other is not None:
            there = self.find("entity", other)
            [entity] = await self._show_entities([there])
            facts = await self._show_shared([(at, there)])
            return [{**entity, "facts": facts[at, there]}] if facts[at, there] else []
        shared: dict[int, list[int]] = defaultdict(list)
        members = self.view.links("fact_entity")
        for fact in self.view.links("entity_fact").row(at)[:_MAX_FACTS].tolist():
            for near in dict.fromkeys(members.row(fact).tolist()):
                if near != at:
                    shared[near].append(fact)
        order = sorted(shared, key=lambda near: (-len(shared[near]), near))[:limit]
        texts = await self._show_pairs({(at, near): shared[near] for near in order})
        entities = await self._show_entities(order)
        return [
            {**entity, "facts": texts[at, near]}
            for near, entity in zip(order, entities, strict=True)
        ]

    async def show_fact(self, key: int) -> dict[str, Any]:
        """Return one fact with everything that states it, quoted."""
        at, now = self.find("fact", key), self.ctx.snapshot
        fact = (await now.facts([key]))[key]
        members = self.view.links("fact_entity").row(at).tolist()
        names = await self._show_entities(members)
        chunk_positions = self.view.links("fact_chunk").row(at).tolist()
        chunks = await now.chunks([int(self.view.keys("chunk")[c]) for c in chunk_positions])
        by_id = {chunk.id: chunk for chunk in chunks.values()}
        documents = await now.names([chunk.document for chunk in chunks.values()])
        evidence = []
        for support in (await now.supports("fact", [key])).get(key, ()):
            chunk = by_id[support.chunk]
            evidence.append(
                {
                    "doc": documents[chunk.document][0],
                    "title": chunk.title,
                    "document": chunk.document,
                    "chunk": chunk.id,
                    "start": support.start,
                    "end": support.end,
                    "quote": chunk.text[support.start - chunk.start : support.end - chunk.start],
                }
            )
        return {
            "key": key,
            "text": fact.text,
            "relation": fact.relation,
            "description": fact.description,
            "keywords": list(fact.keywords),
            "entities": names,
            "evidence": evidence,
        }

    async def list_facts(self, offset: int, limit: int) -> list[dict[str, Any]]:
        """Return facts in the order they were added."""
        positions = range(self.view.count("fact"))[offset : offset + limit]
        shown = await self._show_facts(positions)
        return [shown[at] for at in positions]

    async def find_paths(self, start: str, end: str, hops: int) -> list[dict[str, Any]]:
        """Return the shortest paths between two entities, by name."""
        source, targets = self._find_positions(start)[0], self._find_positions(end)
        if source in targets:
            told = f"{start!r} and {end!r} are the same entity; name two different ones"
            raise Problem(422, told)
        for table in shortest_paths(build_traversal(self.view), source, hops):
            here = np.flatnonzero(np.isin(table.entities[:, -1], targets))
            if len(here):
                return await self._show_paths(table.select(here))
        return []

    def find_named(self, name: str) -> list[int]:
        """Return the keys of the entities with this name or alias; none is not found."""
        return [int(self.view.keys("entity")[at]) for at in self._find_positions(name)]

    def _find_positions(self, name: str) -> list[int]:
        found: list[int] = self.view.find_by_name_or_alias(name).tolist()
        if not found:
            raise not_found(f"no entity is named {name!r}")
        return found

    def find(self, kind: Kind, key: int) -> int:
        """Return the position of an element; one that does not exist here is not found."""
        keys: Ints = self.view.keys(kind)
        at = int(np.searchsorted(keys, key)) if 0 <= key < 1 << 62 else len(keys)
        if at >= len(keys) or int(keys[at]) != key:
            raise not_found()
        return at

    async def _find_holding(self, query: str) -> list[int]:
        """Return the entities whose name holds the query, of those that are mentioned most."""
        degrees = self.view.links("entity_chunk").degrees()
        order = np.argsort(-degrees, kind="stable")[:_MAX_SCANNED]
        keys = self.view.keys("entity")[order].tolist()
        known = await self.ctx.snapshot.entities(keys)
        wanted = query.strip().casefold()
        pairs = zip(order.tolist(), keys, strict=True)
        return [at for at, key in pairs if wanted and wanted in known[key].name.casefold()]

    async def _find_near(self, query: str, most: int) -> list[int]:
        if self.ctx.embed is None or not self.view.count("entity"):
            return []
        try:
            found, cosines = self.ctx.nearest("entity", await self.ctx.vector(query), most)
        except VectorsDeferred:  # typing a name must not start minutes of work: names are compared
            return []
        near: list[int] = found[cosines > 0].tolist()
        return near

    async def _show_entities(self, positions: Sequence[int]) -> list[dict[str, Any]]:
        keys = [int(self.view.keys("entity")[at]) for at in positions]
        found = await self.ctx.snapshot.entities(keys)
        mentions = self.view.links("entity_chunk").degrees_of(np.array(positions, np.int64))
        return [
            _entity_json(key, found[key], count)
            for key, count in zip(keys, mentions.tolist(), strict=True)
        ]

    async def _show_facts(self, positions: Sequence[int]) -> dict[int, dict[str, Any]]:
        keys = {at: int(self.view.keys("fact")[at]) for at in positions}
        found = await self.ctx.snapshot.facts(list(keys.values()))
        return {
            at: {"key": key, "text": found[key].text, "relation": found[key].relation}
            for at, key in keys.items()
        }

    async def _show_paths(self, table: EntityPathTable) -> list[dict[str, Any]]:
        """Return each sequence of entities once, every step with the fact that says it best."""
        routes = list(dict.fromkeys(tuple(row) for row in table.entities.tolist()))[:_MAX_PATHS]
        positions = sorted({at for route in routes for at in route})
        shown = dict(zip(positions, await self._show_entities(positions), strict=True))
        shared = await self._show_shared([pair for route in routes for pair in pairwise(route)])
        return [
            {
                "entities": [shown[at] for at in route],
                "facts": [shared[pair][0] for pair in pairwise(route)],
                "more": [shared[pair][1:] for pair in pairwise(route)],
            }
            for route in routes
        ]

    async def _show_shared(self, pairs: Sequence[_Pair]) -> dict[_Pair, list[dict[str, Any]]]:
        """Return all facts that two entities share, for each pair."""
        links = self.view.links("entity_fact")
        return await self._show_pairs(
            {
                (one, other): np.intersect1d(links.row(one), links.row(other)).tolist()
                for one, other in pairs
            }
        )

    async def _show_pairs(
        self, shared: Mapping[_Pair, Sequence[int]]
    ) -> dict[_Pair, list[dict[str, Any]]]:
        """Return the facts of pairs, first those whose own words name both, which `states` says."""
        texts = await self._show_facts([fact for some in shared.values() for fact in some])
        ends = sorted({at for pair in shared for at in pair})
        keys = [int(self.view.keys("entity")[at]) for at in ends]
        known = await self.ctx.snapshot.entities(keys)
        names = {
            at: [_fold(name) for name in (known[key].name, *known[key].aliases)]
            for at, key in zip(ends, keys, strict=True)
        }
        found = {}
        for pair, facts in shared.items():
            rows = [
                {**texts[fact], "states": _names_all(texts[fact]["text"], [names[e] for e in pair])}
                for fact in facts
            ]
            found[pair] = sorted(rows, key=lambda row: (not row["states"], len(row["text"])))
        return found


def _fold(text: str) -> str:
    """Return text as names are compared here: case and line breaks do not count."""
    return " ".join(text.casefold().split())


def _names_all(text: str, entities: Sequence[Sequence[str]]) -> bool:
    """Whether a text has a name of each of the entities."""
    said = _fold(text)
    return all(any(name and name in said for name in names) for names in entities)


@asynccontextmanager
async def read_graph(base: KnowledgeBase) -> AsyncIterator[GraphReader]:
    """Open the newest generation for reading."""
    async with base.store.snapshot() as now:
        yield GraphReader(await base.context(now, "graph"))


def _entity_json(key: int, entity: Entity, mentions: int) -> dict[str, Any]:
    return {
        "key": key,
        "id": entity.id,
        "name": entity.name,
        "type": entity.type,
        "description": entity.description,
        "aliases": to_json_value(entity.aliases),
        "chunks": mentions,
    }
