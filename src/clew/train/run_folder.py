"""The folder of a training run: its lock, its log and curves, and the trained model."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clew.errors import ConfigError, Locked
from clew.evaluate.report.svg import draw_line_plot
from clew.llm.trained_model import TRAINED_CONFIG_FILE
from clew.store.write_lock import WriterLock
from clew.train.checkpoints import Checkpoints, read_state
from clew.train.core.settings import TrainSettings
from clew.train.learn.distributed import ProcessGroup
from clew.train.learn.policy import Policy, require_train_extra
from clew.train.questions import Task

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
        new = self.path.with_name(f".{self.path.name}.new")
        new.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        os.replace(new, self.path)
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


_CONFIG_FILE = "run.json"
_CHANGEABLE_SETTINGS = {
    *("steps", "minutes", "patience"),
    "lr",  # lowering it is the remedy after a NaN loss
    # These change speed and what is kept on disk, not what is learned.
    *("batch", "cells", "checkpointing", "decoder", "save_every", "keep", "eval_every"),
}
_HASHED_BYTES = 1 << 20
_MAX_SHOWN = 4
OnModelSaved = Callable[[Path], None]


def describe_run(
    model: str, asked: dict[str, Any], tasks: Sequence[Task], settings: TrainSettings
) -> dict[str, Any]:
    """Describe what identifies a run; a model moved to another folder stays the same model."""
    rows = sorted(json.dumps(asdict(task), ensure_ascii=False) for task in tasks)
    return {
        "model": model,
        "weights": _hash_weights(Path(model)),
        **asked,
        "tasks": _hash_pieces(row.encode() for row in rows),
        **{
            name: value
            for name, value in asdict(settings).items()
            if name not in _CHANGEABLE_SETTINGS
        },
    }


def check_run_config(out: Path, wanted: dict[str, Any], *, write: bool) -> None:
    """Refuse to resume a run that was started differently; record how a new one starts."""
    file = out / _CONFIG_FILE
    if file.is_file() and Checkpoints(out / "checkpoints").newest() is not None:
        _require_same_config(out, json.loads(file.read_text(encoding="utf-8")), wanted)
    elif write:
        try:
            out.mkdir(parents=True, exist_ok=True)
            temporary = out / f".{_CONFIG_FILE}.new"
            temporary.write_text(json.dumps(wanted, indent=1), encoding="utf-8")
            os.replace(temporary, file)
        except OSError as error:
            raise ConfigError(f"cannot write to --out {out}: {error.strerror}") from error


def _require_same_config(out: Path, saved: dict[str, Any], wanted: dict[str, Any]) -> None:
    # Models are compared by weights, or by name where only a hub name is known.
    skipped = {"model" if wanted["weights"] else "weights"}
    changed = [name for name in wanted if name not in skipped and saved.get(name) != wanted[name]]
    if not changed:
        return
    notes = [_describe_difference(name, saved, wanted) for name in changed[:_MAX_SHOWN]]
    if len(changed) > _MAX_SHOWN:
        notes.append(f"{len(changed) - _MAX_SHOWN} more")
    raise ConfigError(
        f"{out} has a run with another configuration ({'; '.join(notes)}); choose another --out, "
        "or resume with the original one (steps, minutes, patience and lr may change)"
    )


def _describe_difference(name: str, saved: dict[str, Any], wanted: dict[str, Any]) -> str:
    if name == "tasks":
        return "other questions"
    shown = "model" if name == "weights" else name
    if saved.get(shown) == wanted[shown]:
        return f"other weights in {wanted[shown]}"
    return f"{shown} was {saved.get(shown)}, is {wanted[shown]}"


def _hash_weights(folder: Path) -> str:
    """Hash size, start and end of each weight file; empty for a hub name."""
    files = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
    return _hash_pieces(piece for file in files for piece in _read_file_ends(file)) if files else ""


def _read_file_ends(file: Path) -> Iterator[bytes]:
    size = file.stat().st_size
    yield str(size).encode()
    with file.open("rb") as opened:
        yield opened.read(_HASHED_BYTES)
        opened.seek(max(size - _HASHED_BYTES, 0))
        yield opened.read(_HASHED_BYTES)


def _hash_pieces(pieces: Iterator[bytes]) -> str:
    hasher = hashlib.sha256()
    for piece in pieces:
        hasher.update(piece + b"\0")
    return hasher.hexdigest()[:16]


@contextmanager
def lock_run_folder(out: Path, processes: ProcessGroup) -> Iterator[None]:
    """Lock the folder for this run; of several processes the main one holds the lock."""
    if not processes.is_main:
        yield
        return
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out} is a file; name a folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot create --out {out}: {error.strerror}") from error
    with ExitStack() as stack:
        try:
            stack.enter_context(WriterLock(out / "train.lock", 0.0))
        except Locked as error:
            raise ConfigError(
                f"another process is training in {out}; wait for it, or choose another --out"
            ) from error
        finish_swap(out / "model")
        yield


def recover_best(state: dict[str, Any], best: Checkpoints) -> dict[str, Any]:
    """Return the best score saved on disk if it beats the checkpoint's (after a kill)."""
    newest = best.newest()
    saved = read_state(newest) if newest is not None else {}
    if saved.get("best", -1.0) <= state["best"]:
        return {}
    return {"best": saved["best"], "best_step": saved["best_step"]}


def write_model(policy: Policy, tokenizer: Any, folder: Path, on_saved: OnModelSaved) -> None:
    """Write model and tokenizer atomically: into a temporary folder, then rename."""
    unfinished = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    policy.model.save_pretrained(str(unfinished))
    tokenizer.save_pretrained(str(unfinished))
    on_saved(unfinished)
    swap_in(unfinished, folder)


def swap_in(new: Path, folder: Path) -> None:
    """Put a finished folder in the place of another; a kill leaves one of them whole."""
    earlier = folder.with_name(f".{folder.name}.old")
    finish_swap(folder)
    if folder.exists():
        os.replace(folder, earlier)
    os.replace(new, folder)
    shutil.rmtree(earlier, ignore_errors=True)


def finish_swap(folder: Path) -> None:
    """Undo or finish a swap that was killed: the earlier folder is put back if none is there."""
    earlier = folder.with_name(f".{folder.name}.old")
    if earlier.exists() and not folder.exists():
        os.replace(earlier, folder)
    shutil.rmtree(earlier, ignore_errors=True)


def merge_adapter(run: Path, target: Path) -> dict[str, Any]:
    """Write base plus adapter as one model folder: summed in float32, saved in the base's dtype."""
    require_train_extra()
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = run / "model" if (run / "model").is_dir() else run
    config_file = folder / "adapter_config.json"
    if not config_file.is_file():
        raise ConfigError(
            f"{folder} has no adapter; name the --out folder of a `clew train` run with "
            "lora_rank > 0 (other runs already contain the full model)"
        )
    if target.exists() and not target.is_dir():
        raise ConfigError(f"{target} is a file; name a new folder")
    if target.is_dir() and any(target.iterdir()):
        raise ConfigError(f"{target} is not empty; name a new folder")
    base = str(json.loads(config_file.read_text("utf-8"))["base_model_name_or_path"])
    try:
        model = AutoModelForCausalLM.from_pretrained(base, dtype="auto")
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise ConfigError(f"cannot load the adapter's base model {base}: {first}") from error
    dtype = model.dtype
    merged = PeftModel.from_pretrained(model.to(torch.float32), str(folder)).merge_and_unload()
    unfinished = target.with_name(f".{target.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    merged.to(dtype).save_pretrained(str(unfinished))
    AutoTokenizer.from_pretrained(str(folder)).save_pretrained(str(unfinished))
    if (folder / TRAINED_CONFIG_FILE).is_file():
        shutil.copy(folder / TRAINED_CONFIG_FILE, unfinished / TRAINED_CONFIG_FILE)
    swap_in(unfinished, target)
    return {"base": base, "dtype": str(dtype).removeprefix("torch."), "folder": str(target)}
