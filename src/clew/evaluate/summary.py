"""Summarise the records of a recipe: mean metrics, counts and costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from clew.config import Price
from clew.evaluate.datasets import Question
from clew.evaluate.metrics.registry import metric_depth
from clew.evaluate.record import Record
from clew.types import Usage

TIMED_FIELDS = ("cached_questions", "timed_questions")
"""How many questions used the cache of replies, and how many did not."""
COST_FIELDS = (
    "seconds_per_query",
    "seconds_p50",
    "seconds_p95",
    "calls",
    "calls_per_query",
    "cached_calls",
    *TIMED_FIELDS,
    "tokens",
    "tokens_per_query",
    "money",
    "money_per_1k_queries",
)
COUNT_FIELDS = ("n", "failed", "unscored", "refused")


@dataclass(frozen=True)
class RecipeReport:
    """All records of one recipe on one data set."""

    recipe: str
    records: tuple[Record, ...]
    questions: Sequence[Question] = ()
    price: Price = Price()
    """Price of cached replies: recipes are compared as if nothing was cached."""
    about: dict[str, Any] = field(default_factory=dict)
    """Mode, depth and models of the run."""

    @property
    def any_succeeded(self) -> bool:
        """Whether any question succeeded; otherwise the values mean nothing."""
        return not self.records or any(not record.error for record in self.records)

    def metric_names(self) -> list[str]:
        """Return the metrics that have a value, the judges' criteria last."""
        names = dict.fromkeys(name for record in self.records for name in record.values)
        return sorted(names, key=lambda name: "." in name)

    def summary(self) -> dict[str, Any]:
        """Return the mean of each metric over the questions it applies to, counts and costs."""
        n = max((len(self._metric_values(name)) for name in self.metric_names()), default=0)
        means: dict[str, Any] = {}
        for name in self.metric_names():
            values = self._metric_values(name)
            means[name] = round(float(np.mean(values)), 4)
            if len(values) != n:
                means[f"{name}.n"] = len(values)
        return {
            **means,
            **self._count_refusals(),
            "n": n,
            "failed": sum(1 for record in self.records if record.error),
            "unscored": sum(len(record.unscored) for record in self.records),
            **self.costs(),
        }

    def costs(self) -> dict[str, float]:
        """Return time, calls, tokens and money; cached calls count as if they had been made.

        Time is that of the questions answered without the cache of replies, if there are any.
        """
        timed = [record for record in self.records if not record.usage.cached_calls]
        seconds = [record.seconds for record in timed or self.records] or [0.0]
        usage = sum((record.usage for record in self.records), Usage())
        saved = Usage(
            prompt_tokens=usage.cached_prompt_tokens,
            completion_tokens=usage.cached_completion_tokens,
        )
        calls = usage.calls + usage.cached_calls
        money = usage.money + self.price.cost(saved)
        number = max(1, len(self.records))
        return {
            "seconds_per_query": round(float(np.mean(seconds)), 5),
            "seconds_p50": round(float(np.percentile(seconds, 50)), 5),
            "seconds_p95": round(float(np.percentile(seconds, 95)), 5),
            "calls": calls,
            "calls_per_query": round(calls / number, 3),
            "cached_calls": usage.cached_calls,
            "cached_questions": len(self.records) - len(timed),
            "timed_questions": len(timed),
            "tokens": usage.all_tokens,
            "tokens_per_query": round(usage.all_tokens / number, 1),
            "money": round(money, 6),
            "money_per_1k_queries": round(1000 * money / number, 6),
        }

    def by_type(self, metric: str) -> dict[str, tuple[float, int]]:
        """Return the mean of a metric and its number of values by question type."""
        types = {question.id: question.type for question in self.questions}
        found: dict[str, list[float]] = {}
        for record in self.records:
            if metric in record.values:
                kind = types.get(record.question, "")
                found.setdefault(kind, []).append(record.values[metric])
        return {kind: (float(np.mean(v)), len(v)) for kind, v in sorted(found.items())}

    def _metric_values(self, name: str) -> list[float]:
        return [record.values[name] for record in self.records if name in record.values]

    def _count_refusals(self) -> dict[str, Any]:
        """Count the refused questions, if answers were requested."""
        verdicts = [record.verdict for record in self.records if record.verdict]
        return {"refused": verdicts.count("refused")} if verdicts else {}


def mark_cached(costs: Mapping[str, Any]) -> str:
    """Say that a time is of cached replies, or how many questions were answered without them."""
    if not costs["cached_questions"]:
        return ""
    timed = costs["timed_questions"]
    return f" (of {timed:.0f})" if timed else " (cached)"


_FETCHED_KEY, _LEFT_OUT_KEY = "fetched", "left_out"


def drop_deep_metrics(
    report: RecipeReport, metrics: Sequence[str], fetched: int, held: int
) -> RecipeReport:
    """Remove metrics deeper than `fetched` passages, unless all `held` documents were fetched.

    Otherwise recall@20 of 5 passages would look like a recipe that finds nothing more.
    """
    dropped = _find_deep_metrics(metrics, fetched, held)
    if not dropped:
        return report
    records = tuple(
        replace(record, values={k: v for k, v in record.values.items() if k not in dropped})
        for record in report.records
    )
    about = report.about | {_FETCHED_KEY: fetched, _LEFT_OUT_KEY: dropped}
    return replace(report, records=records, about=about)


def max_found(report: RecipeReport) -> int:
    """Return the largest number of passages found for a question."""
    return max((len(record.found) for record in report.records), default=0)


def describe_dropped_metrics(reports: Sequence[RecipeReport]) -> list[str]:
    """Describe the dropped metrics, one sentence for the recipes that share them."""
    dropped: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for report in reports:
        if report.about.get(_LEFT_OUT_KEY):
            key = (int(report.about[_FETCHED_KEY]), tuple(report.about[_LEFT_OUT_KEY]))
            dropped.setdefault(key, []).append(report.recipe)
    return [
        f"{', '.join(names)}: left out for {', '.join(recipes)}: only {fetched} passages were "
        f"fetched; use -k {max(map(metric_depth, names))}"
        for (fetched, names), recipes in dropped.items()
    ]


def describe_shallow_records(report: RecipeReport, metrics: Sequence[str], held: int) -> list[str]:
    """Warn of metrics deeper than external records, whose requested depth is unknown."""
    deep = _find_deep_metrics(metrics, max_found(report), held)
    if not deep:
        return []
    return [
        f"{', '.join(deep)}: computed on at most {max_found(report)} passages for {report.recipe}: "
        "its records have no more"
    ]


def _find_deep_metrics(metrics: Sequence[str], fetched: int, held: int) -> list[str]:
    # If nothing was found at all, depth is not the cause.
    return [name for name in metrics if 0 < fetched < min(metric_depth(name), held)]
