"""Exact personalised PageRank: whole vectors, block by block over arrays that may lie on disk.

Undirected graphs get Chebyshev's iteration, which needs about half as many passes as repeated
multiplication: the walk's eigenvalues are real there and lie within ± damping.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from clew.graph.csr import Csr
from clew.graph.terrain import EDGES, ROWS, Ints, Reals, Terrain, row_blocks, row_sums

Rows = tuple[int, int]


def solved(
    ground: Terrain, starting: Reals, damping: float, tolerance: float, threads: int
) -> Reals:
    """Scores for every row of `starting` (queries x nodes, each summing to 1).

    Each row is within `tolerance` of the true scores, summed over all nodes.
    """
    scores = starting.copy()
    earlier = starting.copy()
    share = np.zeros_like(starting)
    # Overrelaxation of Chebyshev's iteration; 1 is plain repetition.
    faster = 1.0
    with ThreadPoolExecutor(threads) as pool:
        for step in range(_most_steps(damping, tolerance)):
            _divide(ground, scores, share, damping)
            if not ground.directed and step:
                faster = 1 / (1 - (0.5 if step == 1 else 0.25) * damping**2 * faster)
            change = _step(ground, (starting, scores, earlier, share), damping, faster, pool.map)
            scores, earlier = earlier, scores
            if change <= tolerance * (1 - damping):
                break
    # What ends in a node without a way out begins anew at the seeds: the same as scaling up.
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def _most_steps(damping: float, tolerance: float) -> int:
    """Enough for plain repetition to get there, and some."""
    return 10 + int(np.log(tolerance * (1 - damping) / 4) / np.log(damping)) if damping else 2


Vectors = tuple[Reals, Reals, Reals, Reals]
Map = Callable[[Callable[[Rows], float], Iterable[Rows]], Iterable[float]]


def _step(ground: Terrain, vectors: Vectors, damping: float, faster: float, apply: Map) -> float:
    """One pass over all edges, written over `earlier`; returns how much was still missing."""
    starting, scores, earlier, share = vectors
    if ground.incoming is None:
        arrived = _scattered(ground, share)

    def update(rows: Rows) -> float:
        here = (slice(None), slice(*rows))
        if ground.incoming is None:
            given = arrived[here]
        else:
            given = _gathered(ground, ground.incoming, share, rows)
        given += (1 - damping) * starting[here]
        given -= scores[here]
        missing = float(np.abs(given).sum(axis=1).max(initial=0.0))
        # faster * (scores + given - earlier) + earlier, in place.
        given += scores[here]
        given -= earlier[here]
        given *= faster
        earlier[here] += given
        return missing

    links = ground.incoming or ground.links
    return sum(apply(update, row_blocks(links.starts)))


def _divide(ground: Terrain, scores: Reals, share: Reals, damping: float) -> None:
    """What each node hands to an edge of weight 1."""
    for first in range(0, len(ground), ROWS):
        nodes = np.arange(first, min(first + ROWS, len(ground)))
        strength = ground.strength_of(nodes)
        kept = np.divide(damping, strength, out=np.zeros_like(strength), where=strength > 0)
        here = slice(first, first + ROWS)
        np.multiply(scores[:, here], kept, out=share[:, here])


def _gathered(ground: Terrain, links: Csr, share: Reals, rows: Rows) -> Reals:
    """What arrives at rows along their edges."""
    begin, end = int(links.starts[rows[0]]), int(links.starts[rows[1]])
    if end - begin > EDGES:
        # One row that is longer than a block: piece by piece.
        whole = np.zeros((len(share), 1))
        for at in range(begin, end, EDGES):
            edges = slice(at, min(at + EDGES, end))
            whole[:, 0] += [carried.sum() for carried in _carried(ground, links, share, edges)]
        return whole
    starts: Ints = links.starts[rows[0] : rows[1] + 1] - begin
    edges = slice(begin, end)
    return np.stack(
        [row_sums(starts, carried) for carried in _carried(ground, links, share, edges)]
    )


def _carried(ground: Terrain, links: Csr, share: Reals, edges: slice) -> Iterator[Reals]:
    """What each of a range of edges carries, query by query."""
    columns = links.columns[edges].astype(np.intp)
    for handed in share:
        # Taking by position is three times faster than indexing here.
        carried = handed.take(columns)
        if ground.strengths is not None:
            carried *= links.weights[edges]
        yield carried


def _scattered(ground: Terrain, share: Reals) -> Reals:
    """What arrives everywhere, when edges are known by their beginning only."""
    arrived = np.zeros_like(share)
    links = ground.links
    for first, last in row_blocks(links.starts):
        edges = slice(int(links.starts[first]), int(links.starts[last]))
        size = np.diff(links.starts[first : last + 1])
        for query, handed in enumerate(share):
            carried = np.repeat(handed[first:last], size)
            if ground.strengths is not None:
                carried *= links.weights[edges]
            np.add.at(arrived[query], links.columns[edges], carried)
    return arrived
