"""Exact personalised PageRank: whole vectors, block by block over arrays that may lie on disk.

Undirected graphs are solved by conjugate gradients, which need about half as many passes over the
edges as repeated multiplication: seen through the nodes' strengths, their walk is symmetric.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from clew.graph.csr import Csr
from clew.graph.terrain import EDGES, ROWS, Ints, Reals, Terrain, row_blocks, row_sums

Rows = tuple[int, int]
Map = Callable[[Callable[[Rows], None], Iterable[Rows]], Iterable[None]]


def solved(
    ground: Terrain, starting: Reals, damping: float, tolerance: float, threads: int
) -> Reals:
    """Scores for every row of `starting` (queries x nodes, each summing to 1); it is used up.

    Each row is within `tolerance` of the true scores, summed over all nodes.
    """
    with ThreadPoolExecutor(threads) as pool:
        # Handing a single block to a thread only costs time.
        apply: Map = pool.map if len(ground.links.columns) > EDGES else map
        solve = _repeated if ground.directed else _conjugate
        scores = solve(ground, starting, damping, tolerance * (1 - damping) / 2, apply)
    # What ends in a node without a way out begins anew at the seeds: the same as scaling up.
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def _repeated(ground: Terrain, starting: Reals, damping: float, enough: float, apply: Map) -> Reals:
    """One step of the walk after the other, until nothing changes."""
    scores, share = starting.copy(), np.zeros_like(starting)
    for _ in range(_most_steps(damping, enough)):
        _divide(ground, scores, share, damping)
        following = _arrived(ground, share, apply)
        # Keeping the whole at 1 makes it settle sooner where walks end in nodes without a way out.
        following += (1 - following.sum(axis=1, keepdims=True)) * starting
        scores -= following
        change = float(np.abs(scores, out=scores).sum(axis=1).max())
        scores = following
        if change <= enough:
            break
    return scores


def _conjugate(
    ground: Terrain, starting: Reals, damping: float, enough: float, apply: Map
) -> Reals:
    """Solve scores = damping * step(scores) + (1 - damping) * starting along conjugate lines."""
    starting *= 1 - damping
    missing, scores = starting, np.zeros_like(starting)
    line, share = missing.copy(), np.zeros_like(missing)
    weight = _weighed(ground, missing, missing)
    for _ in range(_most_steps(damping, enough)):
        if float(np.abs(missing).sum(axis=1).max(initial=0.0)) <= enough:
            break
        _divide(ground, line, share, damping)
        moved = _arrived(ground, share, apply)
        np.subtract(line, moved, out=moved)
        far = _ratio(weight, _weighed(ground, line, moved))
        moved *= far
        missing -= moved
        np.multiply(line, far, out=moved)
        scores += moved
        before, weight = weight, _weighed(ground, missing, missing)
        line *= _ratio(weight, before)
        line += missing
    return scores


def _most_steps(damping: float, enough: float) -> int:
    """So many that plain repetition gets there, and some."""
    return 10 + int(np.log(enough / 4) / np.log(damping)) if damping else 2


def _ratio(one: Reals, other: Reals) -> Reals:
    """0 where a query is already solved to the last bit."""
    return np.divide(one, other, out=np.zeros_like(one), where=other > 0)


def _weighed(ground: Terrain, one: Reals, other: Reals) -> Reals:
    """Query by query the product in which an undirected walk is symmetric."""
    total = np.zeros((len(one), 1))
    for here, strength in _strengths(ground):
        # A node without edges stands alone: any weight will do.
        inverse = 1 / np.where(strength > 0, strength, 1)
        total[:, 0] += np.einsum("qn,qn,n->q", one[:, here], other[:, here], inverse)
    return total


def _divide(ground: Terrain, scores: Reals, share: Reals, damping: float) -> None:
    """What each node hands to an edge of weight 1."""
    for here, strength in _strengths(ground):
        kept = np.divide(damping, strength, out=np.zeros_like(strength), where=strength > 0)
        np.multiply(scores[:, here], kept, out=share[:, here])


def _strengths(ground: Terrain) -> Iterator[tuple[slice, Reals]]:
    for first in range(0, len(ground), ROWS):
        last = min(first + ROWS, len(ground))
        if ground.strengths is not None:
            yield slice(first, last), ground.strengths[first:last]
        else:
            yield slice(first, last), np.diff(ground.links.starts[first : last + 1]).astype(float)


def _arrived(ground: Terrain, share: Reals, apply: Map) -> Reals:
    """One pass over all edges: what arrives at each node."""
    links = ground.incoming
    if links is None:
        return _scattered(ground, share)
    arrived = np.empty_like(share)

    def gather(rows: Rows) -> None:
        arrived[:, rows[0] : rows[1]] = _gathered(ground, links, share, rows)

    for _ in apply(gather, row_blocks(links.starts)):
        pass
    return arrived


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
        # Taking by position is up to three times faster than indexing here.
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
