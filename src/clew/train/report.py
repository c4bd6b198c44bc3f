"""What a run leaves to look at: one JSON line a step, TensorBoard where it is, curves as SVG."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

_CURVES = (
    ("reward", "reward", "mean reward of a step's rollouts"),
    ("f1", "dev_f1", "F1 on the held-out questions"),
    ("turns", "turns", "queries an episode"),
    ("length", "response", "tokens the model writes an episode"),
)
_COLOURS = ("#1b6ca8", "#c0392b", "#2d8659", "#8e5ea2", "#b8860b", "#444444")
_WIDE, _HIGH, _LEFT, _TOP, _LOW = 640, 320, 56, 30, 40


class Log:
    """Appends a line a step; what a resumed run repeats is cut off first."""

    def __init__(self, folder: Path, *, board: bool = True, silent: bool = False) -> None:
        """Open (or go on in) the folder's log; a silent one is another process's to write."""
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self.silent = folder / "log.jsonl", silent
        self._wanted = board and not silent
        self._board: Any = None

    def rewind(self, step: int) -> bool:
        """Forget the lines from `step` on; whether TensorBoard, where wanted, is there."""
        if self.silent:
            return True
        if self._wanted:
            self._board = _board(self.path.parent, step)
        rows = read_log(self.path) if self.path.is_file() else []
        kept = [row for row in rows if row.get("step", -1) < step]
        self.path.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        return self._board is not None or not self._wanted

    def write(self, row: dict[str, Any]) -> None:
        """One line, on disk at once."""
        if self.silent:
            return
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        if self._board is not None:
            for name, value in row.items():
                if isinstance(value, int | float) and name != "step":
                    self._board.add_scalar(name, value, row.get("step", 0))
            self._board.flush()


def _board(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    # What earlier files say of this step and later ones is not shown.
    return SummaryWriter(str(folder / "tensorboard"), purge_step=step)


def read_log(path: Path) -> list[dict[str, Any]]:
    """The rows of a log; a line that a kill cut short is left out."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def plots(logs: dict[str, Sequence[dict[str, Any]]], folder: Path) -> list[Path]:
    """Curves of reward, F1, turns and length, one line a run, as SVG files."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, key, title in _CURVES:
        lines = {
            run: [(float(row["step"]), float(row[key])) for row in rows if key in row]
            for run, rows in logs.items()
        }
        if any(lines.values()):
            path = folder / f"{name}.svg"
            path.write_text(line_plot(title, lines), encoding="utf-8")
            made.append(path)
    return made


def line_plot(title: str, lines: dict[str, list[tuple[float, float]]]) -> str:
    """A line plot as SVG text."""
    points = [point for line in lines.values() for point in line]
    x0, x1 = _range([x for x, _ in points])
    y0, y1 = _range([y for _, y in points])

    def place(x: float, y: float) -> str:
        across = _LEFT + (x - x0) / (x1 - x0) * (_WIDE - _LEFT - 130)
        up = _HIGH - _LOW - (y - y0) / (y1 - y0) * (_HIGH - _LOW - _TOP)
        return f"{across:.1f},{up:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {_HIGH}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDE}" height="{_HIGH}" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-size="14">{escape(title)}</text>',
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = x0 + share * (x1 - x0), y0 + share * (y1 - y0)
        left, right = place(x0, y), place(x1, y)
        parts.append(f'<polyline points="{left} {right}" stroke="#ddd" fill="none"/>')
        height = left.split(",")[1]
        parts.append(f'<text x="{_LEFT - 6}" y="{height}" text-anchor="end">{y:.3g}</text>')
        across = place(x, y0).split(",")[0]
        parts.append(f'<text x="{across}" y="{_HIGH - 22}" text-anchor="middle">{x:.3g}</text>')
    parts.append(f'<text x="{_LEFT}" y="{_HIGH - 6}">step</text>')
    for number, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        drawn = " ".join(place(x, y) for x, y in line)
        parts.append(
            f'<polyline points="{drawn}" stroke="{colour}" stroke-width="2" fill="none"/>'
            f'<text x="{_WIDE - 120}" y="{_TOP + 16 * number + 10}" fill="{colour}">'
            f"{escape(name)}</text>"
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _range(values: list[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
