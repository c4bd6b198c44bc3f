"""Compare recipes on the same questions: means, confidence intervals and significance."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clew.errors import ConfigError
from clew.evaluate.bootstrap import ROUNDS, BootstrapMeans, holm_correction, resample
from clew.evaluate.summary import RecipeReport

P_SIGNIFICANT, P_HIGHLY_SIGNIFICANT = 0.05, 0.01
MIN_QUESTIONS = 30
"""With fewer questions, bootstrap intervals are too narrow."""


@dataclass(frozen=True)
class Cell:
    """Mean, interval and significance of one metric of one recipe."""

    mean: float
    low: float
    high: float
    n: int
    p: float
    """P-value of the difference to the reference, Holm-corrected."""
    best: bool = False

    @property
    def stars(self) -> str:
        """`*` and `**`: differs from the reference at p < 0.05 and p < 0.01."""
        if self.p < P_HIGHLY_SIGNIFICANT:
            return "**"
        return "*" if self.p < P_SIGNIFICANT else ""


@dataclass(frozen=True)
class Comparison:
    """A table of recipes and metrics over the same questions."""

    reports: tuple[RecipeReport, ...]
    metrics: tuple[str, ...]
    cells: dict[str, dict[str, Cell]] = field(repr=False)
    """Recipe → metric → cell."""
    reference: dict[str, str] = field(default_factory=dict)
    """Metric → the recipe that p-values refer to."""
    rounds: int = ROUNDS
    seed: int = 0

    def significance(self) -> dict[str, Any]:
        """Return intervals and p-values as a JSON object."""
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
                        "mark": cell.stars,
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
    reports: Sequence[RecipeReport],
    *,
    against: str = "",
    rounds: int = ROUNDS,
    seed: int = 0,
) -> Comparison:
    """Compare reports; p-values refer to `against`, or to the best recipe of each metric."""
    check_reference(against, [report.recipe for report in reports])
    metrics = tuple(
        dict.fromkeys(m for report in reports for m in report.metric_names() if "." not in m)
    )
    values = _build_matrix(reports, metrics)
    spread = resample(values, rounds, seed)
    low, high = spread.confidence_interval()
    cells: dict[str, dict[str, Cell]] = {report.recipe: {} for report in reports}
    reference: dict[str, str] = {}
    for m, metric in enumerate(metrics):
        at = [r * len(metrics) + m for r in range(len(reports))]
        counts = [int(np.count_nonzero(~np.isnan(values[:, c]))) for c in at]
        means = [_nan_mean(values[:, c]) for c in at]
        top = max((mean for mean, n in zip(means, counts, strict=True) if n), default=0.0)
        chosen = _select_reference(reports, means, counts, against)
        reference[metric] = reports[chosen].recipe
        ran = [r for r, report in enumerate(reports) if report.any_succeeded]
        p_values = _compute_p_values(spread, at, chosen, ran)
        for r, report in enumerate(reports):
            if counts[r]:
                cells[report.recipe][metric] = Cell(
                    *(means[r], float(low[at[r]]), float(high[at[r]]), counts[r], p_values[r]),
                    best=round(means[r], 4) == round(top, 4),
                )
    return Comparison(tuple(reports), metrics, cells, reference, rounds, seed)


def check_reference(against: str, recipes: Sequence[str]) -> None:
    """Raise ConfigError if the reference recipe is not among those compared."""
    if against and against not in recipes:
        raise ConfigError(f"nothing to compare with {against!r}; have {', '.join(recipes)}")


def _build_matrix(reports: Sequence[RecipeReport], metrics: Sequence[str]) -> Any:
    """Return the matrix questions × (recipe, metric); NaN where there is no value."""
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


def _nan_mean(values: Any) -> float:
    present = values[~np.isnan(values)]
    return float(np.mean(present)) if len(present) else 0.0


def _select_reference(
    reports: Sequence[RecipeReport], means: Sequence[float], counts: Sequence[int], against: str
) -> int:
    names = [report.recipe for report in reports]
    if against in names and counts[names.index(against)]:
        return names.index(against)
    return max(range(len(names)), key=lambda at: (counts[at] > 0, means[at]))


def _compute_p_values(
    spread: BootstrapMeans, columns: Sequence[int], reference: int, ran: Sequence[int]
) -> list[float]:
    """Return corrected p-values against the reference; recipes that failed throughout get 1."""
    others = [at for at in ran if at != reference and reference in ran]
    corrected = holm_correction([spread.p_value(columns[at], columns[reference]) for at in others])
    by_recipe = dict(zip(others, corrected, strict=True))
    return [by_recipe.get(at, 1.0) for at in range(len(columns))]
