"""Nouns of a language that writes all of them with capitals: a capital there names nothing.

The text shows which are common: an article stands before them, they have other endings elsewhere,
or longer words are made of them. Names have neither ("Oslo", but "die Zeile", "Zeilen").
"""

from collections import Counter

from clew.text.names import Tokens, recall_tokens
from clew.text.word_forms import word_class

_ENDINGS = ("n", "en", "e", "es")  # not "s" or "er", which names have, too
_LEAST_STEM, _LEAST_PART, _LEAST_ADDED = 3, 4, 4  # letters
_DETERMINED = 3  # one of so many with an article: then it is no name


def find_common_nouns(text: str, language: str) -> frozenset[str]:
    """Return the words with a capital that are common nouns of this text."""
    t = recall_tokens(text)
    counts: Counter[str] = Counter()
    determined: Counter[str] = Counter()
    articles = frozenset(word_class(language, "determining"))
    of = frozenset(word_class(language, "of"))  # "Otto von der Marwitz"
    for at in range(len(t)):
        if not t.upper[at] or _is_joined(text, t, at):
            continue
        counts[t.keys[at]] += 1
        before = at - 1 - (at > 1 and not t.upper[at - 1] and t.keys[at - 1] not in articles)
        alone = at + 1 == len(t) or not t.upper[at + 1]
        named = before > 1 and t.keys[before - 1] in of and t.upper[before - 2]
        determined[t.keys[at]] += at > 0 and alone and not named and t.keys[before] in articles
    found = {key for key, many in determined.items() if many * _DETERMINED >= counts[key] > 0}
    return frozenset(found | _find_inflected(counts) | _find_parts(counts)) - _shouted(text, t)


def _is_joined(text: str, t: Tokens, at: int) -> bool:
    """Whether a word is a part of one with hyphens: "Debian" of "das Debian-Paket"."""
    return text[t.ends[at] : t.ends[at] + 1] == "-" or text[t.starts[at] - 1 : t.starts[at]] == "-"


def _shouted(text: str, t: Tokens) -> frozenset[str]:
    """Return the words that stand in capitals only: acronyms, constants."""
    return frozenset(
        t.keys[at]
        for at in range(len(t))
        if t.upper[at] and text[t.starts[at] : t.ends[at]].isupper()
    )


def _find_inflected(counts: Counter[str]) -> set[str]:
    """Return the words that stand with several endings, and those without one."""
    found: set[str] = set()
    for key in counts:
        own = [key + ending for ending in _ENDINGS if key + ending in counts]
        if own and len(key) >= _LEAST_STEM:
            found.update((key, *own))
    return found


def _find_parts(counts: Counter[str]) -> set[str]:
    """Return the words that longer ones begin or end with."""
    longer = [key for key in counts if len(key) >= _LEAST_PART + _LEAST_ADDED]
    parts = {
        part
        for key in longer
        for at in range(_LEAST_PART, len(key) - _LEAST_ADDED + 1)
        for part in (key[:at], key[-at:])
    }
    return {key for key in counts if key in parts}
