"""Writes questions about tables of languages with spaces in the words of the English operators.

The words of `operators_de.toml` and its like are replaced, the longest phrase first; names of
columns and values of cells stay as they are, and so does the order: it is nearly that of English.
"""

import re
from collections.abc import Sequence
from functools import cache

from clew.agents.rules.table_words import (
    fold_text,
    fold_word,
    is_same_word,
    load_operators,
    strip_marks,
)
from clew.agents.tables.load import Table
from clew.agents.tables.unspaced import load_words

_LANGUAGES = ("de", "fr", "es", "ru", "ar")
_WORD = re.compile(r"\d[\d.,:/-]*|[^\W_]+")
_MAX_NAME_WORDS = 6
_MIN_STEM = 3  # letters of a name that is inflected …
_MAX_ENDING = 2  # … and of the ending
_MAX_BEFORE_ASK = 1  # words before it: "in welchem Jahr"
Phrases = dict[tuple[str, ...], tuple[str, str]]


@cache
def _load_phrases(language: str) -> dict[str, Phrases]:
    """Return the phrases of a language, word by word, with their kind and English words.

    They stand under their first letter: most words of a question begin none.
    """
    found: dict[str, Phrases] = {}
    for phrase, meaning in load_words(language).items():
        words = tuple(_split(phrase))
        found.setdefault(words[0][:1], {})[words] = meaning
    return found


def _split(phrase: str) -> list[str]:
    return phrase.replace("'", " ").split()


def find_language(question: str) -> str:
    """Return the language whose words ask at the question's beginning; "" for none of these."""
    words = [word.casefold() for word in _WORD.findall(question)]
    sizes = {language: _count_known(words, language) for language in _LANGUAGES}
    best = max(sizes, key=lambda language: sizes[language])
    return best if sizes[best] > _count_english(words) else ""


def _count_known(words: Sequence[str], language: str) -> int:
    """Return how many words a language knows, 0 if none of the first ones asks."""
    phrases, known, asks, at = _load_phrases(language), 0, False, 0
    while at < len(words):
        size, kind, _ = _match(words, at, phrases)
        asks = asks or (kind == "ask" and at <= _MAX_BEFORE_ASK)
        known += size
        at += max(1, size)
    return known if asks else 0


def _count_english(words: Sequence[str]) -> int:
    operators = load_operators()
    known = {word for some in operators.phrases.values() for phrase in some for word in phrase}
    return sum(word in known or word in operators.fillers for word in words)


def write_spaced_in_english(question: str, tables: Sequence[Table]) -> str:
    """Return a question with English operators; one in another language is returned as it is."""
    language = find_language(question)
    if not language:
        return question
    phrases, found = _load_phrases(language), list[str]()
    texts = _WORD.findall(question)
    words = [word.casefold() for word in texts]
    at = 0
    while at < len(words):
        named = _count_named(texts, at, tables)
        size, kind, english = _match(words, at, phrases)
        if named and named >= size and kind != "ask":
            found += texts[at : at + named]
            at += named
        elif size:
            found += english.split()
            at += size
        else:
            found.append(_find_inflected(texts[at], tables) or texts[at])
            at += 1
    return " ".join(found) + "?"


def _find_inflected(text: str, tables: Sequence[Table]) -> str:
    """Return the only value or word of a column that a word is a form of: "Räder" of "Rad"."""
    form = strip_marks(text.casefold())
    columns = [column for table in tables for column in table.columns.values()]
    names = {word for column in columns for word in column.words}
    kinds = [one for one in columns if one.type == "text" and not one.is_nearly_key]
    names |= {value for one in kinds for value in one.rows_by_value if " " not in value}
    found = {name for name in names if _is_inflected(form, strip_marks(name))}
    if len(found) != 1:
        return ""
    name = found.pop()
    return f"{name}s" if len(form) > len(name) else name  # a plural, as in English


def _is_inflected(form: str, name: str) -> bool:
    shared = min(len(form), len(name))
    longer = max(len(form), len(name))
    return shared >= _MIN_STEM and longer - shared <= _MAX_ENDING and form[:shared] == name[:shared]


def _match(words: Sequence[str], at: int, phrases: dict[str, Phrases]) -> tuple[int, str, str]:
    """Return how many words the longest phrase here has, its kind and its English words."""
    best = (0, "", "")
    for phrase, (kind, english) in phrases.get(words[at][:1], {}).items():
        size = len(phrase)
        if size > best[0] and _begins(words[at : at + size], phrase):
            best = (size, kind, english)
    return best


def _begins(words: Sequence[str], phrase: Sequence[str]) -> bool:
    if len(words) != len(phrase):
        return False
    return all(
        word.startswith(part[:-1]) if part.endswith("*") else word == part
        for word, part in zip(words, phrase, strict=True)
    )


def _count_named(texts: Sequence[str], at: int, tables: Sequence[Table]) -> int:
    """Return how many words from here are a value or a word of a column or a table; 0 for none."""
    for size in range(min(_MAX_NAME_WORDS, len(texts) - at), 0, -1):
        folded = fold_text(" ".join(texts[at : at + size]))
        if any(_holds(table, folded, size) for table in tables):
            return size
    return 0


def _holds(table: Table, folded: str, size: int) -> bool:
    if any(folded in column.rows_by_value for column in table.columns.values()):
        return True
    names = {word for column in table.columns.values() for word in column.words} | table.words
    return size == 1 and any(is_same_word(folded, fold_word(name)) for name in names)
