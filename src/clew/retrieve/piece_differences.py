"""In which sentences or lines two texts differ, and whether a question is about these.

Pages of lines (lists, tables, logs) are many and alike, and each pair of them is compared: words
are looked up in bit masks of the pieces that have them, the rarest word of a piece first.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


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

    @property
    def every(self) -> int:
        """All pieces, as bits."""
        return (1 << len(self.words)) - 1

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
    saying: Sequence[int]
    """The pieces that have each of the asked words, as bits."""
    by_share: Sequence[tuple[float, int]]
    """How much of what is asked pieces say, the most first, and which these are."""

    @classmethod
    def read(cls, pieces: Pieces, asked: Mapping[str, float]) -> "AskedPieces":
        """Look for the words that are asked for, which have weights."""
        saying = [pieces.having.get(word, 0) for word in asked]
        shares: dict[float, int] = {}
        for at in range(len(pieces.words)):
            bit = 1 << at
            share = sum(
                weight for weight, have in zip(asked.values(), saying, strict=True) if have & bit
            )
            shares[share] = shares.get(share, 0) | bit
        return cls(pieces, saying, sorted(shares.items(), reverse=True))

    def list_said(self, places: int) -> list[bool]:
        """Return for each asked word whether some of these pieces say it."""
        return [bool(have & places) for have in self.saying]

    def find_most(self, places: int) -> float:
        """Return the largest share of what is asked that one of some pieces says."""
        return next((share for share, have in self.by_share if have & places), 0.0)


def is_difference_asked(one: AskedPieces, other: AskedPieces) -> bool:
    """Whether a question is about sentences that differ: two texts may answer it differently.

    Both say a word of it only there, or such a sentence says more of it than any that is the same.
    """
    own, others = find_different(one.pieces, other.pieces)
    same = one.pieces.every & ~own, other.pieces.every & ~others
    told = zip(
        one.list_said(own),
        other.list_said(others),
        one.list_said(same[0]),
        other.list_said(same[1]),
        strict=True,
    )
    if any(here and there and not (also or too) for here, there, also, too in told):
        return True
    return max(one.find_most(own), other.find_most(others)) > max(
        one.find_most(same[0]), other.find_most(same[1])
    )


def find_different(one: Pieces, other: Pieces) -> tuple[int, int]:
    """Return the pieces of each of two texts that the other one has not, as bits.

    One that only adds words to another one, or leaves some out, says the same.
    """
    own, others = one.find_others(other), other.find_others(one)
    all_own, all_others = (sum(1 << at for at in some) for some in (own, others))
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
