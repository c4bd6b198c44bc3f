"""From a rollout to an optimiser step: advantages, PPO's critic, gradients, clipping."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clew.train.core.safeguards import (
    LogFunction,
    NonFiniteValue,
    check_finite,
    log_nothing,
    retry_on_oom,
)
from clew.train.core.settings import TrainSettings
from clew.train.core.trajectory import Batch, Floats, Trajectory, flatten_values, make_batches
from clew.train.learn.distributed import ProcessGroup
from clew.train.learn.grpo import (
    broadcast_advantages,
    estimate_kl,
    group_advantages,
    reinforce_advantages,
    whiten,
)
from clew.train.learn.policy import Policy

LossFunction = Callable[[Any, Any, Any, Any, Any], tuple[Any, dict[str, Any]]]
"""Maps new, old, advantage, weight and reference of tokens to their loss and metrics."""


@dataclass(frozen=True)
class TrainingBatch:
    """Trajectories with per-token advantages, weights and log-probabilities."""

    trajectories: Sequence[Trajectory]
    advantages: Sequence[Floats]
    weights: Sequence[Floats]
    old_logprobs: Sequence[Floats] | None = None
    """Log-probabilities of the old policy for the ratio; None uses those of this pass."""
    reference_logprobs: Sequence[Floats] | None = None

    def take_slice(self, first: int, last: int, weights: Sequence[Floats]) -> "TrainingBatch":
        """Return a slice of the batch with new token weights."""
        return TrainingBatch(
            self.trajectories[first:last],
            self.advantages[first:last],
            weights,
            None if self.old_logprobs is None else self.old_logprobs[first:last],
            None if self.reference_logprobs is None else self.reference_logprobs[first:last],
        )

    def drop_zero_advantages(self) -> "TrainingBatch":
        """Return the batch without trajectories whose advantages are all 0."""
        kept = [at for at, each in enumerate(self.advantages) if np.any(each)]

        def select(values: Sequence[Any]) -> list[Any]:
            return [values[at] for at in kept]

        return TrainingBatch(
            select(self.trajectories),
            select(self.advantages),
            select(self.weights),
            None if self.old_logprobs is None else select(self.old_logprobs),
            None if self.reference_logprobs is None else select(self.reference_logprobs),
        )


def backward(
    policy: Policy,
    examples: TrainingBatch,
    objective: LossFunction,
    report: LogFunction,
    critic: Any = None,
) -> dict[str, float]:
    """Compute gradients of a batch; retry with half the micro-batch if memory runs out."""

    def work() -> dict[str, float]:
        # A failed attempt has left gradients behind.
        for parameter in policy.trainable_parameters().values():
            parameter.grad = None
        if critic is not None:
            critic.zero_grad()
        return compute_gradients(policy, examples, objective, critic)

    return retry_on_oom(policy, examples.trajectories, work, report)


def compute_gradients(
    policy: Policy, examples: TrainingBatch, objective: LossFunction, critic: Any
) -> dict[str, float]:
    """Run one attempt with micro-batches of the current size."""
    total: dict[str, float] = {"loss": 0.0}
    for batch in make_batches(examples.trajectories, policy.cells, policy.pad):
        new, hidden = policy.logprobs(batch)
        if not len(new):
            continue
        data = _batch_tensors(examples, batch, policy.device)
        old = new.detach() if data["old"] is None else data["old"]
        loss, stats = objective(new, old, data["advantages"], data["weights"], data["reference"])
        if critic is not None:
            loss = loss + critic.loss(hidden.detach(), batch, data["weights"])
        loss.backward()
        total["loss"] += float(loss.detach())
        for name, value in stats.items():
            total[name] = total.get(name, 0.0) + float(value)
    count = sum(one.generated_count for one in examples.trajectories)
    return {name: v if name == "loss" else v / max(count, 1) for name, v in total.items()}


def _batch_tensors(examples: TrainingBatch, batch: Batch, device: Any) -> dict[str, Any]:
    import torch

    def to_device(values: Sequence[Floats] | None) -> Any:
        return (
            None
            if values is None
            else torch.as_tensor(flatten_values(batch, values), device=device)
        )

    return {
        "old": to_device(examples.old_logprobs),
        "advantages": to_device(examples.advantages),
        "weights": to_device(examples.weights),
        "reference": to_device(examples.reference_logprobs),
    }


@dataclass(frozen=True)
class StepOptions:
    """Learning rate, gradient clipping and process group of an optimiser step."""

    lr: float
    clip: float = 1.0
    processes: ProcessGroup = ProcessGroup()


def apply_gradients(optimizer: Any, how: StepOptions, loss: float) -> float:
    """Apply averaged, clipped gradients; raise NonFiniteValue before touching weights."""
    import torch

    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    how.processes.average_gradients(parameters)
    norm = float(torch.nn.utils.clip_grad_norm_(parameters, how.clip or math.inf))
    if not (math.isfinite(norm) and math.isfinite(loss)):
        optimizer.zero_grad(set_to_none=True)
        raise NonFiniteValue(f"the loss is {loss} and the gradient norm {norm}")
    for group in optimizer.param_groups:
        group["lr"] = how.lr
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return norm


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
        self, policy: Policy, trajectories: Sequence[Trajectory], report: LogFunction
    ) -> list[Floats]:
        """Estimate the value of the state before each generated token."""

        def batch_values(batch: Batch) -> Floats:
            hidden = policy.logprobs(batch)[1]
            found: Floats = self.head(hidden.float())[:, 0].cpu().numpy()
            return found

        return policy.map_own_tokens(trajectories, batch_values, report)

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


@dataclass(frozen=True)
class AdvantageEstimator:
    """Turns trajectories and rewards into a TrainingBatch (GRPO, REINFORCE++ or PPO)."""

    policy: Policy
    settings: TrainSettings
    critic: Critic | None = None
    report: LogFunction = log_nothing

    def __call__(self, played: Sequence[Trajectory], rewards: Sequence[float]) -> TrainingBatch:
        """Compute old and reference log-probabilities and the advantage of each token."""
        s = self.settings
        lengths = [one.generated_count for one in played]
        old = [one.logprobs[one.loss_mask == 1] for one in played]
        if s.old == "recompute":
            old = self.policy.score_trajectories(played, self.report)
            check_finite(old, "the rollout")
        reference = self._reference_logprobs(played)
        if s.algorithm == "grpo":
            values = broadcast_advantages(group_advantages(rewards, s.group), lengths)
        elif s.algorithm == "reinforce++":
            token_kl = [_token_kl(own, ref) for own, ref in zip(old, reference or old, strict=True)]
            values = reinforce_advantages(rewards, token_kl, s.beta)
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
            logprobs = self.policy.score_trajectories(played, self.report)
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
        values = self.critic.estimate_values(self.policy, played, self.report)
        self.critic.returns = returns
        return whiten([r - v for r, v in zip(returns, values, strict=True)])


def _token_kl(own: Any, ref: Any) -> Any:
    import torch

    kl = estimate_kl(torch.as_tensor(own), torch.as_tensor(ref))
    return kl.numpy()
