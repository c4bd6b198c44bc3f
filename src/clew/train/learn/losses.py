"""Clipped policy-gradient objective with KL penalty, per token (Graph-R1, eq. 11-12)."""

from dataclasses import dataclass
from typing import Any


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
