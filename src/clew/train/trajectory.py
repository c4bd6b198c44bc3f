"""What a rollout leaves behind: token ids, whose they are, and how likely they were.

All three are recorded while tokens are made. Nothing is decoded and tokenised again, so a mask can
never slip against its tokens. Plain numpy: masks and batches are tested without torch.
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
    """One episode as tokens. `own` is 1 where the model wrote the token, 0 elsewhere."""

    ids: Ints
    own: Ints
    logprobs: Floats
    """Log-probability of each own token when it was drawn; 0 elsewhere."""
    episode: Episode

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.own) == len(self.logprobs):
            raise ValueError("ids, own and logprobs of a trajectory must be equally long")

    def __len__(self) -> int:
        """Tokens, the prompt's included."""
        return len(self.ids)

    @property
    def written(self) -> int:
        """Tokens the model wrote."""
        return int(self.own.sum())


class Recorder:
    """Writes a trajectory down as it happens."""

    def __init__(self, prompt: Sequence[int]) -> None:
        """Begin with the prompt, which is nobody's doing."""
        self.ids: list[int] = list(prompt)
        self.own: list[int] = [0] * len(prompt)
        self.logprobs: list[float] = [0.0] * len(prompt)
        self.turn = len(prompt)
        """Where the model's present step begins."""

    def drawn(self, token: int, logprob: float) -> None:
        """The model wrote a token."""
        self.ids.append(token)
        self.own.append(1)
        self.logprobs.append(logprob)

    def given(self, tokens: Sequence[int]) -> None:
        """The environment said something; it carries no loss."""
        self.ids.extend(tokens)
        self.own.extend([0] * len(tokens))
        self.logprobs.extend([0.0] * len(tokens))
        self.turn = len(self.ids)

    def finished(self, episode: Episode) -> Trajectory:
        """The whole of it."""
        return Trajectory(
            np.array(self.ids, np.int64),
            np.array(self.own, np.int64),
            np.array(self.logprobs, np.float32),
            episode,
        )


@dataclass(frozen=True)
class Batch:
    """Trajectories side by side, padded on the right; `at` says which they were."""

    at: list[int]
    ids: Ints
    own: Ints

    @property
    def targets(self) -> NDArray[np.bool_]:
        """For each position but the last, whether the token after it was the model's."""
        return self.own[:, 1:].astype(bool)


def batches(trajectories: Sequence[Trajectory], tokens: int, pad: int) -> Iterator[Batch]:
    """Batches of like lengths, each of at most `tokens` cells (but at least one trajectory)."""
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
    """Per-token values of the batch's trajectories, in the order of its targets."""
    parts = [values[at] for at in batch.at]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)
