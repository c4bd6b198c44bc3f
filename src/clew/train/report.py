"""What a run leaves to look at: one JSON line a step, TensorBoard where it is."""

import json
from pathlib import Path
from typing import Any


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
                    self._board.add_scalar(name, value, steps_before(row, name))
            self._board.flush()


def steps_before(row: dict[str, Any], name: str) -> int:
    """A row's rollouts are of the weights before its step, its dev figures of those after it."""
    return int(row.get("step", 0)) + (name.startswith("dev_") and "reward" in row)


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
