"""Safeguards of training: NaN checks, and smaller micro-batches when memory runs out."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np

from clew.errors import ModelError
from clew.train.core.trajectory import Floats, Trajectory

Result = TypeVar("Result")
LogFunction = Callable[[str], None]


def log_nothing(line: str) -> None:
    """Ignore a line of the log."""


class NonFiniteValue(ModelError):  # noqa: N818  (reads as what happened)
    """A value is NaN or infinite; the training loop adds how to resume."""


def check_finite(values: Sequence[Floats], whose: str) -> None:
    """Raise NonFiniteValue if a log-probability is NaN or infinite."""
    if not all(np.isfinite(each).all() for each in values):
        raise NonFiniteValue(f"the log-probabilities of {whose} are NaN or infinite")


class HasCells(Protocol):
    """An object with a micro-batch size in tokens."""

    cells: int


def retry_on_oom(
    policy: HasCells,
    trajectories: Sequence[Trajectory],
    work: Callable[[], Result],
    report: LogFunction,
    times: int = 1,
) -> Result:
    """Run `work`, whose micro-batches have `times` the policy's cells; halve until it fits."""
    import torch

    longest = max((len(one) for one in trajectories), default=1)
    least = -(-longest // times)
    while True:
        try:
            return work()
        except torch.OutOfMemoryError as error:
            if policy.cells <= least:
                raise ModelError(
                    f"one trajectory of {longest} tokens does not fit in memory; set a smaller "
                    "length, or a smaller LoRA rank"
                ) from error
        # Outside the handler the traceback no longer holds the failed attempt's tensors.
        free_gpu_cache()
        policy.cells = max(policy.cells // 2, least)
        report(f"out of memory: micro-batches are reduced to {policy.cells} tokens")


def free_gpu_cache() -> None:
    """Release unused cached GPU memory."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
