"""Approximate personalised PageRank: mass is pushed from node to node where it lies thickest.

All state is held for touched nodes only. One array over all nodes says which place a touched node
has; it is never cleaned: places of earlier queries are simply too small to count.
"""

from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from clew.graph.terrain import Ints, Reals, Terrain

# A level is left when what still stands above it would cost less than this share of the budget.
DRAINED = 0.03
# Each level is lower than the one before by this factor.
LOWER = 2.0
LOWEST = 1e-18  # mass per edge that is not worth moving in double precision


@dataclass(slots=True)
class Places:
    """Which place each touched node has; one query at a time."""

    of: NDArray[np.int32]
    next: int = 1
    lock: Lock = field(default_factory=Lock)

    def room_for(self, count: int) -> None:
        """Begin anew if the numbers run out."""
        if self.next + count >= np.iinfo(np.int32).max:
            self.of.fill(0)
            self.next = 1


def places(nodes: int) -> Places:
    """Room for the queries of one thread over a graph with so many nodes."""
    return Places(np.zeros(nodes, np.int32))


@dataclass(slots=True)
class Spill:
    """What a query has touched: per place the node, what was handed on, what waits."""

    nodes: Ints
    passed: Reals
    waiting: Reals
    first: Ints
    degree: Ints
    strength: Reals
    base: int
    """Places in the array over all nodes count from here."""
    count: int = 0
    spent: int = 0
    lost: float = 0.0
    """Mass that came to nodes without a way out and begins anew at the seeds."""


def pushed(
    ground: Terrain, where: Places, seeds: Ints, masses: Reals, damping: float, budget: int
) -> Spill:
    """Spread `masses` from `seeds` (no two alike) along at most `budget` edges."""
    where.room_for(len(seeds) + budget)
    spill = _empty(max(4096, len(seeds)), where.next)
    _enter(ground, where, spill, seeds)
    spill.waiting[: len(seeds)] = masses
    level = float(masses.max())
    while level > LOWEST:
        chosen, all_fit = _thick(spill, level, budget - spill.spent)
        cost = int(spill.degree[chosen].sum())
        _push(ground, where, spill, chosen, damping)
        if not all_fit:
            break
        if cost <= DRAINED * budget:
            level = _lowered(spill, level)
    where.next = spill.base + spill.count
    return spill


def _lowered(spill: Spill, level: float) -> float:
    """The next level at which something waits; 0 if nothing does."""
    count = spill.count
    thick = spill.waiting[:count] / np.maximum(spill.degree[:count], 1)
    return min(level, float(thick.max(initial=0.0))) / LOWER


def _thick(spill: Spill, level: float, left: int) -> tuple[Ints, bool]:
    """Places whose waiting mass per edge is above the level; the thickest if not all fit `left`."""
    count = spill.count
    waiting, degree = spill.waiting[:count], spill.degree[:count]
    chosen: Ints = np.flatnonzero(waiting > level * np.maximum(degree, 1))
    cost = degree[chosen]
    if cost.sum() <= left:
        return chosen, True
    order = np.argsort(-waiting[chosen] / np.maximum(cost, 1), kind="stable")
    return chosen[order[np.cumsum(cost[order]) <= left]], False


def _push(ground: Terrain, where: Places, spill: Spill, chosen: Ints, damping: float) -> None:
    """Hand on all that waits at `chosen` places."""
    mass = damping * spill.waiting[chosen]
    spill.passed[chosen] += spill.waiting[chosen]
    spill.waiting[chosen] = 0
    size, strength = spill.degree[chosen], spill.strength[chosen]
    ends = strength <= 0
    if ends.any():
        spill.lost += float(mass[ends].sum())
        goes = ~ends
        chosen, mass, size, strength = chosen[goes], mass[goes], size[goes], strength[goes]
    total = int(size.sum())
    spill.spent += total
    if not total:
        return
    edges = np.arange(total) + np.repeat(spill.first[chosen] - (np.cumsum(size) - size), size)
    carried = np.repeat(mass / strength, size)
    if ground.strengths is not None:
        carried *= ground.links.weights.take(edges)
    target = ground.links.columns.take(edges).astype(np.int64)
    place = where.of.take(target)
    fresh = np.flatnonzero(place < spill.base)
    if len(fresh):
        nodes = target[fresh]
        _enter(ground, where, spill, nodes)
        place[fresh] = where.of.take(nodes)
    place -= spill.base
    spill.waiting[: spill.count] += np.bincount(place, carried, minlength=spill.count)


def _enter(ground: Terrain, where: Places, spill: Spill, nodes: Ints) -> None:
    """Give nodes that are met for the first time a place; `nodes` may repeat."""
    # The last to write its mark wins: one of each without sorting.
    marks = np.arange(len(nodes), dtype=np.int32)
    where.of[nodes] = marks
    nodes = nodes[where.of.take(nodes) == marks]
    begin, end = spill.count, spill.count + len(nodes)
    where.of[nodes] = np.arange(spill.base + begin, spill.base + end, dtype=np.int32)
    _grow(spill, end)
    starts = ground.links.starts
    first = starts.take(nodes)
    spill.nodes[begin:end], spill.first[begin:end] = nodes, first
    spill.degree[begin:end] = starts.take(nodes + 1) - first
    if ground.strengths is None:
        spill.strength[begin:end] = spill.degree[begin:end]
    else:
        spill.strength[begin:end] = ground.strengths.take(nodes)
    spill.count = end


def _empty(room: int, base: int) -> Spill:
    whole, real = np.int64, np.float64
    return Spill(
        np.zeros(room, whole),
        np.zeros(room, real),
        np.zeros(room, real),
        np.zeros(room, whole),
        np.zeros(room, whole),
        np.zeros(room, real),
        base,
    )


def _grow(spill: Spill, size: int) -> None:
    """Double until it fits: each entry is copied twice at most, on average."""
    if size <= len(spill.nodes):
        return
    room = max(size, 2 * len(spill.nodes))
    for name in ("nodes", "passed", "waiting", "first", "degree", "strength"):
        held = getattr(spill, name)
        wider = np.zeros(room, held.dtype)
        wider[: spill.count] = held[: spill.count]
        setattr(spill, name, wider)
