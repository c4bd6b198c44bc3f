"""Numbers that are none: found where they arise, before they count as nothing learned."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clew.errors import ModelError
from clew.train.checkpoints import state_of


class NotANumber(ModelError):  # noqa: N818  (reads as what happened)
    """Something is infinite or no number at all; whoever trains says how to go on."""


def finite(values: Sequence[NDArray[np.float32]], whose: str) -> None:
    """Refuse log-probabilities of which some are no numbers."""
    if not all(np.isfinite(each).all() for each in values):
        raise NotANumber(f"log-probabilities of {whose} are not numbers")


def way_on(newest: Path | None) -> str:
    """How to go on after it, by what is on disk."""
    if newest is None or state_of(newest)["step"] == 0:
        return (
            "and no step was learned yet: see whether the model's own weights are sound, or set "
            "a smaller lr"
        )
    return (
        f"the last checkpoint is good ({newest}): the same command goes on from it, better with "
        "a smaller lr"
    )
