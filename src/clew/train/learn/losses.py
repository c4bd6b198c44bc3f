"""The objective, token by token (Graph-R1, eq. 11-12). Tensors in, tensors out."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Objective:
    """Ratio clip and KL strength."""

    clip: float = 0.2
    """ε of eq. 11."""
    beta: float = 0.001
    """β of eq. 11; 0 spends no pass on the reference."""

    def __call__(
        self, new: Any, old: Any, advantage: Any, weight: Any, reference: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """The loss of some tokens and figures about them; all arguments are flat and aligned.

        `weight` says what each token counts, so that losses of several batches add up.
        """
        ratio = (new - old).exp()
        held = ratio.clamp(1 - self.clip, 1 + self.clip)
        gain = (ratio * advantage).minimum(held * advantage)
        told = {
            "clipped": ((ratio - held).abs() > 0).float().detach().sum(),
            "drift": (new - old).abs().detach().sum(),
        }
        loss = -(weight * gain).sum()
        if reference is not None and self.beta > 0:
            gap = divergence(new, reference)
            loss = loss + self.beta * (weight * gap).sum()
            told["kl"] = gap.detach().sum()
        return loss, told


def divergence(new: Any, reference: Any) -> Any:
    """KL(new ‖ reference) of tokens drawn from `new`: never negative, right on average."""
    gap = reference - new
    return gap.exp() - gap - 1
