"""The noun that "which" or "what" asks for: the last of its phrase, "variables" of "environment
variables", as far as the words behind it tell where the phrase ends.
"""

import re
from dataclasses import dataclass

from clew.agents.rules.table import table_for
from clew.text.irregular_verbs import BASE_OF_FORM
from clew.text.unicode import split_words

_ASKED = re.compile(r"\b(?:what|which)\s+(?!(?:of|is|are|was|were)\b)(?P<rest>[^?.;:]+)", re.I)
_ARTICLE = frozenset("the a an this that these those its their your my".split())
_JOINING = frozenset("of in on at for by to from with as into about between under".split())
_RELATIVE = frozenset("that which who whose where when if and or".split())
# What begins an object, and no verb: behind it a word in "s" is the verb.
_OBJECT = _ARTICLE | frozenset("his her more most less fewer fewest no any all it them".split())
_JOINING |= frozenset("through across over along past near behind around within".split())
_MONTH = "May"
_BASES = frozenset(BASE_OF_FORM.values())
_MOST = 6  # words of a phrase, with what stands behind its noun: "backends for messages"
_WITH_VERB = 3  # words before an article of which the last is surely the verb
_WORD = re.compile(r"[\w’'-]+|,")


@dataclass(frozen=True, slots=True)
class AskedNoun:
    """The phrase that is asked for, with its noun; empty where a verb may follow it at once."""

    words: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        """The noun, "" if it is not known."""
        return self.words[-1] if self.words else ""


def find_asked_phrase(question: str) -> AskedNoun:
    """Return what "which" or "what" asks for; nothing where that is not clear.

    In "which format does" and "which format of" the noun is the last word, in "which option sets
    the" it is the one before the verb.
    """
    found = _ASKED.search(question)
    rest = list(map(_fold, _WORD.findall(found["rest"]))) if found else []
    words: list[str] = []
    for word in rest[:_MOST]:
        if word in _ARTICLE | _JOINING | _RELATIVE or word == "," or _is_auxiliary(word):
            break
        words.append(word)
    behind = rest[len(words)] if len(words) < len(rest) else ""
    named = tuple(part for word in words for part in split_words(word))
    if behind == "of" or _is_auxiliary(behind) or _asks_object(rest[len(words) :]):
        return AskedNoun(named)
    if behind in _ARTICLE and 1 < len(named) <= _WITH_VERB:
        return AskedNoun(named[:-1])
    return AskedNoun(named if len(named) == 1 else ())


def _asks_object(behind: list[str]) -> bool:
    """Whether an auxiliary follows what stands behind a noun: "backends for messages does it"."""
    for word in behind[:_MOST]:
        if word in _RELATIVE or word == ",":
            return False
        if _is_auxiliary(word):
            return behind[0] in _JOINING
    return False


def _fold(word: str) -> str:
    """Return a word in lower case, but the month, which is no verb."""
    return word if word == _MONTH else word.lower()


def _is_auxiliary(word: str) -> bool:
    return word != _MONTH and table_for("which").auxiliaries.fullmatch(word) is not None


def is_verb_behind(question: str, word: str) -> bool:
    """Whether a word in "s" behind "which" or "what" is the verb: "flows" of "Which canal flows
    through N?", not "canals" of "Which canals flow through N?".

    A plural noun has a verb behind it that agrees: a known form, or a word before an object.
    """
    found = re.search(rf"\b(what|which)\s+((?:[\w-]+\s+)*?){re.escape(word)}\b(.*)", question, re.I)
    rest = _WORD.findall(found[3]) if found else []
    if found is None or not rest:
        return False
    behind = _fold(rest[0])
    if behind == "of" or behind == "," or behind in _RELATIVE or _may_be_finite(behind):
        return False
    if any(_may_be_finite(_fold(one)) for one in rest[1:]):
        return False
    if behind in _JOINING | _OBJECT or not rest[0].islower():
        return True
    between = found[2].split()
    if between:  # "Which festival takes place in N?", but "Which Italian films …"
        return between[0].islower()
    opens = len(rest) > 1 and (rest[1].lower() in _OBJECT or not rest[1].islower())
    return found[1].lower() == "what" and not opens


def _may_be_finite(word: str) -> bool:
    """Whether a word is a verb by its form, or by the table of irregular ones."""
    known = word in BASE_OF_FORM or word in _BASES
    return known or _is_auxiliary(word) or (word.endswith("ed") and len(word) > len("seed"))
