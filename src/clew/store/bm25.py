"""BM25 index over arrays: terms are 64-bit hashes, postings are memory-mapped columns.

There is no vocabulary of strings: a term is found by binary search over its hash. Adding chunks
tokenises only the new ones.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.text.unicode import hash64, split_words

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Postings = tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int32]]
"""Term, chunk position and count of each posting."""
WordCounts = tuple["array[int]", "array[int]"]
"""Hashes of a text's distinct words, and their counts."""


@dataclass(frozen=True, slots=True)
class Bm25Index:
    """Postings by term: chunk positions and counts; `lengths` in words per chunk."""

    terms: NDArray[np.uint64]
    starts: Ints
    chunks: NDArray[np.int32]
    counts: NDArray[np.int32]
    lengths: NDArray[np.int32]

    def scores(self, query: Iterable[str], *, k1: float = 1.2, b: float = 0.75) -> Floats:
        """BM25 of every chunk for the query's words (Robertson's usual constants)."""
        total = np.zeros(len(self.lengths), np.float32)
        if not len(self.terms):
            return total
        mean = max(1.0, float(self.lengths.mean()))
        norm = k1 * (1 - b + b * self.lengths.astype(np.float32) / mean)
        for term, times in Counter(query).items():
            where, count = self._find_postings(term)
            if len(where):
                weight = np.log1p((len(total) - len(where) + 0.5) / (len(where) + 0.5)) * times
                total[where] += weight * count * (k1 + 1) / (count + norm[where])
        return total

    def chunks_with(self, term: str) -> NDArray[np.int32]:
        """Chunks that contain a word."""
        return self._find_postings(term)[0]

    def chunks_with_all(self, terms: Sequence[str]) -> Ints:
        """Chunks that contain every one of these words; none for no words."""
        found = np.zeros(0, np.int64)
        for number, term in enumerate(terms):
            where = self.chunks_with(term).astype(np.int64)
            found = np.intersect1d(found, where, assume_unique=True) if number else where
        return found

    def _find_postings(self, term: str) -> tuple[NDArray[np.int32], Floats]:
        key = np.uint64(hash64(term))
        at = int(np.searchsorted(self.terms, key))
        if at == len(self.terms) or self.terms[at] != key:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        part = slice(int(self.starts[at]), int(self.starts[at + 1]))
        return self.chunks[part], self.counts[part].astype(np.float32)


def index_to_arrays(index: Bm25Index) -> dict[str, NDArray[Any]]:
    """The index as named arrays, to be saved in a generation's folder."""
    return {f"text_{name}": getattr(index, name) for name in index.__slots__}


def index_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Bm25Index:
    """Load the index from a generation's arrays."""
    return Bm25Index(*(arrays[f"text_{name}"] for name in Bm25Index.__slots__))


def build_index(
    keys: Ints, texts: Mapping[int, str], old: Bm25Index | None = None, old_keys: Ints | None = None
) -> Bm25Index:
    """Index the chunks `keys` (ascending): `texts` has the new ones, `old` the others."""
    lengths = np.zeros(len(keys), np.int32)
    postings = _sort_postings(_make_postings(keys, texts, lengths))
    if old is not None and old_keys is not None and len(old_keys) and len(keys):
        place = np.searchsorted(keys, old_keys)
        kept = np.take(keys, np.minimum(place, len(keys) - 1)) == old_keys
        lengths[place[kept]] = old.lengths[kept]
        postings = _merge_postings(_keep_postings(old, place, kept), postings)
    terms, chunks, counts = postings
    begins = np.flatnonzero(np.append(True, terms[1:] != terms[:-1])[: len(terms)])
    starts = np.append(begins, len(terms)).astype(np.int64)
    return Bm25Index(terms[starts[:-1]], starts, chunks, counts, lengths)


class _HashCache(dict[str, int]):
    def __missing__(self, word: str) -> int:
        found = self[word] = hash64(word)
        return found


_PRECOUNTED: dict[str, WordCounts] = {}
_PRECOUNT_HASHES = _HashCache()


def _make_postings(keys: Ints, texts: Mapping[int, str], lengths: NDArray[np.int32]) -> Postings:
    """Tokenise the texts and fill in their `lengths`."""
    hashes = _HashCache()
    terms, counts = array("Q"), array("i")
    sizes: list[int] = []
    wanted: list[int] = []
    for key, text in texts.items():
        counted = _PRECOUNTED.pop(text, None)
        words, times = counted or _count_words(text, hashes)
        terms.extend(words)
        counts.extend(times)
        sizes.append(len(words))
        wanted.append(key)
    positions = np.searchsorted(keys, np.array(wanted, np.int64)).astype(np.int32)
    chunks = np.repeat(positions, sizes)
    numbers = np.array(counts, np.int32)
    if len(positions):
        np.add.at(lengths, chunks, numbers)
    return np.array(terms, np.uint64), chunks, numbers


def precount_words(text: str) -> None:
    """Count a text's words ahead of `build_index`, which consumes the result."""
    _PRECOUNTED[text] = _count_words(text, _PRECOUNT_HASHES)


def _count_words(text: str, hashes: _HashCache) -> WordCounts:
    counts = Counter(split_words(text))
    return array("Q", map(hashes.__getitem__, counts)), array("i", counts.values())


def _sort_postings(postings: Postings) -> Postings:
    """Sort by term, then by chunk."""
    terms, chunks, counts = postings
    if np.any(chunks[1:] < chunks[:-1]):
        by_chunk = np.argsort(chunks, kind="stable")
        terms, chunks, counts = terms[by_chunk], chunks[by_chunk], counts[by_chunk]
    order = np.argsort(terms, kind="stable")
    return terms[order], chunks[order], counts[order]


def _keep_postings(old: Bm25Index, place: Ints, kept: NDArray[np.bool_]) -> Postings:
    """Postings of chunks that remain, in their old order."""
    terms = np.repeat(old.terms, np.diff(old.starts))
    moved = place.astype(np.int32)
    if kept.all():
        return terms, moved[old.chunks], old.counts
    stay = kept[old.chunks]
    return terms[stay], moved[old.chunks[stay]], old.counts[stay]


def _merge_postings(held: Postings, fresh: Postings) -> Postings:
    """Merge two sorted lists of postings without sorting again."""
    if not len(fresh[0]):
        return held
    if len(held[0]) and int(fresh[1].min()) <= int(held[1].max()):
        terms, chunks = np.concatenate([held[0], fresh[0]]), np.concatenate([held[1], fresh[1]])
        return _sort_postings((terms, chunks, np.concatenate([held[2], fresh[2]])))
    # New chunks follow all others, so a term's new postings go after its old ones.
    at = np.searchsorted(held[0], fresh[0], "right")
    terms, chunks = np.insert(held[0], at, fresh[0]), np.insert(held[1], at, fresh[1])
    return terms, chunks, np.insert(held[2], at, fresh[2])
