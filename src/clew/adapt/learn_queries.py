"""Fits the query adapter: turns a question's vector towards the passages that answer it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.adapt.descent import Adam, make_groups
from clew.adapt.values import Floats, QueryAdapter

INVERSE_TEMPERATURE = 20.0  # of the cosine: as contrastive embedders are trained


@dataclass(frozen=True, slots=True)
class PassageExample:
    """A question's vector, the vectors of candidate passages, and which are right."""

    question: Floats
    passages: Floats
    is_right: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class QueryFitOptions:
    """Options of fitting the query adapter."""

    rank: int = 16
    epochs: int = 40
    learning_rate: float = 0.001
    decay: float = 0.03
    seed: int = 0


def fit_query_adapter(
    examples: Sequence[PassageExample], how: QueryFitOptions
) -> tuple[QueryAdapter, float]:
    """Fit an adapter; return it with its mean log probability of the right passages."""
    questions = np.array([one.question for one in examples], np.float32)
    passages = np.concatenate([one.passages for one in examples]).astype(np.float32)
    right = np.concatenate([one.is_right for one in examples]).astype(np.float32)
    groups = make_groups([len(one.is_right) for one in examples])
    rng = np.random.default_rng(how.seed)
    arrays: dict[str, Floats] = {
        "down": rng.normal(0, 0.05, (questions.shape[1], how.rank)).astype(np.float32),
        "up": np.zeros((how.rank, questions.shape[1]), np.float32),
    }
    step = Adam({"down": how.learning_rate, "up": how.learning_rate})
    fit = 0.0
    for _ in range(how.epochs):
        projected = questions @ arrays["down"]
        turned = questions + projected @ arrays["up"]
        scores = INVERSE_TEMPERATURE * np.einsum("nd,nd->n", turned[groups.group_index], passages)
        gradient, fit = groups.score_gradient(scores, right)
        back = np.add.reduceat(
            INVERSE_TEMPERATURE * gradient[:, None] * passages, groups.starts, axis=0
        )
        gradients: dict[str, Floats] = {
            "up": (projected.T @ back).astype(np.float32),
            "down": (questions.T @ (back @ arrays["up"].T)).astype(np.float32),
        }
        for name in gradients:
            gradients[name] -= how.decay * arrays[name]
        step(arrays, gradients)
    return QueryAdapter(arrays["down"], arrays["up"]), fit
