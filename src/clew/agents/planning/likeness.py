"""Whether two short answers mean the same thing, by code alone."""

import re
from collections.abc import Iterator, Sequence

from clew.agents.planning.nations import nations
from clew.agents.planning.values import dated, when
from clew.text import UNSPACED_CHAR, words

# Words that say what kind of thing a name is of, and make no other thing of it.
_KINDS = frozenset("the a an of republic kingdom".split())
_HEAD = re.compile(r"(?:the )?(?:city|town|state|county|province) of ", re.IGNORECASE)
# Words before a name that make it another's: York and New York, Guinea and Equatorial Guinea.
_ANOTHER = frozenset(
    "new north south east west northern southern eastern western central equatorial upper lower "
    "non anti".split()
)
_PARTS = re.compile(r"[,;()（），；]")
# How a place and what belongs to it end where no table has them: Bavaria and Bavarian.
_PLACE = ("", "a", "e", "o", "y", "s")
_BELONGS = ("n", "an", "ian", "ese", "ish")
_STEM = 5  # letters before such an ending
# Chinese names of countries with another's name inside: Indonesia's begins with India's.
_HAN_OTHERS = re.compile(
    "印度尼西亚|赤道几内亚|几内亚比绍|巴布亚新几内亚|南苏丹|北爱尔兰|刚果民主共和国"
)


def alike(one: str, other: str) -> bool:
    """Whether two short answers mean the same: equal words, one country, or one says more."""
    a, b = words(one), words(other)
    if not a or not b:
        return False
    if set(a) == set(b):
        return True
    if dated(one) and dated(other):
        return _same_date(one, other)
    (here, left), (there, left_too) = nations(a), nations(b)
    if here and there and not (_names(one, left) or _names(other, left_too)):
        return bool(here & there)
    return _within(one, other) or _within(other, one) or _one_stem(a, b)


def _same_date(one: str, other: str) -> bool:
    """Whether no part that both say differs: 1961 and May 1961."""
    pairs = zip(when(one) or (), when(other) or (), strict=True)
    return all(a == b or not (a and b) for a, b in pairs)


def _within(less: str, more: str) -> bool:
    """Whether `more` says the same and adds a region behind a comma, or what kind it is of."""
    more = _HEAD.sub("", more)
    said, whole = words(less), words(more)
    if not set(said) <= set(whole):
        return False
    if UNSPACED_CHAR.search(more):
        return _HAN_OTHERS.findall(less) == _HAN_OTHERS.findall(more)
    if said in _runs(more):
        return True
    added = [word for word in whole if word not in said]
    return not _names(more, added) and not _ANOTHER & set(added)


def _runs(text: str) -> Iterator[list[str]]:
    """The words of neighbouring parts between commas, from either end."""
    parts = [part for part in map(words, _PARTS.split(text)) if part]
    for size in range(1, len(parts)):
        yield sum(parts[:size], [])
        yield sum(parts[-size:], [])


def _names(text: str, some: Sequence[str]) -> bool:
    """Whether some of a text's words are written as names or numbers are."""
    wanted = set(some) - _KINDS
    said = (re.sub(r"^\W+|\W+$", "", raw) for raw in text.split())
    return any(
        raw[:1].isupper() or any(map(str.isdigit, raw)) for raw in said if wanted & set(words(raw))
    )


def _one_stem(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether the last words are a place and what belongs to it, and those before are equal."""
    if list(a[:-1]) != list(b[:-1]):
        return False
    place, belongs = sorted((a[-1], b[-1]), key=lambda word: word.endswith(_BELONGS))
    return any(
        place == f"{stem}{end}"
        for ending in _BELONGS
        if belongs.endswith(ending) and len(stem := belongs.removesuffix(ending)) >= _STEM
        for end in _PLACE
    )
