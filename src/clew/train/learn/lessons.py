"""Computes per-token advantages of a rollout by the chosen algorithm."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clew.train.learn import advantages as worth
from clew.train.learn.critic import Critic
from clew.train.learn.finite import finite
from clew.train.learn.losses import divergence
from clew.train.learn.memory import Tell
from clew.train.learn.updates import Lesson
from clew.train.policy import Policy
from clew.train.settings import TrainSettings
from clew.train.trajectory import Floats, Trajectory


@dataclass(frozen=True)
class Teacher:
    """Turns trajectories and rewards into a TrainingBatch (GRPO, REINFORCE++ or PPO)."""

    policy: Policy
    settings: TrainSettings
    critic: Critic | None = None
    tell: Tell = lambda line: None

    def __call__(self, played: Sequence[Trajectory], rewards: Sequence[float]) -> Lesson:
        """Compute old and reference log-probabilities and the advantage of each token."""
        s = self.settings
        lengths = [one.written for one in played]
        old = [one.logprobs[one.own == 1] for one in played]
        if s.old == "recompute":
            old = self.policy.measured(played, self.tell)
            finite(old, "what was played")
        reference = self._reference(played)
        if s.algorithm == "grpo":
            values = worth.constant(worth.grouped(rewards, s.group), lengths)
        elif s.algorithm == "reinforce++":
            token_kl = [_drift(own, ref) for own, ref in zip(old, reference or old, strict=True)]
            values = worth.reinforced(rewards, token_kl, s.beta)
        else:
            values = self._over_baseline(played, rewards)
        kept = None if s.updates == 1 and s.old == "recompute" else old
        # REINFORCE++ has already subtracted the KL from the rewards.
        return Lesson(played, values, (), kept, None if s.algorithm == "reinforce++" else reference)

    def _reference(self, played: Sequence[Trajectory]) -> list[Floats] | None:
        if self.settings.beta == 0:
            return None
        with self.policy.as_reference():
            logprobs = self.policy.measured(played, self.tell)
        finite(logprobs, "the reference")
        return logprobs

    def _over_baseline(self, played: Sequence[Trajectory], rewards: Sequence[float]) -> list[Any]:
        assert self.critic is not None
        returns = [
            np.full(one.written, reward, np.float32)
            for one, reward in zip(played, rewards, strict=True)
        ]
        values = self.critic.values(self.policy, played, self.tell)
        self.critic.returns = returns
        return worth.whitened([r - v for r, v in zip(returns, values, strict=True)])


def _drift(own: Any, ref: Any) -> Any:
    import torch

    kl = divergence(torch.as_tensor(own), torch.as_tensor(ref))
    return kl.numpy()
