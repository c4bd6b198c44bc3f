"""What a run was begun with, kept beside it: another model or setting is another run."""

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
    "lr",  # a smaller one is the way on after a loss that is no number
    # These change how fast it goes and what is kept, not what is learned.
    *("batch", "cells", "checkpointing", "decoder", "save_every", "keep", "eval_every"),
}
_PIECE = 1 << 20
_SHOWN = 4


def described(
    model: str, asked: dict[str, Any], tasks: Sequence[Task], settings: TrainSettings
) -> dict[str, Any]:
    """All that makes two runs the same: a model moved to another folder is still the same."""
    rows = sorted(json.dumps(asdict(task), ensure_ascii=False) for task in tasks)
    return {
        "model": model,
        "weights": _weights(Path(model)),
        **asked,
        "tasks": _digest(row.encode() for row in rows),
        **{name: value for name, value in asdict(settings).items() if name not in _FREE},
    }


def check_begun(out: Path, wanted: dict[str, Any], *, write: bool) -> None:
    """Refuse to go on in a folder with what another run left there; note how this one begins."""
    file = out / _FILE
    if file.is_file() and Checkpoints(out / "checkpoints").newest() is not None:
        _compared(out, json.loads(file.read_text(encoding="utf-8")), wanted)
    elif write:
        try:
            out.mkdir(parents=True, exist_ok=True)
            beside = out / f".{_FILE}.new"
            beside.write_text(json.dumps(wanted, indent=1), encoding="utf-8")
            os.replace(beside, file)
        except OSError as error:
            raise ConfigError(f"--out {out} cannot be written: {error.strerror}") from error


def _compared(out: Path, held: dict[str, Any], wanted: dict[str, Any]) -> None:
    # Weights tell models apart; the name does where a hub's name is all that is known.
    skipped = {"model" if wanted["weights"] else "weights"}
    other = [name for name in wanted if name not in skipped and held.get(name) != wanted[name]]
    if not other:
        return
    told = [_told(name, held, wanted) for name in other[:_SHOWN]]
    if len(other) > _SHOWN:
        told.append(f"{len(other) - _SHOWN} more")
    raise ConfigError(
        f"{out} holds a run that was begun otherwise ({'; '.join(told)}): name another --out, or "
        "go on as it began (steps, minutes, patience and lr may change)"
    )


def _told(name: str, held: dict[str, Any], wanted: dict[str, Any]) -> str:
    if name == "tasks":
        return "with other questions"
    shown = "model" if name == "weights" else name
    if held.get(shown) == wanted[shown]:
        return f"with other weights in {wanted[shown]}"
    return f"{shown} {held.get(shown)}, not {wanted[shown]}"


def _weights(folder: Path) -> str:
    """A short sum of a model folder's weights; empty for a hub name, which is its own."""
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
    made = hashlib.sha256()
    for piece in pieces:
        made.update(piece + b"\0")
    return made.hexdigest()[:16]
