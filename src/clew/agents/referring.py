"""What a pronoun of a follow-up stands for, by rules: the last answer, or what was asked about."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.agents.planning.naming import named
from clew.agents.writing.wordings import CANDIDATE
from clew.names import name_key
from clew.view import View

Said = tuple[str, str]
"""A question and its answer."""

_PERSON = frozenset("he she him his her 他 她".split())
_THING = frozenset("it its 它".split())
_PRONOUN = re.compile(
    r"\b(?:he|she|him|his|her|it|its|they|them|their)\b|[他她它](?!们)", re.IGNORECASE
)
_OWNING = re.compile(
    # "her" is whose where a noun follows: not at the end, and not before what joins on.
    r"\b(?:his|its|their|her(?=\s+(?!(?:in|at|on|to|for|by|with|from|and|or|when|where|who|as)\b)"
    r"\w))\b",
    re.IGNORECASE,
)
_IDENTITY = re.compile(r"\s*who(?:'s|\s+(?:is|was))\s+", re.IGNORECASE)
_WHO = re.compile(r"\b(?:who|whom|whose)\b|谁", re.IGNORECASE)
# A question whose subject is a pronoun, or that ends in one: nothing before it tells who is meant.
_BE = r"(?:is|was|are|were|did|does|do|has|have|had|will|would|can|could|should)"
_ASKS = r"(?:who|whom|whose|what|which|where|when|why|how)\b"
_LONE = re.compile(
    rf"\W*(?:(?:and|so|but|then|in|at|from|on|of|to|by)\s+)*(?:{_ASKS}(?:\s+[a-z]+){{0,2}}?\s+)?"
    rf"{_BE}\s+(?P<who>he|she|they|it|his|her|their|its)\b(?P<rest>.*)|"
    rf"\W*{_ASKS}(?:\s+[a-z]+){{1,2}}?\s+(?P<whom>him|her|them|it)\W*|"
    r"\W*(?:请问|那么?)?[，,]?\s*(?P<zh>[他她它]们?)(?!们).*",
    re.IGNORECASE | re.DOTALL,
)
_VAGUE = frozenset("they it their its".split())  # "how do they make glass", "is it true that"
_MARKS = re.compile(r"\s*\[\d+\]")
_REFUSED = ("Refused:", "无法回答")
_PARTICLES = frozenset("of the and de von van der den la le du di da del al bin in on y".split())
_LONGEST = 8  # words of a short answer
_HAN = re.compile("[\u4e00-\u9fff·]{2,12}")


@dataclass(frozen=True, slots=True)
class Meant:
    """Whom and what the talk is about."""

    person: str = ""
    thing: str = ""

    def instead(self, pronoun: str) -> str:
        """What a pronoun stands for; empty when that is not known."""
        word = pronoun.lower()
        if word in _PERSON:
            return self.person
        return self.thing if word in _THING else self.person or self.thing


def lone_pronoun(view: View, question: str) -> str:
    """The pronoun that a question is about when it says nothing of whom it means; else nothing."""
    found = _LONE.fullmatch(question)
    if found is None or named(view, question):
        return ""
    pronoun = found["who"] or found["whom"] or found["zh"]
    if pronoun.lower() in _VAGUE and found["who"] and len(found["rest"].split()) > 1:
        return ""
    return pronoun


def resolved(view: View, question: str, before: Sequence[Said]) -> str:
    """The question with its pronouns replaced; as it is where rules cannot tell what they mean."""
    meant = Meant()
    for asked, answer in before:
        meant = _after(view, meant, _replaced(view, asked, meant), answer)
    return _replaced(view, question, meant)


def _after(view: View, meant: Meant, asked: str, answer: str) -> Meant:
    """What is meant after a question and its answer."""
    own, said = named(view, asked), short_name(view, asked, answer)
    about = own[0] if len(own) == 1 else ""
    if _WHO.search(asked) is not None:
        # "Who made X?" asks for a person and is about a thing; "who was X?" is about a person.
        if _asks_who_is(asked, about):
            return Meant(about, meant.thing)
        return Meant(said or (meant.person if about == meant.person else ""), about)
    # A name that is new may be a person's or a thing's; one that was a thing stays one.
    person = meant.person if about in ("", meant.thing) else about
    return Meant(person, said or about or meant.thing)


def _replaced(view: View, question: str, meant: Meant) -> str:
    # A name of its own may be what the pronoun means.
    if named(view, question):
        return question

    def instead(found: re.Match[str]) -> str:
        name = meant.instead(found[0])
        if not name:
            return found[0]
        return f"{name}'s" if _OWNING.match(question, found.start()) else name

    return _PRONOUN.sub(instead, question)


def _asks_who_is(asked: str, name: str) -> bool:
    found = _IDENTITY.match(asked)
    return found is not None and asked[found.end() :].strip(" ?") == name


def short_name(view: View, asked: str, answer: str) -> str:
    """The name that an answer gives: its short form, or the one name that its sentence adds."""
    lines = answer.strip().splitlines()
    if not lines or answer.strip().startswith(_REFUSED):
        return ""
    first = _MARKS.sub("", lines[0].removeprefix(CANDIDATE)).strip().rstrip(".。")
    if _looks_like_name(first):
        return first
    known = {name_key(name) for name in named(view, asked)}
    added = dict.fromkeys(name for name in named(view, first) if name_key(name) not in known)
    names = [name for name in added if not any(char.isdigit() for char in name)]
    return names[0] if len(names) == 1 else ""


def _looks_like_name(text: str) -> bool:
    words = text.split()
    if _HAN.fullmatch(text):
        return True
    if not words or len(words) > _LONGEST or any(char.isdigit() for char in text):
        return False
    if text.casefold() in ("yes", "no", "unknown"):
        return False
    return words[0][0].isupper() and all(w[0].isupper() or w in _PARTICLES for w in words)
