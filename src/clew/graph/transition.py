"""A graph prepared for random walks: node strengths and the stationary distribution."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clew.errors import InputError
from clew.graph.csr import Csr, Doubles, Floats, Ints

ROWS = 1 << 20  # nodes per block, so that no pass over them needs much memory
EDGES = 1 << 21  # edges per block
TOP_NODES_KEPT = 4096  # nodes of highest background whose numbers are kept


@dataclass(frozen=True, slots=True)
class TransitionGraph:
    """Edges in both directions, with node strengths and the background distribution."""

    links: Csr
    incoming: Csr | None
    """The same edges by their target; the links themselves when undirected."""
    directed: bool
    strengths: Doubles | None
    """Sum of the outgoing weights of each node; None where every edge weighs 1."""
    background: NDArray[np.floating] | None
    """Score of each node in a long walk, summing to 1; None if undirected (strength / total)."""
    total: float
    high: Ints
    """The nodes of highest background, ascending."""

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.links)

    def strength_of(self, nodes: Ints) -> Doubles:
        """Return the sum of outgoing weights of each of `nodes`."""
        if self.strengths is not None:
            return self.strengths.take(nodes)
        starts = self.links.starts
        degrees: Doubles = (starts.take(nodes + 1) - starts.take(nodes)).astype(np.float64)
        return degrees

    def background_of(self, nodes: Ints, strengths: Doubles) -> Doubles:
        """Return the background score of each of `nodes`; 0 where it is unknown."""
        if self.background is not None:
            return self.background.take(nodes).astype(np.float64)
        if self.directed or not self.total:
            return np.zeros(len(nodes))
        return strengths / self.total


def build_transition_graph(
    links: Csr,
    *,
    directed: bool = False,
    incoming: Csr | None = None,
    background: NDArray[np.floating] | None = None,
) -> TransitionGraph:
    """Compute strengths and top nodes in one pass over the graph.

    Undirected `links` hold each edge at both its ends. For directed ones, `incoming` (the
    transposed arrays) makes exact and approximate scores faster or better, and `background`
    (`pagerank.global_pagerank`) makes approximate ones better.
    """
    if background is not None and len(background) != len(links):
        raise InputError(
            f"the background has {len(background)} scores for {len(links)} nodes; compute it again "
            "with `global_pagerank`"
        )
    links = _strip_memmap(links)
    strengths, total = _compute_strengths(links)
    reverse = links if not directed else incoming and _strip_memmap(incoming)
    no_nodes = np.zeros(0, np.int64)
    graph = TransitionGraph(links, reverse, directed, strengths, background, total, no_nodes)
    return replace(graph, high=_find_top_nodes(graph))


def _strip_memmap(links: Csr) -> Csr:
    """Return plain ndarrays: numpy's memmap class makes each small operation slower."""
    return Csr(np.asarray(links.starts), np.asarray(links.columns), np.asarray(links.weights))


def row_blocks(starts: Ints, edges: int = EDGES) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with about `edges` edges each; a longer row is a range of its own."""
    row, rows = 0, len(starts) - 1
    while row < rows:
        last = int(np.searchsorted(starts[row : row + ROWS + 1], starts[row] + edges, "right"))
        last = min(row + max(last - 1, 1), rows)
        yield row, last
        row = last


def row_sums(starts: Ints, of_edges: NDArray[np.floating]) -> Doubles:
    """Sum the edge values of each row; `starts` begin at 0, empty rows give 0."""
    sums = np.zeros((len(starts) - 1, *of_edges.shape[1:]))
    full = np.flatnonzero(np.diff(starts))
    if len(full):
        sums[full] = np.add.reduceat(of_edges, starts[full], axis=0, dtype=np.float64)
    return sums


def _compute_strengths(links: Csr) -> tuple[Doubles | None, float]:
    """Return weight sums per row and in total; None and the edge count if all weigh 1."""
    if _is_unweighted(links.weights):
        return None, float(len(links.columns))
    found = np.zeros(len(links))
    for first, last in row_blocks(links.starts):
        begin, end = int(links.starts[first]), int(links.starts[last])
        weights = links.weights[begin:end]
        if len(weights) and not (weights.min() >= 0 and np.isfinite(weights.max())):
            raise InputError("edge weights must be finite numbers of 0 or more")
        found[first:last] = row_sums(links.starts[first : last + 1] - begin, weights)
    return found, float(found.sum())


def _is_unweighted(weights: Floats) -> bool:
    if not len(weights) or weights.strides == (0,):
        return not len(weights) or bool(weights[0] == 1)
    blocks = range(0, len(weights), EDGES)
    return all(bool(np.all(weights[at : at + EDGES] == 1)) for at in blocks)


def _find_top_nodes(graph: TransitionGraph) -> Ints:
    nodes, heights = np.zeros(0, np.int64), np.zeros(0)
    for first in range(0, len(graph), ROWS):
        more = np.arange(first, min(first + ROWS, len(graph)))
        more_heights = graph.background_of(more, graph.strength_of(more))
        nodes, heights = np.concatenate([nodes, more]), np.concatenate([heights, more_heights])
        if len(nodes) > TOP_NODES_KEPT:
            best = np.argpartition(-heights, TOP_NODES_KEPT)[:TOP_NODES_KEPT]
            nodes, heights = nodes[best], heights[best]
    high: Ints = np.sort(nodes[heights > 0])
    return high
