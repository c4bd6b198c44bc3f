"""Fits adapters by gradient ascent (Adam): for paths, hops and query vectors."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from clew.adapters import (
    SLOT_COUNT,
    STEP_SCALE,
    HopClassifier,
    PathAdapter,
    QueryAdapter,
    step_slots,
)
from clew.graph.csr import Floats, Ints, Mask

MAX_HARD_NEGATIVES = 32  # hard negatives per question: the wrong paths that score best
INVERSE_TEMPERATURE = 20.0  # of the cosine: as contrastive embedders are trained


@dataclass
class Adam:
    """The Adam optimiser; each array has its own learning rate."""

    learning_rates: dict[str, float]
    _mean: dict[str, Floats] = field(default_factory=dict)
    _variance: dict[str, Floats] = field(default_factory=dict)
    _step_count: int = 0

    def __call__(self, arrays: dict[str, Floats], gradients: dict[str, Floats]) -> None:
        """Take one step uphill, in place."""
        self._step_count += 1
        for name, gradient in gradients.items():
            first = self._mean.setdefault(name, np.zeros_like(gradient))
            second = self._variance.setdefault(name, np.zeros_like(gradient))
            first += 0.1 * (gradient - first)
            second += 0.01 * (gradient * gradient - second)
            size = self.learning_rates[name] / (1 - 0.9**self._step_count)
            arrays[name] += size * first / (np.sqrt(second / (1 - 0.99**self._step_count)) + 1e-8)


@dataclass(frozen=True, slots=True)
class ExampleGroups:
    """Rows grouped by example: `starts` are where each group begins."""

    starts: Ints
    group_index: Ints

    def softmax(self, scores: Floats) -> Floats:
        """Return the softmax of the scores within each group."""
        top = np.maximum.reduceat(scores, self.starts)
        exps = np.exp(scores - top[self.group_index])
        share: Floats = (exps / np.add.reduceat(exps, self.starts)[self.group_index]).astype(
            np.float32
        )
        return share

    def score_gradient(self, scores: Floats, right: Floats) -> tuple[Floats, float]:
        """Return the gradient of the scores and the mean log probability of the right rows."""
        probability = self.softmax(scores)
        right_probability = probability * right
        share = np.maximum(np.add.reduceat(right_probability, self.starts), 1e-9)
        gradient = (right_probability / share[self.group_index] - probability) / len(self.starts)
        return gradient.astype(np.float32), float(np.log(share).mean())


def make_groups(sizes: list[int]) -> ExampleGroups:
    """Make groups of these sizes, one after another; none is empty."""
    starts = np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0, np.int64)
    return ExampleGroups(starts, np.repeat(np.arange(len(sizes)), sizes))


@dataclass(frozen=True, slots=True)
class PathExample:
    """A question's vector, its candidate paths (codes and scores), and which are right."""

    question: Floats
    codes: Ints
    scores: Floats
    is_right: Mask


@dataclass(frozen=True, slots=True)
class PathFitOptions:
    """Options of fitting the path adapter."""

    rank: int = 16
    epochs: int = 60
    learning_rate: float = 0.02
    decay: float = 1e-4
    seed: int = 0


def fit_path_adapter(
    examples: Sequence[PathExample], labels: Floats, how: PathFitOptions
) -> tuple[PathAdapter, float]:
    """Fit an adapter; return it with its mean log probability of the right paths."""
    usable = [_keep_hard_negatives(one) for one in examples if one.is_right.any()]
    data = _PathTrainingData(usable, labels)
    rng = np.random.default_rng(how.seed)
    shape = (SLOT_COUNT, labels.shape[1], how.rank)
    arrays: dict[str, Floats] = {
        "question": rng.normal(0, 0.05, shape).astype(np.float32),
        "label": rng.normal(0, 0.05, shape).astype(np.float32),
        "weight": np.ones(1, np.float32),
    }
    step = Adam({"question": how.learning_rate, "label": how.learning_rate, "weight": 0.05})
    fit = 0.0
    for _ in range(how.epochs):
        gradients, fit = data.compute_gradients(arrays)
        for name in gradients:
            gradients[name] -= how.decay * arrays[name]
        step(arrays, gradients)
    return PathAdapter(arrays["question"], arrays["label"], arrays["weight"]), fit


def _keep_hard_negatives(one: PathExample) -> PathExample:
    """Keep the right paths and the wrong ones that score best."""
    scores = np.where(one.is_right, np.inf, one.scores)
    keep = np.argsort(-scores, kind="stable")[: int(one.is_right.sum()) + MAX_HARD_NEGATIVES]
    return PathExample(one.question, one.codes[keep], one.scores[keep], one.is_right[keep])


class _PathTrainingData:
    """The examples as flat arrays, made once."""

    def __init__(self, examples: Sequence[PathExample], labels: Floats) -> None:
        self.questions = np.array([one.question for one in examples], np.float32)
        self.labels = labels
        self.groups = make_groups([len(one.codes) for one in examples])
        self.scores = np.concatenate([one.scores for one in examples]).astype(np.float32)
        self.is_right = np.concatenate([one.is_right for one in examples]).astype(np.float32)
        width = max(one.codes.shape[1] for one in examples)
        codes = np.concatenate(
            [
                np.pad(o.codes, ((0, 0), (0, width - o.codes.shape[1])), constant_values=-1)
                for o in examples
            ]
        )
        self.row, column = np.nonzero(codes >= 0)
        slot, label = step_slots(codes)[self.row, column], codes[self.row, column] >> 1
        self.cell = (self.groups.group_index[self.row] * SLOT_COUNT + slot) * len(labels) + label

    def compute_gradients(self, arrays: dict[str, Floats]) -> tuple[dict[str, Floats], float]:
        """Return the gradient of every array, and the fit."""
        count, dim = self.questions.shape
        rank = arrays["question"].shape[2]
        # Slots side by side, so that one product serves them all.
        wide = arrays["question"].transpose(1, 0, 2).reshape(dim, SLOT_COUNT * rank)
        low_asked = (self.questions @ wide).reshape(count, SLOT_COUNT, rank).transpose(1, 0, 2)
        low_labels = np.matmul(self.labels, arrays["label"])
        table = STEP_SCALE * np.matmul(low_asked, low_labels.transpose(0, 2, 1)).transpose(1, 0, 2)
        flat = np.ascontiguousarray(table).reshape(-1)[self.cell]
        steps = np.bincount(self.row, flat, minlength=len(self.scores))
        scores: Floats = (self.scores * arrays["weight"] + steps).astype(np.float32)
        pull, fit = self.groups.score_gradient(scores, self.is_right)
        cells = np.bincount(
            self.cell, pull[self.row], minlength=count * SLOT_COUNT * len(self.labels)
        )
        back = STEP_SCALE * cells.reshape(count, SLOT_COUNT, -1).transpose(1, 0, 2).astype(
            np.float32
        )
        to_asked = np.matmul(back, low_labels).transpose(1, 0, 2).reshape(count, SLOT_COUNT * rank)
        to_named = np.matmul(back.transpose(0, 2, 1), low_asked)
        return {
            "weight": np.array([self.scores @ pull], np.float32),
            "question": (self.questions.T @ to_asked)
            .reshape(dim, SLOT_COUNT, rank)
            .transpose(1, 0, 2),
            "label": np.matmul(self.labels.T, to_named),
        }, fit


def fit_hop_classifier(asked: Floats, hops: Ints, rounds: int = 200) -> HopClassifier:
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
    return HopClassifier(arrays["weights"], arrays["bias"])


@dataclass(frozen=True, slots=True)
class PassageExample:
    """A question's vector, the vectors of candidate passages, and which are right."""

    question: Floats
    passages: Floats
    is_right: Mask


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
