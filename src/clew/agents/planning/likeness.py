"""Equality of two short answers, by code alone."""

import re
from collections.abc import Iterator, Sequence

from clew.agents.planning.nations import nations
from clew.agents.planning.values import dated, when
from clew.text import UNSPACED_CHAR, words

# Generic words that do not change which thing a name means.
_KINDS = frozenset("the a an of republic kingdom".split())
_HEAD = re.compile(r"(?:the )?(?:city|town|state|county|province) of ", re.IGNORECASE)
# Words before a name that make it another name: York and New York.
_ANOTHER = frozenset(
    "new north south east west northern southern eastern western central equatorial upper lower "
    "non anti".split()
)
_PARTS = re.compile(r"[,;()（），；]")
# Endings of places and their demonyms that no table has: Bavaria and Bavarian.
_PLACE = ("", "a", "e", "o", "y", "s")
_BELONGS = ("n", "an", "ian", "ese", "ish")
_STEM = 5  # letters before such an ending
# Chinese country names that contain another country's: Indonesia's begins with India's.
_HAN_OTHERS = re.compile(
    "印度尼西亚|赤道几内亚|几内亚比绍|巴布亚新几内亚|南苏丹|北爱尔兰|刚果民主共和国"
)


def alike(one: str, other: str) -> bool:
    """Whether two short answers mean the same: equal words, same country, or one more specific."""
    a, b = words(one), words(other)
    if not a or not b:
        return False
    if set(a) == set(b):
        return True
    if dated(one) and dated(other):
        return _same_date(one, other)
    (countries, rest), (other_countries, other_rest) = nations(a), nations(b)
    if countries and other_countries and not (_names(one, rest) or _names(other, other_rest)):
        return bool(countries & other_countries)
    return _within(one, other) or _within(other, one) or _one_stem(a, b)


def _same_date(one: str, other: str) -> bool:
    """Whether the parts that both dates give are equal: 1961 and May 1961."""
    pairs = zip(when(one) or (), when(other) or (), strict=True)
    return all(a == b or not (a and b) for a, b in pairs)


def _within(less: str, more: str) -> bool:
    """Whether `more` says the same and adds a region after a comma, or a generic word."""
    more = _HEAD.sub("", more)
    less_words, more_words = words(less), words(more)
    if not set(less_words) <= set(more_words):
        return False
    if UNSPACED_CHAR.search(more):
        return _HAN_OTHERS.findall(less) == _HAN_OTHERS.findall(more)
    if less_words in _runs(more):
        return True
    added = [word for word in more_words if word not in less_words]
    return not _names(more, added) and not _ANOTHER & set(added)


def _runs(text: str) -> Iterator[list[str]]:
    """Yield the words of adjacent comma-separated parts, from either end."""
    parts = [part for part in map(words, _PARTS.split(text)) if part]
    for size in range(1, len(parts)):
        yield sum(parts[:size], [])
        yield sum(parts[-size:], [])


def _names(text: str, some: Sequence[str]) -> bool:
    """Whether some of the given words are written as names or numbers in the text."""
    wanted = set(some) - _KINDS
    said = (re.sub(r"^\W+|\W+$", "", raw) for raw in text.split())
    return any(
        raw[:1].isupper() or any(map(str.isdigit, raw)) for raw in said if wanted & set(words(raw))
    )


def _one_stem(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether the last words are a place and its demonym, and those before are equal."""
    if list(a[:-1]) != list(b[:-1]):
        return False
    place, belongs = sorted((a[-1], b[-1]), key=lambda word: word.endswith(_BELONGS))
    return any(
        place == f"{stem}{end}"
        for ending in _BELONGS
        if belongs.endswith(ending) and len(stem := belongs.removesuffix(ending)) >= _STEM
        for end in _PLACE
    )
