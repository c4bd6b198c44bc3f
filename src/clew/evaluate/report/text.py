"""A comparison as Markdown, CSV and JSON."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from clew.evaluate.compare import Cell, Comparison

_FEW = 30  # questions below which a bootstrap's intervals are too narrow
COSTS: tuple[tuple[str, str], ...] = (
    ("seconds_p50", "p50 ms"),
    ("seconds_p95", "p95 ms"),
    ("calls_per_query", "calls"),
    ("tokens_per_query", "tokens"),
    ("money_per_1k_queries", "money/1k"),
)


def value_text(cell: Cell | None) -> str:
    """A mean with its mark; a judge's marks are out of ten or a hundred, the rest out of one."""
    if cell is None:
        return ""
    digits = 3 if abs(cell.mean) <= 1 and cell.high <= 1 else 2
    return f"{cell.mean:.{digits}f}{cell.mark}"


def cost_text(name: str, costs: dict[str, Any]) -> str:
    """A cost in the table's unit."""
    value = float(costs[name])
    if name.startswith("seconds"):
        return f"{value * 1000:.0f}" if value >= 0.0095 else f"{value * 1000:.1f}"
    if name.startswith("money"):
        return f"{value:.4g}"
    return f"{value:.1f}" if name == "calls_per_query" else f"{value:.0f}"


def cost_columns(comparison: Comparison) -> list[tuple[str, str]]:
    """The costs worth a column: what every recipe has at nought says nothing."""
    costs = [report.costs() for report in comparison.reports]
    return [
        (name, title)
        for name, title in COSTS
        if name.startswith("seconds") or any(float(one[name]) for one in costs)
    ]


def table_rows(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Titles and cells, the best of each column in bold as Markdown writes it."""
    columns = cost_columns(comparison)
    titles = ["recipe", *comparison.metrics, "n", "failed", *(title for _, title in columns)]
    rows = []
    for report in comparison.reports:
        cells = comparison.cells[report.recipe]
        summary = report.summary()
        texts = []
        for metric in comparison.metrics:
            cell = cells.get(metric)
            text = value_text(cell)
            if cell is not None and cell.n != summary["n"]:
                text += f" (n={cell.n})"
            texts.append(f"**{text}**" if cell is not None and cell.best else text)
        failed = str(summary["failed"])
        failed += f" (+{summary['unscored']} unscored)" if summary["unscored"] else ""
        costs = [cost_text(name, summary) for name, _ in columns]
        rows.append([f"`{report.recipe}`", *texts, str(summary["n"]), failed, *costs])
    return titles, rows


def markdown(comparison: Comparison, about: Sequence[str] = ()) -> str:
    """The table as Markdown, with what the marks mean."""
    titles, rows = table_rows(comparison)
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*about, "", *lines, "", legend(comparison), ""]).lstrip("\n")


def legend(comparison: Comparison) -> str:
    """What marks and bold mean, in one sentence."""
    fixed = set(comparison.reference.values())
    to = f"`{next(iter(fixed))}`" if len(fixed) == 1 else "the best of the column"
    fewest = min((c.n for row in comparison.cells.values() for c in row.values()), default=0)
    few = f" With {fewest} questions the marks are surer than they should be." * (fewest < _FEW)
    return (
        f"Bold: best of the column. * and **: differs from {to} at p < 0.05 and p < 0.01 "
        f"(paired bootstrap over questions, {comparison.rounds:,} rounds, Holm-corrected). "
        f"A failed question counts as nothing found.{few}"
    )


def csv_text(comparison: Comparison) -> str:
    """One line per recipe: every mean, its interval, its number, and all costs."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    costs = list(comparison.reports[0].costs()) if comparison.reports else []
    parts = [f"{m}{part}" for m in comparison.metrics for part in ("", " low", " high", " n", " p")]
    writer.writerow(["recipe", *parts, "n", "failed", "unscored", *costs])
    for report in comparison.reports:
        summary, cells = report.summary(), comparison.cells[report.recipe]
        values: list[Any] = []
        for metric in comparison.metrics:
            cell = cells.get(metric)
            values += (
                [round(v, 5) for v in (cell.mean, cell.low, cell.high)] + [cell.n, round(cell.p, 5)]
                if cell
                else [""] * 5
            )
        counts = [summary[name] for name in ("n", "failed", "unscored")]
        writer.writerow([report.recipe, *values, *counts, *(summary[name] for name in costs)])
    return out.getvalue()
