"""Fits the path adapter and the hop classifier from questions whose right paths are known."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.adapt.descent import Adam, choices
from clew.adapt.values import SLOTS, STRENGTH, Floats, HopChoice, Ints, PathAdapter, slots

_FLAT = 1e-3
HARDEST = 32  # hard negatives per question: the wrong paths that score best


@dataclass(frozen=True, slots=True)
class PathExample:
    """A question's vector, its candidate paths (codes and features), and which are right."""

    asked: Floats
    codes: Ints
    seen: Floats
    right: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Schooling:
    """Options of fitting the path adapter."""

    rank: int = 16
    rounds: int = 60
    speed: float = 0.02
    decay: float = 1e-4
    seed: int = 0


def learn_paths(
    examples: Sequence[PathExample], labels: Floats, weights: Floats, how: Schooling
) -> tuple[PathAdapter, float]:
    """Fit an adapter; return it with its mean log probability of the right paths."""
    usable = [_hardest(one, weights) for one in examples if one.right.any()]
    data = _Work(usable, labels)
    rng = np.random.default_rng(how.seed)
    shape = (SLOTS, labels.shape[1], how.rank)
    arrays: dict[str, Floats] = {
        "question": rng.normal(0, 0.05, shape).astype(np.float32),
        "label": rng.normal(0, 0.05, shape).astype(np.float32),
        "weights": (weights * data.spread).astype(np.float32),
    }
    step = Adam({"question": how.speed, "label": how.speed, "weights": 0.05})
    fit = 0.0
    for _ in range(how.rounds):
        gradients, fit = data.gradients(arrays)
        for name in gradients:
            gradients[name] -= how.decay * arrays[name]
        step(arrays, gradients)
    feature_weights = (arrays["weights"] / data.spread).astype(np.float32)
    return PathAdapter(arrays["question"], arrays["label"], feature_weights), fit


def _hardest(one: PathExample, weights: Floats) -> PathExample:
    """Keep the right paths and the wrong ones that score best."""
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
        # A constant feature cannot be fitted: its weight keeps its scale.
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
        """Return the gradient of every array, and the fit."""
        count, dim = self.asked.shape
        rank = arrays["question"].shape[2]
        # Slots side by side, so that one product serves them all.
        wide = arrays["question"].transpose(1, 0, 2).reshape(dim, SLOTS * rank)
        low_asked = (self.asked @ wide).reshape(count, SLOTS, rank).transpose(1, 0, 2)
        low_labels = np.matmul(self.labels, arrays["label"])
        table = STRENGTH * np.matmul(low_asked, low_labels.transpose(0, 2, 1)).transpose(1, 0, 2)
        flat = np.ascontiguousarray(table).reshape(-1)[self.cell]
        steps = np.bincount(self.row, flat, minlength=len(self.seen))
        scores: Floats = (self.seen @ arrays["weights"] + steps).astype(np.float32)
        pull, fit = self.groups.pull(scores, self.right)
        cells = np.bincount(self.cell, pull[self.row], minlength=count * SLOTS * len(self.labels))
        back = STRENGTH * cells.reshape(count, SLOTS, -1).transpose(1, 0, 2).astype(np.float32)
        to_asked = np.matmul(back, low_labels).transpose(1, 0, 2).reshape(count, SLOTS * rank)
        to_named = np.matmul(back.transpose(0, 2, 1), low_asked)
        return {
            "weights": self.seen.T @ pull,
            "question": (self.asked.T @ to_asked).reshape(dim, SLOTS, rank).transpose(1, 0, 2),
            "label": np.matmul(self.labels.T, to_named),
        }, fit


def learn_hops(asked: Floats, hops: Ints, rounds: int = 200) -> HopChoice:
    """Fit a logistic regression from a question's vector to its number of hops."""
    hop_count = int(hops.max())
    right = np.eye(hop_count, dtype=np.float32)[hops - 1]
    arrays = {
        "weights": np.zeros((hop_count, asked.shape[1]), np.float32),
        "bias": np.zeros(hop_count, np.float32),
    }
    step = Adam({"weights": 0.3, "bias": 0.3})
    for _ in range(rounds):
        score = asked @ arrays["weights"].T + arrays["bias"]
        score = np.exp(score - score.max(axis=1, keepdims=True))
        pull = (right - score / score.sum(axis=1, keepdims=True)) / len(asked)
        step(arrays, {"weights": pull.T @ asked - 1e-4 * arrays["weights"], "bias": pull.sum(0)})
    return HopChoice(arrays["weights"], arrays["bias"])
