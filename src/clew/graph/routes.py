"""Entity paths: along given relation codes, all shortest ones, or all simple ones."""

from dataclasses import dataclass

import numpy as np

from clew.graph.csr import expand_ranges, sorted_unique
from clew.graph.traverse import Edges, FactGraph, Ints, expand_entities, isin_sorted

MAX_OPEN_PATHS = 4096  # partial paths kept at any time


@dataclass(frozen=True, slots=True)
class EntityPathTable:
    """Paths of one length as rows: entities (one more than steps), facts and codes."""

    entities: Ints
    facts: Ints
    codes: Ints

    def __len__(self) -> int:
        """Return the number of paths."""
        return len(self.entities)

    def select(self, rows: Ints) -> "EntityPathTable":
        """Return the paths at `rows`."""
        return EntityPathTable(self.entities[rows], self.facts[rows], self.codes[rows])


def start_paths(entities: Ints) -> EntityPathTable:
    """Create paths of length 0, one for each entity."""
    none = np.zeros((len(entities), 0), np.int64)
    return EntityPathTable(entities[:, None], none, none)


def extend_paths(
    ways: FactGraph, routes: EntityPathTable, code: int | None = None, most: int = MAX_OPEN_PATHS
) -> EntityPathTable:
    """Extend every path by one step, of one code or any; no path visits an entity twice."""
    unique, which = np.unique(routes.entities[:, -1], return_inverse=True)
    edges = expand_entities(ways, unique)
    if code is not None:
        edges = edges.select(edges.code == code)
    edges = edges.select(np.argsort(edges.source, kind="stable"))
    first = np.searchsorted(edges.source, np.arange(len(unique) + 1))
    route, edge = expand_ranges(first[which], first[which + 1])
    unvisited = ~(routes.entities[route] == edges.target[edge][:, None]).any(axis=1)
    return _sample_evenly(
        _append_steps(routes, route[unvisited], edges.select(edge[unvisited])), most
    )


def follow_codes(
    ways: FactGraph, start: int, codes: Ints, most: int = MAX_OPEN_PATHS
) -> EntityPathTable:
    """Return the paths from an entity that follow these step codes."""
    routes = start_paths(np.array([start], np.int64))
    for code in codes.tolist():
        routes = extend_paths(ways, routes, code, most)
    return routes


def simple_paths(
    ways: FactGraph, start: int, hops: int, most: int = MAX_OPEN_PATHS
) -> list[EntityPathTable]:
    """Return simple paths of up to `hops` steps by length, at most `most` of each length."""
    found = []
    routes = start_paths(np.array([start], np.int64))
    for _ in range(hops):
        routes = extend_paths(ways, routes, None, most)
        if not len(routes):
            break
        found.append(routes)
    return found


def shortest_paths(
    ways: FactGraph, start: int, hops: int, most: int = MAX_OPEN_PATHS
) -> list[EntityPathTable]:
    """Return all shortest paths of up to `hops` steps by length; each parallel fact is a path."""
    found: list[EntityPathTable] = []
    seen = np.array([start], np.int64)
    routes = start_paths(seen)
    for _ in range(hops):
        longer = extend_paths(ways, routes, None, 4 * most)
        routes = _sample_evenly(
            longer.select(np.flatnonzero(~isin_sorted(longer.entities[:, -1], seen))), most
        )
        if not len(routes):
            break
        found.append(routes)
        seen = sorted_unique(np.concatenate([seen, routes.entities[:, -1]]))
    return found


def _append_steps(routes: EntityPathTable, rows: Ints, edges: Edges) -> EntityPathTable:
    return EntityPathTable(
        np.column_stack([routes.entities[rows], edges.target]),
        np.column_stack([routes.facts[rows], edges.fact]),
        np.column_stack([routes.codes[rows], edges.code]),
    )


def _sample_evenly(routes: EntityPathTable, most: int) -> EntityPathTable:
    """Keep evenly spaced rows: the first ones would all pass through the same few entities."""
    if len(routes) <= most:
        return routes
    return routes.select(np.linspace(0, len(routes) - 1, most).astype(np.int64))
