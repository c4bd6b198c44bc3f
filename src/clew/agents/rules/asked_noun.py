"""The noun that "which" or "what" asks for: the last of its phrase, "variables" of "environment
variables", as far as the words behind it tell where the phrase ends.
"""

import re
from dataclasses import dataclass

from clew.agents.rules.table import table_for
from clew.text.unicode import split_words

_ASKED = re.compile(r"\b(?:what|which)\s+(?!(?:of|is|are|was|were)\b)(?P<rest>[^?.;:]+)", re.I)
_ARTICLE = frozenset("the a an this that these those its their your my".split())
_JOINING = frozenset("of in on at for by to from with as into about between under".split())
_RELATIVE = frozenset("that which who whose where when if and or".split())
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
    rest = [word.lower() for word in _WORD.findall(found["rest"])] if found else []
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


def _is_auxiliary(word: str) -> bool:
    return table_for("which").auxiliaries.fullmatch(word) is not None
