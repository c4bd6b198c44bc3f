"""Training log: one JSON line per step, and TensorBoard where it is installed.

Training curves as SVG files: reward, dev F1, queries and response length per step.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import isclose
from pathlib import Path
from typing import Any

from clew.evaluate.report.svg import compute_ticks


class TrainingLog:
    """Appends one row per step; rows that a resumed run repeats are removed first."""

    def __init__(self, folder: Path, *, board: bool = True, silent: bool = False) -> None:
        """Use the folder's log; a silent one writes nothing (all processes but the main one)."""
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self.silent = folder / "log.jsonl", silent
        self._use_tensorboard = board and not silent
        self._tensorboard: Any = None

    def rewind(self, step: int) -> bool:
        """Remove rows from `step` on; return False if TensorBoard is wanted but not installed."""
        if self.silent:
            return True
        if self._use_tensorboard:
            self._tensorboard = _open_tensorboard(self.path.parent, step)
        rows = read_log(self.path) if self.path.is_file() else []
        kept = [row for row in rows if row.get("step", -1) < step]
        self.path.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        return self._tensorboard is not None or not self._use_tensorboard

    def write(self, row: dict[str, Any]) -> None:
        """Append one row and flush it to disk."""
        if self.silent:
            return
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        if self._tensorboard is not None:
            for name, value in row.items():
                if isinstance(value, int | float) and name != "step":
                    self._tensorboard.add_scalar(name, value, plot_step(row, name))
            self._tensorboard.flush()


def plot_step(row: dict[str, Any], name: str) -> int:
    """Number of steps behind a value: rollouts precede the step's update, dev scores follow it."""
    return int(row.get("step", 0)) + (name.startswith("dev_") and "reward" in row)


def _open_tensorboard(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    # TensorBoard hides earlier values of this and later steps.
    return SummaryWriter(str(folder / "tensorboard"), purge_step=step)


def read_log(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a log; a line truncated by a kill is skipped."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


_CURVES = (
    ("reward", "reward", "mean reward of a step's rollouts"),
    ("f1", "dev_f1", "F1 on the dev questions"),
    ("turns", "turns", "queries an episode"),
    ("length", "response", "tokens the model writes an episode"),
)
_COLOURS = ("#1b6ca8", "#c0392b", "#2d8659", "#8e5ea2", "#b8860b", "#444444")
_WIDTH, _HEIGHT, _LEFT_MARGIN, _RIGHT_MARGIN, _TOP_MARGIN, _BOTTOM_MARGIN = (
    640,
    320,
    56,
    130,
    34,
    52,
)
Points = list[tuple[float, float]]


def write_plots(logs: dict[str, Sequence[dict[str, Any]]], folder: Path) -> list[Path]:
    """Write one SVG per metric that the logs contain, with one line per run."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, key, title in _CURVES:
        lines = {run: _extract_points(rows, key) for run, rows in logs.items()}
        if any(lines.values()):
            path = folder / f"{name}.svg"
            path.write_text(draw_line_plot(title, lines), encoding="utf-8")
            paths.append(path)
    return paths


def _extract_points(rows: Sequence[dict[str, Any]], key: str) -> Points:
    return [(float(plot_step(row, key)), float(row[key])) for row in rows if key in row]


@dataclass(frozen=True)
class _Axes:
    """Maps data values to pixels."""

    x: tuple[float, float]
    y: tuple[float, float]

    def to_pixels(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return (
            round(_LEFT_MARGIN + across * (_WIDTH - _LEFT_MARGIN - _RIGHT_MARGIN), 1),
            round(_HEIGHT - _BOTTOM_MARGIN - up * (_HEIGHT - _BOTTOM_MARGIN - _TOP_MARGIN), 1),
        )


def draw_line_plot(title: str, lines: dict[str, Points]) -> str:
    """Draw a line plot as SVG text."""
    points = [point for line in lines.values() for point in line]
    axes = _Axes(_axis_range([x for x, _ in points]), _axis_range([y for _, y in points]))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT_MARGIN}" y="18" font-size="14">{escape(title)}</text>',
        *_draw_grid(axes),
    ]
    for number, (name, line) in enumerate(lines.items()):
        parts += _draw_line(axes, name, line, number)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _draw_grid(axes: _Axes) -> list[str]:
    parts = []
    for value in compute_ticks(*axes.y):
        (left, high), (right, _) = (
            axes.to_pixels(axes.x[0], value),
            axes.to_pixels(axes.x[1], value),
        )
        parts.append(
            f'<line x1="{left}" x2="{right}" y1="{high}" y2="{high}" stroke="#ddd"/>'
            f'<text x="{_LEFT_MARGIN - 8}" y="{high + 4}" text-anchor="end">{value:g}</text>'
        )
    bottom = _HEIGHT - _BOTTOM_MARGIN
    for value in compute_ticks(*axes.x):
        if value == int(value):  # steps are whole numbers
            across, _ = axes.to_pixels(value, axes.y[0])
            parts.append(
                f'<line x1="{across}" x2="{across}" y1="{bottom}" y2="{bottom + 5}" stroke="#999"/>'
                f'<text x="{across}" y="{bottom + 20}" text-anchor="middle">{value:g}</text>'
            )
    middle = (_LEFT_MARGIN + _WIDTH - _RIGHT_MARGIN) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle">steps</text>')
    return parts


def _draw_line(axes: _Axes, name: str, line: Points, number: int) -> list[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    pixels = [axes.to_pixels(x, y) for x, y in line]
    points = " ".join(f"{x},{y}" for x, y in pixels)
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>' for x, y in pixels)
    return [
        f'<polyline points="{points}" stroke="{colour}" stroke-width="2" fill="none"/>{dots}',
        f'<text x="{_WIDTH - _RIGHT_MARGIN + 10}" y="{_TOP_MARGIN + 16 * number + 10}" fill="{colour}">'
        f"{escape(name)}</text>",
    ]


def _axis_range(values: list[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    if not isclose(low, high):
        return low, high
    return (0.0, 1.0) if 0 <= low <= 1 else (low - 0.5, high + 0.5)
