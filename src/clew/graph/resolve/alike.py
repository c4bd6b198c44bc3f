"""Candidate pairs of names for one entity, one function per kind of evidence."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.graph.csr import Csr
from clew.graph.resolve.groups import ALIAS, SIMILARITY, SPELLING, CandidatePairs, make_pairs

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

_LENGTH_SHIFT, _FIRST_LETTER_SHIFT = (
    19,
    53,
)  # bit offsets in a token's code (see clew.names.token_code)


def pair_by_spelling(hashes: Ints) -> CandidatePairs:
    """Pair names with the same loose key, each with the first of them."""
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    other = np.flatnonzero(first[group] != np.arange(len(hashes)))
    return make_pairs(first[group][other], other, SPELLING)


def pair_by_alias(hashes: Ints, claimants: Ints, claimed: Ints) -> CandidatePairs:
    """Pair a stated alias with the entity of that name, when only one name claims it."""
    names, owner = np.unique(hashes, return_index=True)
    at = np.minimum(np.searchsorted(names, claimed), max(len(names) - 1, 0))
    real = (names[at] == claimed) if len(names) else np.zeros(len(claimed), np.bool_)
    claimants, claimed, at = claimants[real], claimed[real], at[real]
    # Two spellings of one claimant are one claim; an alias with two different claimants is dropped.
    claims = np.unique(np.stack([claimed, hashes[claimants]]), axis=1)
    alias, many = np.unique(claims[0], return_counts=True)
    alone = many[np.searchsorted(alias, claimed)] == 1 if len(alias) else np.zeros(0, np.bool_)
    alone &= hashes[claimants] != claimed
    return make_pairs(claimants[alone], owner[at[alone]], ALIAS)


@dataclass(frozen=True, slots=True)
class TokenizedNames:
    """The tokens of names as codes, in order, and the codes with a special role."""

    starts: Ints
    codes: Ints
    stopwords: frozenset[int]
    """Words that may be missing, like articles."""
    of_code: int
    titles: frozenset[int]
    """Honorifics that may precede or follow a name, like "count"."""
    numerals: frozenset[int]
    """Single letters that are Roman numerals, not initials."""

    def tokens(self, at: int) -> list[int]:
        """Return one name's tokens."""
        found: list[int] = self.codes[self.starts[at] : self.starts[at + 1]].tolist()
        return found


def pair_by_similarity(
    near: Ints, cosines: Floats, words: TokenizedNames, chunks_of: Csr, company: Csr
) -> CandidatePairs:
    """Pair close vectors whose words agree, with shared context but no chunk in common."""
    keep = [
        at
        for at, (one, other) in enumerate(near.tolist())
        if has_same_words(words, one, other) and _shares_context(one, other, chunks_of, company)
    ]
    return make_pairs(near[keep, 0], near[keep, 1], SIMILARITY, cosines[keep])


def has_same_words(words: TokenizedNames, one: int, other: int) -> bool:
    """Tell whether two names have the same words, up to title position, "of" and initials."""
    mine, theirs = words.tokens(one), words.tokens(other)
    a, b = ([w for w in name if w not in words.stopwords] for name in (mine, theirs))
    if not a or not b:
        return False
    without_titles = [[w for w in name if w not in words.titles] for name in (a, b)]
    if sorted(a) == sorted(b) and without_titles[0] == without_titles[1]:
        return True
    if (words.of_code in mine) != (words.of_code in theirs) and _is_rotation(a, b):
        return True
    return len(a) == len(b) and _is_abbreviation(a, b, words.numerals)


def _is_rotation(a: list[int], b: list[int]) -> bool:
    """Tell whether one is a rotation of the other: "University of Oslo", "Oslo University"."""
    return a != b and len(a) == len(b) and any(a[at:] + a[:at] == b for at in range(1, len(a)))


def _is_abbreviation(a: list[int], b: list[int], numerals: frozenset[int]) -> bool:
    """Tell whether words are pairwise equal or initials, the last one in full."""
    if a[-1] != b[-1] or a == b:
        return False
    for one, other in zip(a, b, strict=True):
        short = min(one, other, key=_token_length)
        if one != other and (
            _token_length(short) != 1
            or short in numerals
            or _first_letter(one) != _first_letter(other)
        ):
            return False
    return True


def _token_length(code: int) -> int:
    return code >> _LENGTH_SHIFT & 63


def _first_letter(code: int) -> int:
    return code >> _FIRST_LETTER_SHIFT & 511


def _shares_context(one: int, other: int, chunks_of: Csr, members: Csr) -> bool:
    left, right = chunks_of.row(one), chunks_of.row(other)
    if np.intersect1d(left, right).size:
        return False  # a chunk with both names means two entities
    left_context = np.unique(np.concatenate([members.row(int(c)) for c in left] or [left]))
    right_context = np.unique(np.concatenate([members.row(int(c)) for c in right] or [right]))
    return bool(np.intersect1d(left_context, right_context).size)
