"""Fits the confidence in table answers that the query scorer chose, on tables held out.

    python -m bench.query_scorer.confidence [--most 600]

Prints the weights for `[judged]` of `src/clew/agents/tables/confidence.toml`: each fitted on four
fifths of the tables and measured on the rest.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bench.machine import print_result
from bench.query_scorer.asked import TABLES, is_held, make_query, make_table, read_lines
from bench.query_scorer.joined import JOINED, TableSet, read_asks
from clew.agents.core.confidence import LogisticModel, Signals, fit_logistic
from clew.agents.tables.confidence import Lead, describe_lead
from clew.agents.tables.judge import measure_lead, rank_queries
from clew.agents.tables.load import Table
from clew.agents.tables.parse import parse_question
from clew.agents.tables.reading import Query
from clew.agents.tables.run import TableResult, run_query
from clew.reader.query_scorer import QueryScorer

_FOLDS = 5


class Judged(NamedTuple):
    """What the scorer says of the best query of a question, and whether it is the right one."""

    name: str
    signals: Signals
    right: bool
    answerable: bool


class HeldQuestion(NamedTuple):
    """A question over tables that are held out, single and joined, and what the rows answer."""

    name: str
    question: str
    tables: list[Table]
    gold: TableResult | None


def sample_held(most: int, seed: int, *, answerable: bool = False) -> Iterator[HeldQuestion]:
    """Yield a sample of what is asked of tables and sets of tables held out, in one wording each.

    Half of them are over sets. With `answerable` only what the rows answer.
    """
    for held in (_list_single(), _list_joined()):
        kept = [one for one in held if one.gold is not None or not answerable]
        yield from random.Random(seed).sample(kept, min(most // 2, len(kept)))


def _list_single() -> Iterator[HeldQuestion]:
    for line in read_lines(TABLES):
        if is_held(line["table"]):
            table = make_table(line)
            for ask in line["asks"]:
                gold = None if ask["get"] == "none" else run_query(make_query(table, ask))
                if gold is not None or ask["get"] == "none":
                    yield from (HeldQuestion(line["table"], q, [table], gold) for q in ask["q"])


def _list_joined() -> Iterator[HeldQuestion]:
    for line in read_lines(JOINED):
        if is_held(line["set"]):
            tables = TableSet.read(line)
            for ask, _, gold in read_asks(tables, line["asks"]):
                yield from (HeldQuestion(line["set"], q, tables.tables, gold) for q in ask["q"])


def read_by_rules(question: str, tables: Sequence[Table]) -> list[Query]:
    """Return the readings of a question by rules, over single tables and joined ones."""
    single = [table for table in tables if not table.partners]
    joined = [table for table in tables if table.partners]
    return [
        query for some in (single, joined) for query in parse_question(question, some, {}, single)
    ]


def judge_tables(most: int, seed: int = 5) -> Iterator[Judged]:
    """Ask a sample of the questions over the tables that are held out."""
    scorer = QueryScorer.load()
    for name, question, tables, gold in sample_held(most, seed):
        readings = read_by_rules(question, tables)
        if ranked := rank_queries(scorer, question, tables, readings):
            right = gold is not None and same_values(ranked[0].result.values, gold.values)
            signals = describe_lead(measure_lead(question, ranked, readings))
            yield Judged(name, signals, right, gold is not None)
        elif gold is not None:
            yield Judged(name, describe_lead(Lead(0.0, 0.0)), False, True)


def same_values(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two results tell the same."""
    return sorted(one) == sorted(other)


def measure(model: LogisticModel, judged: Sequence[Judged]) -> dict[str, Any]:
    """Count what is told at one half, right and wrong."""
    chances = np.array([model(one.signals) for one in judged])
    right = np.array([one.right for one in judged])
    asked = np.array([one.answerable for one in judged])
    told = chances >= 0.5
    return {
        "questions": len(judged),
        "answerable": int(asked.sum()),
        "best is right": int(right.sum()),
        "told right": int((told & right).sum()),
        "told wrong": int((told & ~right & asked).sum()),
        "unanswerable told": int((told & ~asked).sum()),
        "brier": round(float(np.mean((chances - right) ** 2)), 4),
    }


def main() -> None:
    """Fit and print."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--most", type=int, default=600)
    given = ask.parse_args()
    judged = list(judge_tables(given.most))
    names = sorted({one.name for one in judged})
    counts: dict[str, float] = {}
    for fold in range(_FOLDS):
        left = set(names[fold::_FOLDS])
        known = [one for one in judged if one.name not in left]
        model = fit_logistic([one.signals for one in known], [one.right for one in known])
        for name, value in measure(model, [o for o in judged if o.name in left]).items():
            share = value / _FOLDS if name == "brier" else value
            counts[name] = round(counts.get(name, 0) + share, 4)
    whole = fit_logistic([one.signals for one in judged], [one.right for one in judged])
    plain = measure(LogisticModel({"chance": 1.0, "lead": 0.0}, 0.0), judged)
    figures = {"held out": counts, "scorer alone": plain}
    fitted = {"weights": dict(whole.weights), "bias": whole.bias}
    print_result("query_scorer.confidence", figures | fitted, {"tables": len(names)})


if __name__ == "__main__":
    main()
