"""BM25 over arrays: terms are 64-bit hashes, postings are columns, everything memory-maps.

No vocabulary of strings is kept: a term is looked up by binary search over its hash. Adding
chunks tokenises the new ones only.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.text import hash64, words

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TextIndex:
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
            where, count = self._postings(term)
            if len(where):
                weight = np.log1p((len(total) - len(where) + 0.5) / (len(where) + 0.5)) * times
                total[where] += weight * count * (k1 + 1) / (count + norm[where])
        return total

    def where(self, term: str) -> NDArray[np.int32]:
        """The chunks that have a word."""
        return self._postings(term)[0]

    def idf(self, term: str) -> float:
        """How rare a word is; 0 for one that no chunk has."""
        found = len(self._postings(term)[0])
        return float(np.log1p((len(self.lengths) - found + 0.5) / (found + 0.5))) if found else 0.0

    def _postings(self, term: str) -> tuple[NDArray[np.int32], Floats]:
        key = np.uint64(hash64(term))
        at = int(np.searchsorted(self.terms, key))
        if at == len(self.terms) or self.terms[at] != key:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        part = slice(int(self.starts[at]), int(self.starts[at + 1]))
        return self.chunks[part], self.counts[part].astype(np.float32)


def text_arrays(index: TextIndex) -> dict[str, NDArray[Any]]:
    """The index as named arrays, for a generation's folder."""
    return {f"text_{name}": getattr(index, name) for name in index.__slots__}


def text_index(arrays: Mapping[str, NDArray[Any]]) -> TextIndex:
    """The index from a generation's arrays."""
    return TextIndex(*(arrays[f"text_{name}"] for name in TextIndex.__slots__))


def index_texts(
    keys: Ints, texts: Mapping[int, str], old: TextIndex | None = None, old_keys: Ints | None = None
) -> TextIndex:
    """Index the chunks `keys` (ascending): `texts` has the new ones, `old` the others."""
    terms, chunks, counts, lengths = _postings_of(keys, texts)
    if old is not None and old_keys is not None and len(old_keys):
        place = np.searchsorted(keys, old_keys)
        kept = np.take(keys, np.minimum(place, len(keys) - 1)) == old_keys if len(keys) else None
        if kept is not None:
            lengths[place[kept]] = old.lengths[kept]
            term_of = np.repeat(old.terms, np.diff(old.starts))
            stay = kept[old.chunks]
            terms = np.concatenate([term_of[stay], terms])
            chunks = np.concatenate([place[old.chunks[stay]].astype(np.int32), chunks])
            counts = np.concatenate([old.counts[stay], counts])
    return _by_term(terms, chunks, counts, lengths)


def _postings_of(
    keys: Ints, texts: Mapping[int, str]
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    lengths = np.zeros(len(keys), np.int32)
    known: dict[str, int] = {}
    terms: list[int] = []
    chunks: list[int] = []
    counts: list[int] = []
    at_of = {int(key): at for at, key in enumerate(keys)}
    for key, text in texts.items():
        at = at_of[key]
        said = Counter(words(text))
        lengths[at] = said.total()
        for word, times in said.items():
            if word not in known:
                known[word] = hash64(word)
            terms.append(known[word])
            chunks.append(at)
            counts.append(times)
    return (
        np.array(terms, np.uint64),
        np.array(chunks, np.int32),
        np.array(counts, np.int32),
        lengths,
    )


def _by_term(
    terms: NDArray[np.uint64],
    chunks: NDArray[np.int32],
    counts: NDArray[np.int32],
    lengths: NDArray[np.int32],
) -> TextIndex:
    # The old postings are in order, so a stable sort by term keeps chunks ascending within one.
    order = np.argsort(chunks, kind="stable")
    order = order[np.argsort(terms[order], kind="stable")]
    distinct, first = np.unique(terms[order], return_index=True)
    starts = np.append(first, len(terms)).astype(np.int64)
    return TextIndex(distinct, starts, chunks[order], counts[order], lengths)
