"""Summarise the records of a recipe: mean metrics, counts and costs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clew.evaluate.datasets import Question
from clew.evaluate.record import Record
from clew.model_settings import Price
from clew.types import Usage

COST_FIELDS = (
    "seconds_per_query",
    "seconds_p50",
    "seconds_p95",
    "calls",
    "calls_per_query",
    "cached_calls",
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
        """Return time, calls, tokens and money; cached calls count as if they had been made."""
        seconds = [record.seconds for record in self.records] or [0.0]
        usage = sum((record.usage for record in self.records), Usage())
        saved = Usage(
            prompt_tokens=usage.cached_prompt_tokens,
            completion_tokens=usage.cached_completion_tokens,
        )
        calls = usage.calls + usage.cached_calls
        tokens = sum(u.prompt_tokens + u.completion_tokens for u in (usage, saved))
        money = usage.money + self.price.cost(saved)
        number = max(1, len(self.records))
        return {
            "seconds_per_query": round(float(np.mean(seconds)), 5),
            "seconds_p50": round(float(np.percentile(seconds, 50)), 5),
            "seconds_p95": round(float(np.percentile(seconds, 95)), 5),
            "calls": calls,
            "calls_per_query": round(calls / number, 3),
            "cached_calls": usage.cached_calls,
            "tokens": tokens,
            "tokens_per_query": round(tokens / number, 1),
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
