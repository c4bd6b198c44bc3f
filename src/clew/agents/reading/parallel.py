"""Find the part of a sentence that speaks of what is asked, where two parts are parallel.

"The lessor is A; the lessee is B": both words stand in the sentence that answers, and are so alike
that a reader takes the wrong part. The part that was read has another word in the place of the one
asked about, and a part beside it has that word.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache

_PART = re.compile(r"(?:(?!;\s|,\s|\s(?:and|but|while|whereas|or)\s).)+", re.DOTALL | re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:[-’'][^\W_]+)*")
_JOINING = frozenset("and but while whereas or".split())

IsContent = Callable[[str], bool]
"""Whether a word says something, and does not only hold a sentence together."""


@dataclass(frozen=True, slots=True)
class _Place:
    """What stands before and behind a word, and whether it is the first of its part that tells."""

    before: str
    behind: str
    opens: bool

    def is_like(self, other: "_Place") -> bool:
        """Whether two words stand between the same words, or open their parts behind the same one.

        Where nothing stands before them, they only begin their parts, which says nothing.
        """
        if self.before != other.before:
            return False
        return self.behind == other.behind or bool(self.before and self.opens and other.opens)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a sentence, and the place of each of its words that tell something."""

    start: int
    end: int
    places: dict[str, _Place]


def find_parallel(
    asked: Collection[str], sentence: str, span: tuple[int, int], is_content: IsContent
) -> tuple[int, int] | None:
    """Return the part of a sentence beside the one with a span that has a word asked about.

    None where the part with the span has no other word in its place, or several parts have one.
    """
    said = sentence.lower()
    wanted = {bare for word in asked if (bare := _bare(word)) in said}
    if not wanted:
        return None
    parts = _split_parts(sentence, is_content)
    own = next((part for part in parts if part.start <= span[0] < part.end), None)
    if own is None or len(parts) == 1:
        return None
    read = {_bare(word[0].lower()) for word in _WORD.finditer(sentence[slice(*span)])}
    rivals = [place for word, place in own.places.items() if word not in wanted | read]
    found = [
        part
        for part in parts
        if part is not own
        for word in wanted & part.places.keys() - own.places.keys()
        if any(part.places[word].is_like(rival) for rival in rivals)
    ]
    return (found[0].start, found[0].end) if len({part.start for part in found}) == 1 else None


@lru_cache(maxsize=1024)  # a sentence is read for several questions
def _split_parts(sentence: str, is_content: IsContent) -> list[_Part]:
    return [_make_part(sentence, found, is_content) for found in _PART.finditer(sentence)]


def _make_part(sentence: str, found: re.Match[str], is_content: IsContent) -> _Part:
    words = [word[0].lower() for word in _WORD.finditer(found[0])]
    while words and words[0] in _JOINING:
        words.pop(0)
    first = next((word for word in words if is_content(word)), "")
    around, places = ("", *words, ""), dict[str, _Place]()
    for at, word in enumerate(words, 1):
        if is_content(word):
            places.setdefault(_bare(word), _Place(around[at - 1], around[at + 1], word == first))
    return _Part(found.start(), found.end(), places)


def _bare(word: str) -> str:
    """Return a word without the ending of the plural; any other ending makes another word here."""
    return word.removesuffix("s")
