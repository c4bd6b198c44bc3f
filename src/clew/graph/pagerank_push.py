"""Approximate personalised PageRank by forward push, largest residual per edge first.

State is held for touched nodes only. One array over all nodes gives the slot of a touched node;
it is never cleared: slots of earlier queries are below the current query's `base`.
"""

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew import kernels
from clew.graph.csr import Doubles, Ints
from clew.graph.transition import TransitionGraph
from clew.kernel_calls import PushCall

# A level is done when pushing all above it costs at most this share of the budget.
DRAINED_SHARE = 0.03
# The threshold falls by this factor from level to level.
LEVEL_FACTOR = 2.0
_SLOT_ARRAYS = ("nodes", "passed", "waiting", "first", "degree", "strength")
MIN_MASS = 1e-18  # mass per edge not worth pushing in double precision


@dataclass(slots=True)
class NodeSlots:
    """Slot of each touched node; used by one query at a time."""

    slots: NDArray[np.int32]
    next: int = 1
    lock: Lock = field(default_factory=Lock)

    def reserve(self, count: int) -> None:
        """Clear all slots if `count` more numbers would overflow."""
        if self.next + count >= np.iinfo(np.int32).max:
            self.slots.fill(0)
            self.next = 1


def allocate_slots(nodes: int) -> NodeSlots:
    """Allocate slots for the queries of one thread over a graph with so many nodes."""
    return NodeSlots(np.zeros(nodes, np.int32))


@dataclass(slots=True)
class PushState:
    """State of one query: per slot the node, its pushed mass and its residual (`waiting`)."""

    nodes: Ints
    passed: Doubles
    waiting: Doubles
    first: Ints
    degree: Ints
    strength: Doubles
    base: int
    """Number of the first slot of this query in the array over all nodes."""
    count: int = 0
    edges_used: int = 0
    dangling_mass: float = 0.0
    """Mass that reached dangling nodes and restarts at the seeds."""


def forward_push(
    graph: TransitionGraph,
    slots: NodeSlots,
    seeds: Ints,
    masses: Doubles,
    damping: float,
    budget: int,
) -> PushState:
    """Push `masses` from the distinct `seeds` along at most `budget` edges."""
    slots.reserve(len(seeds) + budget)
    if kernels.COMPILED is not None and _can_compile(graph):
        return _push_compiled(kernels.COMPILED, graph, slots, (seeds, masses), damping, budget)
    state = _new_state(max(4096, len(seeds)), slots.next)
    _assign_slots(graph, slots, state, seeds)
    state.waiting[: len(seeds)] = masses
    level = float(masses.max())
    while level > MIN_MASS:
        chosen, all_fit = _select_above(state, level, budget - state.edges_used)
        cost = int(state.degree[chosen].sum())
        _push_selected(graph, slots, state, chosen, damping)
        if not all_fit:
            break
        if cost <= DRAINED_SHARE * budget:
            level = _next_level(state, level)
    slots.next = state.base + state.count
    return state


def _can_compile(graph: TransitionGraph) -> bool:
    """Whether the arrays of a graph are as the compiled push expects them."""
    links = graph.links
    kinds: list[tuple[NDArray[Any], type]] = [(links.starts, np.int64), (links.columns, np.int32)]
    if graph.strengths is not None:
        kinds += [(links.weights, np.float32), (graph.strengths, np.float64)]
    return all(array.dtype == kind and array.flags.c_contiguous for array, kind in kinds)


def _push_compiled(
    compiled: kernels.Kernels,
    graph: TransitionGraph,
    slots: NodeSlots,
    seeds: tuple[Ints, Doubles],
    damping: float,
    budget: int,
) -> PushState:
    """The same by compiled loops: scores may differ in their last digits."""
    links, weighted = graph.links, graph.strengths is not None
    nodes = np.ascontiguousarray(seeds[0], np.int64)
    masses = np.ascontiguousarray(seeds[1], np.float64)
    # Each edge that is used may touch one more node.
    size = min(len(graph), len(nodes) + budget)
    state = _new_state(size, slots.next)
    chosen, mass = np.empty(size, np.int64), np.empty(size)
    arrays: dict[str, NDArray[Any] | None] = {
        **{"starts": links.starts, "columns": links.columns, "strengths": graph.strengths},
        **{"weights": links.weights if weighted else None, "slots": slots.slots},
        **{name: getattr(state, name) for name in _SLOT_ARRAYS},
        **{"chosen": chosen, "mass": mass},
    }
    call = PushCall.prepare(
        arrays,
        base=state.base,
        budget=budget,
        drained=int(DRAINED_SHARE * budget),
        damping=damping,
        level=float(masses.max()),
        least=MIN_MASS,
        factor=LEVEL_FACTOR,
    )
    compiled.push_seeds(call, nodes.ctypes.data, masses.ctypes.data, len(nodes))
    left = compiled.push_levels(call)
    state.count, state.edges_used = call.count, call.used
    if left:  # not all that are above the level fit
        last, _ = _select_above(state, call.level, budget - call.used)
        chosen[: len(last)] = last
        compiled.push_chosen(call, len(last))
    state.count, state.edges_used, state.dangling_mass = call.count, call.used, call.dangling
    slots.next = state.base + state.count
    return state


def _next_level(state: PushState, level: float) -> float:
    """Return the next threshold with some residual above it; 0 if there is no residual."""
    count = state.count
    density = state.waiting[:count] / np.maximum(state.degree[:count], 1)
    return min(level, float(density.max(initial=0.0))) / LEVEL_FACTOR


def _select_above(state: PushState, level: float, left: int) -> tuple[Ints, bool]:
    """Return slots whose residual per edge exceeds `level`; the largest if not all fit `left`."""
    count = state.count
    waiting, degree = state.waiting[:count], state.degree[:count]
    chosen: Ints = np.flatnonzero(waiting > level * np.maximum(degree, 1))
    cost = degree[chosen]
    if cost.sum() <= left:
        return chosen, True
    order = np.argsort(-waiting[chosen] / np.maximum(cost, 1), kind="stable")
    return chosen[order[np.cumsum(cost[order]) <= left]], False


def _push_selected(
    graph: TransitionGraph, slots: NodeSlots, state: PushState, chosen: Ints, damping: float
) -> None:
    """Push the whole residual of the `chosen` slots along their edges."""
    mass = damping * state.waiting[chosen]
    state.passed[chosen] += state.waiting[chosen]
    state.waiting[chosen] = 0
    size, strength = state.degree[chosen], state.strength[chosen]
    dangling = strength <= 0
    if dangling.any():
        state.dangling_mass += float(mass[dangling].sum())
        live = ~dangling
        chosen, mass, size, strength = chosen[live], mass[live], size[live], strength[live]
    total = int(size.sum())
    state.edges_used += total
    if not total:
        return
    edges = np.arange(total) + np.repeat(state.first[chosen] - (np.cumsum(size) - size), size)
    edge_mass = np.repeat(mass / strength, size)
    if graph.strengths is not None:
        edge_mass *= graph.links.weights.take(edges)
    target = graph.links.columns.take(edges).astype(np.int64)
    slot = slots.slots.take(target)
    new = np.flatnonzero(slot < state.base)
    if len(new):
        nodes = target[new]
        _assign_slots(graph, slots, state, nodes)
        slot[new] = slots.slots.take(nodes)
    slot -= state.base
    state.waiting[: state.count] += np.bincount(slot, edge_mass, minlength=state.count)


def _assign_slots(graph: TransitionGraph, slots: NodeSlots, state: PushState, nodes: Ints) -> None:
    """Assign slots to nodes met for the first time; `nodes` may repeat."""
    # The last write wins: this removes duplicates without sorting.
    marks = np.arange(len(nodes), dtype=np.int32)
    slots.slots[nodes] = marks
    nodes = nodes[slots.slots.take(nodes) == marks]
    begin, end = state.count, state.count + len(nodes)
    slots.slots[nodes] = np.arange(state.base + begin, state.base + end, dtype=np.int32)
    _ensure_capacity(state, end)
    starts = graph.links.starts
    first = starts.take(nodes)
    state.nodes[begin:end], state.first[begin:end] = nodes, first
    state.degree[begin:end] = starts.take(nodes + 1) - first
    if graph.strengths is None:
        state.strength[begin:end] = state.degree[begin:end]
    else:
        state.strength[begin:end] = graph.strengths.take(nodes)
    state.count = end


def _new_state(capacity: int, base: int) -> PushState:
    def ints() -> Ints:
        return np.zeros(capacity, np.int64)

    def doubles() -> Doubles:
        return np.zeros(capacity)

    return PushState(ints(), doubles(), doubles(), ints(), ints(), doubles(), base)


def _ensure_capacity(state: PushState, size: int) -> None:
    """Grow by doubling: each entry is copied at most twice on average."""
    if size <= len(state.nodes):
        return
    capacity = max(size, 2 * len(state.nodes))
    for name in _SLOT_ARRAYS:
        old = getattr(state, name)
        wider = np.zeros(capacity, old.dtype)
        wider[: state.count] = old[: state.count]
        setattr(state, name, wider)
