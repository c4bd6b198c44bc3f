"""Training curves as SVG files: reward, dev F1, queries and response length per step."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import isclose
from pathlib import Path
from typing import Any

from clew.evaluate.report.svg import ticks
from clew.train.report import steps_before

_CURVES = (
    ("reward", "reward", "mean reward of a step's rollouts"),
    ("f1", "dev_f1", "F1 on the dev questions"),
    ("turns", "turns", "queries an episode"),
    ("length", "response", "tokens the model writes an episode"),
)
_COLOURS = ("#1b6ca8", "#c0392b", "#2d8659", "#8e5ea2", "#b8860b", "#444444")
_WIDE, _HIGH, _LEFT, _RIGHT, _TOP, _LOW = 640, 320, 56, 130, 34, 52

Line = list[tuple[float, float]]


def plots(logs: dict[str, Sequence[dict[str, Any]]], folder: Path) -> list[Path]:
    """Write one SVG per metric that the logs contain, with one line per run."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, key, title in _CURVES:
        lines = {run: _line(rows, key) for run, rows in logs.items()}
        if any(lines.values()):
            path = folder / f"{name}.svg"
            path.write_text(line_plot(title, lines), encoding="utf-8")
            paths.append(path)
    return paths


def _line(rows: Sequence[dict[str, Any]], key: str) -> Line:
    return [(float(steps_before(row, key)), float(row[key])) for row in rows if key in row]


@dataclass(frozen=True)
class _Axes:
    """Maps data values to pixels."""

    x: tuple[float, float]
    y: tuple[float, float]

    def place(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return (
            round(_LEFT + across * (_WIDE - _LEFT - _RIGHT), 1),
            round(_HIGH - _LOW - up * (_HIGH - _LOW - _TOP), 1),
        )


def line_plot(title: str, lines: dict[str, Line]) -> str:
    """Draw a line plot as SVG text."""
    points = [point for line in lines.values() for point in line]
    axes = _Axes(_range([x for x, _ in points]), _range([y for _, y in points]))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {_HIGH}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDE}" height="{_HIGH}" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-size="14">{escape(title)}</text>',
        *_grid(axes),
    ]
    for number, (name, line) in enumerate(lines.items()):
        parts += _drawn(axes, name, line, number)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _grid(axes: _Axes) -> list[str]:
    parts = []
    for value in ticks(*axes.y):
        (left, high), (right, _) = axes.place(axes.x[0], value), axes.place(axes.x[1], value)
        parts.append(
            f'<line x1="{left}" x2="{right}" y1="{high}" y2="{high}" stroke="#ddd"/>'
            f'<text x="{_LEFT - 8}" y="{high + 4}" text-anchor="end">{value:g}</text>'
        )
    bottom = _HIGH - _LOW
    for value in ticks(*axes.x):
        if value == int(value):  # steps are whole numbers
            across, _ = axes.place(value, axes.y[0])
            parts.append(
                f'<line x1="{across}" x2="{across}" y1="{bottom}" y2="{bottom + 5}" stroke="#999"/>'
                f'<text x="{across}" y="{bottom + 20}" text-anchor="middle">{value:g}</text>'
            )
    middle = (_LEFT + _WIDE - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HIGH - 10}" text-anchor="middle">steps</text>')
    return parts


def _drawn(axes: _Axes, name: str, line: Line, number: int) -> list[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    pixels = [axes.place(x, y) for x, y in line]
    points = " ".join(f"{x},{y}" for x, y in pixels)
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>' for x, y in pixels)
    return [
        f'<polyline points="{points}" stroke="{colour}" stroke-width="2" fill="none"/>{dots}',
        f'<text x="{_WIDE - _RIGHT + 10}" y="{_TOP + 16 * number + 10}" fill="{colour}">'
        f"{escape(name)}</text>",
    ]


def _range(values: list[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    if not isclose(low, high):
        return low, high
    return (0.0, 1.0) if 0 <= low <= 1 else (low - 0.5, high + 0.5)
