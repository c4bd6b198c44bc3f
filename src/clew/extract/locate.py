"""Where in a chunk the things stand that a model names: character spans in the document.

A name is looked for as it is spelt; if it does not occur so, then without regard to case, spaces,
accents and the many forms of dashes and apostrophes. Each search is one pass over the chunk.
"""

import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from clew.sentences import sentence_spans
from clew.text import UNSPACED_CHAR, nfc, words
from clew.types import Chunk

Span = tuple[int, int]

_APOSTROPHES = "\u2018\u2019\u201b\u02bc\u2032`\u00b4"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_SAME = dict.fromkeys(_APOSTROPHES, "'") | dict.fromkeys(_DASHES, "-")
_INVISIBLE = frozenset("\u00ad\u061c\u2060\ufeff\u0640").union(
    map(chr, (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)


_APART = frozenset(["", *" .,;:\n'\"()"])  # between words for sure; "" is an end of the text

# Only marks that careless spelling leaves out; in Indic scripts or kana a mark is a letter.
_ACCENTS = (("\u0300", "\u036f"), ("\u0591", "\u05bd"), ("\u064b", "\u065f"))


@lru_cache(maxsize=65536)
def _folded(char: str) -> str:
    """One character as it is compared: nothing for spaces, accents and invisible ones."""
    if char in _SAME:
        return _SAME[char]
    if char.isspace() or char in _INVISIBLE or _is_accent(char):
        return ""
    parts = unicodedata.normalize("NFKD", char)
    kept = "".join(part for part in parts if not (part.isspace() or _is_accent(part)))
    return kept.casefold()


def _is_accent(char: str) -> bool:
    return any(first <= char <= last for first, last in _ACCENTS)


def fold(text: str) -> str:
    """A text as names are compared here."""
    if text.isascii():
        return "".join(text.split()).casefold().replace("`", "'")
    return "".join(map(_folded, text))


class Spot(NamedTuple):
    """Where a fact is said, and how many of its participants are named there."""

    span: Span
    named: int = 0


class Places:
    """One chunk, ready to be searched many times; all spans are document offsets."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self._known: dict[str, tuple[Span, ...]] = {}
        self._told: dict[str, frozenset[int]] = {}

    def of(self, name: str) -> tuple[Span, ...]:
        """All occurrences of a name, in order; none for what the chunk does not say."""
        found = self._known.get(name)
        if found is None:
            spans, start = self._search(name), self.chunk.start
            found = tuple([(start + a, start + b) for a, b in spans] if start else spans)
            self._known[name] = found
        return found

    def fact(self, names: Iterable[str], *told: str) -> Spot:
        """The smallest sentence that names all; else, of those naming most, the one most like
        what is `told`, the earliest winning; else the whole chunk."""
        among = [self._sentences_with(name) for name in dict.fromkeys(names)]
        every = among[0].intersection(*among[1:]) if among else frozenset()
        if every:
            one = min(sorted(every), key=self._length) if len(every) > 1 else next(iter(every))
            return self._spot(one, len(among))
        counts = Counter(at for found in among for at in found)
        if not counts:
            return Spot((self.chunk.start, self.chunk.end))
        most = max(counts.values())
        best = [at for at in sorted(counts) if counts[at] == most]
        said = set(words(" ".join(told)))
        at = max(best, key=lambda at: (len(said & self._words(at)), -at))
        return self._spot(at, most)

    def _spot(self, at: int, named: int) -> Spot:
        start, end = self._sentences[at]
        return Spot((self.chunk.start + start, self.chunk.start + end), named)

    def quote(self, text: str) -> Span | None:
        """Where a whole sentence or passage stands, or nothing."""
        found = self.of(text) if text.strip() else ()
        return found[0] if found else None

    # -- searching

    def _search(self, name: str) -> list[Span]:
        wanted = (name if name.isascii() else nfc(name)).strip()
        return self._exact(wanted) or [*self._loose(fold(wanted))] if wanted else []

    def _exact(self, wanted: str) -> list[Span]:
        text, size = self.chunk.text, len(wanted)
        found = []
        at = text.find(wanted)
        while at >= 0:
            good = self._stands_alone(at, at + size)
            if good:
                found.append((at, at + size))
            at = text.find(wanted, at + (size if good else 1))
        return found

    def _loose(self, wanted: str) -> Iterator[Span]:
        plain, origin = self._plain
        at = plain.find(wanted) if wanted else -1
        while at >= 0:
            stop = at + len(wanted)
            start, end = origin[at], self._past_accents(origin[stop - 1] + 1)
            # A match may not begin or end within what one character was folded to (ß, ﬁ).
            torn = (at and origin[at - 1] == start) or (
                stop < len(plain) and origin[stop] == origin[stop - 1]
            )
            good = not torn and self._stands_alone(start, end)
            if good:
                yield start, end
            at = plain.find(wanted, stop if good else at + 1)

    def _past_accents(self, end: int) -> int:
        text = self.chunk.text
        while end < len(text) and not text[end].isspace() and not _folded(text[end]):
            end += 1
        return end

    def _stands_alone(self, start: int, end: int) -> bool:
        """Say whether no word is cut at either end; unspaced scripts have no such ends."""
        text = self.chunk.text
        if text[start - 1 : start] in _APART and text[end : end + 1] in _APART:
            return True  # as most do
        if end < len(text) and _is_mark(text[end]):
            return False
        before = start > 0 and _in_word(text[start - 1]) and _in_word(text[start])
        after = end < len(text) and _in_word(text[end]) and _in_word(text[end - 1])
        return not (before or after)

    @cached_property
    def _plain(self) -> tuple[str, list[int]]:
        """The chunk folded, and for each character of that where it comes from."""
        text = self.chunk.text
        if text.isascii():
            return fold(text), [at for at, char in enumerate(text) if not char.isspace()]
        parts = [_folded(char) for char in text]
        origin = [at for at, part in enumerate(parts) for _ in part]
        return "".join(parts), origin

    # -- sentences

    @cached_property
    def _sentences(self) -> Sequence[Span]:
        return sentence_spans(self.chunk.text) or [(0, len(self.chunk.text))]

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _ in self._sentences]

    @cached_property
    def _said(self) -> dict[int, frozenset[str]]:
        return {}

    def _sentences_with(self, name: str) -> frozenset[int]:
        """Which sentences name it; the same names come in fact after fact."""
        found = self._told.get(name)
        if found is None:
            starts, first = self._starts, self.chunk.start
            found = self._told[name] = frozenset(
                [max(0, bisect_right(starts, start - first) - 1) for start, _ in self.of(name)]
            )
        return found

    def _length(self, at: int) -> int:
        start, end = self._sentences[at]
        return end - start

    def _words(self, at: int) -> frozenset[str]:
        if at not in self._said:
            start, end = self._sentences[at]
            self._said[at] = frozenset(words(self.chunk.text[start:end]))
        return self._said[at]


@lru_cache(maxsize=65536)
def _in_word(char: str) -> bool:
    return (char.isalnum() or _is_mark(char)) and UNSPACED_CHAR.match(char) is None


@lru_cache(maxsize=65536)
def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "M"
