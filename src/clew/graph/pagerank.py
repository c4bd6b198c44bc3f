"""Personalised PageRank from seed nodes, exact or approximate in milliseconds.

A random walk starts at a seed, chosen by weight; each step follows an edge with probability
`damping`, chosen by weight, and otherwise restarts at the seeds, as it does at a dangling node.
A node's score is the share of time spent there. See docs/pagerank.md for the bounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clew.errors import InputError
from clew.graph.csr import Csr, Doubles, Ints
from clew.graph.pagerank_exact import solve_pagerank
from clew.graph.pagerank_push import (
    MIN_MASS,
    NodeSlots,
    PushState,
    allocate_slots,
    forward_push,
)
from clew.graph.transition import TransitionGraph, build_transition_graph

Seeds = Mapping[int, float] | tuple[Ints, Doubles]
"""Restart distribution: node to weight, or distinct nodes and their weights."""
EDGE_BUDGET = 150_000  # edges; docs/decisions/0005 has the table it was chosen from
# Scores within this factor of the last one kept are computed again from their neighbours.
RESCORE_FACTOR = 1.5


@dataclass(frozen=True, slots=True)
class PageRankResult:
    """The top nodes, best first; each score is within its bound of the exact one."""

    nodes: Ints
    scores: Doubles
    bounds: Doubles
    bound: float
    """Error bound for every node of the graph, also those not returned (their score is 0)."""
    touched: int
    """Number of nodes visited."""


@dataclass(frozen=True, slots=True)
class ScoreEstimate:
    """Estimated scores of all touched nodes, before the top k are taken."""

    nodes: Ints
    scores: Doubles
    bounds: Doubles
    residual: float
    """Probability mass that was not pushed to its end."""


def pagerank(
    graph: TransitionGraph,
    batch: Sequence[Seeds],
    *,
    damping: float = 0.85,
    tolerance: float = 1e-9,
    threads: int = 2,
) -> Doubles:
    """Return exact scores, queries x nodes; the L1 error of a row is at most `tolerance`."""
    _check_parameters(damping, tolerance)
    starting = np.zeros((len(batch), len(graph)))
    for row, seeds in zip(starting, batch, strict=True):
        nodes, masses = normalize_seeds(len(graph), seeds)
        row[nodes] = masses
    if not starting.size:
        return starting
    return solve_pagerank(graph, starting, damping, tolerance, threads)


def global_pagerank(
    graph: TransitionGraph, *, damping: float = 0.85, tolerance: float = 1e-6
) -> Doubles:
    """Return PageRank with uniform restarts, for `build_transition_graph(background=…)`."""
    if not len(graph):
        return np.zeros(0)
    starting = np.full((1, len(graph)), 1 / len(graph))
    scores: Doubles = solve_pagerank(graph, starting, damping, tolerance, 2)[0]
    return scores


def approximate_pagerank(
    graph: TransitionGraph,
    slots: NodeSlots,
    seeds: Seeds,
    k: int = 1000,
    *,
    damping: float = 0.85,
    budget: int = EDGE_BUDGET,
) -> PageRankResult:
    """Return the `k` nodes of highest score, approximated by pushing along ~`budget` edges."""
    _check_parameters(damping, 1.0)
    nodes, masses = normalize_seeds(len(graph), seeds)
    if 4 * len(graph.links.columns) <= budget:
        return _solve_exactly(graph, seeds, k, damping)
    with slots.lock:
        state = forward_push(graph, slots, nodes, masses, damping, budget)
        estimate = _estimate_scores(graph, state, damping)
        if graph.incoming is not None and k < state.count:
            estimate = _rescore_borderline(
                graph, slots, state, estimate, k, (masses, damping, budget // 4)
            )
        estimate = _add_top_nodes(graph, slots, state, estimate)
    return take_top_k(estimate, k, state.count)


class RankedGraph(Protocol):
    """A graph whose nodes can be ranked, wherever it is."""

    def __len__(self) -> int:
        """Return the number of nodes."""

    def rank(
        self, seeds: Seeds, k: int, *, damping: float, budget: int | None = EDGE_BUDGET
    ) -> PageRankResult:
        """Return the `k` nodes of highest score."""


@dataclass(frozen=True, slots=True)
class LocalGraph:
    """A graph in this process, with the slots that one question at a time uses."""

    transitions: TransitionGraph
    slots: NodeSlots

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.transitions)

    def rank(
        self, seeds: Seeds, k: int, *, damping: float, budget: int | None = EDGE_BUDGET
    ) -> PageRankResult:
        """Return the `k` nodes of highest score, by ~`budget` edges; exact ones without it."""
        if budget is None:
            return _solve_exactly(self.transitions, seeds, k, damping)
        return approximate_pagerank(
            self.transitions, self.slots, seeds, k, damping=damping, budget=budget
        )


def prepare_graph(links: Csr, measured: Mapping[str, NDArray[Any]] | None = None) -> LocalGraph:
    """Prepare an undirected graph for many rankings; it may have been `measured` before."""
    if measured:
        strengths, total = measured["strengths"], float(measured["strengths"].sum())
        transitions = TransitionGraph(links, links, False, strengths, None, total, measured["high"])
    else:
        transitions = build_transition_graph(links)
    return LocalGraph(transitions, allocate_slots(len(transitions)))


def measure_strengths(links: Csr) -> dict[str, NDArray[Any]]:
    """What is measured of all edges of a graph, to be kept; nothing where every edge weighs 1."""
    graph = build_transition_graph(links)
    if graph.strengths is None:
        return {}
    return {"strengths": graph.strengths, "high": graph.high}


# -- estimates


def _estimate_scores(graph: TransitionGraph, state: PushState, damping: float) -> ScoreEstimate:
    """Estimate scores of touched nodes: the settled mass plus a share of the residual.

    The residual is spread widely, so most of it ends where any long walk does: the background.
    """
    count = state.count
    nodes, strength = state.nodes[:count], state.strength[:count]
    waiting = state.waiting[:count]
    ends = strength <= 0
    remaining = _remaining_mass(state, damping)
    rest = damping * float(waiting[~ends].sum()) / remaining
    settled = (1 - damping) * (state.passed[:count] + waiting) / remaining
    bounds = np.full(count, rest)
    if not graph.directed:
        # Undirected walks are reversible: both directions weigh the same but for end strengths.
        densest = float((waiting[~ends] / strength[~ends]).max(initial=0.0)) / remaining
        bounds = np.minimum(rest, densest * strength)
    return ScoreEstimate(nodes, settled + rest * graph.background_of(nodes, strength), bounds, rest)


def _remaining_mass(state: PushState, damping: float) -> float:
    """Return the mass left after removing what reached dangling nodes."""
    count = state.count
    ends = state.strength[:count] <= 0
    return 1 - state.dangling_mass - damping * float(state.waiting[:count][ends].sum())


def _rescore_borderline(
    graph: TransitionGraph,
    slots: NodeSlots,
    state: PushState,
    estimate: ScoreEstimate,
    k: int,
    options: tuple[Doubles, float, int],
) -> ScoreEstimate:
    """Score nodes near the top-`k` border again, from the scores of all their neighbours."""
    masses, damping, budget = options
    links = graph.incoming or graph.links
    last = np.partition(estimate.scores, -k)[-k]
    near = np.flatnonzero(
        (estimate.scores < last * RESCORE_FACTOR) & (estimate.scores > last / RESCORE_FACTOR)
    )
    size = links.starts.take(estimate.nodes[near] + 1) - links.starts.take(estimate.nodes[near])
    order = np.argsort(size, kind="stable")
    near = np.sort(near[order[np.cumsum(size[order]) <= budget]])
    owner, edge = links.edges_of(estimate.nodes[near])
    incoming = _mass_per_weight(
        graph, slots, state, estimate, links.columns.take(edge).astype(np.int64)
    )
    if graph.strengths is not None:
        incoming *= links.weights.take(edge)
    rescored = damping * np.bincount(owner, incoming, minlength=len(near))
    seeds = near < len(masses)  # seeds have the first slots
    rescored[seeds] += (1 - damping) * masses[near[seeds]] / _remaining_mass(state, damping)
    gain = rescored - estimate.scores[near]
    # The sum stays at most 1: a mean of two estimates keeps the bound of both.
    headroom = max(0.0, 1 - float(estimate.scores.sum()))
    scores = estimate.scores.copy()
    scores[near] += gain * min(1.0, headroom / max(float(gain.sum()), headroom, MIN_MASS))
    return ScoreEstimate(estimate.nodes, scores, estimate.bounds, estimate.residual)


def _mass_per_weight(
    graph: TransitionGraph, slots: NodeSlots, state: PushState, estimate: ScoreEstimate, nodes: Ints
) -> Doubles:
    """Return the score each of `nodes`, touched or not, sends along an edge of weight 1."""
    slot = slots.slots.take(nodes).astype(np.int64) - state.base
    known = slot >= 0
    per_weight = np.zeros(len(nodes))
    at = slot[known]
    per_weight[known] = estimate.scores[at] / np.maximum(state.strength[at], MIN_MASS)
    others = nodes[~known]
    strength = graph.strength_of(others)
    residual = estimate.residual * graph.background_of(others, strength)
    per_weight[~known] = residual / np.maximum(strength, MIN_MASS)
    return per_weight


def _add_top_nodes(
    graph: TransitionGraph, slots: NodeSlots, state: PushState, estimate: ScoreEstimate
) -> ScoreEstimate:
    missed = graph.high[slots.slots.take(graph.high) < state.base]
    strength = graph.strength_of(missed)
    return ScoreEstimate(
        np.concatenate([estimate.nodes, missed]),
        np.concatenate(
            [estimate.scores, estimate.residual * graph.background_of(missed, strength)]
        ),
        np.concatenate([estimate.bounds, np.full(len(missed), estimate.residual)]),
        estimate.residual,
    )


def _solve_exactly(graph: TransitionGraph, seeds: Seeds, k: int, damping: float) -> PageRankResult:
    """Solve exactly: a graph smaller than the budget is not worth approximating."""
    tolerance = 1e-9
    scores = pagerank(graph, [seeds], damping=damping, tolerance=tolerance, threads=1)[0]
    nodes = np.flatnonzero(scores > 0)
    exact = ScoreEstimate(nodes, scores[nodes], np.full(len(nodes), tolerance), tolerance)
    return take_top_k(exact, k, len(graph))


def take_top_k(estimate: ScoreEstimate, k: int, touched: int) -> PageRankResult:
    """The `k` nodes of highest score, best first; equal ones by number."""
    scores = estimate.scores
    keep = np.flatnonzero(scores > 0)
    if len(keep) > k:
        keep = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    order = np.lexsort((estimate.nodes[keep], -scores[keep]))[:k]
    keep = keep[order]
    # A node not returned may score as much as the residual, or as the last one kept.
    bound = max(
        estimate.residual, float(scores[keep[-1]]) + estimate.residual if len(scores) > k else 0.0
    )
    return PageRankResult(estimate.nodes[keep], scores[keep], estimate.bounds[keep], bound, touched)


# -- input checks


def _check_parameters(damping: float, tolerance: float) -> None:
    if not 0 <= damping < 1:
        raise InputError(f"damping is {damping}; it must be at least 0 and below 1, such as 0.85")
    if not tolerance > 0:
        raise InputError(f"tolerance is {tolerance}; it must be above 0, such as 1e-9")


def normalize_seeds(count: int, seeds: Seeds) -> tuple[Ints, Doubles]:
    """Return seeds as ascending nodes of `count` and masses that sum to 1."""
    if isinstance(seeds, tuple):
        nodes, masses = seeds
    else:
        nodes = np.fromiter(seeds.keys(), np.int64, len(seeds))
        masses = np.fromiter(seeds.values(), np.float64, len(seeds))
    order = np.argsort(nodes, kind="stable")  # quick where most are in order already
    nodes, masses = nodes[order], masses[order]
    if not len(nodes) or nodes[0] < 0 or nodes[-1] >= count:
        raise InputError(f"seeds must be nodes from 0 to {count - 1}; got {nodes[:5].tolist()}")
    if not (np.all(masses >= 0) and np.isfinite(masses.sum()) and masses.sum() > 0):
        raise InputError("seed weights must be finite numbers of 0 or more, and one above 0")
    return nodes[masses > 0], masses[masses > 0] / masses.sum()
