"""Entity vectors from fact vectors, group sums, and row normalisation."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, Doubles, Floats, Ints, Mask, sorted_unique
from clew.out_of_core import UNBOUNDED, WorkingMemory

_FACT_BLOCK = 1 << 12  # facts read at once
_SHORT_RUN = 8  # whole-array additions before runs are summed one by one
_MAX_EXACT_NUMBERS = 1 << 27  # array size up to which sums are kept in double precision
_ROW_BLOCK = 1 << 11  # rows summed in single precision before adding in double
BLOCK = 1 << 13  # rows per block
FactVectorReader = Callable[[Ints], tuple[Floats, Mask]]
"""Returns the vectors of some facts, and which of them have one."""


def entity_vectors(
    members: Csr,
    entities: int,
    width: int,
    read: FactVectorReader,
    memory: WorkingMemory = UNBOUNDED,
) -> Floats:
    """Return the mean of the vectors of each entity's facts; zeros without facts.

    A fact that has an entity twice counts once. `read` supplies the facts' vectors, once and in
    order, so that a file larger than memory is read sequentially.
    """
    # In double precision, sums do not depend on the order of facts; above a gigabyte memory matters
    # more, and the last bit may depend on it.
    exact = np.float64 if entities * width <= _MAX_EXACT_NUMBERS else np.float32
    means = memory.empty((entities, width), exact)
    means[:] = 0
    counts = np.zeros(entities, np.int64)
    for first in range(0, len(members), _FACT_BLOCK):
        facts = np.arange(first, min(first + _FACT_BLOCK, len(members)))
        vectors, known = read(facts)
        which, edge = members.edges_of(facts)
        pairs = sorted_unique(members.columns[edge].astype(np.int64) * len(facts) + which)
        entity, which = pairs // len(facts), pairs % len(facts)
        entity, which = entity[known[which]], which[known[which]]
        add_rows(means, entity, vectors, which)
        counts += np.bincount(entity, minlength=entities)
        memory.release()
    for first in range(0, entities, BLOCK):
        means[first : first + BLOCK] /= np.maximum(counts[first : first + BLOCK], 1)[:, None]
    return means if exact == np.float32 else memory.copy(means, np.float32)


def add_rows(sums: NDArray[Any], to: Ints, rows: NDArray[Any], at: Ints) -> None:
    """`sums[to] += rows[at]`, in place, where `to` is ascending and may repeat.

    First all first elements, then all second ones, and so on: many short runs cost a few additions
    of whole arrays; the rest of long runs are summed one by one. (`reduceat` is ten times slower.)
    """
    begins = np.flatnonzero(np.diff(to, prepend=-1))
    ends = np.append(begins[1:], len(to))
    for _ in range(_SHORT_RUN):
        sums[to[begins]] += rows[at[begins]]
        begins = begins + 1
        left = begins < ends
        begins, ends = begins[left], ends[left]
        if not len(begins):
            return
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        sums[to[begin]] += rows[at[begin:end]].sum(axis=0, dtype=sums.dtype)


def group_sums(vectors: Floats, labels: Ints, groups: int, scale: Floats | None = None) -> Doubles:
    """Return the sum of the rows with each label, each row times its `scale`."""
    sums = np.zeros((groups, vectors.shape[1]))
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=groups)).tolist()
    # Gathering group by group is ten times faster than one `reduceat` over sorted rows, and
    # copies nothing as a whole.
    for group, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        for first in range(begin, end, _ROW_BLOCK):
            rows = order[first : min(first + _ROW_BLOCK, end)]
            if scale is None:
                sums[group] += vectors[rows].sum(axis=0)
            else:
                sums[group] += np.einsum("i,ij->j", scale[rows], vectors[rows])
    return sums


def squared_norms(vectors: Floats) -> Floats:
    """Return the squared Euclidean norm of each row."""
    found: Floats = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float32)
    return found


def inverse_norms(vectors: Floats) -> Floats:
    """Return 1 / norm of each row; 0 for a zero row, so that its cosine is 0."""
    lengths = np.sqrt(squared_norms(vectors))
    return np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def normalize_rows(vectors: NDArray[Any]) -> Floats:
    """Scale rows to norm 1; zero rows stay zero."""
    rows = np.asarray(vectors, np.float32)
    return rows * inverse_norms(rows)[:, None]


def content_order(vectors: Floats) -> Ints:
    """Return an order of the rows that depends on their content, not on their position.

    Random sampling uses this order, so that shuffled input gives the same clusters.
    """
    factors = np.random.default_rng(0).integers(0, 1 << 62, vectors.shape[1], np.uint64) * 2 + 1
    codes = np.zeros(len(vectors), np.uint64)
    for first in range(0, len(vectors), BLOCK):
        rows = np.ascontiguousarray(vectors[first : first + BLOCK], np.float32) + np.float32(0)
        codes[first : first + BLOCK] = (rows.view(np.uint32) * factors).sum(axis=1, dtype=np.uint64)
    # Multiplication carries only low bits into high ones; folding back lets all bits count.
    codes ^= codes >> np.uint64(31)
    return np.argsort(codes, kind="stable")


def relabel_by_size(labels: Ints) -> Ints:
    """Renumber groups 0, 1, …, the largest first; ties by their first member."""
    kept, first, inverse, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    place = np.empty(len(kept), np.int64)
    place[np.lexsort((first, -sizes))] = np.arange(len(kept))
    return place[inverse]
