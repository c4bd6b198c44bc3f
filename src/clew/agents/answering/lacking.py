"""How much of a question its quotes lack, so that what is merely near is not trusted.

Where all passages are about one thing, as in a manual, its name and the meaning of sentences say
little. What is asked is said by the words that are rare there, by options and numbers, and by the
kind of answer: the value of a setting, or what a term means.
"""

import re
from collections.abc import Sequence

from clew.agents.answering.exact_terms import (
    defines_term,
    find_exact_terms,
    measure_exact,
    misses_value,
)
from clew.agents.answering.quote_block import find_wanted_block
from clew.agents.answering.units import stem_words, weigh_words
from clew.agents.reading.spans import asked_words
from clew.agents.rules.table import table_for
from clew.index.view import View
from clew.retrieve.question import strip_courtesy
from clew.text.sentences import sentence_spans
from clew.text.structure import CRUMB_SEPARATOR
from clew.text.unicode import UNSPACED_CHAR, split_words
from clew.types import Citation, Passage

_RAREST = 0.7  # lacking where the rarest word of the question is not said
_UNDEFINED = 0.5  # lacking where a meaning is asked for and no quote is about that term
_NEARLY = 0.95  # of the weight of the rarest word: as rare
_MAX_TERM = 3  # words of a term whose meaning is asked for
_LEAST_STEM = 4  # letters of a word of which others may be forms
_ASKS_MEANING = re.compile(
    r"\b(?:means?|meaning|definition|defined?|describe|explain)\b", re.IGNORECASE
)
_ONE_OF_MANY = re.compile(r"\b(?:is|are|was|were|does|do) the\b", re.IGNORECASE)
_ARTICLES = frozenset("a an the der die das ein eine le la les un une el los las una".split())


def measure_lacking(
    view: View, question: str, quotes: Sequence[Citation], passages: Sequence[Passage]
) -> float:
    """Return how much of a question its quotes lack, 0 to 1.

    By the rarity of its words that neither they nor their headings have; all of it where they have
    none of its options, identifiers and numbers, or not the value that is asked for.
    """
    titles = {passage.id: passage.title for passage in passages}
    homes = [f"{titles.get(one.chunk, '')} {one.heading}" for one in quotes]
    text = " ".join(f"{home} {one.quote}" for home, one in zip(homes, quotes, strict=True))
    said, words = stem_words(text), weigh_words(view, _drop_asking_words(question))
    missing = {word: weight for word, weight in words.items() if not _is_said(word, said)}
    lacking = sum(missing.values())
    if max(missing.values(), default=0.0) >= _NEARLY * max(words.values(), default=1.0):
        lacking = max(lacking, _RAREST)
    terms = find_exact_terms(question)
    if misses_value(question, list_texts(quotes)):
        return 1.0
    if find_wanted_block(question) == "definition" and not _is_defined(question, quotes, homes):
        lacking = max(lacking, _UNDEFINED)
    return max(lacking, 1 - measure_exact(terms, text))


def list_texts(quotes: Sequence[Citation]) -> list[str]:
    """Return each quote behind the term or the section that it stands under."""
    return [
        f"{one.heading.rpartition(CRUMB_SEPARATOR)[2]}: {one.quote}" if one.heading else one.quote
        for one in quotes
    ]


def _drop_asking_words(question: str) -> str:
    """Return a question without what says that it asks: "how long", "mean"."""
    for _, words in table_for(question).asks:
        question = words.sub(" ", question)
    return _ASKS_MEANING.sub(" ", question)


def _is_said(stem: str, said: frozenset[str]) -> bool:
    """Whether a word, or a longer one that begins with it, is among those that are said."""
    if stem in said:
        return True
    return len(stem) >= _LEAST_STEM and any(word.startswith(stem) for word in said)


def _is_defined(question: str, quotes: Sequence[Citation], homes: Sequence[str]) -> bool:
    """Whether a quote, or the section that it stands in, is about the term that is asked for."""
    if terms := find_exact_terms(question):
        return any(defines_term(term, one.quote) for term in terms for one in quotes)
    asked = stem_words(" ".join(asked_words(_drop_asking_words(strip_courtesy(question)))))
    one = _ONE_OF_MANY.search(question) is None
    if not one or not 0 < len(asked) <= _MAX_TERM or UNSPACED_CHAR.search(question):
        return True  # a value or more than a term, or words that are not known apart
    return any(
        asked <= stem_words(home) or _opens_with(asked, one.quote)
        for home, one in zip(homes, quotes, strict=True)
    )


def _opens_with(asked: frozenset[str], quote: str) -> bool:
    """Whether a sentence or a line begins with all of these words."""
    spans = [quote[start:end] for start, end in sentence_spans(quote)]
    for part in (*spans, *re.split(r"[\n|]", quote)):
        words = [word for word in split_words(part[:200]) if word not in _ARTICLES]
        if asked <= stem_words(" ".join(words[: len(asked) + 1])):
            return True
    return False
