"""Training log: one JSON line per step, and TensorBoard where it is installed."""

import json
from pathlib import Path
from typing import Any


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
