"""Checks that a resumed run has the model, questions and settings it was started with."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clew.errors import ConfigError
from clew.train.checkpoints import Checkpoints
from clew.train.questions import Task
from clew.train.settings import TrainSettings

_FILE = "run.json"
_FREE = {
    *("steps", "minutes", "patience"),
    "lr",  # lowering it is the remedy after a NaN loss
    # These change speed and what is kept on disk, not what is learned.
    *("batch", "cells", "checkpointing", "decoder", "save_every", "keep", "eval_every"),
}
_PIECE = 1 << 20
_SHOWN = 4


def described(
    model: str, asked: dict[str, Any], tasks: Sequence[Task], settings: TrainSettings
) -> dict[str, Any]:
    """Describe what identifies a run; a model moved to another folder stays the same model."""
    rows = sorted(json.dumps(asdict(task), ensure_ascii=False) for task in tasks)
    return {
        "model": model,
        "weights": _weights(Path(model)),
        **asked,
        "tasks": _digest(row.encode() for row in rows),
        **{name: value for name, value in asdict(settings).items() if name not in _FREE},
    }


def check_begun(out: Path, wanted: dict[str, Any], *, write: bool) -> None:
    """Refuse to resume a run that was started differently; record how a new one starts."""
    file = out / _FILE
    if file.is_file() and Checkpoints(out / "checkpoints").newest() is not None:
        _compared(out, json.loads(file.read_text(encoding="utf-8")), wanted)
    elif write:
        try:
            out.mkdir(parents=True, exist_ok=True)
            temporary = out / f".{_FILE}.new"
            temporary.write_text(json.dumps(wanted, indent=1), encoding="utf-8")
            os.replace(temporary, file)
        except OSError as error:
            raise ConfigError(f"--out {out} cannot be written: {error.strerror}") from error


def _compared(out: Path, saved: dict[str, Any], wanted: dict[str, Any]) -> None:
    # Models are compared by weights, or by name where only a hub name is known.
    skipped = {"model" if wanted["weights"] else "weights"}
    changed = [name for name in wanted if name not in skipped and saved.get(name) != wanted[name]]
    if not changed:
        return
    notes = [_told(name, saved, wanted) for name in changed[:_SHOWN]]
    if len(changed) > _SHOWN:
        notes.append(f"{len(changed) - _SHOWN} more")
    raise ConfigError(
        f"{out} holds a run that was begun otherwise ({'; '.join(notes)}): name another --out, or "
        "go on as it began (steps, minutes, patience and lr may change)"
    )


def _told(name: str, saved: dict[str, Any], wanted: dict[str, Any]) -> str:
    if name == "tasks":
        return "with other questions"
    shown = "model" if name == "weights" else name
    if saved.get(shown) == wanted[shown]:
        return f"with other weights in {wanted[shown]}"
    return f"{shown} {saved.get(shown)}, not {wanted[shown]}"


def _weights(folder: Path) -> str:
    """Hash size, start and end of each weight file; empty for a hub name."""
    files = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
    return _digest(piece for file in files for piece in _ends(file)) if files else ""


def _ends(file: Path) -> Iterator[bytes]:
    size = file.stat().st_size
    yield str(size).encode()
    with file.open("rb") as opened:
        yield opened.read(_PIECE)
        opened.seek(max(size - _PIECE, 0))
        yield opened.read(_PIECE)


def _digest(pieces: Iterator[bytes]) -> str:
    hasher = hashlib.sha256()
    for piece in pieces:
        hasher.update(piece + b"\0")
    return hasher.hexdigest()[:16]
