"""Resolve the pronouns of a follow-up question by rules, from earlier questions and answers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.agents.planning.naming import find_names
from clew.agents.writing.wordings import CANDIDATE_LABEL
from clew.names import name_key
from clew.view import View

QuestionAnswer = tuple[str, str]
"""A question and its answer."""

_PERSON_PRONOUNS = frozenset("he she him his her 他 她".split())
_THING_PRONOUNS = frozenset("it its 它".split())
_PRONOUN = re.compile(
    r"\b(?:he|she|him|his|her|it|its|they|them|their)\b|[他她它](?!们)", re.IGNORECASE
)
_POSSESSIVE = re.compile(
    # "her" is possessive before a noun: not at the end, not before a preposition or conjunction.
    r"\b(?:his|its|their|her(?=\s+(?!(?:in|at|on|to|for|by|with|from|and|or|when|where|who|as)\b)"
    r"\w))\b",
    re.IGNORECASE,
)
_WHO_IS = re.compile(r"\s*who(?:'s|\s+(?:is|was))\s+", re.IGNORECASE)
_ASKS_WHO = re.compile(r"\b(?:who|whom|whose)\b|谁", re.IGNORECASE)
# A question whose subject is a pronoun, or that ends in one.
_AUXILIARY = r"(?:is|was|are|were|did|does|do|has|have|had|will|would|can|could|should)"
_QUESTION_WORD = r"(?:who|whom|whose|what|which|where|when|why|how)\b"
_LONE_PRONOUN = re.compile(
    rf"\W*(?:(?:and|so|but|then|in|at|from|on|of|to|by)\s+)*(?:{_QUESTION_WORD}(?:\s+[a-z]+){{0,2}}?\s+)?"
    rf"{_AUXILIARY}\s+(?P<who>he|she|they|it|his|her|their|its)\b(?P<rest>.*)|"
    rf"\W*{_QUESTION_WORD}(?:\s+[a-z]+){{1,2}}?\s+(?P<whom>him|her|them|it)\W*|"
    r"\W*(?:请问|那么?)?[，,]?\s*(?P<zh>[他她它]们?)(?!们).*",
    re.IGNORECASE | re.DOTALL,
)
_VAGUE_PRONOUNS = frozenset(
    "they it their its".split()
)  # "how do they make glass", "is it true that"
_CITATION_MARK = re.compile(r"\s*\[\d+\]")
_REFUSAL_PREFIXES = ("Refused:", "无法回答")
_NAME_PARTICLES = frozenset(
    "of the and de von van der den la le du di da del al bin in on y".split()
)
_MAX_NAME_WORDS = 8  # words of a short answer
_CHINESE_NAME = re.compile("[\u4e00-\u9fff·]{2,12}")


@dataclass(frozen=True, slots=True)
class Referents:
    """The person and the thing that the conversation is about."""

    person: str = ""
    thing: str = ""

    def resolve(self, pronoun: str) -> str:
        """Return what a pronoun stands for, or ""."""
        word = pronoun.lower()
        if word in _PERSON_PRONOUNS:
            return self.person
        return self.thing if word in _THING_PRONOUNS else self.person or self.thing


def find_lone_pronoun(view: View, question: str) -> str:
    """Return the pronoun a question is about when nothing in it says whom it means, else ""."""
    found = _LONE_PRONOUN.fullmatch(question)
    if found is None or find_names(view, question):
        return ""
    pronoun = found["who"] or found["whom"] or found["zh"]
    if pronoun.lower() in _VAGUE_PRONOUNS and found["who"] and len(found["rest"].split()) > 1:
        return ""
    return pronoun


def resolve_pronouns(view: View, question: str, before: Sequence[QuestionAnswer]) -> str:
    """Replace the pronouns of a question where rules can resolve them."""
    meant = Referents()
    for asked, answer in before:
        meant = _update_referents(view, meant, _replace_pronouns(view, asked, meant), answer)
    return _replace_pronouns(view, question, meant)


def _update_referents(view: View, meant: Referents, asked: str, answer: str) -> Referents:
    """Update the referents after a question and its answer."""
    names, answer_name = find_names(view, asked), extract_answer_name(view, asked, answer)
    about = names[0] if len(names) == 1 else ""
    if _ASKS_WHO.search(asked) is not None:
        # "Who made X?" asks for a person and is about a thing; "who was X?" is about a person.
        if _asks_who_is(asked, about):
            return Referents(about, meant.thing)
        return Referents(answer_name or (meant.person if about == meant.person else ""), about)
    # A new name may be a person or a thing; a known thing stays one.
    person = meant.person if about in ("", meant.thing) else about
    return Referents(person, answer_name or about or meant.thing)


def _replace_pronouns(view: View, question: str, meant: Referents) -> str:
    # A name in the question itself may be what the pronoun means.
    if find_names(view, question):
        return question

    def instead(found: re.Match[str]) -> str:
        name = meant.resolve(found[0])
        if not name:
            return found[0]
        return f"{name}'s" if _POSSESSIVE.match(question, found.start()) else name

    return _PRONOUN.sub(instead, question)


def _asks_who_is(asked: str, name: str) -> bool:
    found = _WHO_IS.match(asked)
    return found is not None and asked[found.end() :].strip(" ?") == name


def extract_answer_name(view: View, asked: str, answer: str) -> str:
    """Return the name an answer gives: its short form, or the only new name in its first line."""
    lines = answer.strip().splitlines()
    if not lines or answer.strip().startswith(_REFUSAL_PREFIXES):
        return ""
    first = _CITATION_MARK.sub("", lines[0].removeprefix(CANDIDATE_LABEL)).strip().rstrip(".。")
    if _looks_like_name(first):
        return first
    known = {name_key(name) for name in find_names(view, asked)}
    added = dict.fromkeys(name for name in find_names(view, first) if name_key(name) not in known)
    names = [name for name in added if not any(char.isdigit() for char in name)]
    return names[0] if len(names) == 1 else ""


def _looks_like_name(text: str) -> bool:
    words = text.split()
    if _CHINESE_NAME.fullmatch(text):
        return True
    if not words or len(words) > _MAX_NAME_WORDS or any(char.isdigit() for char in text):
        return False
    if text.casefold() in ("yes", "no", "unknown"):
        return False
    return words[0][0].isupper() and all(w[0].isupper() or w in _NAME_PARTICLES for w in words)
