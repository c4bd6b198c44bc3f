"""Traversal from entity to entity through facts, with the relation label of each step.

A step has a code: twice its label, plus one when taken from tail to head. A fact without a
relation gets a label of its own, so that its text can stand in for the relation; it is undirected.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, expand_ranges

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_HEAD, _TAIL = 2, 3  # role codes, as the weights of the incidences
_MAX_INSPECTED = 1 << 18  # facts of a hub whose labels are read
MAX_FACTS = 4096  # facts followed per entity


@dataclass(frozen=True, slots=True)
class FactGraph:
    """Fact-entity incidence in both directions, relation labels, and an optional subgraph."""

    facts: Csr
    """Entity → facts; the weights are the entity's roles."""
    members: Csr
    """Fact → entities; the weights are their roles."""
    labels: NDArray[np.int32]
    """The relation of each fact, -1 for none."""
    relation_count: int
    """Number of relations."""
    within: Ints | None = None
    """The facts of the subgraph, ascending; None for all."""

    def fact_of_code(self, codes: Ints) -> Ints:
        """Return the fact a code stands for, -1 where the code is a relation."""
        return np.where((codes >> 1) >= self.relation_count, (codes >> 1) - self.relation_count, -1)


@dataclass(frozen=True, slots=True)
class Edges:
    """Steps as columns: index of the source in the query, fact, target, code."""

    source: Ints
    fact: Ints
    target: Ints
    code: Ints

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.source)

    def select(self, keep: Mask | Ints) -> "Edges":
        """Return the steps selected by a mask or by index."""
        return Edges(self.source[keep], self.fact[keep], self.target[keep], self.code[keep])


def expand_entities(ways: FactGraph, entities: Ints, most: int = MAX_FACTS) -> Edges:
    """Return all steps from some entities; of a hub `most` facts, sampled across its labels."""
    source, fact, role = _gather_facts(ways, entities, most)
    if ways.within is not None:
        keep = isin_sorted(fact, ways.within)
        source, fact, role = source[keep], fact[keep], role[keep]
    at, edge = ways.members.edges_of(fact)
    target = ways.members.columns[edge].astype(np.int64)
    other = ways.members.weights[edge].astype(np.int64)
    source, fact, role = source[at], fact[at], role[at]
    label = ways.labels[fact].astype(np.int64)
    back = (role == _TAIL) | ((other == _HEAD) & (role != _HEAD))
    code = np.where(label < 0, (ways.relation_count + fact) * 2, label * 2 + back)
    keep = target != entities[source]
    return Edges(source[keep], fact[keep], target[keep], code[keep])


def isin_sorted(wanted: Ints, known: Ints) -> Mask:
    """Return which of `wanted` are in the ascending `known`."""
    if not len(known):
        return np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    found: Mask = known[at] == wanted
    return found


def _gather_facts(ways: FactGraph, entities: Ints, most: int) -> tuple[Ints, Ints, Ints]:
    """Return (index of the entity, fact, the entity's role in it)."""
    links = ways.facts
    first, last = links.starts[entities], links.starts[entities + 1]
    hubs = np.flatnonzero(last - first > most)
    if not len(hubs):
        source, edge = expand_ranges(first, last)
    else:
        plain = np.flatnonzero(last - first <= most)
        at, edge = expand_ranges(first[plain], last[plain])
        parts = [(plain[at], edge)]
        for hub in hubs.tolist():
            edge = _sample_hub_edges(ways, int(first[hub]), int(last[hub]), most)
            parts.append((np.full(len(edge), hub), edge))
        source, edge = (np.concatenate(part) for part in zip(*parts, strict=True))
    fact = links.columns[edge].astype(np.int64)
    return source, fact, links.weights[edge].astype(np.int64)


def _sample_hub_edges(ways: FactGraph, first: int, last: int, most: int) -> Ints:
    """Sample edges of a hub evenly from each label, so that rare labels are not lost."""
    stride = max(1, (last - first) // _MAX_INSPECTED)
    edge = np.arange(first, last, stride, dtype=np.int64)
    fact = ways.facts.columns[edge]
    if ways.within is not None:
        keep = isin_sorted(fact.astype(np.int64), ways.within)
        edge, fact = edge[keep], fact[keep]
    if len(edge) <= most:
        return edge
    label = ways.labels[fact]
    order = np.argsort(label, kind="stable")
    _, begin, size = np.unique(label[order], return_index=True, return_counts=True)
    rank = np.arange(len(order)) - np.repeat(begin, size)
    # Round robin: the first of every label, then the second, spaced evenly within each label.
    step = np.maximum(1, size // max(1, most // len(size)))
    spacing = np.repeat(step, size)
    priority = (rank % spacing) * len(order) + rank // spacing
    chosen = order[np.argpartition(priority, most)[:most]]
    return np.sort(edge[chosen])
