"""Atomic checkpoints: written to a temporary folder, then renamed; safetensors, no pickle.

Random draws depend on the seed and the step alone, so weights, optimiser state and step number
are enough to resume exactly.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.errors import ConfigError

_WEIGHTS, _OPTIMIZER, _STATE = "trained.safetensors", "optimizer.safetensors", "state.json"
_CRITIC, _CRITIC_OPTIMIZER = "critic.safetensors", "critic-optimizer.safetensors"


@dataclass(frozen=True)
class Checkpoints:
    """A folder of checkpoints, the newest `keep` of them, and the best one."""

    folder: Path
    keep: int = 2

    def save(
        self,
        step: int,
        trained: dict[str, Any],
        optimizer: Any,
        state: dict[str, Any],
        critic: Any = None,
    ) -> Path:
        """Write a checkpoint atomically and delete the oldest ones."""
        from safetensors.torch import save_file

        final = self.folder / f"step-{step:06d}"
        unfinished = self.folder / f".step-{step:06d}.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        save_file(_to_cpu(trained), unfinished / _WEIGHTS)
        if optimizer is not None:
            save_file(_optimizer_tensors(optimizer, list(trained)), unfinished / _OPTIMIZER)
        if critic is not None:
            head = critic.parameters()
            save_file(_to_cpu(head), unfinished / _CRITIC)
            save_file(
                _optimizer_tensors(critic.optimizer, list(head)), unfinished / _CRITIC_OPTIMIZER
            )
        (unfinished / _STATE).write_text(json.dumps({"step": step, **state}), encoding="utf-8")
        shutil.rmtree(final, ignore_errors=True)
        os.replace(unfinished, final)
        for old in self.all()[: -max(self.keep, 1)]:
            shutil.rmtree(old, ignore_errors=True)
        return final

    def all(self) -> list[Path]:
        """List complete checkpoints, oldest first."""
        return sorted(path for path in self.folder.glob("step-*") if (path / _STATE).is_file())

    def newest(self) -> Path | None:
        """Return the newest checkpoint, if any."""
        found = self.all()
        return found[-1] if found else None


def load_checkpoint(path: Path, trained: dict[str, Any], optimizer: Any = None) -> dict[str, Any]:
    """Load weights (and optimiser state) in place; return the saved training state."""
    import torch
    from safetensors.torch import load_file

    if not (path / _WEIGHTS).is_file():
        raise ConfigError(f"{path} has no {_WEIGHTS}; name a step-… folder of a training run")
    saved = load_file(path / _WEIGHTS)
    if saved.keys() != trained.keys():
        raise ConfigError(
            f"{path} was trained with another model or LoRA rank; use the settings of that run"
        )
    with torch.no_grad():
        for name, parameter in trained.items():
            parameter.copy_(saved[name])
    if optimizer is not None and (path / _OPTIMIZER).is_file():
        _restore_optimizer(optimizer, trained, load_file(path / _OPTIMIZER))
    return read_state(path)


def read_state(path: Path) -> dict[str, Any]:
    """Read the saved training state: the step, and best scores so far."""
    state: dict[str, Any] = json.loads((path / _STATE).read_text(encoding="utf-8"))
    return state


def load_critic(path: Path, critic: Any) -> bool:
    """Load PPO's value head; return whether the checkpoint has one."""
    import torch
    from safetensors.torch import load_file

    if not (path / _CRITIC).is_file():
        return False
    saved, head = load_file(path / _CRITIC), critic.parameters()
    with torch.no_grad():
        for name, parameter in head.items():
            parameter.copy_(saved[name])
    _restore_optimizer(critic.optimizer, head, load_file(path / _CRITIC_OPTIMIZER))
    return True


def _to_cpu(tensors: dict[str, Any]) -> dict[str, Any]:
    return {name: one.detach().cpu().contiguous() for name, one in tensors.items()}


def _optimizer_tensors(optimizer: Any, names: list[str]) -> dict[str, Any]:
    states = optimizer.state_dict()["state"]
    return {
        f"{names[at]}#{key}": value.detach().cpu().contiguous()
        for at, moments in states.items()
        for key, value in moments.items()
    }


def _restore_optimizer(optimizer: Any, trained: dict[str, Any], saved: dict[str, Any]) -> None:
    state = optimizer.state_dict()
    state["state"] = {}
    for at, name in enumerate(trained):
        moments = {
            key.rpartition("#")[2]: value
            for key, value in saved.items()
            if key.rpartition("#")[0] == name
        }
        if moments:
            state["state"][at] = moments
    optimizer.load_state_dict(state)


def resume_advice(newest: Path | None) -> str:
    """Say how to resume after a NaN, given the newest checkpoint."""
    if newest is None or read_state(newest)["step"] == 0:
        return "before the first step; check the model's weights, or set a smaller lr"
    return (
        f"the last checkpoint is valid ({newest}); the same command resumes from it, preferably "
        "with a smaller lr"
    )
