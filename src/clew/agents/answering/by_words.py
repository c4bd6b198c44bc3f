"""Answer in a language that no reader knows: quote the sentence that has the question's words.

Words are compared by their forms (`clew.text.word_forms`). Where a sentence lacks words of the
question and names something else, the sentences about that are looked at as well: who designed the
weir, then where she was born. A date, a number or a name of the asked kind is named as the answer.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.agents.answering.extractive import (
    QUOTED_NOTE,
    format_quotes,
    note_span,
    overlaps,
)
from clew.agents.answering.write import make_answer, make_refusal, quote_chain
from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.core.messages import CANDIDATE_LABEL, explain_not_written
from clew.agents.core.scratchpad import RecordingRetriever, Retrieval
from clew.agents.core.types import Answer
from clew.agents.reading.measured import (
    answers_other_measure,
    find_measured,
    measures_only_other,
    measures_other,
)
from clew.agents.rules.question_analysis import find_names, find_wanted_block
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.text.name_spans import find_capitalised_runs
from clew.text.names import strip_disambiguation, tokenize
from clew.text.places import quotable_unit
from clew.text.quantities import find_amounts
from clew.text.sentences import sentence_spans
from clew.text.word_forms import (
    asked_terms,
    foreign_function_words,
    measure_terms,
    mentions_form,
    question_language,
)
from clew.types import Citation, Found, Passage

CHAIN = "chain of quotes"
"""The hint that a second quote was looked up by what the first one names."""
_TITLE_SHARE = 0.6  # what a word counts that the title or the opening has
_KIND_BONUS = 0.3  # for a sentence that has a number or a date where one is asked for
_MIN_SCORE = 0.15  # share of the question's words below which a sentence says nothing
_SAID = 0.5  # of a word: below, a sentence lacks it
_MAX_QUOTES = 2
_MAX_NAMES = 3  # that are followed from a sentence
_MIN_GAIN = 0.5  # of the lacking words, that a followed sentence must have
_MIN_CHARS = 6
_UNIT = r"(?:\s?[^\W\d_]+(?:\s[^\W\d_]+)?)?"
_NUMBER = re.compile(rf"(?<![A-Za-zÀ-ӿ\d.,])(?<!\d:)\d+(?:[.,:\s]\d+)*{_UNIT}")
_COMPOUND = re.compile(r"[-‐‑]([^\W\d_]+)")
_ROW = re.compile(r"[^\n:;]{1,60}: [^\n;]*; [^\n:;]{1,60}: ")
_DURATION = re.compile(
    r"\b(?:cuánto tiempo|wie lange|combien de temps|quanto tempo|сколько времени|как долго)\b",
    re.IGNORECASE,
)
_HOW_MANY = re.compile(
    r"\b(?:cuánt[oa]s|wie viele|combien d(?:e |['’])|quant[ie]|сколько)\s*([^\W\d_]{3,})",
    re.IGNORECASE,
)
_COUNT = re.compile(r"(?<![\d.,])(?<!\d\s)(?=\b(\d{1,3}(?:[.,\s]\d{3})+|[^\W_]+) ([^\W\d_]+))")
_TIME_SPAN = re.compile(
    r"([^\W_]+(?:[.,]\d+)?) (segundos?|minutos?|horas?|días?|semanas?|mes(?:es)?|años?|"
    r"sekunden?|minuten?|stunden?|tage?n?|wochen?|monate?n?|jahre?n?|secondes?|minutes?|heures?|"
    r"jours?|semaines?|mois|ans?|années?|секунд\w?|минут\w?|час\w{0,2}|день|дн\w{1,2}|недел\w|"
    r"месяц\w{0,2}|год\w?|лет)\b",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\d{3,4}年(?:\d{1,2}月(?:\d{1,2}日)?)?|(?<!\d)(?:\d{1,2}\.?\s(?:de\s)?[^\W\d_]{3,}\s(?:de\s)?)?"
    r"(?:1\d|20)\d\d(?!\d)|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a passage, and how well it has each of the question's words."""

    passage: Passage
    start: int
    end: int
    own: tuple[float, ...] = ()
    around: tuple[float, ...] = ()
    """In the title and the headings of its passage, too."""
    score: float = 0.0

    @property
    def text(self) -> str:
        """The sentence."""
        return self.passage.text[self.start : self.end]

    def cite(self) -> Citation:
        """Cite the sentence, as wide as the definition or row that holds it."""
        unit = quotable_unit(self.passage.text, self.start, self.end, doc=self.passage.doc)
        start = unit.start if unit.lead is None else min(unit.lead[0], unit.start)
        return make_citation(self.passage, SupportSpan(start, unit.end, 1.0))


async def answer_by_words(
    ctx: Context, retriever: RecordingRetriever, retrieval: Retrieval
) -> Answer:
    """Quote the sentences that have the question's words, and name what is of the asked kind."""
    terms, evidence = asked_terms(ctx.question), retrieval.evidence
    kind = find_kind(ctx.question)
    ranked = rank_sentences(terms, evidence.chunks, kind)
    ranked.sort(key=lambda one: measures_only_other(ctx.question, [one.text]))
    place = find_measured(ctx.question, find_names(ctx.view, ctx.question), evidence.chunks)
    if place is not None:
        measured = note_span(ctx.question, *place)
        answer = quote_chain(ctx, evidence, [measured], measured.answer)
        return replace(answer, support=1.0)
    note = explain_not_written(ctx, QUOTED_NOTE)
    if not ranked:
        return replace(make_refusal(ctx, evidence, "no relevant passage was found"), note=note)
    if kind == "number" and len(_find_counted(ranked[0].text, ctx.question)) == 1:
        chain = [ranked[0]]
    else:
        chain = await _follow(ctx, retriever, retrieval, ranked, terms, kind)
    short = name_answer(chain[-1], kind, ctx.question)
    quotes = [sentence.cite() for sentence in chain]
    if len(chain) == 1:
        others = (one.cite() for one in ranked[1:] if one.score > ranked[0].score / 2)
        quotes += [one for one in others if not any(overlaps(one, quote) for quote in quotes)]
    quotes = list(dict.fromkeys(quotes))[: max(_MAX_QUOTES, len(chain))]
    text = format_quotes(quotes)
    if short:
        text = f"{CANDIDATE_LABEL} {short} [{len(chain)}]\n{text}"
    known = {passage.id: passage for passage in (*evidence.chunks, *(s.passage for s in chain))}
    evidence = replace(evidence, chunks=tuple(known.values()))
    answer = make_answer(ctx, evidence, text, quotes, short, note)
    hints = {CHAIN: 1.0} if len(chain) > 1 else {}
    return replace(answer, kind="words", hints={**answer.hints, **hints})


def read_measure(ctx: Context, answer: Answer) -> Answer:
    """Return the amount that a sentence calls the measure asked for, where the reader read none."""
    names, passages = find_names(ctx.view, ctx.question), answer.evidence.chunks
    measured = bool(find_amounts(answer.candidate)) and not answers_other_measure(
        ctx.question, answer
    )
    place = None if measured or len(names) != 1 else find_measured(ctx.question, names, passages)
    if place is None:
        return answer
    note = note_span(ctx.question, *place)
    found = quote_chain(ctx, answer.evidence, [note], note.answer)
    return replace(found, support=1.0)


def rank_sentences(
    terms: Sequence[str], passages: Sequence[Passage], kind: str = ""
) -> list[Sentence]:
    """Return the sentences that have words of the question, best first; rare words count more."""
    found = list_sentences(terms, passages)
    weights = _weigh(found, len(terms))
    scored = [replace(one, score=_score(one, weights, kind)) for one in found]
    said = (one for one in scored if one.score >= _MIN_SCORE and any(one.own))
    return sorted(said, key=lambda one: -one.score)


def list_sentences(terms: Sequence[str], passages: Sequence[Passage]) -> list[Sentence]:
    """Return the sentences of passages with how well each has the words of a question."""
    found = []
    for passage in passages:
        title = f"{passage.title} {passage.heading}"
        opening = f"{title} {passage.text[: passage.text.find(chr(10)) + 1]}"
        given = measure_terms(terms, opening)
        for start, end in sentence_spans(passage.text):
            text = passage.text[start:end]
            if len(text) >= _MIN_CHARS and not text.startswith("#"):
                own = tuple(measure_terms(terms, text))
                around = tuple(max(a, _TITLE_SHARE * b) for a, b in zip(own, given, strict=True))
                found.append(Sentence(passage, start, end, own, around))
    return found


def _weigh(found: Sequence[Sentence], size: int) -> list[float]:
    """Return the weight of each word of the question by its rarity in the sentences; sums to 1."""
    counts = [sum(one.own[at] >= _SAID for one in found) for at in range(size)]
    rarity = [math.log(2 + len(found) / (1 + count)) for count in counts]
    return [one / sum(rarity) for one in rarity]


def _score(sentence: Sentence, weights: Sequence[float], kind: str) -> float:
    score = sum(w * value for w, value in zip(weights, sentence.around, strict=True))
    return score + (_KIND_BONUS if kind and has_kind(sentence.text, kind) else 0.0)


def drop_dates(text: str) -> str:
    """Return a text without its dates and years."""
    return _DATE.sub(" ", text)


def has_kind(text: str, kind: str) -> bool:
    """Whether a text has a number or a date where one is asked for; names are not told apart."""
    if kind == "number":
        return _NUMBER.search(drop_dates(text)) is not None
    return kind == "date" and _DATE.search(text) is not None


async def _follow(
    ctx: Context,
    retriever: RecordingRetriever,
    retrieval: Retrieval,
    ranked: Sequence[Sentence],
    terms: Sequence[str],
    kind: str,
) -> list[Sentence]:
    """Return the best sentence, or it and the sentence about what it names that has the rest."""
    best = ranked[0]
    lacking = [t for t, value in zip(terms, best.around, strict=True) if value < _SAID]
    if not lacking:
        return [best]
    for first in [one for one in ranked[:_MAX_NAMES] if one.score >= best.score / 2]:
        rest = [t for t, value in zip(terms, first.around, strict=True) if value < _SAID]
        titles = [one.title for one in retrieval.evidence.chunks]
        titles += [one.title for one in (await retriever(ctx, first.text)).evidence.chunks]
        for name in await _find_names(ctx, retrieval.found, first, titles):
            more = await retriever(ctx, " ".join((name, *rest)))
            pages = [p for p in more.evidence.chunks if mentions_form(name, _opening_of(p))]
            along = [s for s in rank_sentences(rest, pages, kind) if s.text != first.text]
            if along and sum(value >= _SAID for value in along[0].own) >= _MIN_GAIN * len(rest):
                return [first, along[0]]
    return [best]


def _opening_of(passage: Passage) -> str:
    return f"{passage.title} {passage.text[:200]}"


async def _find_names(
    ctx: Context, found: Found, sentence: Sentence, titles: Sequence[str]
) -> list[str]:
    """Return the names in a sentence that the question does not have: those that have a page first.

    Then by case where the script has it; else the entities of its passage.
    """
    text = sentence.text
    bare = (strip_disambiguation(title) for title in titles if title != sentence.passage.title)
    names = [title for title in bare if title and mentions_form(title, text)]
    if any(map(str.isupper, text)):
        names += name_capitalised(text)
    else:
        names += await _find_entities(ctx, found, sentence)
    new = (name for name in names if not mentions_form(name, ctx.question))
    return list(dict.fromkeys(new))[:_MAX_NAMES]


async def _find_entities(ctx: Context, found: Found, sentence: Sentence) -> list[str]:
    """Return the entities of a sentence's passage that it names, the longest first."""
    chunk_keys = ctx.view.keys("chunk")
    chunks = await ctx.snapshot.chunks([int(chunk_keys[hit.at]) for hit in found.chunks])
    at = [h.at for h in found.chunks if chunks[int(chunk_keys[h.at])].id == sentence.passage.id]
    links, keys = ctx.view.links("chunk_entity"), ctx.view.keys("entity")
    rows = [int(keys[e]) for chunk in at for e in links.row(chunk)]
    known = [one.name for one in (await ctx.snapshot.entities(rows)).values()]
    said = [n for n in known if n in sentence.text and not any(map(str.isdigit, n))]
    return sorted((n for n in said if not mentions_form(n, ctx.question)), key=len, reverse=True)


def name_capitalised(text: str) -> list[str]:
    """Return the capitalised runs of a sentence, without function words at its beginning."""
    t, closed = tokenize(text), foreign_function_words()
    found = []
    for first, last in find_capitalised_runs(text, t, {0}):
        while first < last and t.keys[first] in closed:
            first += 1
        if first < last and not (first == 0 and last == 1):
            found.append(text[t.starts[first] : t.ends[last - 1]])
    return found


def find_kind(question: str) -> str:
    """Return the kind of answer a question asks for; "" where it wants something described."""
    wanted = find_wanted_block(question) == "definition"
    return "" if wanted else table_for(question).find_answer_kind(question)


def name_answer(sentence: Sentence, kind: str, question: str) -> str:
    """Return what a sentence has of the asked kind, if that is clear, else ""."""
    text = sentence.text
    if _ROW.search(text):  # which of several rows is meant is for code to find
        return ""
    if kind == "date":
        dates = list(dict.fromkeys(m[0] for m in _DATE.finditer(text)))
        return dates[0] if len(dates) == 1 else ""
    if kind == "number":
        if counted := _find_counted(text, question):
            return counted[0] if len(counted) == 1 else ""
        rest = drop_dates(text)
        found = [m for m in _NUMBER.finditer(rest) if not _is_part(rest, m, question)]
        found = [m for m in found if not measures_other(question, rest, m.start())]
        numbers = [_trim_unit(m[0], question) for m in found]
        numbers = [n for n in numbers if n.split()[0] not in asked_terms(question)]
        numbers = [n for n in numbers if not _counts_other(n, question)]
        return numbers[0] if len(numbers) == 1 else ""
    if kind in ("person", "place") and any(map(str.isupper, text)):
        new = [n for n in name_capitalised(text) if not _is_asked(n, question, sentence.passage)]
        return new[0] if len(new) == 1 else ""
    return ""


def _find_counted(text: str, question: str) -> list[str]:
    """Return the amounts of what a question counts, or of time where it asks how long.

    A number may be written in words: "dieciocho días a 24 grados" is no 24 days.
    """
    if _DURATION.search(question):
        found = _TIME_SPAN.finditer(text)
    elif asked := _HOW_MANY.search(question):
        pairs = _COUNT.finditer(text)
        found = (pair for pair in pairs if mentions_form(asked[1], pair[2]))
    else:
        return []
    closed = foreign_function_words()
    counts = (pair for pair in found if pair[1].casefold() not in closed)
    return [" ".join(p.groups()) for p in counts if not mentions_form(p[1], question)]


def _is_part(text: str, number: re.Match[str], question: str) -> bool:
    """Whether a number is a part of a compound that the question lacks: "24-Stunden-Format"."""
    compound = _COMPOUND.match(text, number.end())
    return compound is not None and not mentions_form(compound[1], question)


def _counts_other(number: str, question: str) -> bool:
    """Whether a number has another unit than the one that a question asks for."""
    asked, words = _HOW_MANY.search(question), number.split()[1:]
    named = [word for word in words if any(map(str.isalpha, word))]
    if asked is None or not named:
        return False
    return not any(mentions_form(asked[1], word) for word in named)


def _is_asked(name: str, question: str, passage: Passage) -> bool:
    """Whether a name stands in the question, or is what the page is about."""
    title = strip_disambiguation(passage.title)
    return mentions_form(name, question) or (bool(title) and mentions_form(name, title))


def _trim_unit(number: str, question: str) -> str:
    """Return a number and the words of its unit, without the words that follow it."""
    head, *words = number.split()
    closed = foreign_function_words()
    if question_language(question) == "ja":
        return re.split("[\u3041-\u309f。、]", number)[0]
    while words and words[0][0].isdigit():
        head = f"{head} {words.pop(0)}"
    kept = []
    for word in words:
        if word.casefold() in closed:
            break
        kept.append(word)
    return " ".join((head, *kept))
