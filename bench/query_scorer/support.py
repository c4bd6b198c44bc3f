"""Fits what speaks for a query over a table beside the scorer, on tables held out.

    python -m bench.query_scorer.support [--most 400]

Prints the weights for `[support]` of `src/clew/agents/tables/confidence.toml`, relative to the
scorer's log odds: fitted so that the right query comes first, on four fifths of the tables, and
measured on the rest.
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bench.machine import print_result
from bench.query_scorer.confidence import read_by_rules, same_values, sample_held
from clew.agents.tables.judge import score_queries
from clew.odds import to_log_odds
from clew.reader.query_scorer import QueryScorer

_FOLDS, _ROUNDS = 5, 300
_PENALTY, _RATE = 0.02, 0.3
_SIGNALS = ("by rules", "columns left out", "names rows", "values left out")


class Proposed(NamedTuple):
    """The signals of the queries that a question may mean, and which of them tell what is asked."""

    table: str
    signals: Any
    right: Any


def judge_tables(most: int, seed: int = 11) -> Iterator[Proposed]:
    """Score the queries of a sample of the questions over tables held out."""
    scorer = QueryScorer.load()
    for name, question, tables, gold in sample_held(most, seed, answerable=True):
        readings = read_by_rules(question, tables)
        scored = score_queries(scorer, question, tables, readings)
        if gold is None or not scored:
            continue
        rows = [
            [to_log_odds(one.confidence), *(said[name] for name in _SIGNALS)]
            for one, said in scored
        ]
        right = [same_values(one.result.values, gold.values) for one, _ in scored]
        yield Proposed(name, np.array(rows), np.array(right, np.float64))


def fit(proposed: Sequence[Proposed]) -> Any:
    """Return the weights with which a right query is likeliest to come first."""
    weights = np.zeros(1 + len(_SIGNALS))
    weights[0] = 1.0
    known = [one for one in proposed if one.right.any()]
    for _ in range(_ROUNDS):
        slope = np.zeros(len(weights))
        for one in known:
            chances = one.signals @ weights
            chances = np.exp(chances - chances.max())
            chances /= chances.sum()
            wanted = chances * one.right
            slope += (wanted / max(wanted.sum(), 1e-12) - chances) @ one.signals
        slope /= len(known)
        slope[1:] -= _PENALTY * weights[1:]
        slope[0] /= 3
        weights += _RATE * slope
    return weights


def count_right(weights: Any, proposed: Sequence[Proposed]) -> int:
    """Count the questions of which a right query comes first."""
    return sum(int(one.right[int((one.signals @ weights).argmax())]) for one in proposed)


def main() -> None:
    """Fit and print."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--most", type=int, default=400)
    given = ask.parse_args()
    proposed = list(judge_tables(given.most))
    names = sorted({one.table for one in proposed})
    held_out = 0
    for fold in range(_FOLDS):
        left = set(names[fold::_FOLDS])
        weights = fit([one for one in proposed if one.table not in left])
        held_out += count_right(weights, [one for one in proposed if one.table in left])
    whole, alone = fit(proposed), np.eye(1 + len(_SIGNALS))[0]
    figures = {
        "questions": len(proposed),
        "right proposed": int(sum(one.right.any() for one in proposed)),
        "right first, scorer alone": count_right(alone, proposed),
        "right first, held out": held_out,
        "weights": dict(zip(_SIGNALS, (whole[1:] / whole[0]).round(2).tolist(), strict=True)),
    }
    print_result("query_scorer.support", figures, {"tables": len(names)})


if __name__ == "__main__":
    main()
