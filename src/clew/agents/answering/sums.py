"""Cite what a model adds up or subtracts: "together they have 31" of 12 and 19, both cited.

No passage says a sum. It is supported where the sentences before it say its parts, each with a
citation, all numbers of that thing are among them, and code comes to the same result.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.agents.citing.support import find_names, mentions_name
from clew.agents.rules.table import table_for
from clew.text.quantities import find_quantities
from clew.text.unicode import split_words
from clew.types import Citation

Cited = list[tuple[str, list[Citation]]]
_SAME = 1e-6  # to which two results are equal
_STEM = 5  # letters that forms of a counted noun share
_YEAR = re.compile(r"(?<![\w.,-])1\d{3}(?![\w,.-]*\d)|(?<![\w.,-])20\d{2}(?![\w,.-]*\d)")
_YEARS = re.compile(r"\byears?\b", re.IGNORECASE)
_LEAST_PARTS = 2


@dataclass(frozen=True, slots=True)
class _Amount:
    """A number that a sentence says, what it counts or measures, and where it stands."""

    value: float
    what: str
    cited: tuple[Citation, ...]
    plain: float
    """The number as it is written, in its own unit."""


def cite_sums(question: str, written: Cited) -> tuple[Cited, list[float]]:
    """Return the sentences with citations for the sums of what was said before, and the sums."""
    found, sums = Cited(), list[float]()
    for text, citations in written:
        parts = [] if citations else _find_parts(question, text, found)
        if parts:
            sums += [one.value for one in _list_amounts(text, ())]
            citations = list(dict.fromkeys(c for one in parts for c in one.cited))
        found.append((text, citations))
    return found, sums


def is_sum(short: str, sums: Sequence[float]) -> bool:
    """Whether a short answer is one of these results."""
    amounts = _list_amounts(short, ())
    return len(amounts) == 1 and any(abs(amounts[0].value - one) < _SAME for one in sums)


def _find_parts(question: str, text: str, before: Cited) -> list[_Amount]:
    """Return the amounts of which a sentence says the sum or the difference; none if it is not."""
    said = f"{question} {text}"
    kinds = [kind for kind, words in table_for(question).sums if words.search(said)]
    known = [(one, tuple(cited)) for one, cited in before if cited]
    results = _list_amounts(text, ())
    if not kinds or len(results) != 1 or not _names_all(text, [one for one, _ in known]):
        return []
    result = results[0]
    parts = [amount for one, cited in known for amount in _list_amounts(one, cited)]
    years = [amount for one, cited in known for amount in _list_years(one, cited)]
    alike = [one for one in parts if _is_same_thing(one.what, result.what)]
    if "total" in kinds and len(alike) >= _LEAST_PARTS:
        if abs(sum(one.value for one in alike) - result.value) < _SAME:
            return alike
    if "difference" not in kinds:
        return []
    in_years = _YEARS.search(text) is not None
    pair, wanted = (years, result.plain) if in_years else (alike, result.value)
    if len(pair) != _LEAST_PARTS:
        return []
    return pair if abs(abs(pair[0].value - pair[1].value) - wanted) < _SAME else []


def _names_all(text: str, said: Sequence[str]) -> bool:
    """Whether a sentence names nothing, or something that each sentence with a part names."""
    names = find_names(text)
    whole = " ".join(said)
    own = [name for name in names if mentions_name(name, whole)]
    return not own or all(any(mentions_name(name, one) for name in own) for one in said)


def _list_amounts(text: str, cited: Sequence[Citation]) -> list[_Amount]:
    plain = _YEAR.sub(lambda found: " " * len(found[0]), text)
    return [
        _Amount(one.amount, one.dimension or one.noun, tuple(cited), one.amount / one.factor)
        for one in find_quantities(plain)
    ]


def _list_years(text: str, cited: Sequence[Citation]) -> list[_Amount]:
    years = [float(found[0]) for found in _YEAR.finditer(text)]
    return [_Amount(one, "year", tuple(cited), one) for one in years]


def _is_same_thing(one: str, other: str) -> bool:
    """Whether two amounts may be of one thing: where one names none it may."""
    if not one or not other:
        return True
    return [word[:_STEM] for word in split_words(one)] == [w[:_STEM] for w in split_words(other)]
