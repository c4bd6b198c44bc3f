"""Entity graphs: the pairwise projection of n-ary facts.

A triple joins its head and its tail; a fact with more members joins each of them with every other,
and a very long one becomes a star. What walks or ranks over entities works on this projection, to
which `similar_names` adds edges of another kind.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, Ints, argsort_numbers, expand_ranges, row_starts

MAX_CLIQUE_SIZE = 12  # a fact with more members becomes a star around its first one, not a clique


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
    order = argsort_numbers(source * max(entities, 1) + target)
    weights = (1 / np.maximum(size[fact[order]] - 1, 1)).astype(np.float32)
    links = Csr(row_starts(source, entities), target[order].astype(np.int32), weights)
    return EntityGraph(links, fact[order].astype(np.int32))
