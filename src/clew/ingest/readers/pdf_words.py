"""Finds glued and split words in a page's text by the words of the whole document.

No dictionary is needed: a word that occurs often is one; a rare word that is two of them in a row
is glued, and two rare neighbours that together are one are split.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_TRUSTED_COUNT = 4  # occurrences from which a word is trusted
_LEAST_PART = 3  # letters of each part of a glued word
_LONGEST_WORD = 40
_HYPHENATED = re.compile(r"([^\W\d_]{2,})[-‐]\n[ \t]*([^\W\d_]{2,})")


class Vocabulary:
    """The words of a document, with how often each occurs."""

    def __init__(self, pages: Iterable[str]) -> None:
        self.counts: Counter[str] = Counter()
        self._glued: dict[str, bool] = {}
        self.hyphenated: set[str] = set()
        for page in pages:
            self.counts.update(word.casefold() for word in _WORD.findall(page))
            self.hyphenated.update(
                found.casefold() for found in re.findall(r"[^\W\d_]+-[^\W\d_]+", page)
            )

    def trusts(self, word: str) -> bool:
        """Whether a word occurs often."""
        return self.counts[word] >= _TRUSTED_COUNT

    def is_glued(self, word: str) -> bool:
        """Whether a rare word consists of two frequent ones."""
        if word not in self._glued:
            self._glued[word] = self._consists_of_two(word)
        return self._glued[word]

    def _consists_of_two(self, word: str) -> bool:
        if self.trusts(word) or len(word) < 2 * _LEAST_PART:
            return False
        if len(word) > _LONGEST_WORD:
            return True
        return any(
            self.trusts(word[:at]) and self.trusts(word[at:])
            for at in range(_LEAST_PART, len(word) - _LEAST_PART + 1)
        )


def count_bad_words(page: str, known: Vocabulary) -> tuple[int, int]:
    """Return how many words of a page look glued or split, and how many words it has."""
    written = _WORD.findall(page)
    words = [word.casefold() for word in written]
    bad = sum(known.is_glued(word) for word in words)
    for one, two in zip(words, words[1:], strict=False):
        joined = one + two
        rare = not known.trusts(one) or not known.trusts(two)
        bad += rare and len(joined) > 3 and known.counts[joined] >= 2 * _TRUSTED_COUNT
    return bad, len(words)


def join_hyphenated(page: str, known: Vocabulary, hyphens: str = "-‐") -> str:
    """Join words that a line end cuts, unless they are written with a hyphen elsewhere."""

    def join(found: re.Match[str]) -> str:
        one, two = found[1], found[2]
        if found[0][len(one)] not in hyphens:
            return found[0]
        if f"{one}-{two}".casefold() in known.hyphenated:
            return f"{one}-{two}"
        if two[0].isupper() and not known.counts[(one + two).casefold()]:
            return f"{one}-{two}"
        return one + two

    return _HYPHENATED.sub(join, page)


def part_words(page: str, parted: Mapping[str, str]) -> str:
    """Write words that are known to be glued as the two that they are."""
    return _WORD.sub(lambda found: parted.get(found[0], found[0]), page) if parted else page
