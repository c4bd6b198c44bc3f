"""How a question wants its answer: the things themselves, their number, or a yes or no.

Whichever it is, the path is that of the open question: "How many songs did X write?" counts what
"Which songs did X write?" names, and "Did X write Y?" asks whether Y is among them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from clew.text.dates import parse_whole_date
from clew.text.names import name_key
from clew.text.word_forms import asking_words, phrase_class, question_language, word_class

_COUNT_IN_HAN = re.compile("多少|几")
_ARTICLE = re.compile(r"\b(?:the|an?)\s+\Z", re.IGNORECASE)
_YEAR = re.compile(r"[12]\d{3}")
_MANY_NAMES = 4  # names from which a question lists them
_CHECKED = 2  # names of a question of yes or no


@dataclass(frozen=True, slots=True)
class AskedForm:
    """What a question wants, and the same as an open question."""

    wants: Literal["things", "count", "check"]
    questions: tuple[str, ...]
    """As it is; of a count as a question for the things as well, since a number may be recorded."""
    by_name: dict[str, str] = field(default_factory=dict)
    """Of a check: by the key of each of the two names the question with the other left open."""
    names: tuple[str, ...] = ()
    """The names of a question that lists many: about one of them it is asked without the others."""

    def ask_about(self, name: str) -> tuple[str, ...]:
        """Return the open questions about what has a name."""
        opened = self.by_name.get(name_key(name))
        if opened is not None:
            return (opened,)
        if len(self.names) < _MANY_NAMES:
            return self.questions
        return tuple(_leave_out_names(one, self.names, name) for one in self.questions)

    def find_claimed(self, name: str) -> str:
        """Return the key of the name that a check offers as an answer about `name`."""
        others = [key for key in self.by_name if key != name_key(name)]
        return others[0] if len(others) == 1 else ""


def read_form(question: str, names: Sequence[str]) -> AskedForm:
    """Return what a question with these names wants, by the words of its language."""
    language = question_language(question)
    if language == "zh" and _COUNT_IN_HAN.search(question):
        return AskedForm("count", (question,))
    for phrase in phrase_class(language, "counting"):
        found = re.search(rf"\b{re.escape(phrase)}\b", question, re.IGNORECASE)
        if found:
            which = phrase_class(language, "which")[0]
            opened_count = question[: found.start()] + which + question[found.end() :]
            return AskedForm("count", (question, opened_count), names=tuple(names))
    if _may_check(question, language):
        claim = re.sub(r"\A\W*\w+\s+", "", question) if language == "en" else question
        if opened := _open_claims(claim, names, language):
            return AskedForm("check", (question,), opened)
    return AskedForm("things", (question,), names=tuple(names))


def wants_check(question: str) -> bool:
    """Whether a question plainly wants a yes or no, and asks for nothing else beside."""
    language = question_language(question)
    words = {word.casefold() for word in re.findall(r"[^\W\d_]+", question)}
    return _may_check(question, language) and asking_words(language).isdisjoint(words)


def _may_check(question: str, language: str) -> bool:
    """Whether a question wants a yes or no: it has a word for that first, or none that asks."""
    words = [word.casefold() for word in re.findall(r"[^\W\d_]+", question)]
    if language == "en":
        return bool(words) and words[0] in word_class("en", "checking")
    asks = asking_words(language)
    return bool(asks) and question.rstrip().endswith("?") and asks.isdisjoint(words)


def _leave_out_names(question: str, names: Sequence[str], own: str) -> str:
    """Return a question about many names as one about a single one of them."""
    others = sorted((name for name in names if name_key(name) != name_key(own)), key=len)
    if len(others) == len(names):
        return question
    listed = "|".join(map(re.escape, reversed(others)))
    between = r"(?:\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or|&)\s+|\s*;\s*)"
    shorter = re.sub(rf"(?:{listed})\b{between}|{between}(?:{listed})\b", "", question)
    return re.sub(rf"\b(?:{listed})\b", "", shorter)


def _open_claims(question: str, names: Sequence[str], language: str) -> dict[str, str]:
    """Return for each of two names the question with the other left open."""
    what, when = phrase_class(language, "what"), phrase_class(language, "when")
    places = {name: question.casefold().rfind(name.casefold()) for name in names}
    if not what or len(places) != _CHECKED or min(places.values()) < 0:
        return {}
    first, second = places
    found = {}
    for name, other in ((first, second), (second, first)):
        begin, end = places[other], places[other] + len(other)
        before = _ARTICLE.sub("", question[:begin]) if language == "en" else question[:begin]
        dated = _YEAR.fullmatch(other) or parse_whole_date(other)
        left_open = when[0] if when and dated else what[0]
        found[name_key(name)] = f"{before}{left_open}{question[end:]}"
    return found
