"""Fuzzy name matching, by tokens (dropped words, initials, short forms) and by byte trigrams.

Tokens are the codes of `clew.text.names.encode_token`. All queries are matched at once; the work
for each is bounded, so that the total is linear in their number.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import (
    Csr,
    Doubles,
    Floats,
    Ints,
    Mask,
    build_csr,
    expand_ranges,
    group_equals,
    row_starts,
)

# A query's rarest token is looked up if at most so many names have it; where the second rarest is
# not shared, if at most `_MAX_NAMES_ALONE` have it; the second rarest alone: `_MAX_NAMES_SECOND`.
_MAX_NAMES_RAREST, _MAX_NAMES_ALONE, _MAX_NAMES_SECOND = 200, 40, 10
_MIN_SCORE = 0.6  # below this score two names do not match
_RUNNER_UP_SHARE = 0.9  # a second match is kept if it scores this share of the best
_LIGHT_WEIGHT, _INITIAL_WEIGHT = 0.1, 0.5
_FIRST_LETTER_SHIFT = 53  # bits below a code's first letter; tokens that differ above never match
_SEPARATOR = b"\n"
_BLOCK = 1 << 14  # pairs scored at once: all their tokens are held against each other in memory


@dataclass(frozen=True, slots=True)
class NameTokenIndex:
    """Inverted index over the tokens of known names: names by token, tokens by name."""

    codes: Ints  # ascending
    names: Csr  # code → names that contain it
    tokens: Csr  # name → its tokens' codes' positions in `codes`, in order

    @property
    def count(self) -> int:
        """Number of names."""
        return len(self.tokens)

    def weights(self, at: Ints, codes: Ints) -> Floats:
        """Return the IDF-like weight of each token; `at` is its position, -1 if no name has it."""
        highest = np.log(self.count + 1)
        weight = np.where(at >= 0, highest - np.log(np.maximum(self.name_counts(at), 1)), highest)
        weight = np.where(_token_length(codes) == 1, weight * _INITIAL_WEIGHT, weight)
        return np.maximum(np.where(_is_light(codes), _LIGHT_WEIGHT, weight), 1e-3).astype(
            np.float32
        )

    def name_counts(self, at: Ints) -> Ints:
        """Return the number of names with the token at each position; 0 for -1."""
        if not len(self.codes):
            return np.zeros(len(at), np.int64)
        return np.where(at >= 0, self.names.degrees_of(at), 0)

    def positions(self, codes: Ints) -> Ints:
        """Return the position of each code; -1 where no name has it."""
        if not len(self.codes):
            return np.full(len(codes), -1, np.int64)
        at = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where(self.codes[at] == codes, at, -1)


def build_token_index(count: int, names: Ints, codes: Ints) -> NameTokenIndex:
    """Build the index from tokens grouped by name and, within a name, in order."""
    distinct, _, at = group_equals(codes)
    tokens = Csr(row_starts(names, count), at.astype(np.int32), np.ones(len(at), np.float32))
    return NameTokenIndex(distinct.astype(np.int64), build_csr(len(distinct), at, names), tokens)


def match_names(
    words: NameTokenIndex, starts: Ints, codes: Ints, selves: Ints | None = None
) -> tuple[Ints, Ints, Floats]:
    """Match each query (row of `codes`) with its one or two best names: (query, name, score).

    `selves` is the name that each query itself has, -1 for none: that one is excluded.
    """
    count = len(starts) - 1
    places = words.positions(codes)
    query, name = _find_candidates(
        words, count, np.repeat(np.arange(count), np.diff(starts)), places
    )
    if selves is not None:
        other = selves[query] != name
        query, name = query[other], name[other]
    if not len(query):
        return query, name, np.zeros(0, np.float32)
    score = np.concatenate(
        [
            _score_pairs(
                words, starts, codes, places, query[at : at + _BLOCK], name[at : at + _BLOCK]
            )
            for at in range(0, len(query), _BLOCK)
        ]
    )
    enough = score >= _MIN_SCORE
    query, name, score = query[enough], name[enough], score[enough]
    order = np.lexsort((name, -score, query))
    query, name, score = query[order], name[order], score[order]
    first = np.searchsorted(query, query, "left")
    keep = (np.arange(len(query)) - first < 2) & (score >= _RUNNER_UP_SHARE * score[first])
    return query[keep], name[keep], score[keep]


def _find_candidates(
    words: NameTokenIndex, queries: int, query: Ints, places: Ints
) -> tuple[Ints, Ints]:
    """Return (query, name) pairs that share the query's two rarest tokens; else one of them."""
    codes = words.codes[np.maximum(places, 0)] if len(words.codes) else places
    content = np.flatnonzero((places >= 0) & ~_is_light(codes) & (_token_length(codes) > 1))
    counts = words.name_counts(places[content])
    order = np.lexsort((places[content], counts, query[content]))
    owner, place, counts = query[content][order], places[content][order], counts[order]
    rank = np.arange(len(owner)) - np.searchsorted(owner, owner, "left")
    second = np.full(queries, -1, np.int64)
    second[owner[rank == 1]] = place[rank == 1]
    rare = (rank == 0) & (counts <= _MAX_NAMES_RAREST)
    at, edge = words.names.edges_of(place[rare])
    rare_query, name = owner[rare][at], words.names.columns[edge].astype(np.int64)
    has_both = _contains_token(words, name, second[rare_query])
    shared = np.bincount(rare_query[has_both], minlength=queries)
    is_selective = (shared > 0) & (shared <= _MAX_NAMES_ALONE)
    few = (
        (counts <= np.where(rank == 0, _MAX_NAMES_ALONE, _MAX_NAMES_SECOND))
        & (rank < 2)
        & ~is_selective[owner]
    )
    at, edge = words.names.edges_of(place[few])
    keep = has_both & is_selective[rare_query]
    pairs = np.sort(
        np.concatenate([rare_query[keep], owner[few][at]]) * max(words.count, 1)
        + np.concatenate([name[keep], words.names.columns[edge]])
    )
    pairs = pairs[np.flatnonzero(np.diff(pairs, prepend=-1))]  # without duplicates
    found = pairs // max(words.count, 1)
    return found, pairs - found * max(words.count, 1)


def _contains_token(words: NameTokenIndex, name: Ints, place: Ints) -> Mask:
    """Return whether each name contains the token at `place` (-1: no)."""
    which, at = expand_ranges(words.tokens.starts[name], words.tokens.starts[name + 1])
    found = np.zeros(len(name), np.bool_)
    found[which[words.tokens.columns[at] == place[which]]] = True
    return found


def _score_pairs(
    words: NameTokenIndex, starts: Ints, codes: Ints, places: Ints, query: Ints, name: Ints
) -> Floats:
    """Score pairs by the query tokens matched, their order, and the name tokens covered."""
    pair_a, tok_a = expand_ranges(starts[query], starts[query + 1])
    begin, end = words.tokens.starts[name], words.tokens.starts[name + 1]
    pair_n, tok_n = expand_ranges(begin, end)
    known = words.tokens.columns[tok_n].astype(np.int64)
    code_a, code_n = codes[tok_a], words.codes[known]
    # Every query token against every token of the name; most differ in the first letter.
    size = (end - begin)[pair_a]
    first_n = np.cumsum(end - begin) - (end - begin)
    row, column = expand_ranges(first_n[pair_a], first_n[pair_a] + size)
    near = np.flatnonzero((code_a[row] ^ code_n[column]) >> _FIRST_LETTER_SHIFT == 0)
    row, column = row[near], column[near]
    sim = _token_similarity(code_a[row], code_n[column])
    # The best match of each row, the earliest of equals: column and score in one number.
    col = column - first_n[pair_a[row]]
    best = np.zeros(len(pair_a), np.int64)
    begins = _run_starts(row)
    if len(begins):
        best[row[begins]] = np.maximum.reduceat(sim * 64 + (63 - np.minimum(col, 63)), begins)
    best_sim, where = best // 64 / 100.0, 63 - best % 64
    name_sim = np.zeros(len(code_n), np.int64)
    np.maximum.at(name_sim, column, sim)
    pairs = len(query)
    matched = _weighted_share(words.weights(places[tok_a], code_a), best_sim, pair_a, pairs)
    covered = _weighted_share(words.weights(known, code_n), name_sim / 100.0, pair_n, pairs)
    hits = np.flatnonzero(best_sim > 0)
    backward = (np.diff(pair_a[hits]) == 0) & (np.diff(where[hits]) < 0)
    reordered = np.zeros(pairs, np.bool_)
    reordered[pair_a[hits][1:][backward]] = True
    single = np.bincount(pair_a, minlength=pairs) == 1
    score = matched * matched * (0.55 + 0.45 * covered)
    score = np.where(reordered, score * 0.8, score)
    return np.where(single & (covered < 0.45), score * 0.8, score).astype(np.float32)


def _weighted_share(weight: Floats, similarity: Doubles, pair: Ints, pairs: int) -> Floats:
    total = np.bincount(pair, weights=weight, minlength=pairs)
    matched = np.bincount(pair, weights=weight * similarity, minlength=pairs)
    return (matched / np.maximum(total, 1e-9)).astype(np.float32)


def _run_starts(row: Ints) -> Ints:
    return np.flatnonzero(np.diff(row, prepend=-1))


def _token_similarity(one: Ints, other: Ints) -> Ints:
    """Return the similarity of two tokens in hundredths, from their codes."""
    long_one, long_other = _token_length(one), _token_length(other)
    differ = one ^ other
    begins = differ >> 35  # the three first letters, 9 bits each, and the stop-word bit
    same_initial = begins >> 18 == 0
    same_prefix = (begins == 0) & (np.minimum(long_one, long_other) > 2)
    misspelt = (begins >> 9 == 0) & (differ >> 25 & 1023 == 0) & (long_one > 4)
    misspelt &= np.abs(long_one - long_other) < 3
    similarity = np.where(misspelt, 70, 0)
    similarity = np.where(same_prefix, 75, similarity)
    similarity = np.where(same_initial & ((long_one == 1) | (long_other == 1)), 80, similarity)
    return np.where(differ == 0, 100, similarity)


def _token_length(codes: Ints) -> Ints:
    return codes >> 19 & 63


def _is_light(codes: Ints) -> Mask:
    return codes >> 62 & 1 > 0


@dataclass(frozen=True, slots=True)
class NgramIndex:
    """Byte trigrams of all names, sorted, with the name that contains each."""

    grams: NDArray[np.uint32]
    owners: NDArray[np.int32]
    sizes: NDArray[np.int32]
    """Number of trigrams of each name."""

    def find_similar(self, text: str, k: int) -> tuple[Ints, Doubles]:
        """Return the `k` names most similar to a text, best first, with their Dice coefficients."""
        wanted = np.unique(_extract_ngrams(_encode_names([text]))[0])
        if not len(self.sizes) or not len(wanted):
            return np.zeros(0, np.int64), np.zeros(0)
        first = np.searchsorted(self.grams, wanted, "left")
        last = np.searchsorted(self.grams, wanted, "right")
        owners = np.concatenate(
            [np.unique(self.owners[a:b]) for a, b in zip(first, last, strict=True)]
        )
        common = np.bincount(owners, minlength=len(self.sizes))
        share = 2 * common / (self.sizes + len(wanted))
        order = np.lexsort((np.arange(len(share)), -share))[:k]
        return order[share[order] > 0], share[order][share[order] > 0]


def build_ngram_index(names: Sequence[str]) -> NgramIndex:
    """Build the trigram index of some names."""
    raw = _encode_names(names)
    grams, ends = _extract_ngrams(raw)
    owner = (np.cumsum(raw == _SEPARATOR[0]) - 1).astype(np.int32)[ends]
    order = np.argsort(grams, kind="stable")
    sizes = np.bincount(owner, minlength=len(names)).astype(np.int32)
    return NgramIndex(grams[order], owner[order], sizes)


def _encode_names(names: Sequence[str]) -> NDArray[np.uint8]:
    """Concatenate case-folded names, each between two newlines, as UTF-8 bytes."""
    folded = "\n".join(" ".join(name.casefold().split()) for name in names)
    return np.frombuffer(f"\n{folded}\n".encode("utf-8", "replace"), np.uint8)


def _extract_ngrams(raw: NDArray[np.uint8]) -> tuple[NDArray[np.uint32], Ints]:
    """Return every trigram within one name (boundaries included), and where it begins."""
    wide = raw.astype(np.uint32)
    grams = (wide[:-2] << 16 | wide[1:-1] << 8 | wide[2:]).astype(np.uint32)
    inside = np.flatnonzero(raw[1:-1] != _SEPARATOR[0]).astype(np.int64)
    return grams[inside], inside
