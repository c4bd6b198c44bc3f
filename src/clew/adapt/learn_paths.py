"""Learning which relation path a question means, from questions whose right paths are known."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.adapt.descent import Adam, choices
from clew.adapt.values import SLOTS, STRENGTH, Floats, HopChoice, Ints, PathAdapter, slots

_FLAT = 1e-3
HARDEST = 32  # wrong paths per question to learn from: those that come nearest


@dataclass(frozen=True, slots=True)
class PathExample:
    """A question's vector, its candidate paths (codes and observations), and which are right."""

    asked: Floats
    codes: Ints
    seen: Floats
    right: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Schooling:
    """How to learn."""

    rank: int = 16
    rounds: int = 60
    speed: float = 0.02
    decay: float = 1e-4
    seed: int = 0


def learn_paths(
    examples: Sequence[PathExample], labels: Floats, weights: Floats, how: Schooling
) -> tuple[PathAdapter, float]:
    """An adapter and how well it fits (mean log chance of the right paths)."""
    some = [_hardest(one, weights) for one in examples if one.right.any()]
    work = _Work(some, labels)
    chance = np.random.default_rng(how.seed)
    shape = (SLOTS, labels.shape[1], how.rank)
    arrays: dict[str, Floats] = {
        "question": chance.normal(0, 0.05, shape).astype(np.float32),
        "label": chance.normal(0, 0.05, shape).astype(np.float32),
        "weights": (weights * work.spread).astype(np.float32),
    }
    step = Adam({"question": how.speed, "label": how.speed, "weights": 0.05})
    fit = 0.0
    for _ in range(how.rounds):
        gradients, fit = work.gradients(arrays)
        for name in gradients:
            gradients[name] -= how.decay * arrays[name]
        step(arrays, gradients)
    learnt = (arrays["weights"] / work.spread).astype(np.float32)
    return PathAdapter(arrays["question"], arrays["label"], learnt), fit


def _hardest(one: PathExample, weights: Floats) -> PathExample:
    """The right paths and the wrong ones that score best."""
    scores = np.where(one.right, np.inf, one.seen @ weights)
    keep = np.argsort(-scores, kind="stable")[: int(one.right.sum()) + HARDEST]
    return PathExample(one.asked, one.codes[keep], one.seen[keep], one.right[keep])


class _Work:
    """The examples as flat arrays, made once."""

    def __init__(self, examples: Sequence[PathExample], labels: Floats) -> None:
        self.asked = np.array([one.asked for one in examples], np.float32)
        self.labels = labels
        self.groups = choices([len(one.codes) for one in examples])
        seen = np.concatenate([one.seen for one in examples]).astype(np.float32)
        spread = seen.std(axis=0)
        # What never differs teaches nothing: its weight stays in its own size.
        self.spread = np.where(spread < _FLAT, 1, spread).astype(np.float32)
        self.seen = seen / self.spread
        self.right = np.concatenate([one.right for one in examples]).astype(np.float32)
        width = max(one.codes.shape[1] for one in examples)
        codes = np.concatenate(
            [
                np.pad(o.codes, ((0, 0), (0, width - o.codes.shape[1])), constant_values=-1)
                for o in examples
            ]
        )
        self.row, column = np.nonzero(codes >= 0)
        slot, label = slots(codes)[self.row, column], codes[self.row, column] >> 1
        self.cell = (self.groups.owner[self.row] * SLOTS + slot) * len(labels) + label

    def gradients(self, arrays: dict[str, Floats]) -> tuple[dict[str, Floats], float]:
        """Where every array should go."""
        count, dim = self.asked.shape
        rank = arrays["question"].shape[2]
        # Slots side by side, so that one product serves them all.
        wide = arrays["question"].transpose(1, 0, 2).reshape(dim, SLOTS * rank)
        asked = (self.asked @ wide).reshape(count, SLOTS, rank).transpose(1, 0, 2)
        named = np.matmul(self.labels, arrays["label"])
        table = STRENGTH * np.matmul(asked, named.transpose(0, 2, 1)).transpose(1, 0, 2)
        flat = np.ascontiguousarray(table).reshape(-1)[self.cell]
        steps = np.bincount(self.row, flat, minlength=len(self.seen))
        scores: Floats = (self.seen @ arrays["weights"] + steps).astype(np.float32)
        pull, fit = self.groups.pull(scores, self.right)
        felt = np.bincount(self.cell, pull[self.row], minlength=count * SLOTS * len(self.labels))
        back = STRENGTH * felt.reshape(count, SLOTS, -1).transpose(1, 0, 2).astype(np.float32)
        to_asked = np.matmul(back, named).transpose(1, 0, 2).reshape(count, SLOTS * rank)
        to_named = np.matmul(back.transpose(0, 2, 1), asked)
        return {
            "weights": self.seen.T @ pull,
            "question": (self.asked.T @ to_asked).reshape(dim, SLOTS, rank).transpose(1, 0, 2),
            "label": np.matmul(self.labels.T, to_named),
        }, fit


def learn_hops(asked: Floats, hops: Ints, rounds: int = 200) -> HopChoice:
    """A logistic regression from a question's vector to its number of hops."""
    most = int(hops.max())
    right = np.eye(most, dtype=np.float32)[hops - 1]
    arrays = {
        "weights": np.zeros((most, asked.shape[1]), np.float32),
        "bias": np.zeros(most, np.float32),
    }
    step = Adam({"weights": 0.3, "bias": 0.3})
    for _ in range(rounds):
        score = asked @ arrays["weights"].T + arrays["bias"]
        score = np.exp(score - score.max(axis=1, keepdims=True))
        pull = (right - score / score.sum(axis=1, keepdims=True)) / len(asked)
        step(arrays, {"weights": pull.T @ asked - 1e-4 * arrays["weights"], "bias": pull.sum(0)})
    return HopChoice(arrays["weights"], arrays["bias"])
