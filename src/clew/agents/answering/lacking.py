"""How much of a question its quotes lack, so that what is merely near is not trusted.

Where all passages are about one thing, as in a manual, its name and the meaning of sentences say
little. What is asked is said by the words that are rare there, by options and numbers, and by the
kind of answer: the value of a setting, or what a term means.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from clew.agents.answering.exact_terms import (
    find_exact_terms,
    measure_exact,
    misses_value,
)
from clew.agents.answering.units import ONE_OF_MANY, STEM, opens_with, stem_words, weigh_words
from clew.agents.reading.spans import asked_words
from clew.agents.rules.question_analysis import find_wanted_block
from clew.agents.rules.table import ASKS_MEANING, drop_asking_words
from clew.context import Context
from clew.llm.embed import Vectors
from clew.retrieve.question import strip_courtesy
from clew.text.definitions import defines_term
from clew.text.structure import CRUMB_SEPARATOR, find_headings
from clew.text.unicode import UNSPACED_CHAR, split_words
from clew.types import Citation, Passage

_ALIKE = 2  # letters that forms of a word have in common at least
_FORM = 0.6  # cosine of two words that begin alike, from which they are forms of one
_NEAR_CHARS = 300  # characters of a quote that are compared with the question
_NEARLY = 0.95  # of the weight of the rarest word: as rare
_MAX_TERM = 3  # words of a term whose meaning is asked for
_LEAST_STEM = 4  # letters of a word of which others may be forms


def asks_value(question: str) -> bool:
    """Whether what begins like a question for a meaning asks for one of many things: "is the"."""
    if find_wanted_block(question) != "definition" or ASKS_MEANING.search(question):
        return False
    return ONE_OF_MANY.search(question) is not None


async def describe_lacking(
    ctx: Context, question: str, quotes: Sequence[Citation], passages: Sequence[Passage]
) -> dict[str, float]:
    """Return what of a question its quotes lack, each 0 to 1.

    `lacking` is the share of its words by their rarity, `rarest` whether the rarest is among them;
    `undefined` whether a meaning is asked for and no quote is about that term, `inexact` the share
    of its options, identifiers and numbers, `valueless` whether it asks for a value that is not
    there. `near` is how near the first quote is to the question in meaning.
    """
    homes = [name_home(one, passages) for one in quotes]
    texts = [f"{home} {one.quote}" for home, one in zip(homes, quotes, strict=True)]
    words, terms = weigh_words(ctx.view, drop_asking_words(question)), find_exact_terms(question)
    best = find_telling(words, texts, terms)
    missing = await find_missing(ctx, question, words, best)
    lacking = sum(missing.values())
    rarest = max(missing.values(), default=0.0) >= _NEARLY * max(words.values(), default=1.0)
    defined = find_wanted_block(question) != "definition" or _is_defined(question, quotes, homes)
    return {
        "lacking": lacking,
        "rarest": float(rarest),
        "undefined": float(not defined),
        "inexact": 1 - measure_exact(terms, best) if texts else 1.0,
        "valueless": float(misses_value(question, list_texts(quotes))),
        "near": await _measure_near(ctx, question, quotes[0].quote) if quotes else 0.0,
    }


def find_telling(
    words: Mapping[str, float], texts: Sequence[str], terms: Sequence[str] = ()
) -> str:
    """Return the text that has most of a question's options and codes, and says most of its words.

    One quote must say it: what two say apart, of other things, is no answer.
    """

    def lack(text: str) -> tuple[float, float]:
        return -measure_exact(terms, text), sum(find_unsaid(words, text).values())

    return min(texts, key=lack, default="")


def name_home(quote: Citation, passages: Sequence[Passage]) -> str:
    """Return the title and the headings that a quote stands under."""
    home = next((one for one in passages if one.id == quote.chunk), None)
    if home is None:
        return quote.heading
    above = [one.title for one in find_headings(home.text) if one.start < quote.start - home.start]
    return " ".join((home.title, quote.heading or home.heading, *above[-1:]))


async def find_missing(
    ctx: Context, question: str, words: Mapping[str, float], text: str
) -> dict[str, float]:
    """Return the beginnings of words that a text has in no form, with their weights.

    "made" has other letters than "makes": what begins alike and means the same is a form of it.
    """
    missing = find_unsaid(words, text)
    whole = {word[:STEM]: word for word in split_words(question) if word.isalpha()}
    said = frozenset(split_words(text))
    forms = {
        stem: [one for one in said if one[:_ALIKE] == stem[:_ALIKE]]
        for stem in missing
        if stem in whole
    }
    texts = [*(whole[one] for one in forms), *(one for some in forms.values() for one in some)]
    if not any(forms.values()) or ctx.embed is None:
        return missing
    vectors = dict(zip(texts, await ctx.vectors(texts), strict=True))
    near = {
        stem
        for stem, some in forms.items()
        if any(cosine(vectors[whole[stem]], vectors[one]) >= _FORM for one in some)
    }
    return {stem: weight for stem, weight in missing.items() if stem not in near}


def find_unsaid(words: Mapping[str, float], text: str) -> dict[str, float]:
    """Return the beginnings of words of which a text has none, with their weights."""
    stems = stem_words(text)
    return {word: weight for word, weight in words.items() if not _is_said(word, stems)}


async def _measure_near(ctx: Context, question: str, quote: str) -> float:
    """Return the cosine of a question and a quote, 0 without an embedder."""
    if ctx.embed is None:
        return 0.0
    asked, said = await ctx.vectors([question, quote[:_NEAR_CHARS]])
    return max(0.0, cosine(asked, said))


def cosine(one: Vectors, other: Vectors) -> float:
    """Return the cosine of two vectors, 0 if one has no length."""
    return float(one @ other / max(1e-9, float(np.linalg.norm(one) * np.linalg.norm(other))))


def list_texts(quotes: Sequence[Citation]) -> list[str]:
    """Return each quote behind the term or the section that it stands under."""
    return [
        f"{one.heading.rpartition(CRUMB_SEPARATOR)[2]}: {one.quote}" if one.heading else one.quote
        for one in quotes
    ]


def _is_said(stem: str, said: frozenset[str]) -> bool:
    """Whether a word, or a longer one that begins with it, is among those that are said."""
    if stem in said:
        return True
    return len(stem) >= _LEAST_STEM and any(word.startswith(stem) for word in said)


def _is_defined(question: str, quotes: Sequence[Citation], homes: Sequence[str]) -> bool:
    """Whether a quote, or the section that it stands in, is about the term that is asked for."""
    asked = stem_words(" ".join(asked_words(drop_asking_words(strip_courtesy(question)))))
    if terms := find_exact_terms(question):
        if any(defines_term(term, one.quote) for term in terms for one in quotes):
            return True
        rest = asked - stem_words(" ".join(terms))  # "What does P30 cost?" asks for no meaning
        return bool(rest) and any(_tells_all(terms, rest, one.quote) for one in quotes)
    one = ONE_OF_MANY.search(question) is None
    if not one or not 0 < len(asked) <= _MAX_TERM or UNSPACED_CHAR.search(question):
        return True  # a value or more than a term, or words that are not known apart
    # "What is a beacon in N?": that it speaks of N is said by the title.
    rests = [asked - stem_words(home) for home in homes]
    return any(
        not rest or opens_with(rest, one.quote) for rest, one in zip(rests, quotes, strict=True)
    )


def _tells_all(terms: Sequence[str], rest: frozenset[str], quote: str) -> bool:
    """Whether a quote has all of these terms, and the other words beside them."""
    said = stem_words(quote)
    return measure_exact(terms, quote) == 1 and all(_is_said(stem, said) for stem in rest)
