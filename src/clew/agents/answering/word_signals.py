"""What speaks for quotes that were found by their words alone.

How much of what is asked one quote says, rare words more than common ones, and whether it has
anything of the asked kind; and how far it leads the other sentences of what was found. A question's
words must be said together: two quotes count as one only where the second was looked up by what the
first names.
"""

import math
import re
from collections.abc import Sequence

from clew.agents.answering.by_words import (
    CHAIN,
    Sentence,
    drop_dates,
    find_kind,
    has_kind,
    list_sentences,
    name_capitalised,
)
from clew.agents.answering.lacking import name_home
from clew.agents.core.types import Answer
from clew.text.language import is_chinese
from clew.text.name_spans import blank_particles, find_uncased_terms
from clew.text.names import tokenize
from clew.text.unicode import UNSPACED_CHAR
from clew.text.word_forms import (
    asked_terms,
    foreign_function_words,
    function_words,
    measure_terms,
    mentions_form,
    numerals,
    question_language,
    strip_bound_words,
)

BY_WORDS = "by_words"
"""The signal that an answer was judged by its words."""
_TITLE_SHARE = 0.6  # what a word counts that only the title or a heading has
_AMOUNT = re.compile(r"\d|[〇一二三四五六七八九十百千万][時分年月日人冊個円歳回度階本枚台点元次天]")
_SAID = 0.5  # of a word: below, a text lacks it


def describe_quotes(question: str, names: Sequence[str], answer: Answer) -> dict[str, float]:
    """Return what speaks for quotes, each 0 to 1.

    `said` is the share of the question's words, by rarity, that the best quote says, `lacks` the
    share of the weightiest word that it does not, `beside` that of the words beside the names,
    `lead` how much more it says than another sentence; `fits` whether it has what is of the asked
    kind, `misfit` whether it lacks that; `place` whether a place is asked for: any word may be one.
    """
    terms, passages = list_terms(question), answer.evidence.chunks
    found = list_sentences(terms, passages)
    weights = weigh_terms(found, len(terms))
    told = _measure_quotes(terms, answer)
    said = _share(weights, told)
    own = [one.quote for one in answer.citations]
    others = [one for one in found if not any(_overlap(one.text, quote) for quote in own)]
    rival = max((_share(weights, _square(one.around)) for one in others), default=0.0)
    lacking = [w * (1 - value) for w, value in zip(weights, told, strict=True)]
    known = {term for name in names for term in list_terms(name)}
    beside = [v for term, v in zip(terms, told, strict=True) if term not in known]
    kind = find_kind(question)
    fits = _fits(question, kind, answer)
    return {
        BY_WORDS: 1.0,
        "said": said,
        "lacks": max(lacking, default=0.0) * len(terms) ** 0.5,
        # Beside names alone only a kind is asked for: "How old is N?".
        "beside": sum(beside) / len(beside) if beside else said * (fits >= 0),
        "lead": max(-1.0, min(1.0, said - rival)),
        "fits": float(fits > 0),
        "misfit": float(fits < 0),
        "place": float(kind == "place"),
    }


def list_terms(question: str) -> tuple[str, ...]:
    """Return the words of a question; in Chinese the runs between what only asks or joins."""
    if not is_chinese(question):
        return asked_terms(question)
    for word in sorted(function_words("zh"), key=len, reverse=True):
        question = question.replace(word, " ")
    runs = map(strip_bound_words, blank_particles(question).split())
    words = [word for part in runs for word in asked_runs(part)]
    return tuple(dict.fromkeys(words)) or asked_terms(question)


def asked_runs(text: str) -> list[str]:
    """Split a text where letters without spaces and others meet: "H6表示"; codes keep case."""
    found: list[str] = []
    unspaced = False
    for char in text:
        if not char.isalnum() and char not in "-_.":
            unspaced = False
            found.append("")
            continue
        here = UNSPACED_CHAR.match(char) is not None
        if not found or here != unspaced:
            found.append("")
        found[-1] += char
        unspaced = here
    return [one.casefold() if one.isalnum() else one for one in found if one]


def weigh_terms(found: Sequence[Sentence], size: int) -> list[float]:
    """Return the weight of each word by its rarity in the sentences; sums to 1."""
    counts = [sum(one.own[at] >= _SAID for one in found) for at in range(size)]
    rarity = [math.log(2 + len(found) / (1 + count)) for count in counts]
    return [one / sum(rarity) for one in rarity]


def _square(values: Sequence[float]) -> list[float]:
    """Return values with less for what may be another word."""
    return [value * value for value in values]


def _share(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(w * value for w, value in zip(weights, values, strict=True))


def _measure_quotes(terms: Sequence[str], answer: Answer) -> list[float]:
    """Return how well each word is said by the quote that says most, or by a chain of them."""
    passages = answer.evidence.chunks
    texts = [(one.quote, name_home(one, passages)) for one in answer.citations]
    rows = []
    for quote, title in texts:
        own, above = measure_terms(terms, quote), measure_terms(terms, title)
        pairs = zip(own, above, strict=True)
        rows.append([max(a * a, _TITLE_SHARE * b * b) for a, b in pairs])
    if not rows:
        return [0.0] * len(terms)
    if CHAIN in answer.hints:
        return [max(values) for values in zip(*rows, strict=True)]
    return rows[0] if answer.candidate else max(rows, key=sum)


def _overlap(sentence: str, quote: str) -> bool:
    return sentence in quote or quote in sentence


def _fits(question: str, kind: str, answer: Answer) -> int:
    """Return 1 where what is cited first has something of the asked kind, -1 where it has not."""
    quote = " ".join(one.quote for one in answer.citations[: 2 if CHAIN in answer.hints else 1])
    if kind in ("number", "date"):
        numbers = numerals(question_language(question), times=kind == "date")
        asked = set(numbers.findall(question))
        rest = quote if kind == "date" else drop_dates(quote)
        said = has_kind(quote, kind) or any(n not in asked for n in numbers.findall(rest))
        return 1 if said else -1
    if kind in ("person", "place"):
        tells = _tells_new_word if kind == "place" else _tells_new_name
        return 1 if answer.candidate or tells(quote, question) else -1
    return 0


def _tells_new_name(text: str, question: str) -> bool:
    """Whether a text has a name that the question has not: by case, else a term without numbers."""
    if any(map(str.isupper, text)) and not UNSPACED_CHAR.search(text):
        return any(not mentions_form(name, question) for name in name_capitalised(text))
    if is_chinese(question):
        return any(len(run) > 1 and not _AMOUNT.search(run) for run in _list_new(text, question))
    t = tokenize(text)
    terms = (text[t.starts[a] : t.ends[b - 1]] for a, b in find_uncased_terms(t))
    return any(not _AMOUNT.search(one) and not mentions_form(one, question) for one in terms)


def _list_new(text: str, question: str) -> list[str]:
    """Return the runs of a Chinese text without what the question says: pairs of characters."""
    for term in list_terms(question):
        for at in range(len(term) - 1):
            text = text.replace(term[at : at + 2], " ")
    return [run for run in blank_particles(text).split() if UNSPACED_CHAR.match(run)]


def _tells_new_word(text: str, question: str) -> bool:
    """Whether a text has a word that may be a place: "au sous-sol" has no capital."""
    if UNSPACED_CHAR.search(text):
        return _tells_new_name(text, question)
    words = (word for word in asked_terms(text) if word not in foreign_function_words())
    return any(not _AMOUNT.search(one) and not mentions_form(one, question) for one in words)
