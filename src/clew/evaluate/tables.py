"""Tables beside the comparison: win rates, build and query costs, means over data sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clew.agents.baselines import ClosedBook
from clew.agents.messages import strip_marks
from clew.evaluate.compare import find_baselines, list_rows
from clew.evaluate.datasets import Question
from clew.evaluate.judges import Judge, JudgeError
from clew.evaluate.record import Record
from clew.evaluate.rubrics import PAIRWISE
from clew.evaluate.summary import (
    COST_FIELDS,
    COUNT_FIELDS,
    TIMED_FIELDS,
    RecipeReport,
    mark_cached,
)
from clew.ingest.embedding import ProgressCallback
from clew.recipes.agents import AGENTS
from clew.recipes.describe import required_trees
from clew.recipes.registry import RECIPES, resolve_recipe

GOLD = "gold"
"""The data set's own answers, as a baseline."""
_TEXT_RETRIEVERS = frozenset({"naive", "bm25", "hybrid", "hybrid-rerank"})
"""Retrievers that read no graph: building one is not their cost."""
BUILD_COLUMNS: Mapping[str, str] = {
    "seconds_per_1k_tokens": "s/1k tokens",
    "money_per_1m_tokens": "money/1M tokens",
    "build_seconds": "build s",
    "build_calls": "build calls",
    "build_tokens": "build tokens",
    "entities": "nodes",
    "facts": "edges",
}
QUERY_COLUMNS: Mapping[str, str] = {
    "seconds_per_query": "s/query",
    "money_per_1k_queries": "money/1k queries",
    "calls_per_query": "calls/query",
    "tokens_per_query": "tokens/query",
}
COST_TITLES = {**BUILD_COLUMNS, **QUERY_COLUMNS}


@dataclass(frozen=True)
class WinRates:
    """How often each recipe beats the baseline, by criterion, over both orders."""

    baseline: str
    """A row; or a recipe, each of whose rows is compared with those that are run alike."""
    rates: dict[str, dict[str, float]] = field(default_factory=dict)
    """Recipe → criterion → share of wins; a tie counts half."""
    n: dict[str, int] = field(default_factory=dict)
    length_ratio: dict[str, float] = field(default_factory=dict)
    """Recipe → length of its answers divided by that of the baseline's: judges like long ones."""
    unjudged: dict[str, int] = field(default_factory=dict)
    """Recipe → pairs for which the judge gave no readable verdict."""


async def judge_pairs(
    reports: Sequence[RecipeReport], baseline: str, judge: Judge, progress: ProgressCallback
) -> WinRates:
    """Judge every recipe's answers against the baseline's, or against the gold, one by one."""
    by_name = {report.recipe: report for report in reports}
    baselines = find_baselines(baseline, [*list_rows(reports), (GOLD, GOLD)])
    baselines = {name: one for name, one in baselines.items() if name in by_name}
    rows = set(baselines.values())
    found = WinRates(rows.pop() if len(rows) == 1 else baseline)
    for name, against in baselines.items():
        pairs = _pair_answers(by_name[name], by_name.get(against))
        verdicts: list[dict[str, float]] = []
        for done, (question, one, other) in enumerate(pairs, start=1):
            if not one or not other:  # nothing to judge: no answer loses against one
                verdicts.append(dict.fromkeys(PAIRWISE, (1 + bool(one) - bool(other)) / 2))
                continue
            try:
                verdicts.append(await judge.compare(question, one, other))
            except JudgeError:
                found.unjudged[name] = found.unjudged.get(name, 0) + 1
            progress(f"{name} against {against}", done, len(pairs))
        means = {c: [verdict[c] for verdict in verdicts] for c in PAIRWISE}
        found.rates[name] = {c: round(float(np.mean(v)), 4) if v else 0.0 for c, v in means.items()}
        found.n[name] = len(verdicts)
        sizes = [len(one) / len(other) for _, one, other in pairs if other]
        found.length_ratio[name] = round(float(np.mean(sizes)), 3) if sizes else 0.0
    return found


def _pair_answers(
    report: RecipeReport, against: RecipeReport | None
) -> list[tuple[Question, str, str]]:
    """Return each question with the recipe's answer and the baseline's, or the gold answers."""
    others = {record.question: _said(record) for record in against.records} if against else {}
    said = {record.question: _said(record) for record in report.records}
    return [
        (question, said[question.id], others.get(question.id, "; ".join(question.answers)))
        for question in report.questions
        if question.id in said and (question.id in others or (against is None and question.answers))
    ]


def _said(record: Record) -> str:
    """Return what a recipe answered, without our marks; nothing for a refusal or a failure."""
    silent = record.verdict == "refused" or record.error
    return "" if silent else strip_marks(record.answer).strip()


def build_costs(
    reports: Sequence[RecipeReport], build: Mapping[str, Any]
) -> dict[str, dict[str, float]]:
    """Return per recipe what its knowledge cost to build and a question to answer.

    All recipes of a knowledge base share its graph; one that reads no graph has no build cost, and
    one that reads communities has that of its tree as well.
    """
    found = {}
    for report in reports:
        recipe = str(report.about.get("recipe") or report.recipe)
        own = _add_trees(build, recipe) if _reads_graph(recipe) else {}
        costs = report.costs()
        found[report.recipe] = {
            **{name: float(own.get(name, 0)) for name in BUILD_COLUMNS},
            **{name: float(costs[name]) for name in (*QUERY_COLUMNS, *TIMED_FIELDS)},
        }
    return found


def _add_trees(build: Mapping[str, Any], recipe: str) -> Mapping[str, Any]:
    """Return the cost of a graph with that of the trees that a recipe reads."""
    needed = required_trees(resolve_recipe(recipe).retrieve) if _is_built_in(recipe) else ()
    trees = [build["trees"][name] for name in needed if name in build.get("trees", {})]
    if not trees:
        return build
    sums = {
        name: float(build.get(name, 0)) + sum(tree[name] for tree in trees)
        for name in ("build_seconds", "build_calls", "build_tokens", "money")
    }
    size = float(build.get("corpus_tokens", 0)) or float("inf")
    rates = {
        "seconds_per_1k_tokens": round(1000 * sums["build_seconds"] / size, 6),
        "money_per_1m_tokens": round(1_000_000 * sums["money"] / size, 6),
    }
    return {**build, **sums, **rates}


def _is_built_in(recipe: str) -> bool:
    name = recipe.partition("+")[2] or recipe
    return name in RECIPES or name in AGENTS


def _reads_graph(recipe: str) -> bool:
    if not _is_built_in(recipe):
        return True
    resolved = resolve_recipe(recipe)
    closed = isinstance(resolved.agent, ClosedBook)
    return not closed and resolved.retrieve.name not in _TEXT_RETRIEVERS


def tabulate_costs(costs: Mapping[str, Mapping[str, float]]) -> tuple[list[str], list[list[str]]]:
    """Return titles and rows of the table of costs."""
    rows = []
    for recipe, values in costs.items():
        cells = {name: _format_number(values[name]) for name in COST_TITLES}
        cells["seconds_per_query"] += mark_cached(values)
        rows.append([recipe, *cells.values()])
    return ["recipe", *COST_TITLES.values()], rows


def tabulate_wins(wins: WinRates) -> tuple[list[str], list[list[str]]]:
    """Return titles and rows of the table of win rates, in percent."""
    rows = [
        [name, *(f"{100 * rates[c]:.1f}" for c in PAIRWISE)]
        + [f"{wins.length_ratio[name]:.2f}", str(wins.n[name])]
        for name, rates in wins.rates.items()
    ]
    return [f"win % against {wins.baseline}", *PAIRWISE, "length ratio", "n"], rows


def average_datasets(payloads: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return per recipe the mean of each metric over the data sets that all have it.

    Counts are added up, and costs per question averaged like the metrics.
    """
    found: dict[str, dict[str, Any]] = {}
    totals = {*COUNT_FIELDS, *TIMED_FIELDS, "calls", "cached_calls", "tokens", "money"}
    names = dict.fromkeys(recipe for payload in payloads for recipe in payload["recipes"])
    for recipe in names:
        rows = [payload["recipes"].get(recipe, {}) for payload in payloads]
        keys = [key for key in rows[0] if all(key in row for row in rows) and ".n" not in key]
        found[recipe] = {
            key: sum(row[key] for row in rows)
            if key in totals
            else round(float(np.mean([row[key] for row in rows])), 5)
            for key in keys
        }
    return found


def tabulate_means(
    means: Mapping[str, Mapping[str, Any]],
) -> tuple[list[str], list[list[str]]]:
    """Return titles and rows of the means over data sets."""
    hidden = {*COST_FIELDS, *COUNT_FIELDS}
    metrics = list(
        dict.fromkeys(k for row in means.values() for k in row if k not in hidden and "." not in k)
    )
    rows = [
        [recipe, *(f"{row[m]:.3f}" if m in row else "" for m in metrics), str(row.get("n", ""))]
        for recipe, row in means.items()
    ]
    return ["mean of the data sets", *metrics, "n"], rows


def _format_number(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 or value == int(value) else f"{value:.4g}"
