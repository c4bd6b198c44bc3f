"""In which sentences or lines two texts differ, and whether a question is about these.

Pages of lines (lists, tables, logs) are many and alike, and each pair of them is compared: words
are looked up in bit masks of the pieces that have them, the rarest word of a piece first.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_


@dataclass(frozen=True, slots=True)
class Pieces:
    """The sentences or lines of a text: the beginnings of the words of each."""

    number: Mapping[int, int]
    """The place of each by a number for all its words; of equal ones there is one."""
    words: Sequence[Sequence[str]]
    """The rarest of the text first."""
    having: Mapping[str, int]
    """The pieces that have a word, as bits."""

    @classmethod
    def read(cls, pieces: Mapping[int, frozenset[str]]) -> "Pieces":
        """Take the words of each piece, by a number for all its words."""
        having: dict[str, int] = {}
        for at, words in enumerate(pieces.values()):
            for word in words:
                having[word] = having.get(word, 0) | 1 << at
        often = Counter(word for words in pieces.values() for word in words)
        ordered = [sorted(words, key=lambda one: (often[one], one)) for words in pieces.values()]
        return cls({key: at for at, key in enumerate(pieces)}, ordered, having)

    def find_others(self, other: "Pieces") -> list[int]:
        """Return the places of the pieces that another text does not have."""
        return [self.number[key] for key in self.number.keys() - other.number.keys()]

    def find_holding(self, words: Sequence[str], among: int) -> int:
        """Return which pieces, of some, have all these words, as bits."""
        for word in words:
            among &= self.having.get(word, 0)
            if not among:
                break
        return among


@dataclass(frozen=True, slots=True)
class AskedPieces:
    """The pieces of a text with what they say of a question."""

    pieces: Pieces
    said: Sequence[int]
    """Which of the asked words each piece has, as bits."""
    share: Sequence[float]
    """How much of what is asked each piece says."""

    @classmethod
    def read(cls, pieces: Pieces, asked: Mapping[str, float]) -> "AskedPieces":
        """Look for the words that are asked for, which have weights."""
        said, share = [0] * len(pieces.words), [0.0] * len(pieces.words)
        for bit, (word, weight) in enumerate(asked.items()):
            left = pieces.having.get(word, 0)
            while left:
                at = (left & -left).bit_length() - 1
                said[at] |= 1 << bit
                share[at] += weight
                left &= left - 1
        return cls(pieces, said, share)

    def join_said(self, places: int) -> int:
        """Return which asked words some pieces say, places and words as bits."""
        return reduce(or_, (self.said[at] for at in _list_bits(places)), 0)

    def find_most(self, places: int) -> float:
        """Return the largest share of what is asked that one of some pieces says."""
        return max((self.share[at] for at in _list_bits(places)), default=0.0)


def is_difference_asked(one: AskedPieces, other: AskedPieces) -> bool:
    """Whether a question is about sentences that differ: two texts may answer it differently.

    Both say a word of it only there, or such a sentence says more of it than any that is the same.
    """
    own, others = find_different(one.pieces, other.pieces)
    same = (1 << len(one.said)) - 1 & ~own, (1 << len(other.said)) - 1 & ~others
    told = and_(one.join_said(own), other.join_said(others))
    if told & ~(one.join_said(same[0]) | other.join_said(same[1])):
        return True
    return max(one.find_most(own), other.find_most(others)) > max(
        one.find_most(same[0]), other.find_most(same[1])
    )


def find_different(one: Pieces, other: Pieces) -> tuple[int, int]:
    """Return the pieces of each of two texts that the other one has not, as bits.

    One that only adds words to another one, or leaves some out, says the same.
    """
    own, others = one.find_others(other), other.find_others(one)
    all_own, all_others = (reduce(or_, (1 << at for at in some), 0) for some in (own, others))
    left, left_others = all_own, all_others
    for at in own:
        if holding := other.find_holding(one.words[at], all_others):
            left &= ~(1 << at)
            left_others &= ~holding
    for at in others:
        if holding := one.find_holding(other.words[at], all_own):
            left_others &= ~(1 << at)
            left &= ~holding
    return left, left_others


def _list_bits(bits: int) -> list[int]:
    """Return the places of the bits that are set."""
    found = []
    while bits:
        found.append((bits & -bits).bit_length() - 1)
        bits &= bits - 1
    return found
