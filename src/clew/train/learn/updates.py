"""One optimiser step: gradients over micro-batches, clipping and NaN checks."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.train.learn.finite import NonFiniteValue
from clew.train.learn.memory import retry_on_oom
from clew.train.learn.parallel import ProcessGroup
from clew.train.policy import Policy
from clew.train.trajectory import Batch, Trajectory, flatten_values, make_batches

Floats = NDArray[np.float32]
LogFunction = Callable[[str], None]
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

        def some(values: Sequence[Any]) -> list[Any]:
            return [values[at] for at in kept]

        return TrainingBatch(
            some(self.trajectories),
            some(self.advantages),
            some(self.weights),
            None if self.old_logprobs is None else some(self.old_logprobs),
            None if self.reference_logprobs is None else some(self.reference_logprobs),
        )


def backward(
    policy: Policy,
    lesson: TrainingBatch,
    objective: LossFunction,
    tell: LogFunction,
    critic: Any = None,
) -> dict[str, float]:
    """Compute gradients of a batch; retry with half the micro-batch if memory runs out."""

    def work() -> dict[str, float]:
        # A failed attempt has left gradients behind.
        for parameter in policy.trainable_parameters().values():
            parameter.grad = None
        if critic is not None:
            critic.zero_grad()
        return _backward(policy, lesson, objective, critic)

    return retry_on_oom(policy, lesson.trajectories, work, tell)


def _backward(
    policy: Policy, lesson: TrainingBatch, objective: LossFunction, critic: Any
) -> dict[str, float]:
    total: dict[str, float] = {"loss": 0.0}
    for batch in make_batches(lesson.trajectories, policy.cells, policy.pad):
        new, hidden = policy.logprobs(batch)
        if not len(new):
            continue
        data = _batch_tensors(lesson, batch, policy.device)
        old = new.detach() if data["old"] is None else data["old"]
        loss, stats = objective(new, old, data["advantages"], data["weights"], data["reference"])
        if critic is not None:
            loss = loss + critic.loss(hidden.detach(), batch, data["weights"])
        loss.backward()
        total["loss"] += float(loss.detach())
        for name, value in stats.items():
            total[name] = total.get(name, 0.0) + float(value)
    count = sum(one.generated_count for one in lesson.trajectories)
    return {name: v if name == "loss" else v / max(count, 1) for name, v in total.items()}


def _batch_tensors(lesson: TrainingBatch, batch: Batch, device: Any) -> dict[str, Any]:
    import torch

    def here(values: Sequence[Floats] | None) -> Any:
        return (
            None
            if values is None
            else torch.as_tensor(flatten_values(batch, values), device=device)
        )

    return {
        "old": here(lesson.old_logprobs),
        "advantages": here(lesson.advantages),
        "weights": here(lesson.weights),
        "reference": here(lesson.reference_logprobs),
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
        raise NonFiniteValue(f"the loss is {loss} and its gradient {norm}")
    for group in optimizer.param_groups:
        group["lr"] = how.lr
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return norm
