"""Words that only hold a text together, by language; and the language that they tell.

They are a small table of closed-class words (`function_words.toml`).
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from clew.text.names import fold_token, recall_tokens, tokenize

_SCRIPTS = (
    ("ja", re.compile("[\u3041-\u30ff]")),
    ("ko", re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
)
_SAMPLE_CHARS = 2000
_MIN_FUNCTION_SHARE = 0.1  # of the words of a text
_LATIN = ("en", "de", "fr", "es")
_LETTER = re.compile(r"[^\W\d_]")


@cache
def _read_words() -> Mapping[str, Mapping[str, str]]:
    """Return the words of each language by class, as they stand in the table."""
    return tomllib.loads((files("clew.text") / "function_words.toml").read_text(encoding="utf-8"))


@cache
def _load_words() -> Mapping[str, frozenset[str]]:
    """Return all function words by language, with and without accents.

    A word written with an accent is looked up as it is: "né" is not "ne".
    """
    held = {one: f"{w['asking']} {w['other']}".split() for one, w in _read_words().items()}
    return {one: frozenset(words) | _fold_all(words) for one, words in held.items()}


def _fold_all(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(fold_token, words))


def function_words(language: str) -> frozenset[str]:
    """Return the closed-class words of a language in lower case; none of one without a table."""
    return _load_words().get(language, frozenset())


@cache
def _closed_words() -> frozenset[str]:
    both = foreign_function_words() | function_words("en")
    return frozenset(word for word in both if len(word) > 1 or word == "a")


def is_function_word(word: str) -> bool:
    """Whether a word is of a closed class in any language that has a table and spaces."""
    return word.casefold() in _closed_words()


@cache
def word_class(language: str, name: str) -> tuple[str, ...]:
    """Return the words of a named class of a language, such as its modal verbs, or none."""
    return tuple(_read_words().get(language, {}).get(name, "").split())


@cache
def phrase_class(language: str, name: str) -> tuple[str, ...]:
    """Return the phrases of a named class of a language, none where it has no such class."""
    held = _read_words().get(language, {}).get(name, "")
    return tuple(phrase.strip() for phrase in held.split(",") if phrase.strip())


@cache
def foreign_function_words() -> frozenset[str]:
    """Return the closed-class words of all spaced languages but English."""
    return frozenset().union(*(function_words(one) for one in ("de", "fr", "es", "ru", "ar")))


@cache
def _latin_words() -> frozenset[str]:
    return frozenset().union(*map(function_words, _LATIN))


def _words_of(text: str) -> list[tuple[str, str]]:
    """Return the words of a text in lower case, and folded."""
    t = tokenize(text)
    return [(text[a:b].casefold(), key) for a, b, key in zip(t.starts, t.ends, t.keys, strict=True)]


def text_language(text: str) -> str:
    """Return the language of a text by its script and function words; "" if nothing tells."""
    sample = text[:_SAMPLE_CHARS]
    if sample.isascii():
        words = recall_tokens(sample).keys  # in lower case, but for what is no function word
    else:
        letters = len(_LETTER.findall(sample))
        for language, script in _SCRIPTS:
            if 2 * len(script.findall(sample)) > letters:
                return language
        words = [word for word, _ in _words_of(sample)]
    held = list(filter(_latin_words().__contains__, words))
    counts = {one: sum(map(function_words(one).__contains__, held)) for one in _LATIN}
    best = max(_LATIN, key=lambda one: counts[one])
    return best if counts[best] > _MIN_FUNCTION_SHARE * len(words) else ""
