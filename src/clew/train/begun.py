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

_CONFIG_FILE = "run.json"
_CHANGEABLE_SETTINGS = {
    *("steps", "minutes", "patience"),
    "lr",  # lowering it is the remedy after a NaN loss
    # These change speed and what is kept on disk, not what is learned.
    *("batch", "cells", "checkpointing", "decoder", "save_every", "keep", "eval_every"),
}
_HASHED_BYTES = 1 << 20
_MAX_SHOWN = 4


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
            raise ConfigError(f"--out {out} cannot be written: {error.strerror}") from error


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
        f"{out} holds a run that was begun otherwise ({'; '.join(notes)}): name another --out, or "
        "go on as it began (steps, minutes, patience and lr may change)"
    )


def _describe_difference(name: str, saved: dict[str, Any], wanted: dict[str, Any]) -> str:
    if name == "tasks":
        return "with other questions"
    shown = "model" if name == "weights" else name
    if saved.get(shown) == wanted[shown]:
        return f"with other weights in {wanted[shown]}"
    return f"{shown} {saved.get(shown)}, not {wanted[shown]}"


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
