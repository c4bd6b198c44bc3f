"""Whether a value that is compared was read where it is said of the thing, by what was asked.

"N joined in 2011" has no date of birth, "(1961)" behind a film no length, and what a sentence says
of somebody else is no value of N, though it stands on N's page.
"""

import re
from collections.abc import Sequence

from clew.agents.citing.clauses import Clause, find_clause, is_of, titles_name
from clew.agents.citing.entailment import to_stem
from clew.agents.reading.spans import Reading, asked_words
from clew.agents.rules.table import RuleTable, table_for
from clew.text.countries import find_countries
from clew.text.dates import parse_date
from clew.text.quantities import parse_quantity
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words

_BORN, _DIED = to_stem("born"), to_stem("died")
_COUNTRY = to_stem("nationality")
_RANGE = re.compile(r"\d{3,4}\D{0,40}?\s*[-–—]\s*|[-–—]\s*(?=\D{0,40}?\d{3,4})")
_BIRTH_MARK = re.compile(r"\b(?:born|b\.|née?)", re.IGNORECASE)
_DEATH_MARK = re.compile(r"\b(?:died|d\.)|†", re.IGNORECASE)
_DEFINED = re.compile(r"\b(?:is|was)\s+(?:an?|the)\b", re.IGNORECASE)
_EVENT_VERB = re.compile(r".*(?:ed|built|written|begun|began|came out)", re.IGNORECASE)
# What the number that answers an adjective measures.
_DIMENSIONS = {
    "long": ("length", "time"),
    "tall": ("length",),
    "high": ("length",),
    "deep": ("length",),
    "heavy": ("mass",),
    "area": ("area",),
    "large": ("area",),
}


def states_value(names: Sequence[str], reading: Reading, *, of_itself: bool) -> bool:
    """Whether a reading's own clause says the value of the names, as what is asked for.

    With `of_itself` off the value is of something of theirs ("the director of N"), which a sentence
    need not mention.
    """
    start, sentence = _find_sentence(reading)
    clause = find_clause(sentence, reading.start - start)
    if not _states_relation(names, reading, sentence, clause, reading.start - start):
        return False
    if not of_itself or not names:
        return True
    page = reading.passage
    opens = clause.in_brackets and any(titles_name(page, name) for name in names)
    return opens or any(is_of(name, page, start, sentence, clause) for name in names)


def _find_sentence(reading: Reading) -> tuple[int, str]:
    """Return the sentence in which a reading begins, and where it begins.

    What a stop cuts within brackets ("(born 1913 – d. 2003)") belongs together.
    """
    text = reading.passage.text
    spans = sentence_spans(text)
    at = max((n for n, span in enumerate(spans) if span[0] <= reading.start), default=0)
    first = last = at
    opens = text.rfind("(", 0, reading.start)
    closed = text.find(")", max(opens, 0))
    if opens >= 0 and reading.start < closed:
        first = max((n for n, span in enumerate(spans) if span[0] <= opens), default=0)
        last = max(n for n, span in enumerate(spans) if span[0] <= closed)
    start, end = (spans[first][0], spans[last][1]) if spans else (0, len(text))
    return start, text[start:end]


def _states_relation(
    names: Sequence[str], reading: Reading, sentence: str, clause: Clause, at: int
) -> bool:
    """Whether the clause around a value has what is asked for, in a word or by its form."""
    named = {word for name in names for word in split_words(name)}
    words = [word for word in asked_words(reading.question) if word not in named]
    asked = {to_stem(word) for word in words}
    said = sentence[clause.start : clause.end]
    table = table_for(reading.question)
    kind = table.find_answer_kind(reading.question)
    if kind == "date":
        return _states_date(asked, words, sentence, clause, at, table)
    told = {to_stem(word) for word in split_words(said)}
    if kind == "number" or asked & _DIMENSIONS.keys():
        return _states_number(asked, told, reading.text)
    if asked == {_COUNTRY}:
        return bool(find_countries(split_words(reading.text))[0])
    return True


def _states_date(
    asked: set[str],
    words: Sequence[str],
    sentence: str,
    clause: Clause,
    at: int,
    table: RuleTable,
) -> bool:
    """Whether a date is that of the event asked for: a life's dates stand in brackets."""
    said = sentence[clause.start : clause.end]
    if asked & {_BORN, _DIED} and (life := _find_life(sentence, clause, at)):
        return life in asked
    told = {to_stem(word) for word in split_words(said)}
    if not asked or asked & told:
        return True
    if asked & {_BORN, _DIED}:
        return False
    if clause.in_brackets:
        return parse_date(said) is not None and not _RANGE.search(said)
    events = [match for word in words for _, match in table.events if match.search(word)]
    found = (one for event in events for one in event.findall(said))
    if any(_EVENT_VERB.fullmatch(one) for one in found):
        return True
    return to_stem("released") in asked and _DEFINED.search(said) is not None


def _find_life(sentence: str, clause: Clause, at: int) -> str:
    """Return which end of a life a date in brackets is, "" where it is none."""
    said = sentence[clause.start : clause.end]
    place = at - clause.start
    if not clause.in_brackets:
        return ""
    if _RANGE.search(said):
        dash = max(said.rfind(mark, 0, place) for mark in "-–—")
        return _DIED if dash >= 0 and re.search(r"\d{3,4}", said[:dash]) else _BORN
    if _DEATH_MARK.search(said[:place]):
        return _DIED
    return _BORN if _BIRTH_MARK.search(said[:place]) else "neither"


def _states_number(asked: set[str], told: set[str], text: str) -> bool:
    """Whether a number measures what is asked for, or stands beside the word for it."""
    found = parse_quantity(text)
    if found is None:
        return False
    fitting = [one for word in asked for one in _DIMENSIONS.get(word, ())]
    if found.dimension in fitting:
        return True
    return bool(asked & told) or to_stem(found.noun) in asked or bool(found.noun and not fitting)
