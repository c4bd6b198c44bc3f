"""Pairs of names that may be one thing, each by its own kind of evidence."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr
from clew.graph.resolve.groups import ALIAS, LIKENESS, SPELLING, Pairs, pairs

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

_LENGTH, _FIRST = 19, 53  # where a token's code shows these (see clew.names.token_code)


def by_spelling(hashes: Ints) -> Pairs:
    """Names with the same loose key, each with the first of them."""
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    other = np.flatnonzero(first[group] != np.arange(len(hashes)))
    return pairs(first[group][other], other, SPELLING)


def by_alias(hashes: Ints, claimants: Ints, claimed: Ints) -> Pairs:
    """A stated other name that is somebody's own name, when only one name claims it."""
    names, owner = np.unique(hashes, return_index=True)
    at = np.minimum(np.searchsorted(names, claimed), max(len(names) - 1, 0))
    real = (names[at] == claimed) if len(names) else np.zeros(len(claimed), np.bool_)
    claimants, claimed, at = claimants[real], claimed[real], at[real]
    # Two spellings of one claimant are one claim; two different claimants make the alias nobody's.
    claims = np.unique(np.stack([claimed, hashes[claimants]]), axis=1)
    alias, many = np.unique(claims[0], return_counts=True)
    alone = many[np.searchsorted(alias, claimed)] == 1 if len(alias) else np.zeros(0, np.bool_)
    alone &= hashes[claimants] != claimed
    return pairs(claimants[alone], owner[at[alone]], ALIAS)


@dataclass(frozen=True, slots=True)
class Words:
    """The tokens of names as codes, in order, and the codes that play a part of their own."""

    starts: Ints
    codes: Ints
    mute: frozenset[int]
    """Words that may come and go, like articles."""
    of: int
    titles: frozenset[int]
    """Words that may stand before or after a name, like "count"."""
    numerals: frozenset[int]
    """Single letters that are numbers, and no initials."""

    def name(self, at: int) -> list[int]:
        """One name's tokens."""
        found: list[int] = self.codes[self.starts[at] : self.starts[at + 1]].tolist()
        return found


def by_likeness(near: Ints, cosines: Floats, words: Words, chunks_of: Csr, company: Csr) -> Pairs:
    """Close vectors whose words agree, met in the same company but never in the same place."""
    keep = [
        at
        for at, (one, other) in enumerate(near.tolist())
        if same_words(words, one, other) and _same_company(one, other, chunks_of, company)
    ]
    return pairs(near[keep, 0], near[keep, 1], LIKENESS, cosines[keep])


def same_words(words: Words, one: int, other: int) -> bool:
    """Whether two names say the same words, but for where titles stand, "of", and initials."""
    mine, theirs = words.name(one), words.name(other)
    a, b = ([w for w in name if w not in words.mute] for name in (mine, theirs))
    if not a or not b:
        return False
    bare = [[w for w in name if w not in words.titles] for name in (a, b)]
    if sorted(a) == sorted(b) and bare[0] == bare[1]:
        return True
    if (words.of in mine) != (words.of in theirs) and _turned(a, b):
        return True
    return len(a) == len(b) and _abbreviated(a, b, words.numerals)


def _turned(a: list[int], b: list[int]) -> bool:
    """Whether one is the other turned round: "University of Oslo" and "Oslo University"."""
    return a != b and len(a) == len(b) and any(a[at:] + a[:at] == b for at in range(1, len(a)))


def _abbreviated(a: list[int], b: list[int], numerals: frozenset[int]) -> bool:
    """Word by word equal or an initial of it, the last word in full."""
    if a[-1] != b[-1] or a == b:
        return False
    for one, other in zip(a, b, strict=True):
        short = min(one, other, key=_length)
        if one != other and (
            _length(short) != 1 or short in numerals or _first(one) != _first(other)
        ):
            return False
    return True


def _length(code: int) -> int:
    return code >> _LENGTH & 63


def _first(code: int) -> int:
    return code >> _FIRST & 511


def _same_company(one: int, other: int, chunks_of: Csr, company: Csr) -> bool:
    here, there = chunks_of.row(one), chunks_of.row(other)
    if np.intersect1d(here, there).size:
        return False  # a text that says both means two
    mine = np.unique(np.concatenate([company.row(int(c)) for c in here] or [here]))
    theirs = np.unique(np.concatenate([company.row(int(c)) for c in there] or [there]))
    return bool(np.intersect1d(mine, theirs).size)
