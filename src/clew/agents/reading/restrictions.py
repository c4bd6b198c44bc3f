"""Words of a question that restrict what it asks about, and whether a sentence says another one.

The notice period after probation is not the one during it, a second map no first one, and what a
full-time employee gets is not what a part-time one does. A sentence with a rival in the place of
such a word, or with the word in another clause than the answer, contradicts the question.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from clew.agents.citing.entailment import to_stem
from clew.agents.reading.spans import asked_words
from clew.agents.rules.table import RuleTable, table_for
from clew.text.unicode import split_words
from clew.text.word_forms import compare_words

FORM = 0.9
"""From which two words are forms of one."""
_PART = re.compile(r";\s|\s(?:but|while|whereas)\s")
_WORD = re.compile(r"[^\W_]+(?:[-’'][^\W_]+)*")
_GOVERNED = 3  # words of content behind a preposition that say what it is about
_NEAR = 4  # words behind an ordinal or a preposition in which its noun stands
_SHORT = 6  # words beside the names of a question that one or two sentences say whole
_OWNED = re.compile(r"_['’]s?\s+(?P<noun>[^\W\d_]+)")
_COUNTS = re.compile(r"\bhow\s+(?:many|much)\s+(?P<noun>[a-z-]+)", re.IGNORECASE)
# A number with its unit, and what it is a number of: "900 grams of plums", "six developers".
_COUNTED = re.compile(r"\w+(?:[.,]\d+)*(?:\s+\w+\s+of)?\s+(?P<noun>[a-z-]+)", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s?$")


@dataclass(frozen=True, slots=True)
class Told:
    """What an answer rests on: its own sentence, where it begins there, and what else is cited."""

    sentence: str
    at: int = 0
    around: str = ""
    """Other sentences that are cited, titles and headings."""

    @property
    def part(self) -> str:
        """The part of the sentence, between semicolons and contrasts, that has the answer."""
        ends = [0, *(found.end() for found in _PART.finditer(self.sentence)), len(self.sentence)]
        pairs = zip(ends, ends[1:], strict=False)
        found = (self.sentence[a:b] for a, b in pairs if a <= max(self.at, 0) < b)
        return next(found, self.sentence)

    @property
    def whole(self) -> str:
        """Everything that is cited."""
        return f"{self.around} {self.sentence}"


def is_contradicted(question: str, names: Sequence[str], told: Told) -> bool:
    """Whether a sentence has a rival of a word that restricts the question."""
    table, plain = table_for(question), blank_names(question, names)
    return (
        any(_has_other_time(table, *one, told) for one in _find_times(table, plain))
        or any(_has_other_ordinal(table, *one, told) for one in _find_ordinals(table, plain))
        or _has_other_modifier(question, told)
        or _stands_aside(table, plain, told)
    )


def find_unsaid(question: str, names: Sequence[str], told: Told) -> list[str]:
    """Return the ordinals, compounds and words for a time that nothing cited says."""
    table, plain = table_for(question), blank_names(question, names)
    times = [
        kind
        for kind, about in _find_times(table, plain)
        if not _time_words(table, kind).search(told.part)
        and not (kind == table.times[-1][0] and about and _says_all(about, told.whole))
    ]
    said = {word.lower() for word in _WORD.findall(told.whole)}
    ordinals = [one for one, _ in _find_ordinals(table, plain) if one not in said]
    return [*times, *ordinals, *_find_unsaid_compounds(question, told)]


def blank_names(question: str, names: Sequence[str]) -> str:
    """Return a question with a mark in the place of each letter of its names."""
    for name in names:
        found = re.escape(name)
        question = re.sub(found, lambda one: "_" * len(one[0]), question, flags=re.IGNORECASE)
    return question


def says_form(word: str, text: str) -> bool:
    """Whether a text has a form of a word."""
    return any(compare_words(word, one) >= FORM for one in asked_words(text))


def _says_all(words: Sequence[str], text: str) -> bool:
    return all(says_form(word, text) for word in words)


def is_short(question: str, names: Sequence[str]) -> bool:
    """Whether a question has few words; a longer one may be told by sentences not cited."""
    return len(asked_words(blank_names(question, names))) <= _SHORT


# -- relations


def find_skipped(question: str, names: Sequence[str], told: str) -> list[str]:
    """Return the relations of a short question ("N's daughter") that a text does not state."""
    if not is_short(question, names):
        return []
    found = [one["noun"].lower() for one in _OWNED.finditer(blank_names(question, names))]
    return [one for one in found if asked_words(one) and not states_relation(question, one, told)]


def states_relation(question: str, noun: str, told: str) -> bool:
    """Whether a text has a form of a noun for a relation, a synonym, or the other side of a kin."""
    if says_form(noun, told):
        return True
    table = table_for(question)
    sides = [side for side, words in table.kin if words.fullmatch(noun)]
    if sides:
        return any(words.search(told) for side, words in table.kin if side not in sides)
    return to_stem(noun) in {to_stem(word) for word in split_words(told)}


# -- before, after, during


def _time_words(table: RuleTable, kind: str) -> re.Pattern[str]:
    return next(words for name, words in table.times if name == kind)


def _find_times(table: RuleTable, plain: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each preposition of time in a question, with the words of what it is about.

    One at the end is none: "What was N named after?".
    """
    for kind, _ in table.times:
        for found in re.finditer(rf"(?<!\w){kind}(?=\W+\w)", plain, re.IGNORECASE):
            yield kind, asked_words(plain[found.end() :])[:_GOVERNED]


def _has_other_time(table: RuleTable, kind: str, about: Sequence[str], told: Told) -> bool:
    """Whether the answer is said of another time: "during probation", or in another clause."""
    own = _time_words(table, kind)
    if own.search(told.part):
        return False
    if own.search(told.sentence):
        return True
    return any(
        says_form(word, _next_words(told.part, found.end()))
        for name, _ in table.times
        if name != kind
        for found in re.finditer(rf"(?<!\w){name}(?!\w)", told.part, re.IGNORECASE)
        for word in about[:1]
    )


def _next_words(text: str, start: int) -> str:
    return " ".join(found[0] for found in list(_WORD.finditer(text, start))[:_NEAR])


def _stands_aside(table: RuleTable, plain: str, told: Told) -> bool:
    """Whether what is asked about only says when something else is so: "After probation it is"."""
    words = asked_words(table.question_words.sub(" ", _drop_asks(table, plain)))
    if len(words) != 1 or any(_find_times(table, plain)):
        return False
    places = [f for f in _WORD.finditer(told.part) if compare_words(words[0], f[0].lower()) >= FORM]
    at = max(told.at, 0) - told.sentence.find(told.part)
    return bool(places) and all(
        _follows_time(table, told.part[: found.start()])
        and not re.fullmatch(r"\s+of\s+", told.part[found.end() : max(at, found.end())])
        for found in places
    )


def _drop_asks(table: RuleTable, plain: str) -> str:
    for _, words in table.asks:
        plain = words.sub(" ", plain)
    return plain


def _follows_time(table: RuleTable, before: str) -> bool:
    kinds = "|".join(re.escape(kind) for kind, _ in table.times)
    return re.search(rf"(?<!\w)(?:{kinds})\s+(?:\w+\s+)?$", before, re.IGNORECASE) is not None


# -- first, second, last


def _find_ordinals(table: RuleTable, plain: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each ordinal behind an article or an owner, with the words that follow it."""
    words = list(_WORD.finditer(plain))
    for before, one in zip(words, words[1:], strict=False):
        owner = _POSSESSIVE.search(plain[: one.start()].rstrip()) is not None
        if one[0].lower() in table.ordinals and (owner or before[0].lower() in table.owners):
            yield one[0].lower(), asked_words(plain[one.end() :])[:2]


def _has_other_ordinal(table: RuleTable, ordinal: str, nouns: Sequence[str], told: Told) -> bool:
    """Whether a sentence has another ordinal of the same noun, and not this one."""
    words = [found[0].lower() for found in _WORD.finditer(told.sentence)]
    if ordinal in words:
        return False
    return any(
        compare_words(noun, word) >= FORM
        for at, one in enumerate(words)
        if one in table.ordinals
        for word in words[at + 1 : at + _NEAR]
        for noun in nouns[:1]
    )


# -- modifiers


@lru_cache(maxsize=512)  # a sentence may have several candidates
def find_modified(text: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs of words of content that stand side by side, compounds as one word."""
    words = [(one[0].lower(), one.start(), one.end()) for one in _WORD.finditer(text)]
    return tuple(
        (one, noun)
        for (one, _, end), (noun, start, _) in zip(words, words[1:], strict=False)
        if text[end:start].isspace() and asked_words(one) and asked_words(noun)
    )


def find_rivalled(question: str, told: Told) -> list[str]:
    """Return the unsaid modifiers of nouns that have another one in the sentence with the answer.

    A bronze member is no silver one, unless the two words mean the same.
    """
    asked, said = set(split_words(question)), find_modified(told.sentence)
    return [
        one
        for one, noun in find_modified(question)
        if one.isalpha()
        and one in question  # a name has a capital there
        and not says_form(one, told.whole)
        and any(compare_words(noun, head) >= FORM and other not in asked for other, head in said)
    ]


def counts_other(question: str, told: Told) -> bool:
    """Whether the number that answers "how many sheep" is one of something else: "31 goats".

    People may be called many things.
    """
    asked = _COUNTS.search(question)
    if asked is None or not asked_words(asked["noun"]) or says_form(asked["noun"], told.whole):
        return False
    found = _COUNTED.match(told.sentence, max(told.at, 0))
    noun = found["noun"] if found else ""
    return bool(asked_words(noun)) and not table_for(question).persons.fullmatch(noun)


def _find_unsaid_compounds(question: str, told: Told) -> list[str]:
    whole = told.whole.replace("-", "")
    compounds = re.findall(r"(?<![\w-])[a-z]+(?:-[a-z]+)+(?![\w-])", question)
    return [one for one in compounds if not says_form(one.replace("-", ""), whole)]


def _has_other_modifier(question: str, told: Told) -> bool:
    """Whether a compound stands before the same noun as one that shares a part: "full-time"."""
    compounds = [pair for pair in find_modified(question) if "-" in pair[0]]
    said = find_modified(told.sentence) if compounds else ()
    for one, noun in compounds:
        if says_form(one.replace("-", ""), told.sentence.replace("-", "")):
            continue
        parts = set(one.split("-"))
        for other, head in said:
            if compare_words(noun, head) >= FORM and parts & set(other.split("-")):
                return True
    return False
