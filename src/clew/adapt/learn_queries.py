"""Learning to turn a question's vector towards the passages that answer it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.adapt.descent import Adam, choices
from clew.adapt.values import Floats, QueryAdapter

SHARPNESS = 20.0  # how strongly a higher cosine counts: as contrastive embedders are trained


@dataclass(frozen=True, slots=True)
class PassageExample:
    """A question's vector, the vectors of passages that could answer it, and which do."""

    asked: Floats
    passages: Floats
    right: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class QuerySchooling:
    """How to learn."""

    rank: int = 16
    rounds: int = 40
    speed: float = 0.001
    decay: float = 0.03
    seed: int = 0


def learn_queries(
    examples: Sequence[PassageExample], how: QuerySchooling
) -> tuple[QueryAdapter, float]:
    """An adapter and how well it fits (mean log chance of the right passages)."""
    asked = np.array([one.asked for one in examples], np.float32)
    passages = np.concatenate([one.passages for one in examples]).astype(np.float32)
    right = np.concatenate([one.right for one in examples]).astype(np.float32)
    groups = choices([len(one.right) for one in examples])
    chance = np.random.default_rng(how.seed)
    arrays: dict[str, Floats] = {
        "down": chance.normal(0, 0.05, (asked.shape[1], how.rank)).astype(np.float32),
        "up": np.zeros((how.rank, asked.shape[1]), np.float32),
    }
    step = Adam({"down": how.speed, "up": how.speed})
    fit = 0.0
    for _ in range(how.rounds):
        small = asked @ arrays["down"]
        turned = asked + small @ arrays["up"]
        scores = SHARPNESS * np.einsum("nd,nd->n", turned[groups.owner], passages)
        pull, fit = groups.pull(scores, right)
        back = np.add.reduceat(SHARPNESS * pull[:, None] * passages, groups.starts, axis=0)
        gradients: dict[str, Floats] = {
            "up": (small.T @ back).astype(np.float32),
            "down": (asked.T @ (back @ arrays["up"].T)).astype(np.float32),
        }
        for name in gradients:
            gradients[name] -= how.decay * arrays[name]
        step(arrays, gradients)
    return QueryAdapter(arrays["down"], arrays["up"]), fit
