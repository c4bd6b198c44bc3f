"""Personalised PageRank: how near every node is to some seeds, exactly or in milliseconds.

A walker begins at a seed, chosen by weight; at each step it goes on along an edge with chance
`damping`, chosen by weight, and otherwise begins anew, as it does at a node without a way out.
A node's score is the share of time spent there. See docs/pagerank.md for the bounds.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from clew.errors import InputError
from clew.graph.diffuse_exact import solved
from clew.graph.diffuse_push import LOWEST, Places, Spill, places, pushed
from clew.graph.terrain import Ints, Reals, Terrain, terrain

__all__ = ["Diffused", "background", "nearest", "nearest_each", "pagerank", "places", "terrain"]

Seeds = Mapping[int, float] | tuple[Ints, Reals]
"""Where walks begin: node to weight, or nodes, no two alike, and their weights."""

BUDGET = 150_000  # edges; docs/decisions/0005 has the table it was chosen from
# Scores within this factor of the last one kept are looked at once more.
NEAR = 1.5


@dataclass(frozen=True, slots=True)
class Diffused:
    """The best nodes, best first; no score is further than its bound from the exact one."""

    nodes: Ints
    scores: Reals
    bounds: Reals
    bound: float
    """The same for every node of the graph, those not returned included (their score is 0)."""
    touched: int
    """How many nodes were looked at."""


@dataclass(frozen=True, slots=True)
class Likely:
    """Scores of all touched nodes before the best are taken."""

    nodes: Ints
    scores: Reals
    bounds: Reals
    rest: float
    """The mass that was not followed to its end."""


def pagerank(
    ground: Terrain,
    batch: Sequence[Seeds],
    *,
    damping: float = 0.85,
    tolerance: float = 1e-9,
    threads: int = 2,
) -> Reals:
    """Exact scores, queries x nodes; a row is off by `tolerance` at most, summed over all nodes."""
    _check(damping, tolerance)
    starting = np.zeros((len(batch), len(ground)))
    for row, seeds in zip(starting, batch, strict=True):
        nodes, masses = _begun(ground, seeds)
        row[nodes] = masses
    if not starting.size:
        return starting
    return solved(ground, starting, damping, tolerance, threads)


def background(ground: Terrain, *, damping: float = 0.85, tolerance: float = 1e-6) -> Reals:
    """PageRank from everywhere: what `terrain(directed=True, background=…)` wants."""
    if not len(ground):
        return np.zeros(0)
    starting = np.full((1, len(ground)), 1 / len(ground))
    scores: Reals = solved(ground, starting, damping, tolerance, 2)[0]
    return scores


def nearest(
    ground: Terrain,
    where: Places,
    seeds: Seeds,
    k: int = 1000,
    *,
    damping: float = 0.85,
    budget: int = BUDGET,
) -> Diffused:
    """The `k` nodes nearest to the seeds, after looking along about `budget` edges."""
    _check(damping, 1.0)
    nodes, masses = _begun(ground, seeds)
    if 4 * len(ground.links.columns) <= budget:
        return _exactly(ground, seeds, k, damping)
    with where.lock:
        spill = pushed(ground, where, nodes, masses, damping, budget)
        likely = _estimated(ground, spill, damping)
        if ground.incoming is not None and k < spill.count:
            likely = _looked_again(ground, where, spill, likely, k, (masses, damping, budget // 4))
        likely = _with_high(ground, where, spill, likely)
    return _best(likely, k, spill.count)


def nearest_each(
    ground: Terrain,
    wheres: Sequence[Places],
    batch: Sequence[Seeds],
    k: int = 1000,
    *,
    damping: float = 0.85,
    budget: int = BUDGET,
) -> list[Diffused]:
    """`nearest` for many queries, one thread for each of `wheres`."""

    def one(at: int) -> Diffused:
        where = wheres[at % len(wheres)]
        return nearest(ground, where, batch[at], k, damping=damping, budget=budget)

    with ThreadPoolExecutor(len(wheres)) as pool:
        return list(pool.map(one, range(len(batch))))


# -- estimates


def _estimated(ground: Terrain, spill: Spill, damping: float) -> Likely:
    """Scores of touched nodes: what is sure, and a share of what still waits.

    What waits is strewn widely, so most of it will end where any long walk does: the background.
    """
    count = spill.count
    nodes, strength = spill.nodes[:count], spill.strength[:count]
    waiting = spill.waiting[:count]
    ends = strength <= 0
    whole = _whole(spill, damping)
    rest = damping * float(waiting[~ends].sum()) / whole
    sure = (1 - damping) * (spill.passed[:count] + waiting) / whole
    bounds = np.full(count, rest)
    if not ground.directed:
        # Walks there and back weigh the same but for the strengths of their ends.
        thickest = float((waiting[~ends] / strength[~ends]).max(initial=0.0)) / whole
        bounds = np.minimum(rest, thickest * strength)
    return Likely(nodes, sure + rest * ground.background_of(nodes, strength), bounds, rest)


def _whole(spill: Spill, damping: float) -> float:
    """What is left when all that reached a node without a way out is taken away."""
    count = spill.count
    ends = spill.strength[:count] <= 0
    return 1 - spill.lost - damping * float(spill.waiting[:count][ends].sum())


def _looked_again(
    ground: Terrain,
    where: Places,
    spill: Spill,
    likely: Likely,
    k: int,
    setting: tuple[Reals, float, int],
) -> Likely:
    """Score nodes near the edge of the best `k` anew, from all their neighbours' scores."""
    masses, damping, budget = setting
    links = ground.incoming or ground.links
    last = np.partition(likely.scores, -k)[-k]
    near = np.flatnonzero((likely.scores < last * NEAR) & (likely.scores > last / NEAR))
    size = links.starts.take(likely.nodes[near] + 1) - links.starts.take(likely.nodes[near])
    order = np.argsort(size, kind="stable")
    near = np.sort(near[order[np.cumsum(size[order]) <= budget]])
    owner, edge = links.edges_of(likely.nodes[near])
    handed = _handed(ground, where, spill, likely, links.columns.take(edge).astype(np.int64))
    if ground.strengths is not None:
        handed *= links.weights.take(edge)
    anew = damping * np.bincount(owner, handed, minlength=len(near))
    seeds = near < len(masses)  # seeds have the first places
    anew[seeds] += (1 - damping) * masses[near[seeds]] / _whole(spill, damping)
    gain = anew - likely.scores[near]
    # No more than 1 in all: a mean of two estimates keeps the bound of both.
    room = max(0.0, 1 - float(likely.scores.sum()))
    scores = likely.scores.copy()
    scores[near] += gain * min(1.0, room / max(float(gain.sum()), room, LOWEST))
    return Likely(likely.nodes, scores, likely.bounds, likely.rest)


def _handed(ground: Terrain, where: Places, spill: Spill, likely: Likely, nodes: Ints) -> Reals:
    """What each of `nodes`, touched or not, hands to an edge of weight 1."""
    place = where.of.take(nodes).astype(np.int64) - spill.base
    known = place >= 0
    handed = np.zeros(len(nodes))
    at = place[known]
    handed[known] = likely.scores[at] / np.maximum(spill.strength[at], LOWEST)
    others = nodes[~known]
    strength = ground.strength_of(others)
    waiting = likely.rest * ground.background_of(others, strength)
    handed[~known] = waiting / np.maximum(strength, LOWEST)
    return handed


def _with_high(ground: Terrain, where: Places, spill: Spill, likely: Likely) -> Likely:
    """Add the nodes that every long walk meets, where they were not touched."""
    missed = ground.high[where.of.take(ground.high) < spill.base]
    strength = ground.strength_of(missed)
    return Likely(
        np.concatenate([likely.nodes, missed]),
        np.concatenate([likely.scores, likely.rest * ground.background_of(missed, strength)]),
        np.concatenate([likely.bounds, np.full(len(missed), likely.rest)]),
        likely.rest,
    )


def _exactly(ground: Terrain, seeds: Seeds, k: int, damping: float) -> Diffused:
    """A graph smaller than the budget is not worth approximating."""
    tolerance = 1e-9
    scores = pagerank(ground, [seeds], damping=damping, tolerance=tolerance, threads=1)[0]
    nodes = np.flatnonzero(scores > 0)
    sure = Likely(nodes, scores[nodes], np.full(len(nodes), tolerance), tolerance)
    return _best(sure, k, len(ground))


def _best(likely: Likely, k: int, touched: int) -> Diffused:
    """The best `k`, equal scores by node number."""
    scores = likely.scores
    keep = np.flatnonzero(scores > 0)
    if len(keep) > k:
        keep = np.flatnonzero(scores >= np.partition(scores, -k)[-k])
    order = np.lexsort((likely.nodes[keep], -scores[keep]))[:k]
    keep = keep[order]
    # A node that is not returned may score as much as what was not followed, or as the last kept.
    bound = max(likely.rest, float(scores[keep[-1]]) + likely.rest if len(scores) > k else 0.0)
    return Diffused(likely.nodes[keep], scores[keep], likely.bounds[keep], bound, touched)


# -- what is asked


def _check(damping: float, tolerance: float) -> None:
    if not 0 <= damping < 1:
        raise InputError(f"damping is {damping}; give a number from 0 to below 1, such as 0.85")
    if not tolerance > 0:
        raise InputError(f"the tolerance is {tolerance}; give a number above 0, such as 1e-9")


def _begun(ground: Terrain, seeds: Seeds) -> tuple[Ints, Reals]:
    """Seeds as ascending nodes and masses that sum to 1."""
    if isinstance(seeds, tuple):
        nodes, masses = seeds
    else:
        nodes = np.fromiter(seeds.keys(), np.int64, len(seeds))
        masses = np.fromiter(seeds.values(), np.float64, len(seeds))
    order = np.argsort(nodes)
    nodes, masses = nodes[order], masses[order]
    if not len(nodes) or nodes[0] < 0 or nodes[-1] >= len(ground):
        raise InputError(
            f"seeds must be nodes from 0 to {len(ground) - 1}; got {nodes[:5].tolist()}"
        )
    if not (np.all(masses >= 0) and np.isfinite(masses.sum()) and masses.sum() > 0):
        raise InputError(
            "a seed's weight is negative or no number, or all are 0; give some above 0"
        )
    return nodes[masses > 0], masses[masses > 0] / masses.sum()
