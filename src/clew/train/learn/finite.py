"""NaN and infinity checks."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clew.errors import ModelError
from clew.train.checkpoints import read_state


class NonFiniteValue(ModelError):  # noqa: N818  (reads as what happened)
    """A value is NaN or infinite; the training loop adds how to resume."""


def check_finite(values: Sequence[NDArray[np.float32]], whose: str) -> None:
    """Raise NonFiniteValue if a log-probability is NaN or infinite."""
    if not all(np.isfinite(each).all() for each in values):
        raise NonFiniteValue(f"log-probabilities of {whose} are not numbers")


def resume_advice(newest: Path | None) -> str:
    """Say how to resume after a NaN, given the newest checkpoint."""
    if newest is None or read_state(newest)["step"] == 0:
        return (
            "and no step was learned yet: see whether the model's own weights are sound, or set "
            "a smaller lr"
        )
    return (
        f"the last checkpoint is good ({newest}): the same command goes on from it, better with "
        "a smaller lr"
    )
