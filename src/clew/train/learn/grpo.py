"""GRPO: advantages from rewards, and the clipped objective with KL penalty (Graph-R1, eq. 11-12).

Advantages are numpy arrays over the generated tokens of each trajectory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clew.train.core.settings import LossAveraging
from clew.train.core.trajectory import Floats

_MIN_SPREAD = 1e-6


@dataclass(frozen=True, slots=True)
class Objective:
    """Clipped objective: clip range ε and KL weight β."""

    clip: float = 0.2
    """ε of eq. 11."""
    beta: float = 0.001
    """β of eq. 11; 0 needs no reference pass."""

    def __call__(
        self, new: Any, old: Any, advantage: Any, weight: Any, reference: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Return the loss and metrics of some tokens; all arguments are flat and aligned.

        `weight` is the weight of each token, so that losses of micro-batches add up.
        """
        ratio = (new - old).exp()
        clipped = ratio.clamp(1 - self.clip, 1 + self.clip)
        gain = (ratio * advantage).minimum(clipped * advantage)
        metrics = {
            "clipped": ((ratio - clipped).abs() > 0).float().detach().sum(),
            "drift": (new - old).abs().detach().sum(),
        }
        loss = -(weight * gain).sum()
        if reference is not None and self.beta > 0:
            kl = estimate_kl(new, reference)
            loss = loss + self.beta * (weight * kl).sum()
            metrics["kl"] = kl.detach().sum()
        return loss, metrics


def estimate_kl(new: Any, reference: Any) -> Any:
    """Estimate KL(new ‖ reference) per token sampled from `new`: non-negative and unbiased (k3)."""
    log_ratio = reference - new
    return log_ratio.exp() - log_ratio - 1


def group_advantages(rewards: Sequence[float], size: int, *, scale: bool = True) -> Floats:
    """GRPO advantage (eq. 12): reward minus group mean, over the group's standard deviation.

    A group with equal rewards gets 0. `scale=False` does not divide by the standard deviation.
    """
    table = np.asarray(rewards, np.float64).reshape(-1, size)
    advantages = table - table.mean(axis=1, keepdims=True)
    if scale:
        spread = table.std(axis=1, ddof=1 if size > 1 else 0, keepdims=True)
        advantages = np.where(
            spread > _MIN_SPREAD, advantages / np.maximum(spread, _MIN_SPREAD), 0.0
        )
    flat: Floats = advantages.reshape(-1).astype(np.float32)
    return flat


def broadcast_advantages(advantages: Floats, lengths: Sequence[int]) -> list[Floats]:
    """Give every generated token of a trajectory the same advantage."""
    return [
        np.full(length, value, np.float32)
        for value, length in zip(advantages, lengths, strict=True)
    ]


def reinforce_advantages(
    rewards: Sequence[float], kl: Sequence[Floats], beta: float
) -> list[Floats]:
    """REINFORCE++ advantages: reward minus the KL to come, normalised over the batch."""
    returns = []
    for reward, token_kl in zip(rewards, kl, strict=True):
        remaining_kl = np.cumsum(token_kl[::-1], dtype=np.float64)[::-1]
        returns.append(reward - beta * remaining_kl)
    return whiten([np.asarray(one, np.float32) for one in returns])


def whiten(values: Sequence[Floats]) -> list[Floats]:
    """Normalise to mean 0 and standard deviation 1 over all tokens."""
    flat = np.concatenate(list(values)) if values else np.zeros(0, np.float32)
    if not len(flat):
        return list(values)
    mean, spread = float(flat.mean()), float(flat.std())
    return [((one - mean) / max(spread, _MIN_SPREAD)).astype(np.float32) for one in values]


def token_weights(
    lengths: Sequence[int], mean: LossAveraging, tokens: float | None = None
) -> list[Floats]:
    """Return the weight of each generated token, so that a loss is one weighted sum.

    `trajectory`: every trajectory counts the same (eq. 11); `token`: every token does. `tokens`
    is the token count to divide by, where several processes share a batch.
    """
    if mean == "token":
        share = 1.0 / max(sum(lengths) if tokens is None else tokens, 1)
        return [np.full(length, share, np.float32) for length in lengths]
    return [
        np.full(length, 1.0 / (max(length, 1) * len(lengths)), np.float32) for length in lengths
    ]
