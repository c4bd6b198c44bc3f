"""Exact personalised PageRank: dense vectors, block by block over memory-mapped arrays.

Undirected graphs are solved by conjugate gradients, which need about half as many passes over the
edges as power iteration: scaled by the nodes' strengths, their transition matrix is symmetric.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from clew.graph.csr import Csr, Doubles, Ints
from clew.graph.transition import EDGES, ROWS, TransitionGraph, row_blocks, row_sums

RowRange = tuple[int, int]
BlockMap = Callable[[Callable[[RowRange], None], Iterable[RowRange]], Iterable[None]]


def solve_pagerank(
    graph: TransitionGraph, starting: Doubles, damping: float, tolerance: float, threads: int
) -> Doubles:
    """Return scores for every row of `starting` (queries x nodes, rows sum to 1), overwriting it.

    The L1 error of each row is at most `tolerance`.
    """
    with ThreadPoolExecutor(threads) as pool:
        # A thread for a single block only costs time.
        apply: BlockMap = pool.map if len(graph.links.columns) > EDGES else map
        solve = _solve_by_power_iteration if graph.directed else _solve_by_conjugate_gradient
        scores = solve(graph, starting, damping, tolerance * (1 - damping) / 2, apply)
    # Mass at dangling nodes restarts at the seeds, which is the same as rescaling.
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def _solve_by_power_iteration(
    graph: TransitionGraph, starting: Doubles, damping: float, enough: float, apply: BlockMap
) -> Doubles:
    """Solve by power iteration until the change is at most `enough`."""
    scores, share = starting.copy(), np.zeros_like(starting)
    for _ in range(_max_iterations(damping, enough)):
        _scale_by_strength(graph, scores, share, damping)
        following = _propagate(graph, share, apply)
        # Keeping the sum at 1 converges sooner where the graph has dangling nodes.
        following += (1 - following.sum(axis=1, keepdims=True)) * starting
        scores -= following
        change = float(np.abs(scores, out=scores).sum(axis=1).max())
        scores = following
        if change <= enough:
            break
    return scores


def _solve_by_conjugate_gradient(
    graph: TransitionGraph, starting: Doubles, damping: float, enough: float, apply: BlockMap
) -> Doubles:
    """Solve x = damping * step(x) + (1 - damping) * starting by conjugate gradients."""
    starting *= 1 - damping
    residual, scores = starting, np.zeros_like(starting)
    direction, share = residual.copy(), np.zeros_like(residual)
    norm = _inner_product(graph, residual, residual)
    for _ in range(_max_iterations(damping, enough)):
        if float(np.abs(residual).sum(axis=1).max(initial=0.0)) <= enough:
            break
        _scale_by_strength(graph, direction, share, damping)
        moved = _propagate(graph, share, apply)
        np.subtract(direction, moved, out=moved)
        step = _safe_divide(norm, _inner_product(graph, direction, moved))
        moved *= step
        residual -= moved
        np.multiply(direction, step, out=moved)
        scores += moved
        before, norm = norm, _inner_product(graph, residual, residual)
        direction *= _safe_divide(norm, before)
        direction += residual
    return scores


def _max_iterations(damping: float, enough: float) -> int:
    return 10 + int(np.log(enough / 4) / np.log(damping)) if damping else 2


def _safe_divide(one: Doubles, other: Doubles) -> Doubles:
    """Divide; 0 where the denominator is 0 (a query already solved to the last bit)."""
    return np.divide(one, other, out=np.zeros_like(one), where=other > 0)


def _inner_product(graph: TransitionGraph, one: Doubles, other: Doubles) -> Doubles:
    """Return per query the inner product under which an undirected walk is symmetric."""
    total = np.zeros((len(one), 1))
    for block, strength in _iterate_strengths(graph):
        # An isolated node affects no other: any weight will do.
        inverse = 1 / np.where(strength > 0, strength, 1)
        total[:, 0] += np.einsum("qn,qn,n->q", one[:, block], other[:, block], inverse)
    return total


def _scale_by_strength(
    graph: TransitionGraph, scores: Doubles, share: Doubles, damping: float
) -> None:
    """Write into `share` the damped score each node sends along an edge of weight 1."""
    for block, strength in _iterate_strengths(graph):
        factor = np.divide(damping, strength, out=np.zeros_like(strength), where=strength > 0)
        np.multiply(scores[:, block], factor, out=share[:, block])


def _iterate_strengths(graph: TransitionGraph) -> Iterator[tuple[slice, Doubles]]:
    for first in range(0, len(graph), ROWS):
        last = min(first + ROWS, len(graph))
        if graph.strengths is not None:
            yield slice(first, last), graph.strengths[first:last]
        else:
            yield slice(first, last), np.diff(graph.links.starts[first : last + 1]).astype(float)


def _propagate(graph: TransitionGraph, share: Doubles, apply: BlockMap) -> Doubles:
    """Apply one transition step: the mass that arrives at each node, in one pass over edges."""
    links = graph.incoming
    if links is None:
        return _scatter_mass(graph, share)
    arrived = np.empty_like(share)

    def gather(rows: RowRange) -> None:
        arrived[:, rows[0] : rows[1]] = _gather_rows(graph, links, share, rows)

    for _ in apply(gather, row_blocks(links.starts)):
        pass
    return arrived


def _gather_rows(graph: TransitionGraph, links: Csr, share: Doubles, rows: RowRange) -> Doubles:
    begin, end = int(links.starts[rows[0]]), int(links.starts[rows[1]])
    if end - begin > EDGES:
        # One row longer than a block is summed in pieces.
        total = np.zeros((len(share), 1))
        for at in range(begin, end, EDGES):
            edges = slice(at, min(at + EDGES, end))
            total[:, 0] += [mass.sum() for mass in _iterate_edge_mass(graph, links, share, edges)]
        return total
    starts: Ints = links.starts[rows[0] : rows[1] + 1] - begin
    edges = slice(begin, end)
    return np.stack(
        [row_sums(starts, mass) for mass in _iterate_edge_mass(graph, links, share, edges)]
    )


def _iterate_edge_mass(
    graph: TransitionGraph, links: Csr, share: Doubles, edges: slice
) -> Iterator[Doubles]:
    """Yield per query the mass along each of a range of edges."""
    columns = links.columns[edges].astype(np.intp)
    for query_share in share:
        # `take` is up to three times faster than indexing here.
        mass = query_share.take(columns)
        if graph.strengths is not None:
            mass *= links.weights[edges]
        yield mass


def _scatter_mass(graph: TransitionGraph, share: Doubles) -> Doubles:
    """Scatter mass along outgoing edges, when incoming edges are not available."""
    arrived = np.zeros_like(share)
    links = graph.links
    for first, last in row_blocks(links.starts):
        edges = slice(int(links.starts[first]), int(links.starts[last]))
        size = np.diff(links.starts[first : last + 1])
        for query, query_share in enumerate(share):
            mass = np.repeat(query_share[first:last], size)
            if graph.strengths is not None:
                mass *= links.weights[edges]
            np.add.at(arrived[query], links.columns[edges], mass)
    return arrived
