"""Relation paths: sequences of relation codes from an entity, with all entities they reach.

Many entity paths share their relations. They are searched together: a relation path is a sequence
of codes with all its end entities, so that it is scored once.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import expand_ranges, sorted_unique
from clew.graph.traverse import FactGraph, Ints, expand_entities

MAX_ENDS = 128  # end entities from which a path is extended
MOST_KINDS = 1 << 38  # paths times codes packed into one number without renumbering
MOST_PACKED = 1 << 62  # the largest packed number


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
        starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(np.bincount(which, minlength=len(rows)), out=starts[1:])
        return RelationPathTable(self.codes[rows], starts, self.ends[index], self.origin[rows])


def start_relation_paths(entities: Ints) -> RelationPathTable:
    """Create paths of length 0: each entity ends at itself."""
    count = len(entities)
    return RelationPathTable(
        np.zeros((count, 0), np.int64), np.arange(count + 1), entities, entities
    )


def extend_relation_paths(
    ways: FactGraph, trails: RelationPathTable, most_ends: int = MAX_ENDS
) -> RelationPathTable:
    """Extend every path by every possible step; no path returns to its start."""
    trail, entity = _sample_frontier(trails, most_ends)
    unique, which = np.unique(entity, return_inverse=True)
    edges = expand_entities(ways, unique)
    edges = edges.select(np.argsort(edges.source, kind="stable"))
    first = np.searchsorted(edges.source, np.arange(len(unique) + 1))
    pair, edge = expand_ranges(first[which], first[which + 1])
    owner, target = trail[pair], edges.target[edge]
    keep = target != trails.origin[owner]
    owner, target, code = owner[keep], target[keep], edges.code[edge][keep]
    return _group_steps(trails, owner, code, target)


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
    people, person, width = _assign_numbers(target, len(trails) * height, MOST_PACKED)
    key = sorted_unique((owner * height + kind) * width + person)
    group, person = np.divmod(key, width)
    fresh = np.flatnonzero(np.diff(group, prepend=-1))
    owner, kind = np.divmod(group[fresh], height)
    longer = np.column_stack([trails.codes[owner], kind if codes is None else codes[kind]])
    starts = np.append(fresh, len(group))
    ends = person if people is None else people[person]
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


def stack_relation_paths(parts: list[RelationPathTable]) -> tuple[NDArray[np.int64], Ints, Ints]:
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
