"""Short paths between seed nodes, and flow scores along them (PathRAG)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, distinct, spread

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

BUSY = 200  # hubs with more neighbours are not passed through: they connect everything
MOST = 6000  # paths kept per length; those through nodes of low degree first
LONGEST = 3  # edges in a path


@dataclass(frozen=True, slots=True)
class Between:
    """Paths as rows of nodes, padded with -1; `pair` numbers the (source, target) seeds."""

    nodes: Ints
    pair: Ints

    def __len__(self) -> int:
        """Return the number of paths."""
        return len(self.pair)


def between(
    links: Csr, seeds: Ints, hops: int = LONGEST, *, busy: int = BUSY, most: int = MOST
) -> Between:
    """Find simple paths of at most `hops` edges (3 at most) from each seed to each later one.

    `links` hold every edge once at each of its ends.
    """
    at, edge = links.edges_of(seeds)
    near = links.columns[edge].astype(np.int64)
    rows = [_direct(seeds, at, near)]
    passable = links.degrees_of(near) <= busy
    at, near = at[passable], near[passable]
    order = np.lexsort((at, near))
    at, near = at[order], near[order]
    if hops > 1:
        rows.append(_over_one(links, at, near, most))
    if hops > 2:
        rows.append(_over_two(links, at, near, most))
    return _joined(seeds, rows)


def _joined(seeds: Ints, rows: list[Ints]) -> Between:
    """Combine paths of all lengths in one table; drop those that visit a node twice."""
    tables, pairs = [], []
    for row in rows:
        one, other, middle = row[:, 0], row[:, 1], row[:, 2:]
        ends = seeds[np.stack([one, other], 1)]
        nodes = np.concatenate([ends[:, :1], middle, ends[:, 1:]], 1)
        ordered = np.sort(nodes, 1)
        simple = (np.diff(ordered, axis=1) != 0).all(1)
        tables.append(
            np.pad(nodes[simple], ((0, 0), (0, LONGEST + 1 - nodes.shape[1])), constant_values=-1)
        )
        pairs.append((one * len(seeds) + other)[simple])
    return Between(np.concatenate(tables), np.concatenate(pairs))


def _direct(seeds: Ints, seed: Ints, neighbour: Ints) -> Ints:
    """Find pairs of adjacent seeds."""
    order = np.argsort(seeds, kind="stable")
    position = np.searchsorted(seeds[order], neighbour)
    position = order[np.minimum(position, len(seeds) - 1)] if len(seeds) else position
    keep = (seeds[position] == neighbour) & (seed < position)
    return np.stack([seed[keep], position[keep]], 1)


def _over_one(links: Csr, seed: Ints, near: Ints, most: int) -> Ints:
    """Find pairs of seeds that share a neighbour."""
    one, other = spread(np.arange(len(near)) + 1, np.searchsorted(near, near, "right"))
    one = np.asarray(one)
    keep = np.argsort(links.degrees_of(near[one]), kind="stable")[:most]
    one, other = one[keep], other[keep]
    return np.stack([seed[one], seed[other], near[one]], 1)


def _over_two(links: Csr, seed: Ints, near: Ints, most: int) -> Ints:
    """Find pairs of seeds whose neighbours are adjacent."""
    middles = distinct(near)
    inside = np.zeros(len(links), np.bool_)
    inside[middles] = True
    which, edge = links.edges_of(middles)
    target = links.columns[edge].astype(np.int64)
    among = inside[target]
    source, target = middles[which[among]], target[among]
    # Low degrees first: a node adjacent to everything carries no information.
    busy = links.degrees_of(source) * links.degrees_of(target)
    order = np.argsort(busy, kind="stable")[: 2 * most]
    source, target = source[order], target[order]
    pair, one = spread(np.searchsorted(near, source), np.searchsorted(near, source, "right"))
    goal = target[pair]
    row, other = spread(np.searchsorted(near, goal), np.searchsorted(near, goal, "right"))
    one, pair = one[row], pair[row]
    keep = np.flatnonzero(seed[one] < seed[other])[:most]
    one, other, pair = one[keep], other[keep], pair[keep]
    return np.stack([seed[one], seed[other], source[pair], target[pair]], 1)


def flows(paths: Between, decay: float, threshold: float) -> Reals:
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
    states, source, target = _states(
        pair, paths.nodes[row, place], paths.nodes[row, place + 1], size
    )
    edges, first, edge = np.unique(source * states + target, return_index=True, return_inverse=True)
    source, target = source[first], target[first]
    share = 1 / np.bincount(source, minlength=states)[source]
    starts = np.zeros(states, np.bool_)
    starts[source[edge[place == 0]]] = True
    amount = starts.astype(np.float64)
    carried = np.zeros(len(edges))
    for hop in range(LONGEST):
        flow = amount[source] * share * (decay if hop else 1.0)
        carried += flow
        going = np.where(flow >= threshold, flow, 0.0)
        amount = np.bincount(target, going, minlength=states).astype(np.float64)
    total = np.bincount(row, carried[edge], minlength=len(paths))
    mean: Reals = total / np.bincount(row, minlength=len(paths))
    return mean


def _states(pair: Ints, one: Ints, other: Ints, size: int) -> tuple[int, Ints, Ints]:
    """Number each (pair, node) densely: the count, and the state of each edge end."""
    both = np.concatenate([pair * size + one, pair * size + other])
    states, state = np.unique(both, return_inverse=True)
    return len(states), state[: len(one)], state[len(one) :]
