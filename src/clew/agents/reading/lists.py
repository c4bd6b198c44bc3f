"""Answers of several items: which questions want them, and what stands in one list with a span.

A reader names one span. Where a question asks for several things ("Which films …?", "Who are …?"),
the names that stand beside the span in the same list belong to the answer, and so does what other
sentences say as well as the first one.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from clew.agents.citing.support import mentions_name
from clew.agents.core.plan import Plan
from clew.agents.core.scratchpad import RecordingRetriever
from clew.agents.reading.answer import RankedCandidate
from clew.agents.reading.choose import fits_kind, gather_candidates, measure_coverage
from clew.agents.reading.spans import (
    Reading,
    answer_key,
    begins_with_verb,
    read_passages,
    same_answer,
)
from clew.agents.rules.asked_noun import find_asked_phrase, is_verb_behind
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.retrieve.asked_form import read_form
from clew.retrieve.question import strip_courtesy

_PLURAL = re.compile(
    r"\W*(?:(?:in|of|on|at|for|by|to|from|with)\s+)?(?:what|which)\s+(?:(?:two|three|four|five|other|"
    r"\w+(?:an|ese|ish|al|ic))\s+)?(?P<noun>[a-z]+)\b",
    re.IGNORECASE,
)
_SINGULAR_ENDS = ("ss", "us", "is", "series", "species", "news")
_AGENT = re.compile(r"\W*(?:who|whom)\s+(?!is\b|was\b|are\b|were\b|does\b|did\b)[a-z]+ed\b", re.I)
_CAPITAL = r"[^\W\d_a-z][\w’'.-]*(?<![.’'-])"
_SMALL_WORD = r"(?:of|the|de|da|van|von|der|la|le|du|di|al)"
_NAME = rf"(?:{_CAPITAL}(?:\.?\s+(?:{_SMALL_WORD}\s+)*{_CAPITAL})*|\d[\d.,]*\d)"
_BRACKETS = r"(?:\s*\([^()]{1,80}\))?"
_JOINT = r"\s*(?:,\s*(?:and\b|or\b)?|;|\b(?:and|or)\b|\bas\s+well\s+as\b|&)\s*"
# "and her brother N": what is said of the next one before its name.
_NO_VERB = r"(?!\w+ed\b|is\b|are\b|was\b|were\b)[a-z][\w-]*\s+"
_DESCRIPTION = rf"(?:(?:the|an?|his|her|their|its)\s+(?:{_NO_VERB}){{0,2}})?"
_NEXT = re.compile(rf"{_BRACKETS}{_JOINT}{_DESCRIPTION}(?P<item>{_NAME})")
_LIST = re.compile(rf"{_NAME}(?:{_BRACKETS}{_JOINT}{_DESCRIPTION}{_NAME})+")
_SMALL = re.compile(
    r"(?:,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+)(?P<item>[\w-]+(?:\s+[\w-]+){0,2}?)"
    r"(?=,|\.|;|$|\s+(?:and|or)\s)"
)
_LAST_JOINT = re.compile(r"\b(?:and|or|as\s+well\s+as)\b|&")
COUNTS = {
    word: number
    for number, word in enumerate("one two three four five six seven eight nine ten".split(), 1)
}
"""Numbers in words, which say how many items a list has."""
_NOTES = re.compile(r"\s*(?:\([^()]*\)|\[[^\[\]]*\])")
_BETWEEN = re.compile(r"\s*(?:[,;]\s*(?:and\s+|or\s+)?|\s(?:and|or)\s)\s*")
_LEAST_ITEMS = 2
_MIN_OTHER = 0.8  # the reader's probability of an answer that another sentence adds
_MAX_OTHERS = 7
_WIDE = 40  # passages that are read for a list of which each says one item
_LEAST_PATTERN = 3  # words that the sentences of such passages have in common
_MIN_LIKE = 0.3  # the reader's probability in such a sentence
_MAX_WORDS = 6  # of an item that another sentence adds


def wants_several(question: str) -> bool:
    """Whether a question asks for all of several things."""
    asked = strip_courtesy(question).lstrip()
    table = table_for(question)
    if table.several.match(asked):
        return True
    found = _PLURAL.match(asked)
    noun = (find_asked_phrase(asked).head or found["noun"].lower()) if found else ""
    plural = noun.endswith("s") and not noun.endswith(_SINGULAR_ENDS)
    return plural and not table.auxiliaries.fullmatch(noun) and not is_verb_behind(asked, noun)


def may_be_several(question: str) -> bool:
    """Whether a question does not say how many it asks for: "Who founded N?"."""
    return wants_several(question) or _AGENT.match(strip_courtesy(question)) is not None


def is_count(question: str) -> bool:
    """Whether a question asks how many things there are."""
    form = read_form(strip_courtesy(question), ())
    return form.wants == "count" and len(form.questions) > 1


def open_count(question: str) -> str:
    """Return a question for a number as one for the things that are counted."""
    return read_form(strip_courtesy(question), ()).questions[-1]


def find_announced(sentence: str) -> list[str]:
    """Return the items that a sentence lists behind a colon, in order; none if it lists none."""
    lead, _, rest = _NOTES.sub("", sentence).partition(":")
    items = [one.strip(" \t\n.;,-") for one in _BETWEEN.split(rest)]
    items = [" ".join(one.split()) for one in items if one]
    short = all(len(one.split()) <= _MAX_WORDS for one in items)
    said = [COUNTS[word] for word in lead.lower().split() if word in COUNTS]
    return items if len(items) > 1 and short and (not said or said[-1] == len(items)) else []


def is_enumeration(question: str, short: str, quotes: Sequence[str]) -> bool:
    """Whether the items of an answer stand in one list of a quote, as many as are asked for."""
    items = [" ".join(one.split()) for one in _BETWEEN.split(short) if one.strip()]
    asked = [COUNTS[word] for word in question.lower().split() if word in COUNTS]
    if len(items) < _LEAST_ITEMS or (asked and asked[0] != len(items)):
        return False
    between = r"[\s,;]*(?:\band\b|\bor\b|&|\bas\s+well\s+as\b)?\s*(?:the\s+|an?\s+|-\s+)?"
    whole = between.join(re.escape(one).replace(r"\ ", r"\s+") for one in items)
    return any(re.search(whole, _NOTES.sub("", quote), re.IGNORECASE) for quote in quotes)


def find_list(text: str, start: int, end: int) -> list[str]:
    """Return the items of the list in a sentence that holds a span; the span alone if none does."""
    found = next((m for m in _LIST.finditer(text) if m.start() < end and start < m.end()), None)
    if found is not None and _LAST_JOINT.search(found[0]):
        first = re.compile(_NAME).match(text, found.start())
        items, at = [first[0]] if first else [], first.end() if first else end
        while at < found.end() and (more := _NEXT.match(text, at)):
            items.append(more["item"])
            at = more.end()
        return items
    items, at = [text[start:end]], end
    while (more := _SMALL.match(text, at)) is not None:
        if text[start].isupper() and begins_with_verb(text[more.start("item") :]):
            break  # "Vera Tasch and opened in 1932" goes on with another statement
        items.append(more["item"])
        at = more.end()
    joined = len(items) > 1 and _LAST_JOINT.search(text[end:at])
    return items if joined else items[:1]


def list_items(reading: Reading) -> list[str]:
    """Return what stands in one list with a reading's span, in the order of the text."""
    first, last = reading.sentence()
    sentence = reading.passage.text[first:last]
    if announced := find_announced(sentence):
        return announced
    items = find_list(sentence, reading.start - first, reading.end - first)
    key = answer_key(reading.text)
    own = [one for one in items if answer_key(one) in key or key in answer_key(one)]
    return items if own else [reading.text]


def find_others(
    question: str, ranked: Sequence[RankedCandidate], known: Sequence[str]
) -> list[RankedCandidate]:
    """Return the other candidates that their sentences say as well as the best one's."""
    best = ranked[0]
    first, last = best.candidate.readings[-1].sentence()
    if find_announced(best.candidate.readings[-1].passage.text[first:last]):
        return []  # the list is whole
    told = _measure_told(question, best)
    keys = {answer_key(one) for one in known}
    found = []
    for one in ranked[1:]:
        direct = one.candidate.direct
        new = answer_key(one.candidate.text) not in keys and not one.signals["repeats"]
        # "Go and PHP" of "Python, Go and PHP" is a piece of the list, and a heading is no item.
        pieces = {answer_key(piece) for piece in _BETWEEN.split(one.candidate.text) if piece}
        new = new and not pieces <= keys and not is_heading(one.candidate.readings[-1])
        # One sentence gives one list: "The N makes A, B and C" does not list N.
        new = new and not (len(known) > 1 and _place(one) == _place(best))
        long = len(one.candidate.text.split()) > _MAX_WORDS
        counts = one.candidate.text.lower() in COUNTS  # says how many, not which
        if direct is None or not new or long or counts or direct.probability < _MIN_OTHER:
            continue
        if fits_kind(question, direct.text) >= 0 and _measure_told(question, one) >= told:
            found.append(one)
    return found[:_MAX_OTHERS]


async def find_like(
    ctx: Context, retriever: RecordingRetriever, ranked: Sequence[RankedCandidate]
) -> list[RankedCandidate]:
    """Return what further passages say in a sentence of the same words as the best one's.

    Pages of one kind say one item each: "The race of 2004 was sponsored by N". None where the
    question does not want several, or no other sentence that was read is like the best one's.
    """
    if not ranked or not wants_several(ctx.question):
        return []
    pattern, place = _find_pattern(ranked[0].candidate.readings[-1]), _place(ranked[0])
    others = (one for one in ranked[1:] if _place(one) != place)
    alike = any(_find_pattern(one.candidate.readings[-1]) == pattern for one in others)
    if len(pattern) < _LEAST_PATTERN or not alike:
        return []
    wide = await replace(retriever, top_k=_WIDE)(ctx, ctx.question)
    passages = wide.evidence.chunks
    readings = await read_passages(ctx, ctx.question, passages, most=2 * len(passages))
    like = [
        one
        for one in readings
        if one.probability >= _MIN_LIKE
        and _find_pattern(one) == pattern
        and len(one.text.split()) <= _MAX_WORDS
    ]
    found = [
        RankedCandidate(one, {}, one.readings[-1].probability)
        for one in gather_candidates(like, [], [])
    ]
    told = _measure_told(ctx.question, ranked[0])  # a page about another race says less of it
    return [one for one in found if _measure_told(ctx.question, one) >= told]


def _find_pattern(reading: Reading) -> frozenset[str]:
    """Return the words of a reading's sentence beside what is read, without names and numbers."""
    first, last = reading.sentence()
    text = reading.passage.text
    around = f"{text[first : reading.start]} {text[reading.end : last]}"
    return frozenset(word for word in around.split() if word.isalpha() and word.islower())


def _place(one: RankedCandidate) -> tuple[str, int, int]:
    """Return the passage and the sentence in which a candidate is read."""
    reading = one.candidate.readings[-1]
    return (reading.passage.id, *reading.sentence())


def is_heading(reading: Reading) -> bool:
    """Whether a span stands in a heading, which lists nothing."""
    first, _ = reading.sentence()
    return reading.passage.text[first : reading.start].lstrip().startswith("#")


def _measure_told(question: str, one: RankedCandidate) -> float:
    reading = one.candidate.readings[-1]
    return measure_coverage(question, f"{reading.cite().quote} {reading.passage.title}")


def join_items(items: Sequence[str]) -> str:
    """Write items as one answer: "A, B and C"."""
    found: dict[str, str] = {}
    for one in items:
        found.setdefault(answer_key(one), one)
    different = list(found.values())
    return " and ".join(filter(None, (", ".join(different[:-1]), different[-1])))


def prefer_options(plan: Plan, ranked: list[RankedCandidate]) -> list[RankedCandidate]:
    """Put the candidates first that are among the things a question lets choose from.

    Where none is, the value that was read belongs to one of them: that one is named.
    """
    join = plan.join
    chooses = join is not None and not join.yes_no and join.how not in ("same", "both")
    options = join.options if join is not None and chooses else ()
    among = [r for r in ranked if any(same_answer(r.candidate.text, o) for o in options)]
    for one in () if among else ranked:
        passages = [reading.passage for reading in one.candidate.readings]
        texts = [f"{passage.title} {passage.text}" for passage in passages]
        said = [o for o in options if any(mentions_name(o, text) for text in texts)]
        if len(said) == 1:
            among = [replace(one, candidate=replace(one.candidate, text=said[0]))]
            break
    return [*among, *(one for one in ranked if one not in among)]
