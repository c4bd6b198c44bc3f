"""BM25 index over arrays: terms are 64-bit hashes, postings are memory-mapped columns.

There is no vocabulary of strings: a term is found by binary search over its hash. Adding chunks
tokenises only the new ones. The index of many chunks has two segments: a large one that most writes
leave as it is, and a small one with what was added since. Chunks that were removed stay in their
segment until both are merged; nothing that is found or scored depends on them.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.text.unicode import hash64, split_words

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Postings = tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.integer]]
"""Term, chunk number and count of each posting."""
FoundPostings = list[tuple[NDArray[np.int32], NDArray[np.integer]]]
"""Positions and counts of the chunks with a term, by segment."""
WordCounts = tuple["array[int]", "array[int]"]
"""Hashes of a text's distinct words, and their counts."""
MIN_SEGMENTED = 20_000  # chunks; the index of fewer is one segment
_MAX_ADDED_SHARE = 0.02  # of the large segment; a small one that is larger is merged into it
_MAX_REMOVED_SHARE = 0.02  # removed chunks of the large segment; with more it is written again
_MAX_KEPT_TERMS = 1024  # whose postings are kept: a question looks for the same words many times
_COMMON_SHARE = 0.1  # of all chunks; the scores of words that more contain are kept
MIN_COMMON = 4096  # chunks; below, adding up the postings is fast enough
MAX_COMMON_TERMS = 24  # whose scores are kept: 4 bytes for each chunk
_PREFIXES = ("text_", "text_more_")  # of the arrays of the large and of the small segment


@dataclass(frozen=True, slots=True)
class TextSegment:
    """Postings by term: chunks, numbered as in `keys`, and counts; `lengths` in words per chunk."""

    terms: NDArray[np.uint64]
    starts: Ints
    chunks: NDArray[np.int32]
    counts: NDArray[np.integer]
    lengths: NDArray[np.int32]
    keys: Ints

    def find_postings(self, keys: NDArray[np.uint64]) -> list[slice]:
        """Where the postings of each term are."""
        if not len(self.terms):
            return [slice(0, 0) for _ in keys]
        at = np.searchsorted(self.terms, keys)
        at[at == len(self.terms)] = 0
        known = self.terms[at] == keys
        return list(map(slice, self.starts[at].tolist(), self.starts[at + known].tolist()))


@dataclass(frozen=True)
class Bm25Index:
    """The segments of the chunks `keys` (ascending), of which each is in one segment."""

    segments: tuple[TextSegment, ...]
    keys: Ints
    _norms: dict[tuple[float, float], Floats] = field(default_factory=dict, compare=False)
    _found: dict[str, FoundPostings] = field(default_factory=dict, compare=False)
    _common: dict[tuple[str, float, float], Floats] = field(default_factory=dict, compare=False)

    def scores(self, query: Iterable[str], *, k1: float = 1.2, b: float = 0.75) -> Floats:
        """BM25 of every chunk for the query's words (Robertson's usual constants)."""
        total = np.zeros(len(self.keys), np.float32)
        wanted = Counter(query)
        self.keep_postings(wanted)
        for term, times in wanted.items():
            found = self._find_postings(term)
            having = sum(len(where) for where, _ in found)
            if times == 1 and having > max(MIN_COMMON, _COMMON_SHARE * len(total)):
                total += self._common_scores(term, k1, b)
                continue
            for where, added in self._weigh(found, times, k1, b):
                total[where] += added
        return total

    def scores_by_word(
        self, words: Sequence[str], *, k1: float = 1.2, b: float = 0.75
    ) -> tuple[dict[str, Floats], Floats]:
        """BM25 of every chunk for each word by itself, not to be changed, and for all of them."""
        self.keep_postings(words)
        least = max(MIN_COMMON, _COMMON_SHARE * len(self.keys))
        scores: dict[str, Floats] = {}
        total = np.zeros(len(self.keys), np.float32)
        for word in words:
            found = self._find_postings(word)
            if sum(len(where) for where, _ in found) > least:
                scores[word] = self._common_scores(word, k1, b)
                total += scores[word]
                continue
            scores[word] = np.zeros(len(self.keys), np.float32)
            for where, added in self._weigh(found, 1, k1, b):
                scores[word][where] = added
                total[where] += added
        return scores, total

    def _weigh(
        self, found: FoundPostings, times: int, k1: float, b: float
    ) -> Iterator[tuple[NDArray[np.int32], Floats]]:
        """Positions of the chunks with a word, and what it adds to their scores."""
        norm, count = self._length_norm(k1, b), len(self.keys)
        having = sum(len(where) for where, _ in found)
        weight = float(np.log1p((count - having + 0.5) / (having + 0.5))) * times
        for where, counts in found:
            often = counts.astype(np.float32)
            yield where, weight * often * (k1 + 1) / (often + norm[where])

    def _common_scores(self, term: str, k1: float, b: float) -> Floats:
        """What a word that many chunks contain adds to all scores, kept for a while."""
        key = term, k1, b
        if key not in self._common:
            if len(self._common) >= MAX_COMMON_TERMS:
                self._common.clear()
            scores = np.zeros(len(self.keys), np.float32)
            for where, added in self._weigh(self._find_postings(term), 1, k1, b):
                scores[where] = added
            self._common[key] = scores
        return self._common[key]

    def chunks_with(self, term: str) -> NDArray[np.int32]:
        """Chunks that contain a word, ascending."""
        found = [where for where, _ in self._find_postings(term)]
        if len(found) == 1:
            return found[0]
        together: NDArray[np.int32] = np.sort(np.concatenate([np.zeros(0, np.int32), *found]))
        return together

    def chunks_with_all(self, terms: Sequence[str]) -> Ints:
        """Chunks that contain every one of these words; none for no words."""
        # The rarest word first: its few chunks are looked for among those of the others.
        first, *others = sorted(map(self.chunks_with, terms), key=len) or [np.zeros(0, np.int32)]
        for other in others:
            if not len(first):
                break
            at = np.minimum(np.searchsorted(other, first), len(other) - 1)
            first = first[other[at] == first]
        return first.astype(np.int64)

    def _find_postings(self, term: str) -> FoundPostings:
        """Positions and counts of the chunks that contain a word, by segment; kept for a while."""
        self.keep_postings([term])
        return self._found[term]

    def keep_postings(self, terms: Collection[str]) -> None:
        """Look up those of the words that are not kept, all at once."""
        missing = [term for term in terms if term not in self._found]
        if len(self._found) + len(missing) > _MAX_KEPT_TERMS:
            self._found.clear()
            missing = list(terms)
        if missing:
            self._found.update(zip(missing, self.look_up(missing), strict=True))

    def look_up(self, terms: Sequence[str]) -> list[FoundPostings]:
        """Positions and counts of the chunks that contain each word, by segment."""
        keys = np.array([hash64(term) for term in terms], np.uint64)
        found: list[FoundPostings] = [[] for _ in terms]
        for segment, place in zip(self.segments, self.places, strict=True):
            for postings, part in zip(found, segment.find_postings(keys), strict=True):
                where, counts = segment.chunks[part], segment.counts[part]
                if place is not None and len(where):
                    where = place[where]
                    where, counts = where[where >= 0], counts[where >= 0]
                if len(where):
                    postings.append((where, counts))
        return found

    @cached_property
    def places(self) -> tuple[NDArray[np.int32] | None, ...]:
        """For each segment the position of each chunk, -1 if it was removed; None if unchanged."""
        found: list[NDArray[np.int32] | None] = []
        for segment in self.segments:
            same = np.array_equal(segment.keys, self.keys[: len(segment.keys)])
            place = None if same else _find_places(segment.keys, self.keys).astype(np.int32)
            found.append(place)
        return tuple(found)

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        """Words of each chunk."""
        if len(self.segments) == 1 and self.places[0] is None:
            return self.segments[0].lengths
        found = np.zeros(len(self.keys), np.int32)
        for segment, place in zip(self.segments, self.places, strict=True):
            if place is None:
                found[: len(segment.lengths)] = segment.lengths
            else:
                found[place[place >= 0]] = segment.lengths[place >= 0]
        return found

    def _length_norm(self, k1: float, b: float) -> Floats:
        """What a chunk's length adds to the denominator, computed once."""
        if (k1, b) not in self._norms:
            lengths = self.lengths
            mean = max(1.0, float(lengths.mean())) if len(lengths) else 1.0
            self._norms[k1, b] = k1 * (1 - b + b * lengths.astype(np.float32) / mean)
        return self._norms[k1, b]


def index_to_arrays(index: Bm25Index) -> dict[str, NDArray[Any]]:
    """The index as named arrays; of a segment with just the generation's chunks without keys."""
    found = {
        f"{prefix}{part.name}": getattr(segment, part.name)
        for prefix, segment in zip(_PREFIXES, index.segments, strict=False)
        for part in fields(segment)
    }
    if np.array_equal(index.segments[0].keys, index.keys):
        del found[f"{_PREFIXES[0]}keys"]
    return found


def index_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Bm25Index | None:
    """Load the index from a generation's arrays; None if there is none."""
    segments = []
    for prefix in _PREFIXES:
        if f"{prefix}terms" in arrays:
            parts = {part.name: arrays.get(f"{prefix}{part.name}") for part in fields(TextSegment)}
            # Without keys it is of all chunks.
            parts["keys"] = arrays["chunk_keys"] if parts["keys"] is None else parts["keys"]
            segments.append(TextSegment(**parts))  # type: ignore[arg-type]
    return Bm25Index(tuple(segments), arrays["chunk_keys"]) if segments else None


def build_index(
    keys: Ints,
    texts: Mapping[int, str],
    old: Bm25Index | None = None,
    make: Callable[[Ints, Mapping[int, str]], TextSegment] | None = None,
) -> Bm25Index:
    """Index the chunks `keys` (ascending): `texts` has the new ones, `old` the others.

    `make` may make a segment otherwise than `make_segment`, but an equal one.
    """
    make = make or make_segment
    if old is None:
        return Bm25Index((make(keys, texts),), keys)
    fresh = np.array(sorted(texts), np.int64)
    large, added = old.segments[0], [*old.segments[1:], make(fresh, texts)]
    listed = np.unique(np.concatenate([segment.keys for segment in added]))
    listed = listed[_find_places(listed, keys) >= 0]
    removed = len(large.keys) + len(listed) - len(keys)
    if (
        len(keys) < MIN_SEGMENTED
        or len(listed) > _MAX_ADDED_SHARE * len(large.keys)
        or removed > _MAX_REMOVED_SHARE * len(large.keys)
    ):
        return Bm25Index((merge_segments([large, *added], keys),), keys)
    if not len(listed):
        return Bm25Index((large,), keys)
    if not len(fresh) and len(listed) == len(added[0].keys):
        return Bm25Index((large, added[0]), keys)
    return Bm25Index((large, merge_segments(added, listed)), keys)


def _find_places(wanted: Ints, keys: Ints) -> Ints:
    """Position of each wanted key in the ascending keys; -1 if absent."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    at = np.searchsorted(keys, wanted)
    found: Ints = np.where(keys[np.minimum(at, len(keys) - 1)] == wanted, at, -1)
    return found


def make_segment(keys: Ints, texts: Mapping[int, str]) -> TextSegment:
    """Index the words of texts; `keys` are those of all chunks, ascending."""
    lengths = np.zeros(len(keys), np.int32)
    return _pack_segment(sort_texts(keys, texts, lengths), lengths, keys)


def sort_texts(keys: Ints, texts: Mapping[int, str], lengths: NDArray[np.int32]) -> Postings:
    """The sorted postings of texts; their `lengths` are filled in."""
    return _sort_postings(_make_postings(keys, texts, lengths))


def merge_segments(segments: Sequence[TextSegment], keys: Ints) -> TextSegment:
    """One segment of the chunks `keys`, equal to one that is made from their texts."""
    lengths = np.zeros(len(keys), np.int32)
    together: Postings | None = None
    for segment in segments:
        place = _find_places(segment.keys, keys)
        kept = place >= 0
        lengths[place[kept]] = segment.lengths[kept]
        postings = keep_postings(segment, place, kept)
        together = postings if together is None else _merge_postings(together, postings)
    if together is None:
        return make_segment(keys, {})
    return _pack_segment(together, lengths, keys)


def _pack_segment(
    postings: Postings, lengths: NDArray[np.int32], keys: NDArray[np.int64]
) -> TextSegment:
    terms, chunks, counts = postings
    distinct, starts = pack_terms(terms)
    # Few words occur more than 255 times in a chunk.
    small = counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
    return TextSegment(distinct, starts, chunks, small, lengths, np.asarray(keys))


def pack_terms(terms: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], Ints]:
    """The distinct ones of sorted terms, and where each starts, and the end."""
    begins = np.flatnonzero(np.append(True, terms[1:] != terms[:-1])[: len(terms)])
    return terms[begins], np.append(begins, len(terms)).astype(np.int64)


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


def keep_postings(old: TextSegment, place: Ints, kept: NDArray[np.bool_]) -> Postings:
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
