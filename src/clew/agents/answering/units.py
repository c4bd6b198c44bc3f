"""Quote units of documents that are more than prose: the definition, row, steps or paragraph.

In manuals, standards and tables the sentence that repeats the question's words announces what
answers it. Each passage is cut into units (`clew.text.places`); a unit counts for the words of the
question that it and its headings have, for how near its sentences are to the question, and for
what the span reader reads in it.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from clew.agents.answering.exact_terms import find_exact_terms, measure_exact
from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.reading.denied import asks_denied, denies_other
from clew.agents.reading.judged import Place, can_judge, judge_texts, say_with_places
from clew.agents.reading.spans import Reading, asked_words, read_passages
from clew.agents.rules.question_analysis import find_subject_names, find_wanted_block
from clew.agents.rules.table import cut_asking_words, drop_asking_words, table_for
from clew.context import Context
from clew.index.view import View
from clew.retrieve.question import strip_courtesy
from clew.text.definitions import defines_term
from clew.text.language import is_chinese
from clew.text.name_spans import blank_particles
from clew.text.places import MAX_UNIT_CHARS, Unit, find_units
from clew.text.sentences import sentence_spans
from clew.text.structure import CRUMB_SEPARATOR
from clew.text.unicode import split_words
from clew.text.word_forms import is_function_word
from clew.types import Citation, Found, Passage

Valued = tuple[int, int, float]
"""A span of a passage and a value."""
STEM = 5
"""Letters that forms of a word share."""
_READINGS = 3  # spans that are read in a passage
_MAX_PASSAGES = 6  # that are cut into units
_WORDS, _HEADINGS, _MEANING, _READ, _RANK = 1.0, 0.4, 0.8, 0.5, 0.3  # weights of what counts
_EXACT = 0.5  # for the numbers, options and identifiers of the question
_DEFINES = 0.6  # for a line that begins with one of these and tells its value or meaning
_SECTION = 0.8  # for standing in a section that has the words of the question as its title
_TERM = 1.0  # for the definition of what the question names
_ACTS = 0.2  # for a definition that begins with the action asked about
_DENIED = 1.0  # off a definition that denies what another term does
_ASKED_KIND = 0.15  # for a number where one is asked for
_KNOWN_SCRIPT = 0.5  # share of the question that the embedder knows, for meaning to count
_ARTICLES = frozenset("a an the der die das ein eine le la les un une el los las una".split())
ONE_OF_MANY = re.compile(r"\b(?:is|are|was|were|does|do) the\b", re.IGNORECASE)
"""A question that asks for one thing of another, and for no meaning: "what is the port"."""
_OPENS = 0.4  # for what begins with the term whose meaning is asked for
_MOST_MEANT = 4  # words of such a term, with what it is part of
_BY_FORM = 0.3  # of the definition of a word that only begins like one of the question
_ALIKE = 0.9  # share of words from which two units say the same
_MAX_LOGIT = 6.0  # of the span reader, or of the scorer
_JUDGED = 12  # spans that the scorer compares with the question


@dataclass(frozen=True, slots=True)
class ScoredUnit:
    """A unit of a passage and how well it fits the question."""

    passage: Passage
    unit: Unit
    score: float

    @property
    def text(self) -> str:
        """The text of the unit, with its lead."""
        return self.unit.quote(self.passage.text)

    @property
    def start(self) -> int:
        """Where its quote begins: at its lead, if it has one."""
        lead = self.unit.lead
        return self.unit.start if lead is None else min(lead[0], self.unit.start)

    def overlaps(self, other: "ScoredUnit") -> bool:
        """Whether two quotes have text in common."""
        same = self.passage.id == other.passage.id
        return same and self.start < other.unit.end and other.start < self.unit.end

    def covers(self, other: "ScoredUnit") -> bool:
        """Whether a quote has all of another one, and is not too long."""
        short = self.unit.end - self.start <= MAX_UNIT_CHARS
        inside = self.start <= other.start and other.unit.end <= self.unit.end
        return short and inside and self.passage.id == other.passage.id

    def cite(self) -> Citation:
        """Cite the unit from its lead."""
        return make_citation(self.passage, SupportSpan(self.start, self.unit.end, 1.0))


@dataclass(frozen=True, slots=True)
class QuestionSigns:
    """What a unit is compared with: the question's words, its meaning, and what is read for it."""

    words: Mapping[str, float]
    """The beginnings of its words, each with its share."""
    asked: tuple[str, ...] = ()
    """Its words as they are."""
    meant: frozenset[str] = frozenset()
    """The beginnings of the words of the term whose meaning is asked for."""
    number: bool = False
    """Whether a number or a date is asked for."""
    near: Mapping[str, Sequence[Valued]] = field(default_factory=dict)
    """By passage, its sentences with their cosine."""
    read: Mapping[str, Sequence[Valued]] = field(default_factory=dict)
    """By passage, the spans that the reader reads, with their score."""
    exact: tuple[str, ...] = ()
    """Its numbers, options and identifiers."""
    meaning: float = 1.0
    """How far the embedder knows the question's script, 0 to 1."""
    action: str = ""
    """The beginning of the word for what is to be done, where steps are asked for."""
    denied: bool = False
    """Whether it is asked for what is not done."""
    by_words: bool = False
    """Whether only words tell what is near: vectors of this language say little."""

    def score(self, passage: Passage, unit: Unit) -> float:
        """Return how well a unit fits, without the rank of its passage."""
        text = unit.quote(passage.text)
        said = stem_words(text)
        above = (passage.title, passage.heading, *unit.section, unit.announced)
        about = stem_words(" ".join(above)) - said
        score = _WORDS * self._share(said) + _HEADINGS * self._share(about)
        over = stem_words(f"{passage.title} {passage.heading}")
        score += _TERM * max(self._name(term, over) for term in unit.term.split(","))
        score += _OPENS * self._opens(text, over)
        score += _SECTION * self._name_section(passage, unit)
        score += _MEANING * self.meaning * _best(self.near.get(passage.id, ()), unit, 0.0)
        score += _READ * _squash(_best(self.read.get(passage.id, ()), unit, -_MAX_LOGIT))
        score += _EXACT * (measure_exact(self.exact, text) if self.exact else 0.0)
        score += _DEFINES * self.defined_in(text)
        score += _ACTS * self._acts(unit)
        return score + (_ASKED_KIND if self.number and any(map(str.isdigit, text)) else 0.0)

    def defined_in(self, text: str) -> bool:
        """Whether a text defines one of the question's options, identifiers or numbers."""
        return any(defines_term(term, text) for term in self.exact)

    def is_said(self, passage: Passage, unit: Unit) -> bool:
        """Whether a unit or its headings have a word of the question."""
        text = " ".join((unit.quote(passage.text), passage.title, passage.heading, *unit.section))
        return self._share(stem_words(text)) > 0

    def _name(self, term: str, over: frozenset[str]) -> float:
        """Return the share of the question that names a term; an option without its values.

        What the term is part of may be said by the page alone: "a watcher in SLTP".
        """
        first = term.split(maxsplit=1)[0] if term.lstrip().startswith("-") else term
        first = first.split("=")[0]
        named = stem_words(first)
        fits = bool(named) and named <= self.words.keys()
        # "WATCH" and "watcher" begin alike, and may be two terms.
        exact = not self.asked or {*split_words(first)} <= {*self.asked}
        return self._share(named | over) * (1.0 if exact else _BY_FORM) if fits else 0.0

    def _opens(self, text: str, over: frozenset[str]) -> bool:
        """Whether a text begins with the term whose meaning is asked for, as its meaning would."""
        rest = self.meant - over
        return bool(rest) and opens_with(rest, text[: sentence_spans(text)[0][1]])

    def _acts(self, unit: Unit) -> bool:
        """Whether a definition begins with what the question asks how to do: "-h: Put mail …"."""
        opening = split_words(unit.opening)[:1] if self.action else []
        return bool(opening) and opening[0][:STEM] == self.action

    def _name_section(self, passage: Passage, unit: Unit) -> float:
        """Return the share of the question that the nearest heading is, if it is about it alone."""
        crumbs = unit.section or passage.heading.split(CRUMB_SEPARATOR)
        named = stem_words(" ".join(asked_words(crumbs[-1])))
        return self._share(named) if named and named <= self.words.keys() else 0.0

    def _share(self, said: frozenset[str]) -> float:
        return sum(weight for word, weight in self.words.items() if word in said)


def rank_units(signs: QuestionSigns, passages: Sequence[Passage]) -> list[ScoredUnit]:
    """Return the units of the best passages, those that fit the question best first."""
    found = [
        ScoredUnit(passage, unit, signs.score(passage, unit) + _RANK / (1 + rank))
        for rank, passage in enumerate(passages)
        if rank < _MAX_PASSAGES or signs.defined_in(passage.text)
        for unit in find_units(passage.text, doc=passage.doc)
        if not signs.by_words or signs.is_said(passage, unit)
    ]
    terms = {term for one in found for term in one.unit.term.split(",")}
    denying = [not signs.denied and denies_other(o.unit.term, o.text, terms) for o in found]
    lowered = (
        replace(one, score=one.score - _DENIED) if denies else one
        for one, denies in zip(found, denying, strict=True)
    )
    return sorted(lowered, key=lambda one: -one.score)


def choose_units(ranked: Iterable[ScoredUnit], most: int) -> list[ScoredUnit]:
    """Return the best units that have no text in common and do not say the same.

    One that has all of a better one takes its place: a definition is quoted as far as it fits.
    """
    chosen: list[ScoredUnit] = []
    for one in ranked:
        if len(chosen) == most:
            break
        within = [at for at, other in enumerate(chosen) if one.covers(other)]
        if within:
            chosen[within[0]] = one
            chosen = [other for at, other in enumerate(chosen) if at not in within[1:]]
        elif not any(one.overlaps(other) or _say_same(one, other) for other in chosen):
            chosen.append(one)
    return chosen


def _say_same(one: ScoredUnit, other: ScoredUnit) -> bool:
    a, b = stem_words(one.text), stem_words(other.text)
    return len(a & b) >= _ALIKE * max(1, min(len(a), len(b)))


def stem_words(text: str) -> frozenset[str]:
    """Return the beginnings of a text's words."""
    return frozenset(word[:STEM] for word in split_words(text))


def opens_with(asked: frozenset[str], quote: str) -> bool:
    """Whether a sentence or a line begins with all of these words."""
    spans = [quote[start:end] for start, end in sentence_spans(quote)]
    for part in (*spans, *re.split(r"[\n|]", quote)):
        words = [word for word in split_words(part[:200]) if word not in _ARTICLES]
        if asked <= stem_words(" ".join(words[: len(asked) + 1])):
            return True
    return False


def weigh_told(
    view: View, question: str, said: str, passages: Sequence[Passage]
) -> tuple[float, float]:
    """Return the weight of the question's words that a text says, and of those that are known.

    Words that no passage has say nothing.
    """
    known = weigh_known(view, question, passages)
    return weigh_said(known, said), sum(known.values())


def weigh_known(view: View, question: str, passages: Sequence[Passage]) -> dict[str, float]:
    """Return the beginnings of those words of a question that passages have, with their rarity."""
    held = stem_words(" ".join(f"{p.title} {p.heading} {p.text}" for p in passages))
    return {word: weight for word, weight in weigh_words(view, question).items() if word in held}


def weigh_said(words: Mapping[str, float], text: str) -> float:
    """Return the weight of the words that a text says."""
    said = stem_words(text)
    return sum(weight for word, weight in words.items() if word in said)


def weigh_words(view: View, question: str) -> dict[str, float]:
    """Return the beginnings of the question's words with their rarity; sums to 1."""
    exact = [word for term in find_exact_terms(question) for word in split_words(term)]
    question = cut_asking_words(question)
    question = blank_particles(question) if is_chinese(question) else question
    words = [*asked_words(question), *exact] or split_words(question)
    count = max(1, view.count("chunk"))
    weights: dict[str, float] = {}
    for word in words:
        rarity = math.log(1 + count / (1 + len(view.bm25.chunks_with(word))))
        weights[word[:STEM]] = max(rarity, weights.get(word[:STEM], 0.0))
    total = sum(weights.values()) or 1.0
    return {word: weight / total for word, weight in weights.items()}


def _best(places: Iterable[tuple[int, int, float]], unit: Unit, default: float) -> float:
    """Return the highest value of a place within a unit."""
    inside = [value for start, end, value in places if unit.start <= start and end <= unit.end]
    return max(inside, default=default)


def _squash(score: float) -> float:
    return max(-_MAX_LOGIT, min(_MAX_LOGIT, score)) / _MAX_LOGIT


async def gather_signs(ctx: Context, found: Found, passages: Sequence[Passage]) -> QuestionSigns:
    """Collect what the units of the best passages are compared with."""
    some = passages[:_MAX_PASSAGES]
    read: dict[str, list[Valued]] = defaultdict(list)
    readings = await read_passages(ctx, ctx.question, some, most=_READINGS * len(some))
    for one, score in zip(readings, await _score_readings(ctx, readings, some), strict=True):
        read[one.passage.id].append((one.start, one.end, score))
    kind = table_for(ctx.question).find_answer_kind(ctx.question)
    return QuestionSigns(
        words=weigh_words(ctx.view, drop_asking_words(ctx.question)),
        meant=_find_meant(ctx.question),
        asked=tuple(split_words(ctx.question)),
        number=kind in ("number", "date"),
        near=await find_cosines(ctx, found, {p.id: p.start for p in some}),
        read=read,
        exact=find_exact_terms(ctx.question),
        action=_find_action(ctx.question),
        denied=asks_denied(ctx.question),
        meaning=ctx.meaning(),
        by_words=is_chinese(ctx.question) or ctx.meaning() < _KNOWN_SCRIPT,
    )


def _find_meant(question: str) -> frozenset[str]:
    """Return the beginnings of the words of a term whose meaning is asked for; none of a value."""
    asks = find_wanted_block(question) == "definition" and not ONE_OF_MANY.search(question)
    words = asked_words(drop_asking_words(strip_courtesy(question))) if asks else []
    return stem_words(" ".join(words)) if len(words) <= _MOST_MEANT else frozenset()


def _find_action(question: str) -> str:
    """Return the beginning of the first word behind a question's asking words, for steps."""
    if find_wanted_block(question) != "steps":
        return ""
    words = (word for word in split_words(cut_asking_words(question)) if len(word) > 1)
    return next((word[:STEM] for word in words if not is_function_word(word)), "")


async def _score_readings(
    ctx: Context, readings: Sequence[Reading], passages: Sequence[Passage]
) -> list[float]:
    """Return how far each span answers, by the scorer where there is one, else by the reader."""
    if not can_judge(ctx):
        return [one.score for one in readings]
    names = find_subject_names(ctx.view, ctx.question)
    texts = [
        say_with_places(one.text, [Place(one.passage, one.start, one.end)], names, passages)
        for one in readings[:_JUDGED]
    ]
    judged = await judge_texts(ctx, ctx.question, texts)
    return [_MAX_LOGIT * one for one in judged] + [-_MAX_LOGIT] * (len(readings) - len(texts))


async def find_cosines(
    ctx: Context, found: Found, starts: Mapping[str, int], most: int = _MAX_PASSAGES
) -> dict[str, list[Valued]]:
    """Return where each fact of the first passages stands, and its cosine with the question."""
    near: dict[str, list[Valued]] = defaultdict(list)
    if ctx.embed is None:
        return near
    links, keys = ctx.view.links("chunk_fact"), ctx.view.keys("fact")
    facts = sorted({int(f) for hit in found.chunks[:most] for f in links.row(hit.at)})
    if not facts:
        return near
    at = np.array(facts, np.int64)
    cosines = ctx.view.cosines("fact", await ctx.vector(), at)
    supports = await ctx.snapshot.supports("fact", keys[at].tolist())
    for key, cosine in zip(keys[at].tolist(), cosines.tolist(), strict=True):
        for place in supports.get(key, ()):
            if place.chunk in starts:
                begin = starts[place.chunk]
                near[place.chunk].append((place.start - begin, place.end - begin, cosine))
    return near
