"""Locates names and facts returned by a model: character spans in the document.

A name is searched as spelt; if not found, then ignoring case, spaces, accents and variants of
dashes and apostrophes. Each search is one pass over the chunk.
"""

import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from clew.text.sentences import sentence_spans
from clew.text.unicode import UNSPACED_CHAR, nfc, split_words
from clew.types import Chunk

Span = tuple[int, int]

_APOSTROPHES = "\u2018\u2019\u201b\u02bc\u2032`\u00b4"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_EQUIVALENT_CHARS = dict.fromkeys(_APOSTROPHES, "'") | dict.fromkeys(_DASHES, "-")
_INVISIBLE = frozenset("\u00ad\u061c\u2060\ufeff\u0640").union(
    map(chr, (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)
_SAID = 0.5  # share of a statement's words beside its names that the sentence has which says it
_WORD_BOUNDARIES = frozenset(["", *" .,;:\n'\"()"])  # "" is an end of the text

# Only marks that are often left out; in Indic scripts or kana a mark is part of a letter.
_ACCENT_RANGES = (("\u0300", "\u036f"), ("\u0591", "\u05bd"), ("\u064b", "\u065f"))


@lru_cache(maxsize=65536)
def _fold_char(char: str) -> str:
    """Fold one character for comparison; spaces, accents and invisible ones become ""."""
    if char in _EQUIVALENT_CHARS:
        return _EQUIVALENT_CHARS[char]
    if char.isspace() or char in _INVISIBLE or _is_accent(char):
        return ""
    parts = unicodedata.normalize("NFKD", char)
    kept = "".join(part for part in parts if not (part.isspace() or _is_accent(part)))
    return kept.casefold()


def _is_accent(char: str) -> bool:
    return any(first <= char <= last for first, last in _ACCENT_RANGES)


def fold(text: str) -> str:
    """Fold a text for comparison of names."""
    if text.isascii():
        return "".join(text.split()).casefold().replace("`", "'")
    return "".join(map(_fold_char, text))


class FactLocation(NamedTuple):
    """The span of a fact, and how many of its participants occur there."""

    span: Span
    names_found: int = 0


class ChunkLocator:
    """Searches one chunk, with caching; all spans are document offsets."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self._name_spans: dict[str, tuple[Span, ...]] = {}
        self._name_sentences: dict[str, frozenset[int]] = {}

    def find_name(self, name: str) -> tuple[Span, ...]:
        """All occurrences of a name, in order."""
        found = self._name_spans.get(name)
        if found is None:
            spans, start = self._find_spans(name), self.chunk.start
            found = tuple([(start + a, start + b) for a, b in spans] if start else spans)
            self._name_spans[name] = found
        return found

    def find_fact(self, names: Iterable[str], *texts: str) -> FactLocation:
        """The shortest sentence with all names; else, of those with most names, the one sharing
        most words with `texts`, the earliest on ties; else the whole chunk."""
        per_name = [self._sentences_with(name) for name in dict.fromkeys(names)]
        common = per_name[0].intersection(*per_name[1:]) if per_name else frozenset()
        if common:
            one = (
                min(sorted(common), key=self._sentence_length)
                if len(common) > 1
                else next(iter(common))
            )
            return self._fact_location(one, len(per_name))
        counts = Counter(at for found in per_name for at in found)
        if not counts:
            return FactLocation((self.chunk.start, self.chunk.end))
        most = max(counts.values())
        best = [at for at in sorted(counts) if counts[at] == most]
        keywords = set(split_words(" ".join(texts)))
        at = max(best, key=lambda at: (len(keywords & self._words_in(at)), -at))
        return self._fact_location(at, most)

    def _fact_location(self, at: int, named: int) -> FactLocation:
        start, end = self._sentences[at]
        return FactLocation((self.chunk.start + start, self.chunk.start + end), named)

    def find_quote(self, text: str) -> Span | None:
        """The first occurrence of a whole sentence or passage, or None."""
        found = self.find_name(text) if text.strip() else ()
        return found[0] if found else None

    def find_statement(self, text: str, names: Sequence[str]) -> Span:
        """The sentence that says what a statement says: it has most of its words beside the names,
        at least half of them, as pronouns may stand there for the names; else as for a fact."""
        own = {word for name in names for word in split_words(name)}
        said = set(split_words(text)) - own
        shared = [len(said & self._words_in(at)) for at in range(len(self._sentences))]
        most = max(shared)
        if not said or most < len(said) * _SAID:
            return self.find_fact(names, text).span
        with_names = Counter(at for name in names for at in self._sentences_with(name))
        likely = [at for at, count in enumerate(shared) if count == most]
        return self._fact_location(max(likely, key=lambda at: (with_names[at], -at)), 0).span

    # -- searching

    def _find_spans(self, name: str) -> list[Span]:
        wanted = (name if name.isascii() else nfc(name)).strip()
        return self._find_exact(wanted) or [*self._find_folded(fold(wanted))] if wanted else []

    def _find_exact(self, wanted: str) -> list[Span]:
        text, size = self.chunk.text, len(wanted)
        found = []
        at = text.find(wanted)
        while at >= 0:
            whole = self._is_whole_word(at, at + size)
            if whole:
                found.append((at, at + size))
            at = text.find(wanted, at + (size if whole else 1))
        return found

    def _find_folded(self, wanted: str) -> Iterator[Span]:
        folded, origin = self._folded_text
        at = folded.find(wanted) if wanted else -1
        while at >= 0:
            stop = at + len(wanted)
            start, end = origin[at], self._skip_accents(origin[stop - 1] + 1)
            # A match may not start or end inside the folding of one character (ß, ﬁ).
            inside_char = (at and origin[at - 1] == start) or (
                stop < len(folded) and origin[stop] == origin[stop - 1]
            )
            whole = not inside_char and self._is_whole_word(start, end)
            if whole:
                yield start, end
            at = folded.find(wanted, stop if whole else at + 1)

    def _skip_accents(self, end: int) -> int:
        text = self.chunk.text
        while end < len(text) and not text[end].isspace() and not _fold_char(text[end]):
            end += 1
        return end

    def _is_whole_word(self, start: int, end: int) -> bool:
        """Whether no word is cut at either end; scripts without spaces have no such limits."""
        text = self.chunk.text
        if text[start - 1 : start] in _WORD_BOUNDARIES and text[end : end + 1] in _WORD_BOUNDARIES:
            return True  # the common case
        if end < len(text) and _is_mark(text[end]):
            return False
        before = start > 0 and _is_word_char(text[start - 1]) and _is_word_char(text[start])
        after = end < len(text) and _is_word_char(text[end]) and _is_word_char(text[end - 1])
        return not (before or after)

    @cached_property
    def _folded_text(self) -> tuple[str, list[int]]:
        """The folded chunk, and the original offset of each of its characters."""
        text = self.chunk.text
        if text.isascii():
            return fold(text), [at for at, char in enumerate(text) if not char.isspace()]
        parts = [_fold_char(char) for char in text]
        origin = [at for at, part in enumerate(parts) for _ in part]
        return "".join(parts), origin

    # -- sentences

    @cached_property
    def _sentences(self) -> Sequence[Span]:
        return sentence_spans(self.chunk.text) or [(0, len(self.chunk.text))]

    @cached_property
    def _sentence_starts(self) -> list[int]:
        return [start for start, _ in self._sentences]

    @cached_property
    def _sentence_words(self) -> dict[int, frozenset[str]]:
        return {}

    def _sentences_with(self, name: str) -> frozenset[int]:
        """Indices of the sentences with this name; cached, as facts share names."""
        found = self._name_sentences.get(name)
        if found is None:
            starts, first = self._sentence_starts, self.chunk.start
            found = self._name_sentences[name] = frozenset(
                [
                    max(0, bisect_right(starts, start - first) - 1)
                    for start, _ in self.find_name(name)
                ]
            )
        return found

    def _sentence_length(self, at: int) -> int:
        start, end = self._sentences[at]
        return end - start

    def _words_in(self, at: int) -> frozenset[str]:
        if at not in self._sentence_words:
            start, end = self._sentences[at]
            self._sentence_words[at] = frozenset(split_words(self.chunk.text[start:end]))
        return self._sentence_words[at]


@lru_cache(maxsize=65536)
def _is_word_char(char: str) -> bool:
    return (char.isalnum() or _is_mark(char)) and UNSPACED_CHAR.match(char) is None


@lru_cache(maxsize=65536)
def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "M"
