"""Trajectories: token ids, loss mask and log-probabilities of an episode, and padded batches.

All three are recorded during generation. Nothing is decoded and tokenised again, so a mask always
matches its tokens. Plain numpy: masks and batches are tested without torch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.train.environment import Episode

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Trajectory:
    """One episode as tokens; `loss_mask` is 1 for tokens the model generated, 0 elsewhere."""

    ids: Ints
    own: Ints
    logprobs: Floats
    """Log-probability of each generated token when it was sampled; 0 elsewhere."""
    episode: Episode

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.own) == len(self.logprobs):
            raise ValueError("ids, own and logprobs of a trajectory must be equally long")

    def __len__(self) -> int:
        """Number of tokens, prompt included."""
        return len(self.ids)

    @property
    def written(self) -> int:
        """Number of tokens that the model generated."""
        return int(self.own.sum())


class Recorder:
    """Builds a trajectory token by token."""

    def __init__(self, prompt: Sequence[int]) -> None:
        """Start with the prompt, which carries no loss."""
        self.ids: list[int] = list(prompt)
        self.own: list[int] = [0] * len(prompt)
        self.logprobs: list[float] = [0.0] * len(prompt)
        self.turn = len(prompt)
        """Where the model's current step begins."""

    def drawn(self, token: int, logprob: float) -> None:
        """Append a token that the model generated."""
        self.ids.append(token)
        self.own.append(1)
        self.logprobs.append(logprob)

    def given(self, tokens: Sequence[int]) -> None:
        """Append an environment reply; it carries no loss."""
        self.ids.extend(tokens)
        self.own.extend([0] * len(tokens))
        self.logprobs.extend([0.0] * len(tokens))
        self.turn = len(self.ids)

    def finished(self, episode: Episode) -> Trajectory:
        """Return the finished trajectory."""
        return Trajectory(
            np.array(self.ids, np.int64),
            np.array(self.own, np.int64),
            np.array(self.logprobs, np.float32),
            episode,
        )


@dataclass(frozen=True)
class Batch:
    """Trajectories padded on the right; `indices` are their positions in the input."""

    at: list[int]
    ids: Ints
    own: Ints

    @property
    def targets(self) -> NDArray[np.bool_]:
        """For each position but the last, whether the next token was generated."""
        return self.own[:, 1:].astype(bool)


def batches(trajectories: Sequence[Trajectory], tokens: int, pad: int) -> Iterator[Batch]:
    """Yield batches of similar lengths with at most `tokens` cells (at least one trajectory)."""
    order = sorted(range(len(trajectories)), key=lambda at: (-len(trajectories[at]), at))
    group: list[int] = []
    for at in order:
        widest = len(trajectories[group[0]]) if group else 0
        if group and (len(group) + 1) * widest > tokens:
            yield _batch(trajectories, group, pad)
            group = []
        group.append(at)
    if group:
        yield _batch(trajectories, group, pad)


def _batch(trajectories: Sequence[Trajectory], group: list[int], pad: int) -> Batch:
    widest = max(len(trajectories[at]) for at in group)
    ids = np.full((len(group), widest), pad, np.int64)
    own = np.zeros((len(group), widest), np.int64)
    for row, at in enumerate(group):
        one = trajectories[at]
        ids[row, : len(one)] = one.ids
        own[row, : len(one)] = one.own
    return Batch(group, ids, own)


def flat(batch: Batch, values: Sequence[Floats]) -> Floats:
    """Concatenate per-token values of the batch's trajectories, in the order of its targets."""
    parts = [values[at] for at in batch.at]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)
