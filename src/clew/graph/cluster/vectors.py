"""Entity vectors from fact vectors, and sums of vectors by group."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, distinct

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

_EDGES = 1 << 15  # fact vectors gathered at once: 50 MB at 384 numbers each
_FACTS = 1 << 12  # facts read at once
_SHORT = 8  # additions of whole arrays before runs are taken one by one
_EXACT = 1 << 27  # numbers up to which sums of them are kept in double precision
_ROWS = 1 << 11  # rows added in single precision, then in double
BLOCK = 1 << 13  # rows compared at once


def entity_vectors(facts: Floats, incidence: Csr, out: Floats | None = None) -> Floats:
    """Mean of the vectors of each entity's facts; zeros for an entity without any.

    `incidence` leads from entities to facts; a fact that names an entity twice counts once.
    `facts` and `out` may be memory-mapped: only blocks of them are held.
    """
    means = np.zeros((len(incidence), facts.shape[1]), np.float32) if out is None else out
    means[:] = 0
    entity = np.repeat(np.arange(len(incidence)), incidence.degrees())
    again = np.zeros(len(entity), np.bool_)
    again[1:] = (entity[1:] == entity[:-1]) & (incidence.columns[1:] == incidence.columns[:-1])
    entity, fact = entity[~again], incidence.columns[~again]
    for first in range(0, len(entity), _EDGES):
        part = entity[first : first + _EDGES]
        begins = np.flatnonzero(np.diff(part, prepend=-1))
        # An entity that spans blocks is added to in each; within a block it is one run.
        means[part[begins]] += np.add.reduceat(facts[fact[first : first + _EDGES]], begins, axis=0)
    counts = np.bincount(entity, minlength=len(incidence)).astype(np.float32)
    for first in range(0, len(means), BLOCK):
        means[first : first + BLOCK] /= np.maximum(counts[first : first + BLOCK], 1)[:, None]
    return means


Read = Callable[[Ints], tuple[Floats, NDArray[np.bool_]]]
"""The vectors of some facts, and which of them have one."""


def means_over(members: Csr, entities: int, width: int, read: Read) -> Floats:
    """The same means, fact by fact: `read` may map, make up or look up the facts' vectors.

    Facts are read once and in order, so that a file larger than memory is read as it lies.
    """
    # Added in double precision, sums do not show in which order facts came; above a gigabyte memory
    # counts for more, and the order may show in the last bit.
    exact = np.float64 if entities * width <= _EXACT else np.float32
    means = np.zeros((entities, width), exact)
    counts = np.zeros(entities, np.int64)
    for first in range(0, len(members), _FACTS):
        facts = np.arange(first, min(first + _FACTS, len(members)))
        said, known = read(facts)
        which, edge = members.edges_of(facts)
        pairs = distinct(members.columns[edge].astype(np.int64) * len(facts) + which)
        entity, which = pairs // len(facts), pairs % len(facts)
        entity, which = entity[known[which]], which[known[which]]
        add_rows(means, entity, said, which)
        counts += np.bincount(entity, minlength=entities)
    for first in range(0, entities, BLOCK):
        means[first : first + BLOCK] /= np.maximum(counts[first : first + BLOCK], 1)[:, None]
    return means.astype(np.float32, copy=False)


def add_rows(sums: NDArray[Any], to: Ints, rows: NDArray[Any], at: Ints) -> None:
    """`sums[to] += rows[at]`, in place, where `to` is ascending and may repeat.

    First all first ones, then all second ones, and so on: many short runs cost a few additions of
    whole arrays; the rest of long runs are summed one by one. (`reduceat` takes ten times as long.)
    """
    begins = np.flatnonzero(np.diff(to, prepend=-1))
    ends = np.append(begins[1:], len(to))
    for _ in range(_SHORT):
        sums[to[begins]] += rows[at[begins]]
        begins = begins + 1
        left = begins < ends
        begins, ends = begins[left], ends[left]
        if not len(begins):
            return
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        sums[to[begin]] += rows[at[begin:end]].sum(axis=0, dtype=sums.dtype)


def group_sums(vectors: Floats, labels: Ints, groups: int, scale: Floats | None = None) -> Doubles:
    """Sum of the rows that bear each label, each row times its `scale`."""
    sums = np.zeros((groups, vectors.shape[1]))
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=groups)).tolist()
    # Gathering group by group is ten times faster than one `reduceat` over sorted rows, and
    # needs no copy of all.
    for group, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        for first in range(begin, end, _ROWS):
            rows = order[first : min(first + _ROWS, end)]
            if scale is None:
                sums[group] += vectors[rows].sum(axis=0)
            else:
                sums[group] += np.einsum("i,ij->j", scale[rows], vectors[rows])
    return sums


def squares(vectors: Floats) -> Floats:
    """The squared length of each row."""
    found: Floats = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float32)
    return found


def inverse_norms(vectors: Floats) -> Floats:
    """One over the length of each row; 0 for a zero row, so that its cosine is 0."""
    lengths = np.sqrt(squares(vectors))
    return np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def unit_rows(vectors: NDArray[Any]) -> Floats:
    """Rows of length 1; zero rows stay zero."""
    rows = np.asarray(vectors, np.float32)
    return rows * inverse_norms(rows)[:, None]


def by_content(vectors: Floats) -> Ints:
    """An order of the rows that depends on what they hold, not on where they stand.

    Algorithms that draw rows at random draw from this order, so that shuffled input gives the
    same groups.
    """
    odd = np.random.default_rng(0).integers(0, 1 << 62, vectors.shape[1], np.uint64) * 2 + 1
    marks = np.zeros(len(vectors), np.uint64)
    for first in range(0, len(vectors), BLOCK):
        rows = np.ascontiguousarray(vectors[first : first + BLOCK], np.float32) + np.float32(0)
        marks[first : first + BLOCK] = (rows.view(np.uint32) * odd).sum(axis=1, dtype=np.uint64)
    # Multiplying lets only low bits reach high ones; folding them back orders by all.
    marks ^= marks >> np.uint64(31)
    return np.argsort(marks, kind="stable")


def without_gaps(labels: Ints) -> Ints:
    """The same groups numbered 0, 1, …, the largest first; equals by their first member."""
    kept, first, inverse, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    place = np.empty(len(kept), np.int64)
    place[np.lexsort((first, -sizes))] = np.arange(len(kept))
    return place[inverse]
