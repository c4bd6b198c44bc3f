"""Compare recipes on the same questions: means, and intervals and p-values by bootstrap."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.errors import ConfigError
from clew.evaluate.summary import RecipeReport

Floats = NDArray[np.float64]
ROUNDS = 10_000
_MAX_DRAWS = 4_000_000  # random draws in memory at once
CONFIDENCE_LEVEL = 0.95


@dataclass(frozen=True)
class BootstrapMeans:
    """Resampled means of every column; all columns of a round use the same questions."""

    means: Floats  # rounds × columns

    def confidence_interval(self, level: float = CONFIDENCE_LEVEL) -> tuple[Floats, Floats]:
        """Return the percentile interval of each column's mean."""
        tail = 100 * (1 - level) / 2
        low, high = np.percentile(self.means, [tail, 100 - tail], axis=0)
        return low, high

    def p_value(self, one: int, other: int) -> float:
        """Two-sided p-value: how often resampling reverses the sign of the difference."""
        gap = self.means[:, one] - self.means[:, other]
        below, above = float(np.mean(gap <= 0)), float(np.mean(gap >= 0))
        return min(1.0, max(2 * min(below, above), 1 / len(gap)))


def resample(values: Floats, rounds: int = ROUNDS, seed: int = 0) -> BootstrapMeans:
    """Draw the questions (rows) with replacement, the same draw for all columns.

    NaN marks a question without a value in a column; means are over the values there are.
    """
    n, columns = values.shape
    if n == 0 or columns == 0:
        return BootstrapMeans(np.zeros((1, columns)))
    present = ~np.isnan(values)
    complete = bool(present.all())
    filled = np.where(present, values, 0.0).astype(np.float32)
    weights = present.astype(np.float32)
    column_means = filled.sum(axis=0) / np.maximum(weights.sum(axis=0), 1)
    rng = np.random.default_rng(seed)
    batch = max(1, min(rounds, _MAX_DRAWS // n))
    batches = []
    for start in range(0, rounds, batch):
        size = min(batch, rounds - start)
        drawn = rng.integers(0, n, (size, n), dtype=np.int32)
        drawn += np.arange(size, dtype=np.int32)[:, None] * n
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        draws = counts.astype(np.float32)
        total = draws @ filled
        if complete:
            batches.append(total / np.float32(n))
            continue
        number = draws @ weights
        # A draw that has no value for a column falls back to the column's mean.
        batches.append(np.where(number > 0, total / np.maximum(number, 1), column_means))
    return BootstrapMeans(np.concatenate(batches).astype(np.float64))


def holm_correction(p_values: list[float]) -> list[float]:
    """Holm's step-down correction for multiple comparisons."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, at in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = highest
    return corrected


P_SIGNIFICANT, P_HIGHLY_SIGNIFICANT = 0.05, 0.01
MIN_STARRED = 6
"""With fewer questions a sign test cannot reach p < 0.05 (2 × 0.5⁵ = 0.0625)."""
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
        if self.n < MIN_STARRED:
            return ""
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
    reports: Sequence[RecipeReport], *, against: str = "", rounds: int = ROUNDS, seed: int = 0
) -> Comparison:
    """Compare reports; p-values refer to `against`, or to the best recipe of each metric."""
    against = find_reference(against, list_rows(reports))
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


def list_rows(reports: Sequence[RecipeReport]) -> list[tuple[str, str]]:
    """Return the label of each row and the recipe that it ran."""
    return [(report.recipe, str(report.about.get("recipe") or report.recipe)) for report in reports]


def find_reference(against: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return the row to compare with by its label, or by its recipe if that has one row only.

    `rows` are (label, recipe). Raises ConfigError, with the rows there are.
    """
    if not against or any(label == against for label, _ in rows):
        return against
    same = [label for label, recipe in rows if recipe == against]
    if len(same) == 1:
        return same[0]
    if same:
        named = ", ".join(f"'{label}'" for label in same)
        raise ConfigError(f"{against!r} has several rows; name one of them: {named}")
    available = ", ".join(label for label, _ in rows)
    raise ConfigError(f"no recipe {against!r} to compare with; available: {available}")


def find_baselines(against: str, rows: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Map each row to the row it is judged against: a recipe with several to the one run alike.

    `rows` are (label, recipe); rows with the same model, evidence, mode and depth end alike.
    """
    same = [label for label, recipe in rows if recipe == against]
    if len(same) < 2 or any(label == against for label, _ in rows):
        one = find_reference(against, rows)
        return {label: one for label, _ in rows if label != one}
    ends = sorted((label.removeprefix(against) for label in same), key=len, reverse=True)
    alike = {label: next((e for e in ends if label.endswith(e)), None) for label, _ in rows}
    return {
        label: f"{against}{end}"
        for label, end in alike.items()
        if end is not None and label not in same
    }


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
