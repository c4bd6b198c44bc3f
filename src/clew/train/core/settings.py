"""Settings of a training run, read from TOML; defaults are Graph-R1's (Table 7)."""

import math
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from clew.errors import ConfigError

LossAveraging = Literal["trajectory", "token"]
Algorithm = Literal["grpo", "reinforce++", "ppo"]
OldLogprobSource = Literal["rollout", "recompute"]
DecoderName = Literal["auto", "fast", "plain"]
_CHOICES = {
    "algorithm": get_args(Algorithm),
    "mean": get_args(LossAveraging),
    "old": get_args(OldLogprobSource),
    "decoder": get_args(DecoderName),
}
_MINIMUM = {
    **dict.fromkeys(("questions", "group", "updates", "cells", "batch"), 1),
    **dict.fromkeys(("eval_every", "save_every", "keep", "lora_alpha"), 1),
    **dict.fromkeys(("step_tokens", "reply_tokens", "sft_batch"), 1),
    **dict.fromkeys(("steps", "lora_rank", "turns", "warmup", "patience", "sft_epochs"), 0),
    **dict.fromkeys(("beta", "grad_clip", "minutes"), 0),
    "length": 64,
    "dev": -1,
}
_POSITIVE = ("lr", "sft_lr", "clip", "temperature")
_MAX_DEV, _DEV_SHARE = 100, 5


@dataclass(frozen=True)
class TrainSettings:
    """All settings of one training run."""

    algorithm: Algorithm = "grpo"
    mean: LossAveraging = "trajectory"  # eq. 11; the released code: token
    steps: int = 40
    questions: int = 128  # Table 7
    group: int = 5
    lr: float = 5e-7  # for the whole model; LoRA needs about a hundred times as much
    warmup: int = 0
    clip: float = 0.2
    beta: float = 0.001
    temperature: float = 1.0
    updates: int = 1
    """Optimiser steps per rollout."""
    old: OldLogprobSource = "rollout"
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
    """Tokens (with padding) of one micro-batch of the gradient pass."""
    checkpointing: bool = True
    """Gradient checkpointing: a third more time, a tenth of the memory."""
    decoder: DecoderName = "auto"
    seed: int = 0
    dev: int = -1
    """Questions held out to choose the best weights; -1 is a fifth, at most 100."""
    eval_every: int = 10
    patience: int = 0
    """Validations without a better dev F1 before early stopping; 0 never stops early."""
    save_every: int = 1
    keep: int = 2
    minutes: float = 0.0
    """Stop after this time, with a checkpoint; 0 is no limit."""
    sft_epochs: int = 0
    sft_lr: float = 1e-4
    sft_batch: int = 32

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ConfigError(
                    f"{name} = {getattr(self, name)!r} is unknown; choose {', '.join(allowed)}"
                )
        for name, bound in _MINIMUM.items():
            if not getattr(self, name) >= bound:  # refuses NaN, too
                raise ConfigError(f"{name} = {getattr(self, name)}: choose at least {bound}")
        for name in _POSITIVE:
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name} = {getattr(self, name)}: choose a number above 0")
        if self.algorithm == "grpo" and self.group < 2:
            raise ConfigError("grpo compares answers of one group; set group to at least 2")

    def count_dev_questions(self, questions: int) -> int:
        """Return how many of `questions` are held out for validation."""
        if self.dev < 0:
            return min(_MAX_DEV, questions // _DEV_SHARE)
        if self.dev >= questions:
            raise ConfigError(
                f"dev = {self.dev} leaves none of {questions} questions to train on; set a smaller "
                "dev (0 for none), or leave it out for a fifth"
            )
        return self.dev


def settings_from(path: Path | None, **given: Any) -> TrainSettings:
    """Read settings from a file, override them by `given`; unknown names are refused."""
    values: dict[str, Any] = {}
    if path is not None:
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not valid TOML: {error}") from error
    values |= {name: value for name, value in given.items() if value is not None}
    types = {field.name: field.type for field in fields(TrainSettings)}
    for name, value in values.items():
        if name not in types:
            raise ConfigError(f"unknown training setting {name!r}; known: {', '.join(types)}")
        if types[name] is float and isinstance(value, int):
            values[name] = float(value)
        expected = types[name]
        if isinstance(expected, type) and type(values[name]) is not expected:
            raise ConfigError(f"{name} = {value!r}: the type must be {expected.__name__}")
    return replace(TrainSettings(), **values)
