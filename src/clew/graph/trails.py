"""Relation paths: what sequences of steps lead from an entity, and to whom each of them leads.

Many paths say the same thing of different entities. They are looked for together: a trail is a
sequence of codes with all entities at its end, so that its meaning is weighed once.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import distinct, spread
from clew.graph.traverse import Ints, Ways, onwards

MOST_ENDS = 128  # entities of a trail from which it goes on
MOST_KINDS = 1 << 38  # trails times codes that are packed into a number as they are
MOST_PACKED = 1 << 62  # the largest number


@dataclass(frozen=True, slots=True)
class Trails:
    """Trails of one length: row `i` of `codes` leads to `ends[starts[i]:starts[i+1]]`."""

    codes: Ints
    starts: Ints
    ends: Ints
    origin: Ints
    """The entity where each begins."""

    def __len__(self) -> int:
        """How many trails."""
        return len(self.origin)

    def ends_of(self, at: int) -> Ints:
        """Where one trail leads."""
        return self.ends[self.starts[at] : self.starts[at + 1]]

    def some(self, rows: Ints) -> "Trails":
        """Some of them, in the order given."""
        which, index = spread(self.starts[rows], self.starts[rows + 1])
        starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(np.bincount(which, minlength=len(rows)), out=starts[1:])
        return Trails(self.codes[rows], starts, self.ends[index], self.origin[rows])


def begun(entities: Ints) -> Trails:
    """Trails of no step: each entity leads to itself."""
    count = len(entities)
    return Trails(np.zeros((count, 0), np.int64), np.arange(count + 1), entities, entities)


def lengthened(ways: Ways, trails: Trails, most_ends: int = MOST_ENDS) -> Trails:
    """Every trail one step longer, in every way there is; none comes back to where it began."""
    trail, entity = _frontier(trails, most_ends)
    unique, which = np.unique(entity, return_inverse=True)
    edges = onwards(ways, unique)
    edges = edges.where(np.argsort(edges.source, kind="stable"))
    first = np.searchsorted(edges.source, np.arange(len(unique) + 1))
    pair, edge = spread(first[which], first[which + 1])
    owner, target = trail[pair], edges.target[edge]
    keep = target != trails.origin[owner]
    owner, target, code = owner[keep], target[keep], edges.code[edge][keep]
    return _grouped(trails, owner, code, target)


def _frontier(trails: Trails, most: int) -> tuple[Ints, Ints]:
    """(trail, entity) for the ends of every trail; of very many, evenly spread ones."""
    size = np.diff(trails.starts)
    stride = np.maximum(1, -(-size // most))
    count = -(-size // stride)
    which, index = spread(np.zeros(len(size), np.int64), count)
    return which, trails.ends[trails.starts[which] + index * stride[which]]


def _grouped(trails: Trails, owner: Ints, code: Ints, target: Ints) -> Trails:
    """Steps of one trail with one code become one longer trail with distinct ends."""
    if not len(owner):
        none = np.zeros(0, np.int64)
        width = trails.codes.shape[1] + 1
        return Trails(np.zeros((0, width), np.int64), np.zeros(1, np.int64), none, none)
    codes, kind, height = _numbered(code, len(trails), MOST_KINDS)
    people, person, width = _numbered(target, len(trails) * height, MOST_PACKED)
    key = distinct((owner * height + kind) * width + person)
    group, person = np.divmod(key, width)
    fresh = np.flatnonzero(np.diff(group, prepend=-1))
    owner, kind = np.divmod(group[fresh], height)
    longer = np.column_stack([trails.codes[owner], kind if codes is None else codes[kind]])
    starts = np.append(fresh, len(group))
    ends = person if people is None else people[person]
    return Trails(longer, starts, ends, trails.origin[owner])


def _numbered(values: Ints, times: int, most: int) -> tuple[Ints | None, Ints, int]:
    """Values as numbers to be packed into one with `times` others: (which, number, how many).

    They number themselves, and no table says which, unless the packed number would pass `most`.
    """
    count = int(values.max()) + 1
    if count * times <= most:
        return None, values, count
    known, number = np.unique(values, return_inverse=True)
    return known, number, len(known)


def stacked(parts: list[Trails]) -> tuple[NDArray[np.int64], Ints, Ints]:
    """Trails of several lengths as one table of codes padded with -1, and (part, row) of each."""
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
