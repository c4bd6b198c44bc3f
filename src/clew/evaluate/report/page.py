"""Saves a comparison to a folder: tables, records, and one self-contained HTML page."""

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from clew.evaluate.compare import Comparison
from clew.evaluate.datasets import Question
from clew.evaluate.record import Record
from clew.evaluate.report.svg import ParetoPoint, draw_bar_chart, draw_pareto_plot, series_colour
from clew.evaluate.report.text import (
    find_lowest_cost,
    format_cost_cell,
    format_legend,
    format_value,
    has_cost,
    select_cost_columns,
    to_csv,
    to_markdown,
)

_MAX_TYPES = 12
_CODE = re.compile(r"`([^`]+)`")
_COST_AXES = (
    ("seconds_per_query", "milliseconds per question", 1000.0),
    ("tokens_per_query", "tokens per question", 1.0),
    ("money_per_1k_queries", "money per 1,000 questions", 1.0),
)


def render_page(
    comparison: Comparison, title: str, about: Sequence[str] = (), questions_shown: int = 150
) -> str:
    """Render the page; of many questions it shows those on which the recipes differ most."""
    folder = files("clew.evaluate.report")
    page = (folder / "page.html").read_text(encoding="utf-8")
    colours = {report.recipe: series_colour(at) for at, report in enumerate(comparison.reports)}
    facts = json.dumps(_build_page_data(comparison, colours, questions_shown), ensure_ascii=False)
    parts = {
        "TITLE": escape(title),
        "TOKENS": (folder / "tokens.css").read_text(encoding="utf-8"),  # the page's colours
        "ABOUT": "".join(f'<p class="soft">{escape(line)}</p>' for line in about),
        "TABLE": _render_table(comparison, colours),
        "LEGEND": _CODE.sub(r"<code>\1</code>", escape(format_legend(comparison))),
        "PARETO": _render_plots(comparison, colours),
        "TYPES": _render_type_bars(comparison, colours),
        # No document text can close the script element.
        "FACTS": facts.replace("<", "\\u003c"),
    }
    return Template(page).substitute(parts)


def _render_table(comparison: Comparison, colours: Mapping[str, str]) -> str:
    columns = select_cost_columns(comparison)
    lowest = {name: find_lowest_cost(name, comparison) for name, _ in columns}
    titles = ["recipe", *comparison.metrics, "n", "failed", *(title for _, title in columns)]
    rows = ["<tr>" + "".join(f"<th>{escape(title)}</th>" for title in titles) + "</tr>"]
    for report in comparison.reports:
        summary, cells = report.summary(), comparison.cells[report.recipe]
        swatch = f'<span class="swatch" style="background:{colours[report.recipe]}"></span>'
        row = [f"<td>{swatch}{escape(report.recipe)}</td>"]
        for metric in comparison.metrics:
            cell = cells.get(metric)
            if cell is None:
                row.append("<td></td>")
                continue
            n = f", n={cell.n}" if cell.n != summary["n"] else ""
            row.append(
                f"<td{' class=best' if cell.best else ''}>{format_value(cell)}"
                f"<small>{cell.low:.3f} – {cell.high:.3f}{n}</small></td>"
            )
        failed = f"{summary['failed']}"
        if summary["unscored"]:
            failed += f"<small>{summary['unscored']} unscored</small>"
        row += [f"<td>{summary['n']}</td>", f"<td>{failed}</td>"]
        for name, _ in columns:
            text, best = format_cost_cell(name, report, lowest[name])
            row.append(f"<td{' class=best' if best else ''}>{text}</td>")
        rows.append("<tr>" + "".join(row) + "</tr>")
    return f"<table>{''.join(rows)}</table>"


def _render_plots(comparison: Comparison, colours: Mapping[str, str]) -> str:
    if not comparison.metrics:
        return ""
    metric = comparison.metrics[0]
    found = []
    for name, title, times in _COST_AXES:
        points = []
        for report in comparison.reports:
            cell = comparison.cells[report.recipe].get(metric)
            if cell is not None and has_cost(name, report):
                cost = float(report.costs()[name]) * times
                own = colours[report.recipe]
                points.append(ParetoPoint(report.recipe, cost, cell.mean, cell.low, cell.high, own))
        plot = draw_pareto_plot(points, title, metric)
        if plot:
            found.append(f"<figure>{plot}</figure>")
    return "".join(found)


def _render_type_bars(comparison: Comparison, colours: Mapping[str, str]) -> str:
    """Render a bar chart per metric if the questions have more than one type."""
    figures = []
    for metric in comparison.metrics[:3]:
        tables = {report.recipe: report.by_type(metric) for report in comparison.reports}
        sizes: dict[str, int] = {}
        for table in tables.values():
            for kind, (_, n) in table.items():
                sizes[kind] = max(sizes.get(kind, 0), n)
        kinds = sorted(sizes, key=lambda kind: -sizes[kind])[:_MAX_TYPES]
        if len(kinds) < 2:
            continue
        groups = [
            (
                f"{kind or 'other'} ({sizes[kind]})",
                [(r, table[kind][0], colours[r]) for r, table in tables.items() if kind in table],
            )
            for kind in kinds
        ]
        top = max(1.0, *(value for _, group in groups for _, value, _ in group))
        figures.append(f"<figure>{draw_bar_chart(groups, metric, top)}</figure>")
    if not figures:
        return ""
    names = "".join(
        f'<span><span class="swatch" style="background:{own}"></span>{escape(name)}</span>'
        for name, own in colours.items()
    )
    return (
        f'<h2>By type of question</h2><div class="legend">{names}</div>'
        f'<div class="plots">{"".join(figures)}</div>'
    )


def _build_page_data(
    comparison: Comparison, colours: Mapping[str, str], most: int
) -> dict[str, Any]:
    records = [{r.question: r for r in report.records} for report in comparison.reports]
    questions = {q.id: q for report in comparison.reports for q in report.questions}
    metric = comparison.metrics[0] if comparison.metrics else ""
    ordered = list(questions.values())
    if len(ordered) > most:
        ordered.sort(key=lambda q: -_compute_score_range(metric, q, records))
        ordered = ordered[:most]
    pool = _PassagePool()
    shown = [
        {
            "text": question.text,
            "type": question.type,
            "answers": list(question.answers[:8]),
            "gold": list(question.gold),
            "runs": [
                _build_run_data(table[question.id], pool)
                for table in records
                if question.id in table
            ],
        }
        for question in ordered
    ]
    return {
        "metric": metric,
        "colours": dict(colours),
        "total": len(questions),
        "passages": list(pool.held.values()),
        "questions": shown,
    }


class _PassagePool:
    """Deduplicates passages, so that the page holds each once although recipes share them."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], dict[str, Any]] = {}
        self._at: dict[tuple[str, str], int] = {}

    def add(self, passage: Mapping[str, Any]) -> list[Any]:
        """Add a passage; return its number and its score."""
        key = (str(passage.get("doc", "")), str(passage.get("text", "")))
        if key not in self._at:
            self._at[key] = len(self.held)
            self.held[key] = {"doc": key[0], "text": key[1], "title": passage.get("title", "")}
        return [self._at[key], passage.get("score", 0)]


def _compute_score_range(
    metric: str, question: Question, records: Sequence[Mapping[str, Record]]
) -> float:
    values = [
        table[question.id].values[metric]
        for table in records
        if question.id in table and metric in table[question.id].values
    ]
    return float(np.ptp(values)) if values else 0.0


def _build_run_data(record: Record, pool: _PassagePool) -> dict[str, Any]:
    return {
        "recipe": record.recipe,
        "values": {name: value for name, value in record.values.items() if "." not in name},
        "seconds": record.seconds,
        "tokens": record.usage.all_tokens,
        "error": record.error,
        "unscored": record.unscored,
        "answer": record.answer,
        "short": record.short,
        "verdict": record.verdict,
        "found": list(record.found[:20]),
        "evidence": [pool.add(passage) for passage in record.evidence],
        "trace": list(record.trace),
    }


def save_report(
    comparison: Comparison,
    folder: Path,
    data: Mapping[str, Any],
    about: Sequence[str] = (),
    records: bool = True,
) -> list[Path]:
    """Write the table as JSON, CSV and Markdown, the page, and the records of every recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    title = f"{data.get('dataset', 'comparison')}: recipes compared"
    texts = {
        "table.json": json.dumps(data, ensure_ascii=False, indent=1),
        "table.csv": to_csv(comparison),
        "table.md": f"# {title}\n\n" + to_markdown(comparison, about),
        "report.html": render_page(comparison, title, about),
    }
    paths = []
    for name, text in texts.items():
        path = folder / name
        path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
        paths.append(path)
    if records:
        paths.append(_write_records(comparison, folder / "records.jsonl.gz"))
    return paths


def _write_records(comparison: Comparison, path: Path) -> Path:
    # No timestamp inside, so that the same records give the same bytes.
    with path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        for report in comparison.reports:
            for record in report.records:
                line = json.dumps(record.to_dict(), ensure_ascii=False) + "\n"
                file.write(line.encode())
    return path
