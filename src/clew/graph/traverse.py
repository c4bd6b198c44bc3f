"""Traversal from entity to entity through facts, and relation paths: the sequences of its steps.

A step has a code: twice its relation label, plus one when taken from tail to head. A fact without a
relation gets a label of its own, so that its text can stand in for the relation; it is undirected.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, Ints, Mask, expand_ranges, isin_sorted, row_starts, sorted_unique

HEAD_CODE, TAIL_CODE = 2, 3
"""Role codes, as the weights of the incidences."""
_MAX_INSPECTED = 1 << 18  # facts of a hub whose labels are read
MAX_FACTS = 4096  # facts followed per entity
MAX_ENDS = 128  # end entities from which a path is extended
MOST_KINDS = 1 << 38  # paths times codes packed into one number without renumbering
MOST_PACKED = 1 << 62  # the largest packed number


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
    back = (role == TAIL_CODE) | ((other == HEAD_CODE) & (role != HEAD_CODE))
    code = np.where(label < 0, (ways.relation_count + fact) * 2, label * 2 + back)
    # An entity that is head and tail of one fact steps to itself; a member never steps to itself.
    loop = ((role == HEAD_CODE) & (other == TAIL_CODE)) | (
        (role == TAIL_CODE) & (other == HEAD_CODE)
    )
    keep = (target != entities[source]) | loop
    return Edges(source[keep], fact[keep], target[keep], code[keep])


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


@dataclass(frozen=True, slots=True)
class RelationPathTable:
    """Relation paths of one length: row `i` of `codes` ends at `ends[starts[i]:starts[i+1]]`."""

    codes: Ints
    starts: Ints
    ends: Ints
    origin: Ints
    """The start entity of each path."""

    def __len__(self) -> int:
        """Return the number of relation paths."""
        return len(self.origin)

    def ends_of(self, at: int) -> Ints:
        """Return the end entities of one path."""
        return self.ends[self.starts[at] : self.starts[at + 1]]

    def select(self, rows: Ints) -> "RelationPathTable":
        """Return the paths at `rows`, in the order given."""
        which, index = expand_ranges(self.starts[rows], self.starts[rows + 1])
        starts = row_starts(which, len(rows))
        return RelationPathTable(self.codes[rows], starts, self.ends[index], self.origin[rows])


def start_relation_paths(entities: Ints) -> RelationPathTable:
    """Create paths of length 0: each entity ends at itself."""
    count = len(entities)
    return RelationPathTable(
        np.zeros((count, 0), np.int64), np.arange(count + 1), entities, entities
    )


def extend_relation_paths(
    ways: FactGraph,
    trails: RelationPathTable,
    most_ends: int = MAX_ENDS,
) -> RelationPathTable:
    """Extend every path by every possible step.

    "The films of X's director" are other films: a step that undoes the one before does not return
    to the start. Any other way back may be the answer.
    """
    trail, entity = _sample_frontier(trails, most_ends)
    unique, which = np.unique(entity, return_inverse=True)
    edges = expand_entities(ways, unique)
    edges = edges.select(np.argsort(edges.source, kind="stable"))
    first = np.searchsorted(edges.source, np.arange(len(unique) + 1))
    pair, edge = expand_ranges(first[which], first[which + 1])
    owner, target = trail[pair], edges.target[edge]
    code = edges.code[edge]
    back = (target == trails.origin[owner]) & _undoes_last(ways, trails.codes[owner], code)
    if back.any():
        owner, target, code = owner[~back], target[~back], code[~back]
    return _group_steps(trails, owner, code, target)


def _undoes_last(ways: FactGraph, codes: Ints, code: Ints) -> Mask:
    """Tell which next steps undo a path's last step: its reverse, or the same sentence again."""
    if not codes.shape[1]:
        return np.zeros(len(code), np.bool_)
    same_sentence = (code == codes[:, -1]) & (ways.fact_of_code(code) >= 0)
    undone: Mask = (code ^ 1 == codes[:, -1]) | same_sentence
    return undone


def _sample_frontier(paths: RelationPathTable, most: int) -> tuple[Ints, Ints]:
    """Return (path, end entity) pairs, at most about `most` evenly spaced ends per path."""
    size = np.diff(paths.starts)
    stride = np.maximum(1, -(-size // most))
    count = -(-size // stride)
    which, index = expand_ranges(np.zeros(len(size), np.int64), count)
    return which, paths.ends[paths.starts[which] + index * stride[which]]


def _group_steps(
    trails: RelationPathTable, owner: Ints, code: Ints, target: Ints
) -> RelationPathTable:
    """Group the steps of one path with the same code into one longer path with distinct ends."""
    if not len(owner):
        none = np.zeros(0, np.int64)
        width = trails.codes.shape[1] + 1
        return RelationPathTable(np.zeros((0, width), np.int64), np.zeros(1, np.int64), none, none)
    codes, kind, height = _assign_numbers(code, len(trails), MOST_KINDS)
    targets, target_number, width = _assign_numbers(target, len(trails) * height, MOST_PACKED)
    key = sorted_unique((owner * height + kind) * width + target_number)
    group, target_number = np.divmod(key, width)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    owner, kind = np.divmod(group[first], height)
    longer = np.column_stack([trails.codes[owner], kind if codes is None else codes[kind]])
    starts = np.append(first, len(group))
    ends = target_number if targets is None else targets[target_number]
    return RelationPathTable(longer, starts, ends, trails.origin[owner])


def _assign_numbers(values: Ints, times: int, most: int) -> tuple[Ints | None, Ints, int]:
    """Number values for packing with `times` others: (table of values, numbers, count).

    Values are their own numbers, and the table is None, unless the packed number exceeds `most`.
    """
    count = int(values.max()) + 1
    if count * times <= most:
        return None, values, count
    known, number = np.unique(values, return_inverse=True)
    return known, number, len(known)


def stack_relation_paths(parts: list[RelationPathTable]) -> tuple[Ints, Ints, Ints]:
    """Stack paths of several lengths in one code table padded with -1, and (part, row) of each."""
    width = max((part.codes.shape[1] for part in parts), default=0)
    table = [
        np.pad(part.codes, ((0, 0), (0, width - part.codes.shape[1])), constant_values=-1)
        for part in parts
    ]
    which = [np.full(len(part), number) for number, part in enumerate(parts)]
    rows = [np.arange(len(part)) for part in parts]
    if not parts:
        none = np.zeros(0, np.int64)
        return np.zeros((0, 0), np.int64), none, none
    return np.concatenate(table), np.concatenate(which), np.concatenate(rows)
