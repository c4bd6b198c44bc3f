"""Format a comparison as Markdown and CSV tables."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from clew.evaluate.compare import MIN_QUESTIONS, Cell, Comparison
from clew.evaluate.summary import RecipeReport, mark_cached

COST_COLUMNS: tuple[tuple[str, str], ...] = (
    ("seconds_p50", "p50 ms"),
    ("seconds_p95", "p95 ms"),
    ("calls_per_query", "calls"),
    ("tokens_per_query", "tokens"),
    ("money_per_1k_queries", "money/1k"),
)


def format_value(cell: Cell | None) -> str:
    """Format a mean with its stars; judge scores go up to 10 or 100, all others up to 1."""
    if cell is None:
        return ""
    digits = 3 if abs(cell.mean) <= 1 and cell.high <= 1 else 2
    return f"{cell.mean:.{digits}f}{cell.stars}"


def format_cost(name: str, costs: Mapping[str, Any]) -> str:
    """Format a cost in the unit of the table."""
    value = float(costs[name])
    if name.startswith("seconds"):
        text = f"{value * 1000:.0f}" if value >= 0.0095 else f"{value * 1000:.1f}"
        return f"{text}{mark_cached(costs)}"
    if name.startswith("money"):
        return f"{value:.4g}"
    return f"{value:.1f}" if name == "calls_per_query" else f"{value:.0f}"


def select_cost_columns(comparison: Comparison) -> list[tuple[str, str]]:
    """Return the cost columns that are not 0 for every recipe."""
    costs = [report.costs() for report in comparison.reports]
    return [
        (name, title)
        for name, title in COST_COLUMNS
        if name.startswith("seconds") or any(float(one[name]) for one in costs)
    ]


def build_table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return column titles and rows; the best of each column is in Markdown bold."""
    columns = select_cost_columns(comparison)
    lowest = {name: find_lowest_cost(name, comparison) for name, _ in columns}
    titles = ["recipe", *comparison.metrics, "n", "failed", *(title for _, title in columns)]
    rows = []
    for report in comparison.reports:
        cells = comparison.cells[report.recipe]
        summary = report.summary()
        texts = []
        for metric in comparison.metrics:
            cell = cells.get(metric)
            text = format_value(cell)
            if cell is not None and cell.n != summary["n"]:
                text += f" (n={cell.n})"
            texts.append(_bold(text, cell is not None and cell.best))
        costs = [_bold(*format_cost_cell(name, report, lowest[name])) for name, _ in columns]
        counts = [str(summary["n"]), format_failures(summary)]
        rows.append([f"`{report.recipe}`", *texts, *counts, *costs])
    return titles, rows


def format_failures(summary: Mapping[str, Any]) -> str:
    """Format the number of failed questions and of unscored values."""
    unscored = f" (+{summary['unscored']} unscored)" if summary["unscored"] else ""
    return f"{summary['failed']}{unscored}"


def find_lowest_cost(name: str, comparison: Comparison) -> str:
    """Return the lowest cost of a column as formatted; empty if all are the same."""
    costs = [report.costs() for report in comparison.reports if has_cost(name, report)]
    shown = {format_cost(name, one): float(one[name]) for one in costs}
    return min(shown, key=lambda text: shown[text]) if len(shown) > 1 else ""


def format_cost_cell(name: str, report: RecipeReport, lowest: str) -> tuple[str, bool]:
    """Return a formatted cost and whether it is the lowest; empty if unknown."""
    costs = report.costs()
    unrecorded = not costs[name] and "from" in report.about
    text = "" if unrecorded else format_cost(name, costs)
    return text, has_cost(name, report) and text == lowest


def has_cost(name: str, report: RecipeReport) -> bool:
    """Whether the cost is known: the time of cached replies is not that of the recipe.

    In external records 0 means that it was not recorded.
    """
    costs = report.costs()
    if name.startswith("seconds") and costs["cached_questions"] and not costs["timed_questions"]:
        return False
    return bool(costs[name]) or "from" not in report.about


def _bold(text: str, best: bool) -> str:
    return f"**{text}**" if best else text


def to_markdown(comparison: Comparison, about: Sequence[str] = ()) -> str:
    """Format the table as Markdown with its legend."""
    titles, rows = build_table(comparison)
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*about, "", *lines, "", format_legend(comparison), ""]).lstrip("\n")


def format_legend(comparison: Comparison) -> str:
    """Explain stars and bold of the table."""
    references = set(comparison.reference.values())
    base = f"`{next(iter(references))}`" if len(references) == 1 else "the best of the column"
    fewest = min((c.n for row in comparison.cells.values() for c in row.values()), default=0)
    warning = f" {fewest} questions are too few to trust the marks." * (fewest < MIN_QUESTIONS)
    some_cached = any(report.costs()["cached_questions"] for report in comparison.reports)
    cached = (
        " Cached replies count in calls, tokens and money as if they were new; `of N`: the time of "
        "the N questions without any; `cached`: no question was without, the time says nothing."
    ) * some_cached
    return (
        f"Bold: best of the column, of costs the lowest. * and **: differs from {base} at p < 0.05 "
        f"and p < 0.01 (paired bootstrap over questions, {comparison.rounds:,} rounds, "
        f"Holm-corrected). A failed question counts as nothing found.{warning}{cached}"
    )


def to_csv(comparison: Comparison) -> str:
    """Format as CSV, one line per recipe: means, intervals, counts and costs."""
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
