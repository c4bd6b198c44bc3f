"""Entity paths: along given relation codes, all shortest ones, or all simple ones."""

from dataclasses import dataclass

import numpy as np

from clew.graph.csr import distinct, spread
from clew.graph.traverse import Edges, Ints, Ways, among, onwards

MOST_ROUTES = 4096  # partial paths kept at any time


@dataclass(frozen=True, slots=True)
class Routes:
    """Paths of one length as rows: entities (one more than steps), facts and codes."""

    entities: Ints
    facts: Ints
    codes: Ints

    def __len__(self) -> int:
        """Return the number of paths."""
        return len(self.entities)

    def some(self, rows: Ints) -> "Routes":
        """Return the paths at `rows`."""
        return Routes(self.entities[rows], self.facts[rows], self.codes[rows])


def standing(entities: Ints) -> Routes:
    """Create paths of length 0, one for each entity."""
    none = np.zeros((len(entities), 0), np.int64)
    return Routes(entities[:, None], none, none)


def extended(
    ways: Ways, routes: Routes, code: int | None = None, most: int = MOST_ROUTES
) -> Routes:
    """Extend every path by one step, of one code or any; no path visits an entity twice."""
    unique, which = np.unique(routes.entities[:, -1], return_inverse=True)
    edges = onwards(ways, unique)
    if code is not None:
        edges = edges.where(edges.code == code)
    edges = edges.where(np.argsort(edges.source, kind="stable"))
    first = np.searchsorted(edges.source, np.arange(len(unique) + 1))
    route, edge = spread(first[which], first[which + 1])
    unvisited = ~(routes.entities[route] == edges.target[edge][:, None]).any(axis=1)
    return _thinned(_added(routes, route[unvisited], edges.where(edge[unvisited])), most)


def along(ways: Ways, start: int, codes: Ints, most: int = MOST_ROUTES) -> Routes:
    """Return the paths from an entity that follow these step codes."""
    routes = standing(np.array([start], np.int64))
    for code in codes.tolist():
        routes = extended(ways, routes, code, most)
    return routes


def simple_paths(ways: Ways, start: int, hops: int, most: int = MOST_ROUTES) -> list[Routes]:
    """Return simple paths of up to `hops` steps by length, at most `most` of each length."""
    found = []
    routes = standing(np.array([start], np.int64))
    for _ in range(hops):
        routes = extended(ways, routes, None, most)
        if not len(routes):
            break
        found.append(routes)
    return found


def shortest_paths(ways: Ways, start: int, hops: int, most: int = MOST_ROUTES) -> list[Routes]:
    """Return all shortest paths of up to `hops` steps by length; each parallel fact is a path."""
    found: list[Routes] = []
    seen = np.array([start], np.int64)
    routes = standing(seen)
    for _ in range(hops):
        longer = extended(ways, routes, None, 4 * most)
        routes = _thinned(longer.some(np.flatnonzero(~among(longer.entities[:, -1], seen))), most)
        if not len(routes):
            break
        found.append(routes)
        seen = distinct(np.concatenate([seen, routes.entities[:, -1]]))
    return found


def _added(routes: Routes, rows: Ints, edges: Edges) -> Routes:
    return Routes(
        np.column_stack([routes.entities[rows], edges.target]),
        np.column_stack([routes.facts[rows], edges.fact]),
        np.column_stack([routes.codes[rows], edges.code]),
    )


def _thinned(routes: Routes, most: int) -> Routes:
    """Keep evenly spaced rows: the first ones would all pass through the same few entities."""
    if len(routes) <= most:
        return routes
    return routes.some(np.linspace(0, len(routes) - 1, most).astype(np.int64))
