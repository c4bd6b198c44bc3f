"""Everything a training run can set, read from a TOML file. Defaults are Graph-R1's (Table 7)."""

import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from clew.errors import ConfigError
from clew.train.advantages import Mean

Algorithm = Literal["grpo", "reinforce++", "ppo"]
Old = Literal["rollout", "recompute"]
DecoderName = Literal["auto", "fast", "plain"]
_CHOICES = {
    "algorithm": get_args(Algorithm),
    "mean": get_args(Mean),
    "old": get_args(Old),
    "decoder": get_args(DecoderName),
}


@dataclass(frozen=True)
class TrainSettings:
    """One run."""

    algorithm: Algorithm = "grpo"
    mean: Mean = "trajectory"  # eq. 11; the released code: token
    steps: int = 40
    questions: int = 128  # Table 7
    group: int = 5
    lr: float = 5e-7  # for the whole model; an adapter wants about a hundred times as much
    warmup: int = 0
    clip: float = 0.2
    beta: float = 0.001
    temperature: float = 1.0
    updates: int = 1
    """Optimiser steps made of one rollout."""
    old: Old = "rollout"
    grad_clip: float = 1.0
    lora_rank: int = 16
    lora_alpha: int = 32
    turns: int = 5
    brief: bool = False
    length: int = 4096
    step_tokens: int = 256
    reply_tokens: int = 512
    batch: int = 1024
    """Sequences generated at once."""
    cells: int = 32_768
    """Tokens of one micro-batch of the gradient pass."""
    checkpointing: bool = True
    """Make activations again in the backward pass: a third more time, a tenth of the memory."""
    decoder: DecoderName = "auto"
    seed: int = 0
    dev: int = 100
    """Questions held out of training to stop early by."""
    eval_every: int = 10
    patience: int = 0
    """Evaluations without a better dev F1 before stopping; 0 never stops early."""
    save_every: int = 1
    keep: int = 2
    minutes: float = 0.0
    """Stop after this time, checkpoint written; 0 is no limit."""
    sft_epochs: int = 0
    sft_lr: float = 1e-4
    sft_batch: int = 32

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ConfigError(
                    f"{name} = {getattr(self, name)!r} is not known; choose {', '.join(allowed)}"
                )
        least = {"questions": 1, "group": 1, "updates": 1, "cells": 1, "length": 64, "steps": 0}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise ConfigError(f"{name} = {getattr(self, name)}: choose at least {bound}")
        if self.algorithm == "grpo" and self.group < 2:
            raise ConfigError("grpo compares answers of one group; set group to at least 2")


def settings_from(path: Path | None, **given: Any) -> TrainSettings:
    """Read a file's values, then those given by hand; unknown names are refused."""
    found: dict[str, Any] = {}
    if path is not None:
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not valid TOML: {error}") from error
    found |= {name: value for name, value in given.items() if value is not None}
    kinds = {one.name: one.type for one in fields(TrainSettings)}
    for name, value in found.items():
        if name not in kinds:
            raise ConfigError(f"no training setting {name!r}; have {', '.join(kinds)}")
        if kinds[name] is float and isinstance(value, int):
            found[name] = float(value)
        kind = kinds[name]
        if isinstance(kind, type) and type(found[name]) is not kind:
            raise ConfigError(f"{name} = {value!r}: it must be of type {kind.__name__}")
    return replace(TrainSettings(), **found)
