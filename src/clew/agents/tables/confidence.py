"""How far the answer that code computed from rows is trusted: by the words that were guessed.

A question whose every word is a column, a value, an operator or the table's name is read as it
was meant nine times in ten. Each word that was taken for something without proof speaks against
the reading, the more the less the embedder finds the two alike. The weights are fitted on questions
over several tables, and on the same questions after the column or the rows that answer them were
removed (`python -m bench.table_confidence`). Where a scorer chose among queries, its probability
and its lead over the next tell it (`python -m bench.query_scorer.confidence`).
"""

import tomllib
from collections import defaultdict
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from clew.agents.core.confidence import LogisticModel, Signals
from clew.agents.tables.load import Table
from clew.agents.tables.meanings import PERSON, Senses
from clew.agents.tables.reading import Guess, Query
from clew.odds import to_chance, to_log_odds

_LEAST = 0.001  # chance below which nothing is less likely, nor surer above 1 less that
_UNCOMPARED = 0.3  # for a cosine, without an embedder
_SAME = 0.75  # cosine of words that mean the same
_LISTED = 0.9  # cosine that only words have which are listed as naming the same
_FREE = ("counted noun", "asked noun", "verb", "bare verb")  # words that nothing accounts for
_COUNTED = ("verb", "bare verb")  # a guess however close they are
_COMPARED = (*_FREE, "thing", "role", "measure", "value", "table", "person")


def measure_confidence(query: Query, senses: Senses) -> float:
    """Return how probable it is that a query says what was asked."""
    return _load_model("guessed")(describe_guesses(query, senses))


class Lead(NamedTuple):
    """What speaks for the query that the scorer prefers, and against it."""

    chance: float
    rival: float
    """The chance of the best one with other values."""
    agreed: bool | None = None
    """Whether reading the question by rules told the same; None if that told nothing."""
    counts_unknown: bool = False
    """Whether rows are counted for a noun that nothing of the table is called by."""


def measure_judged(lead: Lead) -> float:
    """Return how probable a query is that the scorer prefers."""
    return _load_model("judged")(describe_lead(lead))


def describe_lead(lead: Lead) -> Signals:
    """Return the signals of what speaks for a query: logits, and whether the rest is so."""
    own, other = (to_log_odds(one, _LEAST) for one in (lead.chance, lead.rival))
    said = {"agreed": float(lead.agreed is True), "denied": float(lead.agreed is False)}
    said["counts unknown"] = float(lead.counts_unknown)
    return {"chance": own, "lead": own - other} | said


def add_support(chance: float, signals: Signals) -> float:
    """Return the scorer's chance of a query with what else speaks for it."""
    weights = _load_model("support").weights
    support = sum(weights.get(name, 0.0) * value for name, value in signals.items())
    return to_chance(to_log_odds(chance, _LEAST) + support)


def describe_guesses(query: Query, senses: Senses) -> Signals:
    """Return what was guessed by kind: how often, and how far the words are from what they are."""
    found: dict[str, float] = defaultdict(float)
    for one in query.guesses:
        if one.kind in _COMPARED:
            cosine = _find_cosine(query.table, one, senses)
            found[f"{one.kind} far"] += max(0.0, 1 - cosine / _SAME)
            if one.kind in _COUNTED or (one.kind == "role" and cosine < _LISTED):
                found[one.kind] += 1
        else:
            found[one.kind] += 1
    found["joined"] = float(any(one.columns & query.columns for one in query.table.partners))
    return dict(found)


def _find_cosine(table: Table, guess: Guess, senses: Senses) -> float:
    """Return the cosine of a word with what it was taken for, or with what is nearest to it."""
    near = senses.get(guess.word, {})
    if guess.kind == "person":
        near = senses.get(PERSON, {})
        return max((near.get(name, 0.0) for name in _name_things(table, guess.name)), default=0.0)
    if not near:
        return _UNCOMPARED
    if guess.kind in _FREE or not guess.name:
        names = [*(" ".join(one.words) for one in table.columns.values()), *table.words]
        return max(near.get(name, 0.0) for name in names)
    column = table.columns.get(guess.name)
    return near.get(" ".join(column.words) if column else guess.name, 0.0)


def _name_things(table: Table, column: str) -> list[str]:
    """Return what the things are called that a column names: rows as their table is."""
    if column == table.label:
        return sorted(table.own_words)
    partner = next((one for one in table.partners if one.label == column), None)
    if partner is not None:
        return sorted(partner.table.own_words)
    return [" ".join(table.columns[column].words)]


@cache
def _load_model(name: str) -> LogisticModel:
    raw = (files("clew.agents.tables") / "confidence.toml").read_text(encoding="utf-8")
    data = tomllib.loads(raw)[name]
    return LogisticModel(data["weights"], data["bias"])
