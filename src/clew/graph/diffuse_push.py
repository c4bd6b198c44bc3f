"""Approximate personalised PageRank by forward push, largest residual per edge first.

State is held for touched nodes only. One array over all nodes gives the slot of a touched node;
it is never cleared: slots of earlier queries are below the current query's `base`.
"""

from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from clew.graph.terrain import Ints, Reals, Terrain

# A level is done when pushing all above it costs at most this share of the budget.
DRAINED = 0.03
# The threshold falls by this factor from level to level.
LOWER = 2.0
LOWEST = 1e-18  # mass per edge not worth pushing in double precision


@dataclass(slots=True)
class Places:
    """Slot of each touched node; used by one query at a time."""

    of: NDArray[np.int32]
    next: int = 1
    lock: Lock = field(default_factory=Lock)

    def room_for(self, count: int) -> None:
        """Clear all slots if `count` more numbers would overflow."""
        if self.next + count >= np.iinfo(np.int32).max:
            self.of.fill(0)
            self.next = 1


def places(nodes: int) -> Places:
    """Allocate slots for the queries of one thread over a graph with so many nodes."""
    return Places(np.zeros(nodes, np.int32))


@dataclass(slots=True)
class Spill:
    """State of one query: per slot the node, its pushed mass and its residual (`waiting`)."""

    nodes: Ints
    passed: Reals
    waiting: Reals
    first: Ints
    degree: Ints
    strength: Reals
    base: int
    """Number of the first slot of this query in the array over all nodes."""
    count: int = 0
    spent: int = 0
    lost: float = 0.0
    """Mass that reached dangling nodes and restarts at the seeds."""


def pushed(
    graph: Terrain, slots: Places, seeds: Ints, masses: Reals, damping: float, budget: int
) -> Spill:
    """Push `masses` from the distinct `seeds` along at most `budget` edges."""
    slots.room_for(len(seeds) + budget)
    state = _empty(max(4096, len(seeds)), slots.next)
    _enter(graph, slots, state, seeds)
    state.waiting[: len(seeds)] = masses
    level = float(masses.max())
    while level > LOWEST:
        chosen, all_fit = _thick(state, level, budget - state.spent)
        cost = int(state.degree[chosen].sum())
        _push(graph, slots, state, chosen, damping)
        if not all_fit:
            break
        if cost <= DRAINED * budget:
            level = _lowered(state, level)
    slots.next = state.base + state.count
    return state


def _lowered(state: Spill, level: float) -> float:
    """Return the next threshold with some residual above it; 0 if there is no residual."""
    count = state.count
    density = state.waiting[:count] / np.maximum(state.degree[:count], 1)
    return min(level, float(density.max(initial=0.0))) / LOWER


def _thick(state: Spill, level: float, left: int) -> tuple[Ints, bool]:
    """Return slots whose residual per edge exceeds `level`; the largest if not all fit `left`."""
    count = state.count
    waiting, degree = state.waiting[:count], state.degree[:count]
    chosen: Ints = np.flatnonzero(waiting > level * np.maximum(degree, 1))
    cost = degree[chosen]
    if cost.sum() <= left:
        return chosen, True
    order = np.argsort(-waiting[chosen] / np.maximum(cost, 1), kind="stable")
    return chosen[order[np.cumsum(cost[order]) <= left]], False


def _push(graph: Terrain, slots: Places, state: Spill, chosen: Ints, damping: float) -> None:
    """Push the whole residual of the `chosen` slots along their edges."""
    mass = damping * state.waiting[chosen]
    state.passed[chosen] += state.waiting[chosen]
    state.waiting[chosen] = 0
    size, strength = state.degree[chosen], state.strength[chosen]
    dangling = strength <= 0
    if dangling.any():
        state.lost += float(mass[dangling].sum())
        live = ~dangling
        chosen, mass, size, strength = chosen[live], mass[live], size[live], strength[live]
    total = int(size.sum())
    state.spent += total
    if not total:
        return
    edges = np.arange(total) + np.repeat(state.first[chosen] - (np.cumsum(size) - size), size)
    edge_mass = np.repeat(mass / strength, size)
    if graph.strengths is not None:
        edge_mass *= graph.links.weights.take(edges)
    target = graph.links.columns.take(edges).astype(np.int64)
    slot = slots.of.take(target)
    new = np.flatnonzero(slot < state.base)
    if len(new):
        nodes = target[new]
        _enter(graph, slots, state, nodes)
        slot[new] = slots.of.take(nodes)
    slot -= state.base
    state.waiting[: state.count] += np.bincount(slot, edge_mass, minlength=state.count)


def _enter(graph: Terrain, slots: Places, state: Spill, nodes: Ints) -> None:
    """Assign slots to nodes met for the first time; `nodes` may repeat."""
    # The last write wins: this removes duplicates without sorting.
    marks = np.arange(len(nodes), dtype=np.int32)
    slots.of[nodes] = marks
    nodes = nodes[slots.of.take(nodes) == marks]
    begin, end = state.count, state.count + len(nodes)
    slots.of[nodes] = np.arange(state.base + begin, state.base + end, dtype=np.int32)
    _grow(state, end)
    starts = graph.links.starts
    first = starts.take(nodes)
    state.nodes[begin:end], state.first[begin:end] = nodes, first
    state.degree[begin:end] = starts.take(nodes + 1) - first
    if graph.strengths is None:
        state.strength[begin:end] = state.degree[begin:end]
    else:
        state.strength[begin:end] = graph.strengths.take(nodes)
    state.count = end


def _empty(capacity: int, base: int) -> Spill:
    whole, real = np.int64, np.float64
    return Spill(
        np.zeros(capacity, whole),
        np.zeros(capacity, real),
        np.zeros(capacity, real),
        np.zeros(capacity, whole),
        np.zeros(capacity, whole),
        np.zeros(capacity, real),
        base,
    )


def _grow(state: Spill, size: int) -> None:
    """Grow by doubling: each entry is copied at most twice on average."""
    if size <= len(state.nodes):
        return
    capacity = max(size, 2 * len(state.nodes))
    for name in ("nodes", "passed", "waiting", "first", "degree", "strength"):
        old = getattr(state, name)
        wider = np.zeros(capacity, old.dtype)
        wider[: state.count] = old[: state.count]
        setattr(state, name, wider)
