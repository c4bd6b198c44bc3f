"""Several recipes in one table: means, intervals, what differs for sure, and what it costs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clew.errors import ConfigError
from clew.evaluate.bootstrap import ROUNDS, Spread, holm, resample
from clew.evaluate.summary import Report

SURE, VERY_SURE = 0.05, 0.01
FEW = 30
"""Questions below which a bootstrap's intervals are too narrow."""


@dataclass(frozen=True)
class Cell:
    """A metric of a recipe."""

    mean: float
    low: float
    high: float
    n: int
    p: float
    """Of the difference to the reference, corrected for the number of comparisons."""
    best: bool = False

    @property
    def mark(self) -> str:
        """`*` and `**`: differs from the reference at 0.05 and 0.01."""
        if self.p < VERY_SURE:
            return "**"
        return "*" if self.p < SURE else ""


@dataclass(frozen=True)
class Comparison:
    """A table of recipes and metrics over the same questions."""

    reports: tuple[Report, ...]
    metrics: tuple[str, ...]
    cells: dict[str, dict[str, Cell]] = field(repr=False)
    """Recipe → metric → cell."""
    reference: dict[str, str] = field(default_factory=dict)
    """Metric → the recipe that marks refer to."""
    rounds: int = ROUNDS
    seed: int = 0

    def significance(self) -> dict[str, Any]:
        """Intervals and p-values for programs."""
        return {
            "rounds": self.rounds,
            "seed": self.seed,
            "reference": self.reference,
            "cells": {
                recipe: {
                    metric: {
                        "mean": round(cell.mean, 4),
                        "low": round(cell.low, 4),
                        "high": round(cell.high, 4),
                        "n": cell.n,
                        "p": round(cell.p, 5),
                        "mark": cell.mark,
                        "best": cell.best,
                    }
                    for metric, cell in row.items()
                }
                for recipe, row in self.cells.items()
            },
        }

    def by_type(self) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
        """Recipe → metric → type of question → mean and number."""
        return {
            report.recipe: {
                metric: {
                    kind: {"mean": round(mean, 4), "n": n}
                    for kind, (mean, n) in report.by_type(metric).items()
                }
                for metric in self.metrics
            }
            for report in self.reports
        }


def compare(
    reports: Sequence[Report],
    *,
    against: str = "",
    rounds: int = ROUNDS,
    seed: int = 0,
) -> Comparison:
    """Put reports side by side; marks refer to `against`, or to the best of each column."""
    check_against(against, [report.recipe for report in reports])
    metrics = tuple(
        dict.fromkeys(m for report in reports for m in report.metrics() if "." not in m)
    )
    values = _matrix(reports, metrics)
    spread = resample(values, rounds, seed)
    low, high = spread.interval()
    cells: dict[str, dict[str, Cell]] = {report.recipe: {} for report in reports}
    reference: dict[str, str] = {}
    for m, metric in enumerate(metrics):
        at = [r * len(metrics) + m for r in range(len(reports))]
        counts = [int(np.count_nonzero(~np.isnan(values[:, c]))) for c in at]
        means = [_mean(values[:, c]) for c in at]
        top = max((mean for mean, n in zip(means, counts, strict=True) if n), default=0.0)
        chosen = _reference(reports, means, counts, against)
        reference[metric] = reports[chosen].recipe
        ran = [r for r, report in enumerate(reports) if report.ran]
        sure = _p_values(spread, at, chosen, ran)
        for r, report in enumerate(reports):
            if counts[r]:
                cells[report.recipe][metric] = Cell(
                    *(means[r], float(low[at[r]]), float(high[at[r]]), counts[r], sure[r]),
                    best=round(means[r], 4) == round(top, 4),
                )
    return Comparison(tuple(reports), metrics, cells, reference, rounds, seed)


def check_against(against: str, recipes: Sequence[str]) -> None:
    """Refuse a recipe to compare with that is not among those compared."""
    if against and against not in recipes:
        raise ConfigError(f"nothing to compare with {against!r}; have {', '.join(recipes)}")


def _matrix(reports: Sequence[Report], metrics: Sequence[str]) -> Any:
    """Questions × (recipe, metric); NaN where there is no value."""
    ids = list(dict.fromkeys(record.question for report in reports for record in report.records))
    row = {question: at for at, question in enumerate(ids)}
    values = np.full((len(ids), len(reports) * len(metrics)), np.nan)
    column = {metric: at for at, metric in enumerate(metrics)}
    for r, report in enumerate(reports):
        for record in report.records:
            for metric, value in record.values.items():
                if metric in column:
                    values[row[record.question], r * len(metrics) + column[metric]] = value
    return values


def _mean(values: Any) -> float:
    held = values[~np.isnan(values)]
    return float(np.mean(held)) if len(held) else 0.0


def _reference(
    reports: Sequence[Report], means: Sequence[float], counts: Sequence[int], against: str
) -> int:
    names = [report.recipe for report in reports]
    if against in names and counts[names.index(against)]:
        return names.index(against)
    return max(range(len(names)), key=lambda at: (counts[at] > 0, means[at]))


def _p_values(
    spread: Spread, columns: Sequence[int], chosen: int, ran: Sequence[int]
) -> list[float]:
    """How surely each differs from the chosen one; what could not run at all was not compared."""
    others = [at for at in ran if at != chosen and chosen in ran]
    found = holm([spread.p_value(columns[at], columns[chosen]) for at in others])
    by_place = dict(zip(others, found, strict=True))
    return [by_place.get(at, 1.0) for at in range(len(columns))]
