"""The nearest elements by vector: a cheap index proposes candidates, exact cosines decide.

Few elements are all compared exactly. Of many, an index over the vector rows proposes some hundred
times as many as are wanted. It may be older than its matrix or hold rows that no element points to
any more; neither makes a result wrong.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol, get_args, runtime_checkable

import numpy as np

from clew.graph.csr import Floats, Ints
from clew.store.ivf_index import IvfIndex
from clew.store.protocol import Store
from clew.store.sign_bits import make_sign_bits
from clew.types import Kind

MIN_INDEXED = 50_000  # elements; fewer are compared exactly, which takes a few milliseconds
MIN_ESTIMATED = 20_000  # elements; of more, not all cosines that a step works with are exact
CANDIDATES = 2000  # compared exactly whatever `k` is
CANDIDATES_PER_HIT = 60  # and for each element wanted; measured, see docs/scale.md


class RowIndex(Protocol):
    """An index over the rows of a matrix."""

    def nearest_positions(self, vector: Floats, rows: Ints, most: int) -> Ints:
        """About `most` positions in `rows` (-1 for none) whose vectors are likely the nearest."""


@runtime_checkable
class IndexedTable(Protocol):
    """A vector table that keeps an index over its rows."""

    def row_index(self) -> RowIndex:
        """The index over all rows."""

    def describe_index(self) -> str:
        """What is to be said about one that is missing, or older than the vectors."""

    def has_right_indexes(self) -> bool:
        """Whether the stored index, if there is one, is as it was written, after reading it all."""


class StoredIndexes(Mapping[Kind, RowIndex]):
    """The indexes over the vectors of one generation, each loaded when it is first used."""

    _kinds: tuple[Kind, ...] = get_args(Kind)

    def __init__(self, store: Store, embedder: str, lists: int = 0) -> None:
        """Of an index that has lists a query reads so many; 0: as many as are enough."""
        self._store, self._embedder, self._lists = store, embedder, lists
        self._read: dict[Kind, RowIndex] = {}

    def __getitem__(self, kind: Kind) -> RowIndex:
        """Return the index of a kind; sign bits that the store does not keep are computed."""
        if kind not in self._kinds:
            raise KeyError(kind)
        if kind not in self._read:
            table = self._store.vectors(self._embedder, kind)
            if isinstance(table, IndexedTable):
                index = table.row_index()
                if self._lists and isinstance(index, IvfIndex):
                    index = index.with_lists(self._lists)
                self._read[kind] = index
            else:
                self._read[kind] = make_sign_bits(np.asarray(table.matrix()))
        return self._read[kind]

    def describe(self, kind: Kind) -> str:
        """What is to be said about the stored index of a kind; nothing if it is as it should be."""
        table = self._store.vectors(self._embedder, kind)
        return table.describe_index() if isinstance(table, IndexedTable) else ""

    def is_damaged(self, kind: Kind) -> bool:
        """Whether the stored index of a kind is not that of its vectors; all of it is read."""
        table = self._store.vectors(self._embedder, kind)
        return isinstance(table, IndexedTable) and not table.has_right_indexes()

    def __iter__(self) -> Iterator[Kind]:
        """Iterate over the kinds."""
        return iter(self._kinds)

    def __len__(self) -> int:
        """Number of kinds."""
        return len(self._kinds)


def count_candidates(k: int) -> int:
    """Number of candidates that are compared exactly to find the best `k`."""
    return CANDIDATES + CANDIDATES_PER_HIT * k


def is_indexed(elements: int, k: int) -> bool:
    """Whether the best `k` of so many elements are found by an index."""
    return elements >= max(MIN_INDEXED, 4 * count_candidates(k))


def select_best(scores: Floats, keys: Ints, k: int) -> Ints:
    """Positions of the `k` highest scores above -1, best first; ties go by key."""
    k = min(k, len(scores))
    if k <= 0:
        return np.zeros(0, np.int64)
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    high = np.flatnonzero((scores >= least) & (scores > -1))
    found: Ints = high[np.lexsort((keys[high], -scores[high]))][:k].astype(np.int64)
    return found
