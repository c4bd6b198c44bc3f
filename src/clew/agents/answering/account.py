"""Quote an account of a topic: what covers it, of several sections and pages, each thing once.

Where a question wants breadth (`clew.retrieve.breadth`), no single span answers it. A table, list
or section that is called what is asked for is quoted whole; else the sentences, lists and rows that
say most of the topic are, in the order of the documents, and none that repeats another one, or that
a site repeats on its pages.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PurePosixPath

from clew.agents.answering.lacking import (
    cosine,
    find_missing,
    name_home,
)
from clew.agents.answering.quote_block import Block as QuotedBlock
from clew.agents.answering.quote_block import find_listings
from clew.agents.answering.units import Valued, find_cosines, stem_words, weigh_words
from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.reading.lists import wants_several
from clew.agents.reading.spans import asked_words
from clew.agents.rules.question_analysis import find_wanted_block
from clew.agents.rules.table import drop_asking_words
from clew.context import Context
from clew.graph.csr import Ints
from clew.retrieve.breadth import BREADTH_WORDS
from clew.retrieve.copies import count_unlike
from clew.retrieve.pack import fetch_chunks
from clew.text.places import Unit, find_units, quotable_unit
from clew.text.sentences import sentence_spans
from clew.text.structure import CRUMB_SEPARATOR, find_blocks
from clew.text.unicode import UNSPACED_CHAR, split_words
from clew.types import Citation, Found, Passage

PASSAGES = 16
"""Passages that an account is taken from."""
_MAX_PIECES, _MAX_CHARS = 10, 1_800  # of an account
_WORDS, _HEADINGS, _MEANING, _RANK, _FIRST = 1.0, 0.6, 1.0, 0.2, 0.1  # weights of what counts
_SAME_PAGE = 0.06  # what each piece of a page before costs
_REPEATS, _SAME = 0.6, 0.7  # what having its words said before costs, and the share of a repeat
_LEAST = 0.55  # of the best piece's value
_TELLS, _NAMES = 0.5, 0.3  # least share of the topic that names a table or list, and a section
_ABOUT_LEAST = 0.3  # of the topic that the best passage says, for a model to be shown another one
_KIND = 0.25  # of the weight of an unknown word that says what kind of account is wanted
_LEAST_CHARS = 25  # characters of a sentence; shorter ones are headings and stubs
_NEAR = 0.6  # cosine of a sentence that is surely about the question
_MANY_PAGES, _FEW_PAGES = 5, 3  # that repeat a text; fewer where half of all passages may have it
_HALF_OF_ALL = 0.5
_FINDABLE_WORDS = 3  # of a text that can be found again, at least
_READ = 24  # passages that are read for a text
_BASE, _COVERED, _MEANT = 0.02, 0.68, 0.25  # confidence of nothing, and what is added to it
# Behind one of these stands what an account is about: "the history of the mill".
_ABOUT = re.compile(r"\b(?:of|about|on|for|from|in|at|with|regarding|concerning)\s+\w", re.I)
# Between the parts of a title: "Travel and expenses", "Pump 300: overview".
_PARTS = re.compile(rf"\s*(?:{re.escape(CRUMB_SEPARATOR)}|[:,;/&|–—]|\band\b|\s-\s)\s*")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Topic:
    """The words of what an account is about, by their rarity, and all words of the question."""

    words: Mapping[str, float]
    """Those that some passage has; sums to 1."""
    unknown: Mapping[str, float]
    """The weights of the others beside them."""
    asked: frozenset[str]
    """Beginnings of the question's words."""
    whole: bool = False
    """Whether it is all the documents: nothing else is named, or the folder they stand in."""

    def share(self, said: frozenset[str]) -> float:
        """Return how much of the topic is said."""
        return sum(weight for word, weight in self.words.items() if _is_among(word, said))

    def names(self, label: str) -> float:
        """Return the share of the topic that a part of a title is, if it says nothing else."""
        parts = (stem_words(" ".join(asked_words(one))) for one in _PARTS.split(label))
        alone = (one for one in parts if all(_is_among(word, self.asked) for word in one))
        return max(map(self.share, alone), default=0.0)


def _is_among(word: str, said: frozenset[str]) -> bool:
    """Whether the beginning of a word is among others, in the singular or in the plural."""
    return word in said or f"{word}s" in said or word.removesuffix("s") in said


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence, list or table of a passage, and how much it says of the topic."""

    passage: Passage
    start: int
    end: int
    value: float
    said: frozenset[str]
    named: bool
    section: tuple[str, ...]

    @property
    def text(self) -> str:
        """What it says."""
        return self.passage.text[self.start : self.end]

    def repeats(self, other: "_Piece") -> float:
        """Return the share of its words that another piece has."""
        return len(self.said & other.said) / max(1, min(len(self.said), len(other.said)))


def read_topic(ctx: Context, question: str, passages: Sequence[Passage]) -> Topic:
    """Return what an account is to be about: the question without what says that it is wanted."""
    said = [word for word in split_words(question) if word not in BREADTH_WORDS]
    bare = question if UNSPACED_CHAR.search(question) else " ".join(said)
    weights = weigh_words(ctx.view, drop_asking_words(bare)) if said else {}
    texts = (f"{one.title} {one.heading} {one.text}" for one in passages)
    known = stem_words(" ".join(texts))
    folders = stem_words(" ".join(one.doc for one in passages))
    words = {word: weight for word, weight in weights.items() if _is_among(word, known)}
    whole = not words and all(_is_among(word, folders) for word in weights)
    total = sum(words.values()) or 1.0
    about = _ABOUT.search(question)
    kind = stem_words(question[: about.start()]) if about else frozenset[str]()
    unknown = {
        word: weight * (_KIND if word in kind else 1.0) / total
        for word, weight in weights.items()
        if word not in words and not whole
    }
    words = {word: weight / total for word, weight in words.items()}
    return Topic(words, unknown, stem_words(question), whole)


def select_about(ctx: Context, passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages that, with their title and file name, say enough of the topic."""
    topic = read_topic(ctx, ctx.question, passages)
    texts = [f"{one.title} {one.heading} {one.doc} {one.text}" for one in passages]
    shares = [topic.share(stem_words(text)) for text in texts]
    least = _ABOUT_LEAST * max(shares, default=0.0)
    return [one for one, share in zip(passages, shares, strict=True) if share >= least]


async def choose_account(ctx: Context, found: Found, passages: Sequence[Passage]) -> list[Citation]:
    """Return what to quote of the passages, in the order of the documents."""
    topic = read_topic(ctx, ctx.question, passages)
    if listing := await _find_listing(ctx, topic, passages):
        return [listing]
    near = await find_cosines(ctx, found, {p.id: p.start for p in passages}, len(passages))
    pieces = [
        one
        for rank, passage in enumerate(passages)
        for one in _cut(topic, passage, near.get(passage.id, ()), _RANK / (1 + rank))
    ]
    pieces = await _drop_repeated(ctx, topic, pieces)
    if topic.whole:
        return _cite(_order(_choose_openings(pieces)))
    about = [one for one in pieces if topic.share(one.said | _stem_labels(one.passage))]
    return _cite(_order(_select(about or pieces)))


async def measure_account(
    ctx: Context, cited: Sequence[Citation], passages: Sequence[Passage]
) -> tuple[dict[str, float], float]:
    """Return what of the topic the quotes cover, and a confidence that says how well."""
    topic = read_topic(ctx, ctx.question, passages)
    said = " ".join(f"{name_home(one, passages)} {one.quote}" for one in cited)
    words = {**topic.words, **topic.unknown}
    missing = await find_missing(ctx, ctx.question, words, said)
    whole = sum(words.values())
    covered = 1 - sum(missing.values()) / whole if whole else 1.0
    near = 0.0
    if ctx.embed is not None and cited:
        asked, *vectors = await ctx.vectors([ctx.question, *(one.quote for one in cited)])
        near = max(cosine(asked, one) for one in vectors)
    meant = min(1.0, max(0.0, near) / _NEAR)
    confidence = round(_BASE + _COVERED * covered + _MEANT * meant, 4)
    return {"covered": covered, "near": near, "breadth": 1.0}, confidence


async def _find_listing(ctx: Context, topic: Topic, passages: Sequence[Passage]) -> Citation | None:
    """Cite the table with a column of what is asked for; or the list under its name, if one is."""
    found: list[tuple[float, QuotedBlock]] = []
    listed = find_wanted_block(ctx.question) == "list" or wants_several(ctx.question)
    for passage in passages:
        for block, columns, above in find_listings(passage):
            named = max(map(topic.names, (*columns, *(above if listed else ()))), default=0.0)
            if named >= _TELLS:
                found.append((named, block))
    for _, block in sorted(found, key=lambda one: -one[0]):
        if not await _find_repeated(ctx, [block.text]):
            return make_citation(block.passage, SupportSpan(block.start, block.end, 1.0))
    return None


def _cut(topic: Topic, passage: Passage, near: Sequence[Valued], bonus: float) -> Iterator[_Piece]:
    """Yield the sentences of a passage, and its lists, tables and definitions."""
    taken: set[tuple[int, int]] = set()
    labels = (passage.title, passage.heading, PurePosixPath(passage.doc).stem)
    for unit in find_units(passage.text, doc=passage.doc):
        above = stem_words(" ".join((*labels, *unit.section, unit.announced)))
        named = max(map(topic.names, (*labels, *unit.section[-1:]))) >= _NAMES
        for first, (start, end) in enumerate(_split(passage.text, unit)):
            if (start, end) in taken or end - start < _LEAST_CHARS:
                continue
            taken.add((start, end))
            said = stem_words(passage.text[start:end])
            value = bonus + _WORDS * topic.share(said) + _HEADINGS * topic.share(above - said)
            value += _MEANING * max((v for a, b, v in near if start < b and a < end), default=0.0)
            value += _FIRST * (first == 0)
            yield _Piece(passage, start, end, value, said, named, tuple(unit.section))


def _split(text: str, unit: Unit) -> list[tuple[int, int]]:
    """Return the sentences of a paragraph; a list, a table or code stays whole."""
    own = text[unit.start : unit.end]
    if any(block.kind != "paragraph" for block in find_blocks(own)):
        return [(unit.start, unit.end)]
    return [(unit.start + a, unit.start + b) for a, b in sentence_spans(own)]


async def _drop_repeated(ctx: Context, topic: Topic, pieces: Sequence[_Piece]) -> list[_Piece]:
    """Drop what stands on many pages, unless nothing else says a word of the topic."""
    repeated = await _find_repeated(ctx, (one.text for one in pieces))
    own = [one for one in pieces if one.text not in repeated]
    said = frozenset[str]().union(*(one.said | _stem_labels(one.passage) for one in own))
    unsaid = frozenset(word for word in topic.words if not _is_among(word, said))
    kept = [
        one
        for one in pieces
        if one.text not in repeated or any(_is_among(word, one.said) for word in unsaid)
    ]
    return kept or list(pieces)


async def _find_repeated(ctx: Context, texts: Iterable[str]) -> frozenset[str]:
    """Return those of the texts that stand, but for numbers, on many pages that are unlike.

    Captions, standings and "Read more …" say nothing of a topic. No form tells them from
    statements, but what pages with other texts all repeat is part of a site.
    """
    found = set[str]()
    for text in dict.fromkeys(texts):
        words = _split_without_numbers(text)
        if len(set(words)) < _FINDABLE_WORDS:
            continue
        places = ctx.view.bm25.chunks_with_all(list(dict.fromkeys(words)))
        if len(places) >= _FEW_PAGES and await _is_repeated(ctx, words, places):
            found.add(text)
    return frozenset(found)


async def _is_repeated(ctx: Context, words: Sequence[str], places: Ints) -> bool:
    """Whether many of these passages, or a few that are half of all, have the words in a row."""
    step = max(1, len(places) // _READ)
    chunks = await fetch_chunks(ctx, places[::step][:_READ].tolist())
    row = f" {' '.join(words)} "
    having = [
        at for at, one in chunks.items() if row in f" {' '.join(_split_without_numbers(one.text))} "
    ]
    if len(having) < _FEW_PAGES:
        return False
    half = len(having) >= _HALF_OF_ALL * len(chunks) and len(
        places
    ) >= _HALF_OF_ALL * ctx.view.count("chunk")
    return await count_unlike(ctx, having) >= (_FEW_PAGES if half else _MANY_PAGES)


def _split_without_numbers(text: str) -> list[str]:
    """Return the words of a text without its numbers."""
    return [word for word in split_words(text) if not any(map(str.isdigit, word))]


def _choose_openings(pieces: Sequence[_Piece]) -> list[_Piece]:
    """Return how each document begins, and as far as there is room each of its sections."""
    sections: dict[str, dict[tuple[str, ...], _Piece]] = {}
    for one in pieces:
        sections.setdefault(one.passage.doc, {}).setdefault(one.section, one)
    openings = [list(firsts.values()) for firsts in sections.values()]
    turns = (one for turn in zip_longest(*openings) for one in turn if one is not None)
    return list(turns)[:_MAX_PIECES]


def _stem_labels(passage: Passage) -> frozenset[str]:
    return stem_words(f"{passage.title} {passage.heading}")


def _select(pieces: Sequence[_Piece]) -> list[_Piece]:
    """Take the best of what is left, again and again; what was said before counts less.

    A section that is called what is asked for comes first and whole, as far as there is room.
    """
    chosen: list[_Piece] = []
    pages, left, size = Counter[str](), list(pieces), 0
    least = _LEAST * max((one.value for one in pieces), default=0.0)
    while left and len(chosen) < _MAX_PIECES:
        values = [_value_beside(one, chosen, pages) for one in left]
        at = max(range(len(left)), key=lambda place: (left[place].named, values[place]))
        one = left.pop(at)
        enough = one.named or values[at] >= least
        if values[at] < 0 or not enough or size + one.end - one.start > _MAX_CHARS:
            continue
        chosen.append(one)
        pages[one.passage.doc] += 1
        size += one.end - one.start
    return chosen


def _value_beside(one: _Piece, chosen: Sequence[_Piece], pages: Counter[str]) -> float:
    """Return what a piece is worth beside those that are chosen."""
    repeated = max(map(one.repeats, chosen), default=0.0)
    if repeated >= _SAME:
        return -1.0  # it says nothing new
    return max(0.0, one.value - _REPEATS * repeated - _SAME_PAGE * pages[one.passage.doc])


def _order(pieces: Sequence[_Piece]) -> list[_Piece]:
    """Put pieces in the order of their documents.

    Documents whose names have numbers, as dates and chapters do, come in that order, others best
    first.
    """
    best: dict[str, float] = {}
    for one in pieces:
        best[one.passage.doc] = max(one.value + one.named, best.get(one.passage.doc, 0.0))
    names = {doc: PurePosixPath(doc).name for doc in best}
    numbered = all(map(_NUMBER.search, names.values()))

    def place(one: _Piece) -> tuple[tuple[int, ...], float, str, int]:
        doc = one.passage.doc
        numbers = tuple(map(int, _NUMBER.findall(names[doc]))) if numbered else ()
        return numbers, 0.0 if numbered else -best[doc], doc, one.passage.start + one.start

    return sorted(pieces, key=place)


def _cite(pieces: Iterable[_Piece]) -> list[Citation]:
    """Cite each piece with what it needs around it; what stands together is one quote."""
    spans: list[tuple[Passage, int, int]] = []
    for one in pieces:
        unit = quotable_unit(one.passage.text, one.start, one.end, doc=one.passage.doc)
        start, end = min(unit.start, one.start), max(unit.end, one.end)
        if spans and spans[-1][0].id == one.passage.id:
            passage, first, last = spans[-1]
            if not passage.text[last:start].strip():
                spans[-1] = passage, min(first, start), max(last, end)
                continue
        spans.append((one.passage, start, end))
    return [make_citation(home, SupportSpan(a, b, 1.0)) for home, a, b in spans]
