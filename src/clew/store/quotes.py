"""Vectors of quotes: sentences that are facts, embedded within their passages.

One run of the embedder over a passage gives the vectors of all its sentences. Such a vector depends
on the passage, so it is kept under a key of the passage's content hash and the fact's code. A fact
that several passages state has the vector of the one with the smallest code, whatever was added or
removed before (docs/decisions/0018-smaller-vectors.md).
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clew.store.merge import content_code, fact_id, list_participants
from clew.store.protocol import VectorTable
from clew.store.row_lookup import Words, parse_hashes
from clew.types import Extraction, Fact, Kind, RawFact

Ints = NDArray[np.int64]
_WORD = re.compile(r"\S+")
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)  # odd: nothing is lost


class Quote(NamedTuple):
    """A fact in the words of its passage: the key of its vector, and its place in the text."""

    key: str
    start: int
    end: int


def find_quote(fact: RawFact | Fact, text: str) -> tuple[int, int] | None:
    """Return the span of a fact that is a part of a passage's text, word for word; None if not.

    White space does not matter, as for the ids of facts.
    """
    words = fact.text.split()
    if fact.relation or not words:
        return None
    plain = " ".join(words)
    start = text.find(plain)
    if start >= 0:
        return start, start + len(plain)
    return _find_spaced(words, text)


def _find_spaced(words: Sequence[str], text: str) -> tuple[int, int] | None:
    """Return the first span of two and more words with any white space between them.

    No pattern is made of the words: for each row of a table that costs more than all the rest.
    """
    found = [one.span() for one in _WORD.finditer(text)]
    for at in range(len(found) - len(words) + 1):
        (start, first), (last, end) = found[at], found[at + len(words) - 1]
        inner = zip(words[1:-1], found[at + 1 :], strict=False)
        if (
            text.endswith(words[0], start, first)
            and text.startswith(words[-1], last, end)
            and all(text[a:b] == word for word, (a, b) in inner)
        ):
            return first - len(words[0]), last + len(words[-1])
    return None


def find_quotes(extraction: Extraction, text: str, content_hash: str) -> list[Quote]:
    """Return those facts of an extraction that are quotes of its passage."""
    facts = {
        fact_id(fact, list_participants(fact, extraction.exact)): fact for fact in extraction.facts
    }
    return place_quotes(facts, text, content_hash)


def place_quotes(facts: Mapping[str, RawFact | Fact], text: str, content_hash: str) -> list[Quote]:
    """Return those facts, given by their ids, that are quotes of a passage."""
    placed = {name: span for name, fact in facts.items() if (span := find_quote(fact, text))}
    codes = np.array([content_code(name) for name in placed], np.int64)
    passage = np.repeat(parse_hashes([content_hash]), len(codes), axis=0)
    keys = _format(_make_keys(passage, codes))
    return [Quote(key, *span) for key, span in zip(keys, placed.values(), strict=True)]


@dataclass(frozen=True)
class QuoteRows:
    """Finds the vector rows of quotes."""

    chunks: VectorTable
    facts: VectorTable

    def find(self, chunk_rows: Ints, fact_codes: Ints) -> Ints:
        """Row of each fact as the chunk with this vector quotes it; -1 if it is no quote."""
        found = np.full(len(chunk_rows), -1, np.int64)
        known = np.flatnonzero(chunk_rows >= 0)
        keys = _make_keys(self.chunks.read_hashes(chunk_rows[known]), fact_codes[known])
        found[known] = self.facts.find_rows(_format(keys))
        return found


def open_quotes(
    vectors: Callable[[str, Kind], VectorTable], embedder: str, late: Collection[str]
) -> QuoteRows | None:
    """Return what finds the rows of quotes; None if facts have vectors of their own.

    `late` are the kinds that `LATE_KINDS` name: facts are among them if passages quote them.
    """
    if not embedder or "fact" not in late:
        return None
    return QuoteRows(vectors(embedder, "chunk"), vectors(embedder, "fact"))


def _make_keys(passages: Words, codes: Ints) -> Words:
    """Mix the words of a content hash with a code."""
    mixed = np.ascontiguousarray(codes).view(np.uint64)[:, None] * _FACTORS
    keys: Words = passages ^ mixed
    return keys


def _format(words: Words) -> list[str]:
    raw = np.ascontiguousarray(words).tobytes().hex()
    return [raw[at : at + 32] for at in range(0, len(raw), 32)]
