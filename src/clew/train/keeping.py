"""A run's folder: whose it is, the best weights so far, and the model as it is served."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from clew.errors import ConfigError, Locked
from clew.store.lock import WriterLock
from clew.train.checkpoints import Checkpoints, state_of
from clew.train.learn.parallel import Team
from clew.train.policy import Policy

Beside = Callable[[Path], None]


@contextmanager
def claimed(out: Path, team: Team) -> Iterator[None]:
    """Within, the folder is this run's alone; of several processes the first holds it for all."""
    if not team.first:
        yield
        return
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out} is a file; name a folder, there or to be made")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be made: {error.strerror}") from error
    with ExitStack() as held:
        try:
            held.enter_context(WriterLock(out / "train.lock", 0.0))
        except Locked as error:
            raise ConfigError(
                f"another training is at work in {out}; wait for it to end, or name another --out"
            ) from error
        yield


def better_than(state: dict[str, Any], best: Checkpoints) -> dict[str, Any]:
    """What a kill between finding new best weights and the next checkpoint left to know of them."""
    newest = best.newest()
    held = state_of(newest) if newest is not None else {}
    if held.get("best", -1.0) <= state["best"]:
        return {}
    return {"best": held["best"], "best_step": held["best_step"]}


def write_model(policy: Policy, tokenizer: Any, folder: Path, beside: Beside) -> None:
    """Written elsewhere and renamed: a kill leaves a whole model or none, never half of one."""
    unfinished = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    policy.model.save_pretrained(str(unfinished))
    tokenizer.save_pretrained(str(unfinished))
    beside(unfinished)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(unfinished, folder)
