"""Trajectories: token ids, loss mask and log-probabilities of an episode, and padded batches.

All three are recorded during generation. Nothing is decoded and tokenised again, so a mask always
matches its tokens. Plain numpy: masks and batches are tested without torch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.train.core.environment import Episode

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Trajectory:
    """One episode as tokens; `loss_mask` is 1 for tokens the model generated, 0 elsewhere."""

    ids: Ints
    loss_mask: Ints
    logprobs: Floats
    """Log-probability of each generated token when it was sampled; 0 elsewhere."""
    episode: Episode

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.loss_mask) == len(self.logprobs):
            raise ValueError(
                "ids, loss_mask and logprobs of a trajectory must have the same length"
            )

    def __len__(self) -> int:
        """Number of tokens, prompt included."""
        return len(self.ids)

    @property
    def generated_count(self) -> int:
        """Number of tokens that the model generated."""
        return int(self.loss_mask.sum())


class TrajectoryRecorder:
    """Builds a trajectory token by token."""

    def __init__(self, prompt: Sequence[int]) -> None:
        """Start with the prompt, which carries no loss."""
        self.ids: list[int] = list(prompt)
        self.loss_mask: list[int] = [0] * len(prompt)
        self.logprobs: list[float] = [0.0] * len(prompt)
        self.step_start = len(prompt)
        """Where the model's current step begins."""

    def append_generated(self, token: int, logprob: float) -> None:
        """Append a token that the model generated."""
        self.ids.append(token)
        self.loss_mask.append(1)
        self.logprobs.append(logprob)

    def append_reply(self, tokens: Sequence[int]) -> None:
        """Append an environment reply; it carries no loss."""
        self.ids.extend(tokens)
        self.loss_mask.extend([0] * len(tokens))
        self.logprobs.extend([0.0] * len(tokens))
        self.step_start = len(self.ids)

    def to_trajectory(self, episode: Episode) -> Trajectory:
        """Return the finished trajectory."""
        return Trajectory(
            np.array(self.ids, np.int64),
            np.array(self.loss_mask, np.int64),
            np.array(self.logprobs, np.float32),
            episode,
        )


@dataclass(frozen=True)
class Batch:
    """Trajectories padded on the right; `indices` are their positions in the input."""

    indices: list[int]
    ids: Ints
    loss_mask: Ints

    @property
    def targets(self) -> NDArray[np.bool_]:
        """For each position but the last, whether the next token was generated."""
        return self.loss_mask[:, 1:].astype(bool)


def make_batches(trajectories: Sequence[Trajectory], tokens: int, pad: int) -> Iterator[Batch]:
    """Yield batches of similar lengths with at most `tokens` cells (at least one trajectory)."""
    order = sorted(range(len(trajectories)), key=lambda at: (-len(trajectories[at]), at))
    group: list[int] = []
    for at in order:
        widest = len(trajectories[group[0]]) if group else 0
        if group and (len(group) + 1) * widest > tokens:
            yield _pad_batch(trajectories, group, pad)
            group = []
        group.append(at)
    if group:
        yield _pad_batch(trajectories, group, pad)


def _pad_batch(trajectories: Sequence[Trajectory], group: list[int], pad: int) -> Batch:
    widest = max(len(trajectories[at]) for at in group)
    ids = np.full((len(group), widest), pad, np.int64)
    mask = np.zeros((len(group), widest), np.int64)
    for row, at in enumerate(group):
        one = trajectories[at]
        ids[row, : len(one)] = one.ids
        mask[row, : len(one)] = one.loss_mask
    return Batch(group, ids, mask)


def flatten_values(batch: Batch, values: Sequence[Floats]) -> Floats:
    """Concatenate per-token values of the batch's trajectories, in the order of its targets."""
    parts = [values[at] for at in batch.indices]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)
