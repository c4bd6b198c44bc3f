"""Cosines of all elements with one vector, of many exact only where it matters.

Comparing hundreds of thousands of vectors for each question takes far longer than all else. An
index tells how near each element probably is: the nearest are compared exactly at once, and any
other when it is asked for. Between them stand estimates, which serve to tell what is worth asking.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from clew import kernels
from clew.graph.csr import Csr, Floats, Ints, Mask, sorted_unique
from clew.index.cosines import RowCosines
from clew.index.nearest import RowIndex
from clew.kernel_calls import Settling
from clew.store.sign_bits import Distances, SignBits, count_distances, find_limit, find_within

Compare = Callable[[Ints], Floats]
"""The exact cosines of the elements at some positions."""
# Far elements that are compared, to know how low cosines go: at most, and of those that are near.
_SAMPLES, _SAMPLE_SHARE = 512, 0.37
_SEARCHED = 1 << 14  # elements among which they are looked for first
SORTED_SHARE = 40  # sorting a number takes as long as looking at so many marks
_NO_VECTOR = np.float32(-1)


@dataclass(frozen=True, slots=True)
class Estimates:
    """A score of every element; those that are not `known` are estimates until they are asked for.

    Without `known` all of them are exact.
    """

    values: Floats
    known: Mask | None = None
    compare: Compare | None = None
    settle: Compare | None = None
    """Compares what is not known and returns all that is asked for, in one pass."""
    asked: list[Ints] | None = None
    """All positions that are known, in the parts that were asked for, perhaps several times."""

    def at(self, positions: Ints) -> Floats:
        """The exact scores of some elements."""
        if self.asked is not None:
            self.asked.append(positions)
        if self.settle is not None:
            return self.settle(positions)
        if self.known is not None and self.compare is not None:
            new = _take_unknown(self.known, positions)
            if len(new):
                self.values[new] = self.compare(new)
        return self.values[positions]

    def note_asked(self, positions: Ints) -> None:
        """Note which elements were made exact elsewhere."""
        if self.asked is not None:
            self.asked.append(positions)

    def settle_at(self, *positions: Ints) -> None:
        """Make the values at some positions exact."""
        if self.known is not None:
            self.at(positions[0] if len(positions) == 1 else np.concatenate(positions))

    def raise_to_best(self, links: Csr, rows: Ints, scores: Floats) -> None:
        """Raise the scores of some rows of `links` to those of their best element here."""
        if isinstance(self.settle, Settling) and links.columns.dtype == np.int32:
            parts = np.ascontiguousarray(links.starts), np.ascontiguousarray(links.columns)
            new = self.settle.raise_to_best(parts, np.ascontiguousarray(rows, np.int64), scores)
            if self.asked is not None:
                self.asked.append(new)
            return
        which, edge = links.edges_of(rows)
        np.maximum.at(scores, which, self.at(links.columns[edge].astype(np.int64)))

    def find_known(self) -> Ints:
        """The positions that are known, ascending; of very many only what was asked for."""
        if self.known is None:
            return np.arange(len(self.values))
        if self.asked is None or SORTED_SHARE * sum(map(len, self.asked)) > len(self.known):
            return np.flatnonzero(self.known)
        found = sorted_unique(np.concatenate(self.asked))
        self.asked[:] = [found]
        return found


def _take_unknown(known: Mask, positions: Ints) -> Ints:
    """Mark positions as known; return those that were not, each once."""
    compiled = kernels.COMPILED
    if compiled is not None and positions.dtype == np.int64 and positions.flags.c_contiguous:
        return compiled.take_unknown(known, positions)
    new = sorted_unique(positions[~known[positions]])
    known[new] = True
    return new


def compare_nearest(
    index: RowIndex, rows: Ints, vector: Floats, most: int, compare: Compare
) -> Estimates:
    """Compare about `most` of the elements with these vector rows; others count as without one."""
    near = index.nearest_positions(vector, rows, most)
    return keep_exact(np.full(len(rows), _NO_VECTOR), near, compare(near), compare)


def estimate_cosines(
    index: RowIndex, rows: Ints, vector: Floats, most: int, compare: Compare
) -> Estimates:
    """Compare about `most` of the elements with these vector rows, and estimate the others."""
    if not isinstance(index, SignBits):
        return _estimate_by_sample(index, rows, vector, most, compare)
    sample, distances = index.find_sample(rows), index.distances_of(vector, rows)
    return _estimate_by_signs(distances, sample, vector, most, compare)


def estimate_together(
    index: RowIndex, rows: Ints, vectors: Floats, most: int, compare: Sequence[Compare]
) -> list[Estimates]:
    """The same for each of some vectors; all sign bits are read once for two of them."""
    if not isinstance(index, SignBits):
        both = zip(vectors, compare, strict=True)
        return [_estimate_by_sample(index, rows, vector, most, one) for vector, one in both]
    asked = zip(vectors, index.distances_from(vectors), compare, strict=True)
    sample = index.find_sample(rows)
    return [
        _estimate_by_signs(index.take_rows(each, rows, len(vector)), sample, vector, most, one)
        for vector, each, one in asked
    ]


def _estimate_by_signs(
    distances: Distances, sample: Ints | None, vector: Floats, most: int, compare: Compare
) -> Estimates:
    """Estimate cosines by the number of signs in which elements differ from a vector."""
    counts = count_distances(distances, len(vector), sample)
    limit, samples = find_limit(counts, most), min(_SAMPLES, int(_SAMPLE_SHARE * most))
    far = max(limit + 1, len(vector) - find_limit(counts[::-1], samples))
    near = find_within(distances, limit, most)
    exact = compare(near)
    edge = exact[distances[near] == limit]
    high = np.float32(edge.mean()) if len(edge) else _NO_VECTOR
    # All that are so far, more than asked for: the first may not be the farthest.
    farthest = _find_between(distances, (far, len(vector)), 4 * samples)
    low = min(high, compare(farthest).min(initial=high))
    # The cosine falls with the number of differing bits, from the last one that was compared to
    # the farthest ones; beyond the last number there is no vector.
    table = np.arange(len(vector) + 2, dtype=np.float32)
    table -= np.float32(limit)
    table *= (low - high) / np.float32(far - limit)
    table += high
    np.maximum(table, low, out=table)
    table[-1] = _NO_VECTOR
    compiled = kernels.COMPILED
    values = table[distances] if compiled is None else compiled.look_up(distances, table)
    return keep_exact(values, near, exact, compare)


def keep_exact(values: Floats, near: Ints, exact: Floats, compare: Compare) -> Estimates:
    """Estimates of which those at `near` are known."""
    known = np.zeros(len(values), np.bool_)
    values[near], known[near] = exact, True
    settle = compare.prepare(known, values) if isinstance(compare, RowCosines) else None
    return Estimates(values, known, compare, settle, [near])


def _find_between(distances: Distances, bounds: tuple[int, int], count: int) -> Ints:
    """The first positions with a distance within bounds, looked for in as few as possible."""
    if kernels.COMPILED is not None and bounds[0] > 0:
        return kernels.COMPILED.find_between(distances, bounds, count)
    length, (low, high) = _SEARCHED, bounds
    while True:
        some = distances[:length]
        found = np.flatnonzero((some >= low) & (some <= high))
        if len(found) >= count or length >= len(distances):
            return found[:count]
        length *= 4


def _estimate_by_sample(
    index: RowIndex, rows: Ints, vector: Floats, most: int, compare: Compare
) -> Estimates:
    """For an index that tells only the nearest: all others count like a usual element."""
    near = index.nearest_positions(vector, rows, most)
    step = max(1, len(rows) // _SAMPLES)
    usual = np.median(compare(np.arange(0, len(rows), step)))
    values = np.where(rows >= 0, np.float32(usual), _NO_VECTOR).astype(np.float32)
    return keep_exact(values, near, compare(near), compare)
