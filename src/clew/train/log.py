"""Training log: one JSON line per step, TensorBoard where installed, and curves as SVG files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clew.evaluate.report.svg import draw_line_plot

_CURVES = (
    ("reward", "reward", "mean reward of a step's rollouts"),
    ("f1", "dev_f1", "F1 on the dev questions"),
    ("turns", "turns", "queries an episode"),
    ("length", "response", "tokens the model writes an episode"),
)


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


def _extract_points(rows: Sequence[dict[str, Any]], key: str) -> list[tuple[float, float]]:
    return [(float(plot_step(row, key)), float(row[key])) for row in rows if key in row]
