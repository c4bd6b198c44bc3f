"""Short paths between some nodes, and how much flows along them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, distinct, spread

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

BUSY = 200  # a node with more neighbours is passed by: all is near all through it
MOST = 6000  # paths of one length that are looked at; those through nodes with few edges first
LONGEST = 3  # edges of a path


@dataclass(frozen=True, slots=True)
class Between:
    """Paths as rows of nodes, -1 after the last; `pair` numbers the ends they join."""

    nodes: Ints
    pair: Ints

    def __len__(self) -> int:
        """How many paths."""
        return len(self.pair)


def between(
    links: Csr, seeds: Ints, hops: int = LONGEST, *, busy: int = BUSY, most: int = MOST
) -> Between:
    """Simple paths of at most `hops` edges (3 at most) from each seed to each later one.

    `links` hold every edge once at both its ends.
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
    """One table of all lengths; walks that meet a node twice are left out."""
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


def _direct(seeds: Ints, at: Ints, near: Ints) -> Ints:
    """Seeds that are neighbours."""
    order = np.argsort(seeds, kind="stable")
    place = np.searchsorted(seeds[order], near)
    place = order[np.minimum(place, len(seeds) - 1)] if len(seeds) else place
    keep = (seeds[place] == near) & (at < place)
    return np.stack([at[keep], place[keep]], 1)


def _over_one(links: Csr, at: Ints, near: Ints, most: int) -> Ints:
    """Seeds that share a neighbour."""
    one, other = spread(np.arange(len(near)) + 1, np.searchsorted(near, near, "right"))
    one = np.asarray(one)
    keep = np.argsort(links.degrees_of(near[one]), kind="stable")[:most]
    one, other = one[keep], other[keep]
    return np.stack([at[one], at[other], near[one]], 1)


def _over_two(links: Csr, at: Ints, near: Ints, most: int) -> Ints:
    """Seeds whose neighbours are neighbours."""
    middles = distinct(near)
    inside = np.zeros(len(links), np.bool_)
    inside[middles] = True
    which, edge = links.edges_of(middles)
    target = links.columns[edge].astype(np.int64)
    among = inside[target]
    source, target = middles[which[among]], target[among]
    # Few neighbours first: what everything is joined to tells nothing.
    busy = links.degrees_of(source) * links.degrees_of(target)
    order = np.argsort(busy, kind="stable")[: 2 * most]
    source, target = source[order], target[order]
    pair, one = spread(np.searchsorted(near, source), np.searchsorted(near, source, "right"))
    goal = target[pair]
    row, other = spread(np.searchsorted(near, goal), np.searchsorted(near, goal, "right"))
    one, pair = one[row], pair[row]
    keep = np.flatnonzero(at[one] < at[other])[:most]
    one, other, pair = one[keep], other[keep], pair[keep]
    return np.stack([at[one], at[other], source[pair], target[pair]], 1)


def flows(paths: Between, decay: float, threshold: float) -> Reals:
    """The mean flow along the edges of each path.

    Within each pair the source hands out 1 in equal parts to all that follow it on any path; every
    other node hands on what it got times `decay`, in equal parts to all that follow it. An edge
    that carries less than `threshold` is the end of its flow.
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
    """A node on the paths of a pair as one small number: how many there are, and both ends."""
    both = np.concatenate([pair * size + one, pair * size + other])
    kept, state = np.unique(both, return_inverse=True)
    return len(kept), state[: len(one)], state[len(one) :]
