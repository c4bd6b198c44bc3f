"""PPO's critic: a linear value head on the policy's hidden states.

Smaller than the separate critic model that PPO for language models usually trains: only the head
is trained.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.train.learn.memory import LogFunction
from clew.train.policy import Policy
from clew.train.trajectory import Batch, Trajectory, flatten_values

Floats = NDArray[np.float32]


class Critic:
    """Linear value head with its optimiser and regression loss."""

    def __init__(self, policy: Policy) -> None:
        """Start with a head of zeros."""
        import torch

        width = policy.model.config.hidden_size
        self.head = torch.nn.Linear(width, 1).to(policy.device)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)
        self.returns: list[Floats] = []
        self.optimizer = torch.optim.AdamW(self.head.parameters(), lr=1e-3)

    def estimate_values(
        self, policy: Policy, trajectories: Sequence[Trajectory], tell: LogFunction
    ) -> list[Floats]:
        """Estimate the value of the state before each generated token."""

        def look(batch: Batch) -> Floats:
            hidden = policy.logprobs(batch)[1]
            found: Floats = self.head(hidden.float())[:, 0].cpu().numpy()
            return found

        return policy.map_own_tokens(trajectories, look, tell)

    def parameters(self) -> dict[str, Any]:
        """Return the head's parameters by name."""
        return dict(self.head.named_parameters())

    def loss(self, hidden: Any, batch: Batch, weights: Any) -> Any:
        """Return half the weighted squared error against the returns."""
        import torch

        returns = torch.as_tensor(flatten_values(batch, self.returns), device=hidden.device)
        return 0.5 * (weights * (self.head(hidden.float())[:, 0] - returns) ** 2).sum()

    def zero_grad(self) -> None:
        """Clear the gradients."""
        self.head.zero_grad(set_to_none=True)
