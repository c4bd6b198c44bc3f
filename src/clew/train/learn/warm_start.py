"""Supervised warm start (SFT): maximises the likelihood of demonstration tokens."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

from clew.errors import ModelError
from clew.train.core.rollout import StopRequested
from clew.train.core.safeguards import LogFunction, NonFiniteValue, log_nothing
from clew.train.core.trajectory import Trajectory
from clew.train.learn.distributed import ProcessGroup
from clew.train.learn.grpo import token_weights
from clew.train.learn.policy import Policy
from clew.train.learn.update import StepOptions, TrainingBatch, apply_gradients, backward


def negative_log_likelihood(
    new: Any, old: Any, advantage: Any, weight: Any, reference: Any = None
) -> tuple[Any, dict[str, Any]]:
    """Objective of the warm start: the weighted negative log-likelihood."""
    return -(weight * new).sum(), {}


@dataclass(frozen=True)
class WarmStart:
    """Epochs, batch size and learning rate, which decays linearly to a tenth."""

    epochs: int = 2
    lr: float = 1e-4
    batch: int = 32
    seed: int = 0
    processes: ProcessGroup = ProcessGroup()
    stop: Event | None = None
    """Once set, `StopRequested` is raised: a partial warm start is not kept."""

    def __call__(
        self, policy: Policy, examples: Sequence[Trajectory], report: LogFunction = log_nothing
    ) -> list[float]:
        """Train on the examples; return the loss of every step."""
        import torch

        parameters = list(policy.trainable_parameters().values())
        optimizer = torch.optim.AdamW(parameters, lr=self.lr, weight_decay=0.0)
        order = [
            at
            for epoch in range(self.epochs)
            for at in _shuffle_indices(len(examples), self.seed + epoch)
        ]
        losses = []
        steps = -(-len(order) // self.batch)
        for step in range(steps):
            if self.processes.broadcast(self.stop is not None and self.stop.is_set()):
                raise StopRequested
            batch = order[step * self.batch : (step + 1) * self.batch]
            chosen = [examples[at] for at in self.processes.shard(batch)]
            lengths = [one.generated_count for one in chosen]
            per_token = token_weights(lengths, "token", self.processes.reduce_mean(sum(lengths)))
            metrics = backward(
                policy, TrainingBatch(chosen, per_token, per_token), negative_log_likelihood, report
            )
            rate = self.lr * min(1.0, (step + 1) / 5) * (1 - 0.9 * step / steps)
            try:
                apply_gradients(optimizer, StepOptions(rate, 1.0, self.processes), metrics["loss"])
            except NonFiniteValue as error:
                raise ModelError(f"{error} in the warm start; set a smaller sft_lr") from error
            losses.append(metrics["loss"])
            if step % 5 == 0 or step == steps - 1:
                report(
                    json.dumps({"sft_step": step, "of": steps, "loss": round(metrics["loss"], 4)})
                )
        return losses


def _shuffle_indices(count: int, seed: int) -> list[int]:
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order
