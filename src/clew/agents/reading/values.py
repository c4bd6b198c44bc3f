"""Whether a value that is compared was read where it is said of the thing, by what was asked.

"N joined in 2011" has no date of birth, "(1961)" behind a film no length, and what a sentence says
of somebody else is no value of N, though it stands on N's page.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from clew.agents.citing.clauses import Clause, find_clause, find_verbs, is_of, titles_name
from clew.agents.citing.entailment import to_stem
from clew.agents.citing.support import mentions_name
from clew.agents.reading.measured import measures_other
from clew.agents.reading.spans import Reading, asked_words
from clew.agents.rules.table import RuleTable, table_for
from clew.text.countries import find_countries
from clew.text.dates import parse_date
from clew.text.quantities import Quantity, find_amounts, is_people, parse_quantity
from clew.text.sentences import sentence_spans
from clew.text.unicode import split_words

_BORN, _DIED = to_stem("born"), to_stem("died")
# Words for the first and the last day of what lasts.
_BEGINNING = frozenset(map(to_stem, "start begin began begun commence effective since".split()))
_ENDING = frozenset(
    map(to_stem, "end ends ended ending expire finish terminate lapse until".split())
)
_DATE_CHARS = 20  # of a date, at most
_PEOPLE = "people"  # the noun of all numbers of people
_COUNTRY = to_stem("nationality")
_LOCATED = to_stem("located")
_BEING = frozenset("is are was were lies stands".split())
_OF_ITS = re.compile(r"\W*(?:its|his|her|their)\s+(?P<part>\w.*)", re.IGNORECASE)
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


COUNTED = frozenset("two three four five six seven eight nine ten eleven twelve".split())
"""Numbers that are mostly written as words."""
_SHORT = 3  # words beside the names of a question that asks one thing
_PART = re.compile(r"(?:(?!\s(?:and|but|while)\s|[;,.]\s).)+(?:\sand|\sbut|\swhile|[;,.]|$)?", re.S)
_AMOUNT = re.compile(
    rf"(?:[$€£]?\d+(?:[.,]\d+)*|\b(?:one|{'|'.join(sorted(COUNTED))})\b)"
    r"(?:\s+(?:thousand|million|billion))?(?:\s+[a-z]{3,})?"
)
_YEAR = re.compile(r"\b\d{4}\b")
_OTHER = re.compile(r"\b[A-Z]\w+|\b\d{4}\b")


def states_value(names: Sequence[str], reading: Reading, *, of_itself: bool) -> bool:
    """Whether a reading's own clause says the value of the names, as what is asked for.

    With `of_itself` off the value is of something of theirs ("the director of N"), which a sentence
    need not mention.
    """
    start, sentence = _find_sentence(reading)
    clause = find_clause(sentence, reading.start - start)
    if measures_other(reading.question, sentence, reading.start - start):
        return False
    if not _states_relation(names, reading, sentence, clause, reading.start - start):
        return False
    if not of_itself or not names or not _asks_value(reading.question):
        return True
    page = reading.passage
    opens = clause.in_brackets and any(titles_name(page, name) for name in names)
    own = _find_part(clause, reading.question)  # "Its dam is …", where the dam is asked about
    clause = replace(clause, subject=own) if own else clause
    return opens or any(is_of(name, page, start, sentence, clause) for name in names)


def _find_part(clause: Clause, question: str) -> str:
    """Return the subject of a clause about a part that a question names, without its "its"."""
    found = _OF_ITS.match(clause.subject)
    words = asked_words(found["part"]) if found else []
    said = words and all(word in split_words(question) for word in words)
    return found["part"] if found and said else ""


def _asks_value(question: str) -> bool:
    """Whether a question asks for what code compares: a date, a number, a size, a place."""
    asked = {to_stem(word) for word in asked_words(question)}
    kind = table_for(question).find_answer_kind(question)
    return kind in ("date", "number", "place") or bool(asked & _DIMENSIONS.keys())


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
    if kind == "place":
        return _states_place(said)
    told = {to_stem(word) for word in split_words(said)}
    if kind == "number" or asked & _DIMENSIONS.keys():
        found = _read_amount(reading, sentence, at)
        people = found is not None and found.noun == _PEOPLE and any(map(is_people, words))
        return people or _states_number(asked, told, found)
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


def _states_place(said: str) -> bool:
    """Whether a clause says where its subject is or comes from, not where it did something.

    "N won a medal in A" does not say that N is of A; "N was shot in A" and "(born in A)" do.
    """
    verbs = find_verbs(said)
    return not verbs or any(
        verb in _BEING or to_stem(verb) in (_BORN, _DIED, _LOCATED) for verb in verbs
    )


def tells_other_end(question: str, sentence: str, at: int) -> bool:
    """Whether a date is the other end than a question asks for: of a life, in brackets, or of what
    begins and ends, by the last word before it that says which.
    """
    words = {to_stem(word) for word in asked_words(question)}
    wanted = [some for some in (_BEGINNING, _ENDING) if some & words]
    if len(wanted) == 1 and at >= 0 and parse_date(sentence[at : at + _DATE_CHARS]) is not None:
        told = [to_stem(word) for word in split_words(sentence[:at])]
        side = [word for word in told if word in _BEGINNING | _ENDING][-1:]
        return bool(side) and side[0] not in wanted[0]
    asked = {_BORN, _DIED} & words
    if len(asked) != 1 or at < 0:
        return False
    return _find_life(sentence, find_clause(sentence, at), at) in {_BORN, _DIED} - asked


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


def _read_amount(reading: Reading, sentence: str, at: int) -> Quantity | None:
    """Return the amount that is read, with the unit or noun behind it in its sentence."""
    found = parse_quantity(reading.text)
    if found is None or found.dimension or found.noun:
        return found
    last = at + len(reading.text)
    return next((one for a, b, one in find_amounts(sentence) if at <= a < last), found)


def _states_number(asked: set[str], told: set[str], found: Quantity | None) -> bool:
    """Whether a number measures what is asked for, or stands beside the word for it."""
    if found is None:
        return False
    fitting = [one for word in asked for one in _DIMENSIONS.get(word, ())]
    if found.dimension in fitting:
        return True
    said = {stem.rstrip("s") for stem in told}  # "hold" and "holds"
    if {stem.rstrip("s") for stem in asked} & said or to_stem(found.noun) in asked:
        return True
    return bool(found.noun and not fitting)


def is_astray(question: str, names: Sequence[str], answer: str, reading: Reading) -> bool:
    """Whether a sentence speaks of another thing than a short question asks about.

    It is about somebody else, sets the answer beside the name asked about ("A and B" for "Who made
    B?"), or has only the lesser part of what is asked for: a chief executive is no chief financial
    officer.
    """
    named = {word for name in names for word in split_words(name)}
    words = [word for word in asked_words(question) if word not in named]
    if not names or not words or len(words) > _SHORT:
        return False
    start, sentence = _find_sentence(reading)
    clause = find_clause(sentence, reading.start - start)
    asked = {to_stem(word) for word in words}
    kind = table_for(question).find_answer_kind(question)
    if kind == "person" and any(_stand_together(answer, name, sentence) for name in names):
        return True
    if len(asked) == 1:
        page = reading.passage
        named_here = any(mentions_name(name, sentence) for name in names)
        return not named_here and not any(is_of(n, page, start, sentence, clause) for n in names)
    told = {to_stem(word) for word in split_words(f"{reading.passage.title} {sentence}")}
    phrase = re.search(r"\s+".join(map(re.escape, words)), question, re.IGNORECASE) is not None
    return phrase and 0 < len(asked & told) <= len(asked - told)


def _stand_together(one: str, other: str, sentence: str) -> bool:
    """Whether two names stand in one list, in either order."""
    if any(name.lower() not in sentence.lower() for name in (one, other)):
        return False
    joint = r"\s*(?:\([^()]*\)\s*)?(?:,|,?\s*\b(?:and|or)\b|&)\s*(?:the\s+)?"
    pairs = ((one, other), (other, one))
    forms = (f"{re.escape(a)}{joint}{re.escape(b)}" for a, b in pairs)
    return any(re.search(form, sentence, re.IGNORECASE) for form in forms)


def move_to_condition(names: Sequence[str], reading: Reading) -> Reading:
    """Return the amount beside the name or year asked about, where one is read beside another.

    "65 in A and 50 in B": the value for B is the second.
    """
    first, last = reading.sentence()
    text = reading.passage.text[first:last]
    parts = [(m.start() + first, m.end() + first) for m in _PART.finditer(text)]
    years = _YEAR.findall(reading.question)
    asked = [name for name in (*names, *years) if not titles_name(reading.passage, name)]
    holding = [part for part in parts if _has_any(asked, reading, part)]
    here = [part for part in parts if part[0] <= reading.start < part[1]]
    qualified = [] if holding else _find_qualified(names, reading, parts)
    holding = holding or qualified
    is_day = _YEAR.sub("", reading.text).strip() != "" and parse_date(reading.text) is not None
    amount = None if is_day else parse_quantity(reading.text)
    if amount is None or len(holding) != 1 or not here or here[0] == holding[0]:
        return reading
    beside = reading.passage.text[reading.start : here[0][1]].lstrip("0123456789")
    before = reading.passage.text[here[0][0] : reading.start]
    if not (qualified or _OTHER.search(beside) or (years and _YEAR.search(before))):
        return reading  # nothing says that it is the value of another one
    own = _AMOUNT.match(reading.passage.text, reading.start)
    whole = parse_quantity(own[0]) if own else amount  # "31 goats", of which "31" is read
    for found in _AMOUNT.finditer(reading.passage.text, *holding[0]):
        there = parse_quantity(found[0])
        same = there is not None and there.dimension == amount.dimension
        counted = {one.noun for one in (there, amount, whole) if one and one.noun}
        if qualified and len(counted) > 1:
            continue  # of two things
        if found[0] not in asked and same:
            return replace(reading, text=found[0], start=found.start(), end=found.end())
    return reading


def _find_qualified(
    names: Sequence[str], reading: Reading, parts: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the part of a sentence that has a word of the question which the others lack.

    "45 euros, or 60 euros abroad": the value abroad is the second. The part that the reading is in
    needs no such word where its own are those that the others leave out.
    """
    named = {word for name in names for word in split_words(name)}
    asked = {to_stem(word) for word in asked_words(reading.question) if word not in named}
    said = [
        asked & {to_stem(word) for word in split_words(reading.passage.text[slice(*part)])}
        for part in parts
    ]
    last = [at for at, part in enumerate(parts) if part[0] <= reading.start < part[1]]
    own = said[last[0]] if last else asked
    return [
        part
        for at, part in enumerate(parts)
        if at not in last
        and said[at] - own
        and (at > (last[0] if last else at) or len(said[at]) > len(own))
    ][:1]


def _has_any(names: Sequence[str], reading: Reading, part: tuple[int, int]) -> bool:
    return any(mentions_name(name, reading.passage.text[slice(*part)]) for name in names)
