"""Computes per-token advantages of a rollout by the chosen algorithm."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clew.train.learn import advantages as worth
from clew.train.learn.critic import Critic
from clew.train.learn.finite import check_finite
from clew.train.learn.losses import estimate_kl
from clew.train.learn.memory import LogFunction
from clew.train.learn.updates import TrainingBatch
from clew.train.policy import Policy
from clew.train.settings import TrainSettings
from clew.train.trajectory import Floats, Trajectory


@dataclass(frozen=True)
class AdvantageEstimator:
    """Turns trajectories and rewards into a TrainingBatch (GRPO, REINFORCE++ or PPO)."""

    policy: Policy
    settings: TrainSettings
    critic: Critic | None = None
    tell: LogFunction = lambda line: None

    def __call__(self, played: Sequence[Trajectory], rewards: Sequence[float]) -> TrainingBatch:
        """Compute old and reference log-probabilities and the advantage of each token."""
        s = self.settings
        lengths = [one.generated_count for one in played]
        old = [one.logprobs[one.loss_mask == 1] for one in played]
        if s.old == "recompute":
            old = self.policy.score_trajectories(played, self.tell)
            check_finite(old, "what was played")
        reference = self._reference_logprobs(played)
        if s.algorithm == "grpo":
            values = worth.broadcast_advantages(worth.group_advantages(rewards, s.group), lengths)
        elif s.algorithm == "reinforce++":
            token_kl = [_token_kl(own, ref) for own, ref in zip(old, reference or old, strict=True)]
            values = worth.reinforce_advantages(rewards, token_kl, s.beta)
        else:
            values = self._subtract_baseline(played, rewards)
        kept = None if s.updates == 1 and s.old == "recompute" else old
        # REINFORCE++ has already subtracted the KL from the rewards.
        return TrainingBatch(
            played, values, (), kept, None if s.algorithm == "reinforce++" else reference
        )

    def _reference_logprobs(self, played: Sequence[Trajectory]) -> list[Floats] | None:
        if self.settings.beta == 0:
            return None
        with self.policy.with_reference_weights():
            logprobs = self.policy.score_trajectories(played, self.tell)
        check_finite(logprobs, "the reference")
        return logprobs

    def _subtract_baseline(
        self, played: Sequence[Trajectory], rewards: Sequence[float]
    ) -> list[Any]:
        assert self.critic is not None
        returns = [
            np.full(one.generated_count, reward, np.float32)
            for one, reward in zip(played, rewards, strict=True)
        ]
        values = self.critic.estimate_values(self.policy, played, self.tell)
        self.critic.returns = returns
        return worth.whiten([r - v for r, v in zip(returns, values, strict=True)])


def _token_kl(own: Any, ref: Any) -> Any:
    import torch

    kl = estimate_kl(torch.as_tensor(own), torch.as_tensor(ref))
    return kl.numpy()
