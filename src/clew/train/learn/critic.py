"""PPO's baseline: a linear value head on the policy's own hidden states.

Smaller than the separate critic that PPO for language models usually trains: the states are taken
as they are, only the head learns.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.train.learn.memory import Tell
from clew.train.policy import Policy
from clew.train.trajectory import Batch, Trajectory, flat

Floats = NDArray[np.float32]


class Critic:
    """Values of states, and the loss that teaches them."""

    def __init__(self, policy: Policy) -> None:
        """A head that begins at 0."""
        import torch

        width = policy.model.config.hidden_size
        self.head = torch.nn.Linear(width, 1).to(policy.device)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)
        self.returns: list[Floats] = []
        self.optimizer = torch.optim.AdamW(self.head.parameters(), lr=1e-3)

    def values(
        self, policy: Policy, trajectories: Sequence[Trajectory], tell: Tell
    ) -> list[Floats]:
        """The value before each own token."""

        def look(batch: Batch) -> Floats:
            hidden = policy.logprobs(batch)[1]
            found: Floats = self.head(hidden.float())[:, 0].cpu().numpy()
            return found

        return policy.each_own(trajectories, look, tell)

    def parameters(self) -> dict[str, Any]:
        """What is trained, by name."""
        return dict(self.head.named_parameters())

    def loss(self, hidden: Any, batch: Batch, weights: Any) -> Any:
        """Squared error against what came of it."""
        import torch

        wanted = torch.as_tensor(flat(batch, self.returns), device=hidden.device)
        return 0.5 * (weights * (self.head(hidden.float())[:, 0] - wanted) ** 2).sum()

    def zero_grad(self) -> None:
        """Forget gradients."""
        self.head.zero_grad(set_to_none=True)
