"""Names said differently: words dropped or added, initials, short or misspelt forms.

Tokens are the codes of `clew.names.token_code`. All askers are matched at once; the work for each
is bounded, so that the whole stays linear in their number.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr, csr, spread

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

# An asker's rarest token is looked up if at most so many names have it; without its second rarest
# in common, only if at most `_FEW` have it; that one alone only if at most `_VERY_FEW` have it.
_MANY, _FEW, _VERY_FEW = 200, 40, 10
_ENOUGH = 0.6  # below this score two names are not the same
_CLOSE = 0.9  # a second name is kept if it scores this share of the best
_LIGHT_WEIGHT, _LETTER_WEIGHT = 0.1, 0.5
_FIRST_LETTER = 53  # bits below a code's first letter; tokens that differ above are never alike


@dataclass(frozen=True, slots=True)
class NameWords:
    """The tokens of known names: names by token, tokens by name."""

    codes: Ints  # ascending
    names: Csr  # code → names that have it
    tokens: Csr  # name → its tokens' codes' positions in `codes`, in order

    @property
    def count(self) -> int:
        """How many names there are."""
        return len(self.tokens)

    def weights(self, at: Ints, codes: Ints) -> Floats:
        """How much each token tells; `at` is its position here, -1 for one that no name has."""
        highest = np.log(self.count + 1)
        weight = np.where(at >= 0, highest - np.log(np.maximum(self.met(at), 1)), highest)
        weight = np.where(_length(codes) == 1, weight * _LETTER_WEIGHT, weight)
        return np.maximum(np.where(_light(codes), _LIGHT_WEIGHT, weight), 1e-3).astype(np.float32)

    def met(self, at: Ints) -> Ints:
        """How many names have the token at each position; 0 for -1."""
        if not len(self.codes):
            return np.zeros(len(at), np.int64)
        return np.where(at >= 0, self.names.degrees_of(at), 0)

    def places(self, codes: Ints) -> Ints:
        """The position of each code; -1 where no name has it."""
        if not len(self.codes):
            return np.full(len(codes), -1, np.int64)
        at = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where(self.codes[at] == codes, at, -1)


def name_words(count: int, names: Ints, codes: Ints) -> NameWords:
    """Index tokens given by name and, within a name, in order."""
    distinct, at = np.unique(codes, return_inverse=True)
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(names, minlength=count), out=starts[1:])
    tokens = Csr(starts, at.astype(np.int32), np.ones(len(at), np.float32))
    return NameWords(distinct, csr(len(distinct), at, names), tokens)


def alike(
    words: NameWords, starts: Ints, codes: Ints, selves: Ints | None = None
) -> tuple[Ints, Ints, Floats]:
    """For askers (rows of `codes`) the one or two names most like each: (asker, name, score).

    `selves` says which name, if any (-1), each asker bears itself: that one does not count.
    """
    askers = len(starts) - 1
    places = words.places(codes)
    asker, name = _candidates(words, askers, np.repeat(np.arange(askers), np.diff(starts)), places)
    if selves is not None:
        other = selves[asker] != name
        asker, name = asker[other], name[other]
    if not len(asker):
        return asker, name, np.zeros(0, np.float32)
    score = _scores(words, starts, codes, places, asker, name)
    enough = score >= _ENOUGH
    asker, name, score = asker[enough], name[enough], score[enough]
    order = np.lexsort((name, -score, asker))
    asker, name, score = asker[order], name[order], score[order]
    first = np.searchsorted(asker, asker, "left")
    keep = (np.arange(len(asker)) - first < 2) & (score >= _CLOSE * score[first])
    return asker[keep], name[keep], score[keep]


# -- candidates


def _candidates(words: NameWords, askers: int, asker: Ints, places: Ints) -> tuple[Ints, Ints]:
    """Names that share an asker's two rarest tokens; if there are none, one of them."""
    codes = words.codes[np.maximum(places, 0)] if len(words.codes) else places
    heavy = np.flatnonzero((places >= 0) & ~_light(codes) & (_length(codes) > 1))
    met = words.met(places[heavy])
    order = np.lexsort((places[heavy], met, asker[heavy]))
    who, place, met = asker[heavy][order], places[heavy][order], met[order]
    rank = np.arange(len(who)) - np.searchsorted(who, who, "left")
    second = np.full(askers, -1, np.int64)
    second[who[rank == 1]] = place[rank == 1]
    rare = (rank == 0) & (met <= _MANY)
    at, edge = words.names.edges_of(place[rare])
    by, name = who[rare][at], words.names.columns[edge].astype(np.int64)
    both = _has(words, name, second[by])
    shared = np.bincount(by[both], minlength=askers)
    agreed = (shared > 0) & (shared <= _FEW)
    few = (met <= np.where(rank == 0, _FEW, _VERY_FEW)) & (rank < 2) & ~agreed[who]
    at, edge = words.names.edges_of(place[few])
    keep = both & agreed[by]
    pairs = np.sort(
        np.concatenate([by[keep], who[few][at]]) * max(words.count, 1)
        + np.concatenate([name[keep], words.names.columns[edge]])
    )
    pairs = pairs[np.flatnonzero(np.diff(pairs, prepend=-1))]  # each once
    found = pairs // max(words.count, 1)
    return found, pairs - found * max(words.count, 1)


def _has(words: NameWords, name: Ints, place: Ints) -> NDArray[np.bool_]:
    """Whether each name has the token at `place` (-1: no)."""
    which, at = spread(words.tokens.starts[name], words.tokens.starts[name + 1])
    found = np.zeros(len(name), np.bool_)
    found[which[words.tokens.columns[at] == place[which]]] = True
    return found


# -- scores


def _scores(
    words: NameWords, starts: Ints, codes: Ints, places: Ints, asker: Ints, name: Ints
) -> Floats:
    """How well each pair's tokens meet: most of what is asked said, in order, little else said."""
    pair_a, tok_a = spread(starts[asker], starts[asker + 1])
    begin, end = words.tokens.starts[name], words.tokens.starts[name + 1]
    pair_n, tok_n = spread(begin, end)
    known = words.tokens.columns[tok_n]
    code_a, code_n = codes[tok_a], words.codes[known]
    # Every token asked against every token of the name; most begin with another letter.
    size = (end - begin)[pair_a]
    first_n = np.cumsum(end - begin) - (end - begin)
    row, column = spread(first_n[pair_a], first_n[pair_a] + size)
    near = np.flatnonzero((code_a[row] ^ code_n[column]) >> _FIRST_LETTER == 0)
    row, column = row[near], column[near]
    look = _looks(code_a[row], code_n[column])
    # The best of each row, the earliest of equals: place and likeness in one number.
    col = column - first_n[pair_a[row]]
    best = np.zeros(len(pair_a), np.int64)
    begins = _begins(row)
    if len(begins):
        best[row[begins]] = np.maximum.reduceat(look * 64 + (63 - np.minimum(col, 63)), begins)
    like, where = best // 64 / 100.0, 63 - best % 64
    used = np.zeros(len(code_n), np.int64)
    np.maximum.at(used, column, look)
    pairs = len(asker)
    said = _share(words.weights(places, codes)[tok_a], like, pair_a, pairs)
    every = np.arange(len(words.codes))
    covered = _share(words.weights(every, words.codes)[known], used / 100.0, pair_n, pairs)
    met = np.flatnonzero(like > 0)
    back = (np.diff(pair_a[met]) == 0) & (np.diff(where[met]) < 0)
    turned = np.zeros(pairs, np.bool_)
    turned[pair_a[met][1:][back]] = True
    alone = np.bincount(pair_a, minlength=pairs) == 1
    score = said * said * (0.55 + 0.45 * covered)
    score = np.where(turned, score * 0.8, score)
    return np.where(alone & (covered < 0.45), score * 0.8, score).astype(np.float32)


def _share(weight: Floats, like: NDArray[np.float64], pair: Ints, pairs: int) -> Floats:
    total = np.bincount(pair, weights=weight, minlength=pairs)
    met = np.bincount(pair, weights=weight * like, minlength=pairs)
    return (met / np.maximum(total, 1e-9)).astype(np.float32)


def _begins(row: Ints) -> Ints:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.diff(row, prepend=-1))


def _looks(one: Ints, other: Ints) -> Ints:
    """How alike two tokens are, in hundredths, by their codes."""
    long_one, long_other = _length(one), _length(other)
    differ = one ^ other
    begins = differ >> 35  # the three first letters, 9 bits each, and lightness
    letter = begins >> 18 == 0
    start = (begins == 0) & (np.minimum(long_one, long_other) > 2)
    spelt = (begins >> 9 == 0) & (differ >> 25 & 1023 == 0) & (long_one > 4)
    spelt &= np.abs(long_one - long_other) < 3
    looks = np.where(spelt, 70, 0)
    looks = np.where(start, 75, looks)
    looks = np.where(letter & ((long_one == 1) | (long_other == 1)), 80, looks)
    return np.where(differ == 0, 100, looks)


def _length(codes: Ints) -> Ints:
    return codes >> 19 & 63


def _light(codes: Ints) -> NDArray[np.bool_]:
    return codes >> 62 & 1 > 0
