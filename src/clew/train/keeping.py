"""A run's folder: its lock, the best score so far, and the exported model."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from clew.errors import ConfigError, Locked
from clew.store.lock import WriterLock
from clew.train.checkpoints import Checkpoints, read_state
from clew.train.learn.parallel import ProcessGroup
from clew.train.policy import Policy

OnModelSaved = Callable[[Path], None]


@contextmanager
def lock_run_folder(out: Path, team: ProcessGroup) -> Iterator[None]:
    """Lock the folder for this run; of several processes the main one holds the lock."""
    if not team.is_main:
        yield
        return
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out} is a file; name a folder, there or to be made")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be made: {error.strerror}") from error
    with ExitStack() as stack:
        try:
            stack.enter_context(WriterLock(out / "train.lock", 0.0))
        except Locked as error:
            raise ConfigError(
                f"another training is at work in {out}; wait for it to end, or name another --out"
            ) from error
        yield


def recover_best(state: dict[str, Any], best: Checkpoints) -> dict[str, Any]:
    """Return the best score saved on disk if it beats the checkpoint's (after a kill)."""
    newest = best.newest()
    saved = read_state(newest) if newest is not None else {}
    if saved.get("best", -1.0) <= state["best"]:
        return {}
    return {"best": saved["best"], "best_step": saved["best_step"]}


def write_model(policy: Policy, tokenizer: Any, folder: Path, beside: OnModelSaved) -> None:
    """Write model and tokenizer atomically: into a temporary folder, then rename."""
    unfinished = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    policy.model.save_pretrained(str(unfinished))
    tokenizer.save_pretrained(str(unfinished))
    beside(unfinished)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(unfinished, folder)
