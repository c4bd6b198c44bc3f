"""Entity graphs: the pairwise projection of n-ary facts, and edges between similar names."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, Floats, Ints, build_csr, expand_ranges, row_starts

MAX_CLIQUE_SIZE = 12  # a fact with more members becomes a star around its first one, not a clique
EXACT = 4096  # up to this many vectors, all pairs are compared
NEAREST_PIVOTS = 3  # pivots whose cells a vector belongs to
PER_CELL = 256  # vectors per pivot, on average
BLOCK_ROWS = 2048  # vectors of one cell compared at a time


@dataclass(frozen=True, slots=True)
class EntityGraph:
    """Row `i` of `links` holds the entities that share a fact with `i`; parallel edges are kept.

    A fact gives each of its members a total weight of 1, split over its edges, as a triple does.
    """

    links: Csr
    facts: NDArray[np.int32]
    """The fact of each edge, parallel to `links.columns`."""


def build_entity_graph(members: Csr, entities: int, longest: int = MAX_CLIQUE_SIZE) -> EntityGraph:
    """Connect the members of every fact (row of `members`), each edge in both directions."""
    size = members.degrees()
    owner = np.repeat(np.arange(len(members)), size)
    short = np.flatnonzero(size[owner] <= longest)
    one, other = _pair_members(members.starts, owner, short)
    long = np.flatnonzero(size[owner] > longest)
    centre = members.starts[owner[long]]
    far = long != centre
    one = np.concatenate([one, centre[far], long[far]])
    other = np.concatenate([other, long[far], centre[far]])
    return _sort_edges(entities, members.columns[one], members.columns[other], owner[one], size)


def _pair_members(starts: Ints, owner: Ints, slots: Ints) -> tuple[Ints, Ints]:
    """Pair every incidence with every other incidence of the same fact."""
    fact = owner[slots]
    which, other = expand_ranges(starts[fact], starts[fact + 1])
    one = slots[which]
    keep = one != other
    return one[keep], other[keep]


def _sort_edges(
    entities: int, source: NDArray[np.int32], target: NDArray[np.int32], fact: Ints, size: Ints
) -> EntityGraph:
    keep = source != target  # an entity may have two roles in one fact
    source, target, fact = source[keep].astype(np.int64), target[keep], fact[keep]
    order = np.argsort(source * max(entities, 1) + target, kind="stable")
    weights = (1 / np.maximum(size[fact[order]] - 1, 1)).astype(np.float32)
    links = Csr(row_starts(source, entities), target[order].astype(np.int32), weights)
    return EntityGraph(links, fact[order].astype(np.int32))


def find_synonym_edges(vectors: Floats, least: float, most: int) -> Csr:
    """Link each unit vector to up to `most` others with a cosine of at least `least`, symmetric.

    Above `EXACT` vectors only those that share one of their nearest pivots are compared; pivots
    are sampled from the vectors, so that similar ones nearly always share one (docs/recipes.md).
    """
    count = len(vectors)
    cells = [np.arange(count)] if count <= EXACT else _assign_cells(vectors)
    pairs = [pair for cell in cells for pair in _find_similar_pairs(vectors, cell, least)]
    source = np.concatenate([*(p[0] for p in pairs), np.zeros(0, np.int64)])
    target = np.concatenate([*(p[1] for p in pairs), np.zeros(0, np.int64)])
    cosine = np.concatenate([*(p[2] for p in pairs), np.zeros(0, np.float32)])
    return _make_symmetric(count, source, target, cosine, most)


def _assign_cells(vectors: Floats) -> list[Ints]:
    """Group vectors in cells: those with the same pivot among their nearest."""
    count = len(vectors)
    pivots = np.sort(np.random.default_rng(0).choice(count, count // PER_CELL, replace=False))
    chosen = np.empty((count, NEAREST_PIVOTS), np.int64)
    pivot_vectors = np.ascontiguousarray(vectors[pivots].T)
    for begin in range(0, count, EXACT):
        cosine = vectors[begin : begin + EXACT] @ pivot_vectors
        chosen[begin : begin + EXACT] = np.argpartition(-cosine, NEAREST_PIVOTS - 1, axis=1)[
            :, :NEAREST_PIVOTS
        ]
    order = np.argsort(chosen.ravel(), kind="stable")
    bounds = np.searchsorted(chosen.ravel()[order], np.arange(len(pivots) + 1))
    return [order[a:b] // NEAREST_PIVOTS for a, b in zip(bounds, bounds[1:], strict=False)]


def _find_similar_pairs(
    vectors: Floats, members: Ints, least: float
) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Yield similar pairs within one cell, block by block."""
    cell = vectors[members]
    for begin in range(0, len(members), BLOCK_ROWS):
        cosine = cell[begin : begin + BLOCK_ROWS] @ cell.T
        row, column = np.nonzero(cosine >= least)
        keep = row + begin != column
        row, column = row[keep], column[keep]
        yield members[row + begin], members[column], cosine[row, column].astype(np.float32)


def _make_symmetric(count: int, source: Ints, target: Ints, cosine: Floats, most: int) -> Csr:
    """Keep the best `most` pairs of every vector, once each, and store them at both ends."""
    _, first = np.unique(source * count + target, return_index=True)
    source, target, cosine = source[first], target[first], cosine[first]
    order = np.lexsort((target, -cosine, source))
    source, target, cosine = source[order], target[order], cosine[order]
    rank = np.arange(len(source)) - np.searchsorted(source, source, "left")
    keep = rank < most
    source, target, cosine = source[keep], target[keep], cosine[keep]
    one, other = np.minimum(source, target), np.maximum(source, target)
    _, first = np.unique(one * count + other, return_index=True)
    one, other, cosine = one[first], other[first], np.minimum(cosine[first], 1)
    return build_csr(
        count,
        np.concatenate([one, other]),
        np.concatenate([other, one]),
        np.concatenate([cosine, cosine]),
    )
