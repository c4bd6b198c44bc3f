"""From rewards to what each token is worth. Plain numpy, one array of own tokens a trajectory."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Mean = Literal["trajectory", "token"]

_LEAST = 1e-6


def grouped(rewards: Sequence[float], size: int, *, scale: bool = True) -> Floats:
    """Each reward against its group's mean, in units of its spread (eq. 12).

    A group in which all fared alike tells nothing and gets 0. `scale=False` leaves the spread out.
    """
    table = np.asarray(rewards, np.float64).reshape(-1, size)
    off = table - table.mean(axis=1, keepdims=True)
    if scale:
        spread = table.std(axis=1, ddof=1 if size > 1 else 0, keepdims=True)
        off = np.where(spread > _LEAST, off / np.maximum(spread, _LEAST), 0.0)
    found: Floats = off.reshape(-1).astype(np.float32)
    return found


def constant(advantages: Floats, lengths: Sequence[int]) -> list[Floats]:
    """The same advantage for every own token of a trajectory."""
    return [
        np.full(length, value, np.float32)
        for value, length in zip(advantages, lengths, strict=True)
    ]


def reinforced(rewards: Sequence[float], kl: Sequence[Floats], beta: float) -> list[Floats]:
    """REINFORCE++: reward-to-go less the KL still to come, normalised over the whole batch."""
    returns = []
    for reward, drift in zip(rewards, kl, strict=True):
        to_come = np.cumsum(drift[::-1], dtype=np.float64)[::-1]
        returns.append(reward - beta * to_come)
    return whitened([np.asarray(one, np.float32) for one in returns])


def whitened(values: Sequence[Floats]) -> list[Floats]:
    """Mean 0 and spread 1 over all tokens."""
    everything = np.concatenate(list(values)) if values else np.zeros(0, np.float32)
    if not len(everything):
        return list(values)
    mean, spread = float(everything.mean()), float(everything.std())
    return [((one - mean) / max(spread, _LEAST)).astype(np.float32) for one in values]


def weights(lengths: Sequence[int], mean: Mean, tokens: float | None = None) -> list[Floats]:
    """How much each own token counts, so that a loss is one weighted sum.

    `trajectory`: every trajectory counts the same (eq. 11); `token`: every token does. `tokens`
    says of how many each is one, where several processes have a share.
    """
    if mean == "token":
        share = 1.0 / max(sum(lengths) if tokens is None else tokens, 1)
        return [np.full(length, share, np.float32) for length in lengths]
    return [
        np.full(length, 1.0 / (max(length, 1) * len(lengths)), np.float32) for length in lengths
    ]
