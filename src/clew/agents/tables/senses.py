"""Finds columns by meaning where a question's words are not theirs: "earns" for a salary.

Only words that nothing else accounts for are compared, and a column is taken only if it is close
and clearly closer than the others, so that what a table does not hold stays unanswered.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from clew.agents.tables.chinese import asks_in_chinese
from clew.agents.tables.load import Table
from clew.agents.tables.reading import Mention, Reading, note_column, to_extreme
from clew.agents.tables.words import Word, is_same_word, load_operators, split_question
from clew.context import Context

Senses = Mapping[str, Mapping[str, float]]
"""For words of a question, the cosine with the name of every column."""

_ALL = ("number", "date", "text")
_MEASURED = ("number", "date")
_LEAST = 0.5  # cosine of a word with the name of a column that it may mean
_LEAST_OF_DEGREE = 0.35  # of "tallest" with one that can be measured: few columns can
_LEAD = 0.1  # over the next column
_MAX_NAMES = 400  # columns of all tables, beyond which meaning costs too much
_SIGNS = {"max": ">", "min": "<"}


async def load_senses(ctx: Context, tables: Sequence[Table]) -> Senses:
    """Compare the words of the question with the names of columns; empty without an embedder."""
    names = list(dict.fromkeys(" ".join(c.words) for t in tables for c in t.columns.values()))
    words = [word.fold for word in split_question(ctx.question) if _has_meaning(word)]
    if not names or not words or len(names) > _MAX_NAMES or asks_in_chinese(ctx.question):
        return {}
    if ctx.meaning() < 1:
        return {}
    vectors = np.stack(await ctx.vectors([*words, *names]))
    cosines = vectors[: len(words)] @ vectors[len(words) :].T
    rows = (dict(zip(names, row, strict=True)) for row in cosines.tolist())
    return dict(zip(words, rows, strict=True))


def _has_meaning(word: Word) -> bool:
    """Whether a word is neither a name, a number nor one that only joins others."""
    is_plain = word.text.islower() and word.fold.isalpha()
    return is_plain and word.fold not in load_operators().fillers


def _find_meant_columns(reading: Reading, senses: Senses) -> None:
    """Take free words for the columns they mean."""
    for at, word in enumerate(reading.words):
        if word.fold in senses and reading.is_free(at, at + 1) and not _is_known(reading, word):
            name = _choose(reading, senses[word.fold], _ALL, _LEAST)
            if name:
                note_column(reading, at, at + 1, name)


def _is_known(reading: Reading, word: Word) -> bool:
    """Whether a word names the table or another one, is a value, or says how much."""
    if any(is_same_word(word.fold, own) for own in (*reading.table.words, *reading.foreign)):
        return True
    if reading.operators.degree_of(word.fold, "est") or reading.operators.degree_of(word.fold):
        return True
    return any(word.fold in one.rows_by_value for one in reading.table.columns.values())


def find_superlatives(reading: Reading, senses: Senses, after: int) -> list[Mention]:
    """Find "most" and "cheapest", columns that words mean, and what is measured if none names it.

    `after` is the end of the words that ask: a noun just behind them may end in "est" too.
    """
    found = reading.find("superlatives")
    _find_meant_columns(reading, senses)
    for at, word in enumerate(reading.words):
        degree = reading.operators.degree_of(word.fold, "est")
        if at > after and degree and reading.is_free(at, at + 1):
            if _add_measure(reading, senses, at):
                reading.take(at, at + 1, "superlatives")
                found.append((at, at + 1, degree))
    if not _has_measure(reading):
        for start, end, _ in found:
            if end - start == 1:
                _add_measure(reading, senses, start)
    return found


def find_comparatives(reading: Reading, senses: Senses) -> list[Mention]:
    """Find "cheaper than", whose column is the one that the adjective measures."""
    found = []
    for at, word in enumerate(reading.words[:-1]):
        degree = reading.operators.degree_of(word.fold)
        if degree and reading.words[at + 1].fold == "than" and reading.is_free(at, at + 1):
            if name := _add_measure(reading, senses, at):
                reading.take(at, at + 2, "comparisons")
                extreme = to_extreme(degree, reading.table.columns[name])
                found.append((at, at + 2, _SIGNS[extreme]))
    return found


def find_choice(reading: Reading, senses: Senses) -> list[Mention]:
    """Find "more" or "cheaper" of a question that names what is compared: "…, A or B"."""
    named = Counter(one.column for one in reading.filters if one.how == "=" and not one.negated)
    if not named or max(named.values()) < 2:
        return []
    for at, word in enumerate(reading.words):
        degree = reading.operators.degree_of(word.fold)
        if not degree or not reading.is_free(at, at + 1):
            continue
        if _has_measure(reading) or _add_measure(reading, senses, at):
            reading.take(at, at + 1, "superlatives")
            return [(at, at + 1, degree)]
    return []


def _has_measure(reading: Reading) -> bool:
    """Whether a column that can be measured is mentioned."""
    columns = reading.table.columns
    return any(columns[name].type in _MEASURED for _, _, name in reading.columns)


def _add_measure(reading: Reading, senses: Senses, at: int) -> str:
    """Note and return the column that a word of degree measures; "" if none is close."""
    cosines = senses.get(reading.words[at].fold, {})
    name = _choose(reading, cosines, _MEASURED, _LEAST_OF_DEGREE)
    if name:
        reading.columns.append((at, at + 1, name))
    return name


def _choose(
    reading: Reading, cosines: Mapping[str, float], types: Sequence[str], least: float
) -> str:
    """Return the column of these types that is close enough and clearly the closest, or ""."""
    columns = reading.table.columns
    having = [name for name, column in columns.items() if column.type in types]
    near = {name: cosines.get(" ".join(columns[name].words), 0.0) for name in having}
    first, second = (sorted(near, key=lambda name: -near[name]) + ["", ""])[:2]
    if not first or near[first] < least:
        return ""
    return first if not second or near[first] - near[second] >= _LEAD else ""
