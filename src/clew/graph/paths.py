"""Paths between seed nodes with flow scores (PathRAG), and simple or shortest entity paths."""

from dataclasses import dataclass

import numpy as np

from clew.graph.csr import Csr, Doubles, Ints, Mask, expand_ranges, isin_sorted, sorted_unique
from clew.graph.traverse import Edges, FactGraph, expand_entities

MAX_DEGREE = 200  # hubs with more neighbours are not passed through: they connect everything
MAX_PATHS_PER_LENGTH = 6000  # paths kept per length; those through nodes of low degree first
MAX_HOPS = 3  # edges in a path
MAX_OPEN_PATHS = 4096  # partial paths kept at any time


@dataclass(frozen=True, slots=True)
class SeedPathTable:
    """Paths as rows of nodes, padded with -1; `pair` numbers the (source, target) seeds."""

    nodes: Ints
    pair: Ints

    def __len__(self) -> int:
        """Return the number of paths."""
        return len(self.pair)


def find_short_paths(
    links: Csr,
    seeds: Ints,
    hops: int = MAX_HOPS,
    *,
    busy: int = MAX_DEGREE,
    most: int = MAX_PATHS_PER_LENGTH,
    codes: Ints | None = None,
) -> SeedPathTable:
    """Find simple paths of at most `hops` edges (3 at most) from each seed to each later one.

    `links` hold every edge once at each of its ends. Of more paths than are kept, `codes` of the
    nodes choose: by position, the choice would follow the order in which nodes were added.
    """
    codes = np.arange(len(links)) if codes is None else codes
    at, edge = links.edges_of(seeds)
    near = links.columns[edge].astype(np.int64)
    rows = [_find_one_hop(seeds, at, near)]
    passable = links.degrees_of(near) <= busy
    at, near = at[passable], near[passable]
    order = np.lexsort((at, near))
    at, near = at[order], near[order]
    if hops > 1:
        rows.append(_find_two_hop(links, at, near, most, codes))
    if hops > 2:
        rows.append(_find_three_hop(links, at, near, most, codes))
    return _build_path_table(seeds, rows)


def _build_path_table(seeds: Ints, rows: list[Ints]) -> SeedPathTable:
    """Combine paths of all lengths in one table; drop those that visit a node twice."""
    tables, pairs = [], []
    for row in rows:
        one, other, middle = row[:, 0], row[:, 1], row[:, 2:]
        ends = seeds[np.stack([one, other], 1)]
        nodes = np.concatenate([ends[:, :1], middle, ends[:, 1:]], 1)
        ordered = np.sort(nodes, 1)
        simple = (np.diff(ordered, axis=1) != 0).all(1)
        tables.append(
            np.pad(nodes[simple], ((0, 0), (0, MAX_HOPS + 1 - nodes.shape[1])), constant_values=-1)
        )
        pairs.append((one * len(seeds) + other)[simple])
    return SeedPathTable(np.concatenate(tables), np.concatenate(pairs))


def _find_one_hop(seeds: Ints, seed: Ints, neighbour: Ints) -> Ints:
    """Find pairs of adjacent seeds."""
    order = np.argsort(seeds, kind="stable")
    position = np.searchsorted(seeds[order], neighbour)
    position = order[np.minimum(position, len(seeds) - 1)] if len(seeds) else position
    keep = (seeds[position] == neighbour) & (seed < position)
    return np.stack([seed[keep], position[keep]], 1)


def _find_two_hop(links: Csr, seed: Ints, near: Ints, most: int, codes: Ints) -> Ints:
    """Find pairs of seeds that share a neighbour."""
    one, other = expand_ranges(np.arange(len(near)) + 1, np.searchsorted(near, near, "right"))
    one = np.asarray(one)
    keep = np.lexsort((codes[near[one]], links.degrees_of(near[one])))[:most]
    one, other = one[keep], other[keep]
    return np.stack([seed[one], seed[other], near[one]], 1)


def _find_three_hop(links: Csr, seed: Ints, near: Ints, most: int, codes: Ints) -> Ints:
    """Find pairs of seeds whose neighbours are adjacent."""
    middles = sorted_unique(near)
    inside = np.zeros(len(links), np.bool_)
    inside[middles] = True
    which, edge = links.edges_of(middles)
    target = links.columns[edge].astype(np.int64)
    among = inside[target]
    source, target = middles[which[among]], target[among]
    # Low degrees first: a node adjacent to everything carries no information.
    busy = links.degrees_of(source) * links.degrees_of(target)
    order = np.lexsort((codes[target], codes[source], busy))[: 2 * most]
    source, target = source[order], target[order]
    pair, one = expand_ranges(np.searchsorted(near, source), np.searchsorted(near, source, "right"))
    goal = target[pair]
    row, other = expand_ranges(np.searchsorted(near, goal), np.searchsorted(near, goal, "right"))
    one, pair = one[row], pair[row]
    keep = np.flatnonzero(seed[one] < seed[other])[:most]
    one, other, pair = one[keep], other[keep], pair[keep]
    return np.stack([seed[one], seed[other], source[pair], target[pair]], 1)


def compute_flows(paths: SeedPathTable, decay: float, threshold: float) -> Doubles:
    """Return the mean flow along the edges of each path.

    Within each pair the source sends a flow of 1, split equally over its successors on any path;
    every other node sends on its inflow times `decay`, split equally over its successors. Flow
    stops at an edge that carries less than `threshold`.
    """
    if not len(paths):
        return np.zeros(0)
    size = int(paths.nodes.max()) + 2
    row, place = np.nonzero(paths.nodes[:, 1:] >= 0)
    pair = paths.pair[row]
    states, source, target = _number_states(
        pair, paths.nodes[row, place], paths.nodes[row, place + 1], size
    )
    edges, first, edge = np.unique(source * states + target, return_index=True, return_inverse=True)
    source, target = source[first], target[first]
    share = 1 / np.bincount(source, minlength=states)[source]
    starts = np.zeros(states, np.bool_)
    starts[source[edge[place == 0]]] = True
    amount = starts.astype(np.float64)
    carried = np.zeros(len(edges))
    for hop in range(MAX_HOPS):
        flow = amount[source] * share * (decay if hop else 1.0)
        carried += flow
        going = np.where(flow >= threshold, flow, 0.0)
        amount = np.bincount(target, going, minlength=states).astype(np.float64)
    total = np.bincount(row, carried[edge], minlength=len(paths))
    mean: Doubles = total / np.bincount(row, minlength=len(paths))
    return mean


def _number_states(pair: Ints, one: Ints, other: Ints, size: int) -> tuple[int, Ints, Ints]:
    """Number each (pair, node) densely: the count, and the state of each edge end."""
    both = np.concatenate([pair * size + one, pair * size + other])
    states, state = np.unique(both, return_inverse=True)
    return len(states), state[: len(one)], state[len(one) :]


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
    """Extend every path by one step: by any to an entity not visited yet, or by one code.

    Steps of one code follow a relation path, which may visit an entity again, but does not repeat
    the fact before, and goes straight back to its start only if it leads nowhere else.
    """
    unique, which = np.unique(routes.entities[:, -1], return_inverse=True)
    edges = expand_entities(ways, unique)
    if code is not None:
        edges = edges.select(edges.code == code)
    edges = edges.select(np.argsort(edges.source, kind="stable"))
    first = np.searchsorted(edges.source, np.arange(len(unique) + 1))
    route, edge = expand_ranges(first[which], first[which + 1])
    if code is None:
        keep = ~(routes.entities[route] == edges.target[edge][:, None]).any(axis=1)
    else:
        keep = _can_follow(routes, route, edges.select(edge))
    return _sample_evenly(_append_steps(routes, route[keep], edges.select(edge[keep])), most)


def _can_follow(routes: EntityPathTable, route: Ints, edges: Edges) -> Mask:
    if not routes.facts.shape[1]:
        return np.ones(len(route), np.bool_)
    loops = edges.target == routes.entities[route, -1]
    repeats = (edges.fact == routes.facts[route, -1]) & ~loops
    undoes = edges.code ^ 1 == routes.codes[route, -1]
    back: Mask = undoes & (edges.target == routes.entities[route, 0])
    allowed: Mask = ~repeats & ~back
    return allowed if allowed.any() else back


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
