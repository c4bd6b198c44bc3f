"""One confidence for every answer: a logistic model of a few signals, calibrated on known answers.

Those weights of the package that only a model's answers have are set by hand, for a capable model;
`clew calibrate` refits all of them on the user's own questions.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from clew.agents.base import Answer, Mode
from clew.agents.messages import UNSURE, format_refusal, localise
from clew.errors import StoreError
from clew.store.protocol import KeyValueStore
from clew.text.unicode import split_words
from clew.types import Citation

Signals = Mapping[str, float]
SIGNALS = ("enough", "located", "overlap", "named", "read", "verified", "relevance")
"""What the confidence is computed from, each from 0 to 1; one that is unknown is left out:

enough: the model finds the evidence sufficient. located: share of sentences with a source.
overlap: share of their words that the quotes have. named: a quote has the short answer.
read: the span reader's probability of its answer. verified: the model finds that the quotes entail
the answer. relevance: share of the question's words that the quotes and their titles have.
"""
DEFAULT_THRESHOLD = 0.5
_STORE_KIND, _STORE_KEY = "calibration", "confidence 2"
_RIDGE = 1.0  # strength of the pull towards the weights that are refitted
_STEPS = 100  # of Newton's method, at most
_TOLERANCE = 1e-6
_WORDS = ((0.8, "well supported"), (0.5, "supported"), (0.25, "weakly supported"))


@dataclass(frozen=True)
class LogisticModel:
    """Weights by signal and a bias; a signal that an answer lacks counts as `usual` says."""

    weights: Signals = field(default_factory=dict)
    bias: float = 0.0
    usual: Signals = field(default_factory=dict)
    """The mean of each signal where the model was fitted, which stands for one that is unknown."""

    def __call__(self, signals: Signals) -> float:
        """Return the probability, between 0 and 1, that an answer with these signals is right."""
        logit = self.bias + sum(
            weight * signals.get(name, self.usual.get(name, 0.0))
            for name, weight in self.weights.items()
        )
        return float(1 / (1 + np.exp(-np.clip(logit, -30, 30))))


def judge(answer: Answer, model: LogisticModel) -> Answer:
    """Return the answer with its confidence; a refusal has none."""
    if answer.verdict == "refused":
        return answer
    return replace(answer, confidence=round(model(answer.signals), 4))


def refuse_unsure(answer: Answer, mode: Mode, threshold: float) -> Answer:
    """In `reject` turn an answer below the threshold into a refusal, unless its quotes say it.

    An answer that the model finds sufficient, all of whose sentences have a source, stays.
    """
    signals = answer.signals
    says_it = signals.get("enough", 0.0) >= 1 and signals.get("located", 0.0) >= 1
    says_it = says_it and signals.get("verified", 1.0) > 0
    if mode == "open" or answer.verdict == "refused" or says_it:
        return answer
    if answer.confidence >= threshold:
        return answer
    missing = localise(answer.question, UNSURE)
    text = format_refusal(answer.question, UNSURE)
    return replace(answer, answer=text, verdict="refused", missing=missing, candidate="")


def names_answer(short: str, citations: Sequence[Citation]) -> float | None:
    """Say whether the quotes have the short answer word for word; None where there is none."""
    wanted = split_words(short)
    if not wanted or not citations:
        return None
    return float(
        any(f" {' '.join(wanted)} " in f" {' '.join(split_words(c.quote))} " for c in citations)
    )


def fit_logistic(
    rows: Sequence[Signals], right: Sequence[bool], prior: LogisticModel | None = None
) -> LogisticModel:
    """Fit to answers known to be right or wrong, pulled towards `prior`; few change it little."""
    names = [one for one in SIGNALS if any(one in row for row in rows)]
    prior = prior or LogisticModel()
    held = {one: [row[one] for row in rows if one in row] for one in names}
    usual = {one: round(float(np.mean(held[one])), 4) for one in names}
    table = np.array([[1.0, *(row.get(one, usual[one]) for one in names)] for row in rows])
    start = np.array([prior.bias, *(prior.weights.get(one, 0.0) for one in names)])
    penalty = _RIDGE * np.eye(len(start))
    penalty[0, 0] = _TOLERANCE
    weights = _minimise(table, np.array(right, np.float64), start, penalty)
    fitted = {one: round(float(w), 4) for one, w in zip(names, weights[1:], strict=True)}
    kept = {one: w for one, w in prior.weights.items() if one not in fitted}
    return LogisticModel({**kept, **fitted}, round(float(weights[0]), 4), {**prior.usual, **usual})


def _minimise(
    table: NDArray[np.float64],
    target: NDArray[np.float64],
    start: NDArray[np.float64],
    penalty: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Minimise the penalised logistic loss by Newton's method, halving steps that go too far."""

    def loss(weights: NDArray[np.float64]) -> float:
        logits, away = table @ weights, weights - start
        return float((np.logaddexp(0, logits) - target * logits).sum() + away @ penalty @ away / 2)

    weights = start.copy()
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(table @ weights, -30, 30)))
        gradient = table.T @ (chance - target) + penalty @ (weights - start)
        curve = (table * (chance * (1 - chance))[:, None]).T @ table + penalty
        step, share = np.linalg.solve(curve, gradient), 1.0
        while loss(weights - share * step) > loss(weights) and share > _TOLERANCE:
            share /= 2
        weights = weights - share * step
        if float(np.abs(share * step).max()) < _TOLERANCE:
            break
    return weights


def measure_calibration_error(
    confidences: Sequence[float], right: Sequence[bool], bins: int = 10
) -> float:
    """Return the expected calibration error: mean distance of confidence and accuracy by bin."""
    values, target = np.array(confidences, np.float64), np.array(right, np.float64)
    place = np.minimum((values * bins).astype(int), bins - 1)
    gaps = [
        abs(values[place == one].mean() - target[place == one].mean()) * (place == one).mean()
        for one in range(bins)
        if (place == one).any()
    ]
    return float(sum(gaps))


def describe_confidence(confidence: float) -> str:
    """Say in plain words how well an answer is supported."""
    return next((words for least, words in _WORDS if confidence >= least), "hardly supported")


@cache
def load_shipped_model() -> LogisticModel:
    """Return the weights of the package."""
    return parse_model(files("clew.agents").joinpath("confidence.json").read_text("utf-8"))


def parse_model(text: str) -> LogisticModel:
    """Read a model from JSON; StoreError where it is damaged."""
    try:
        held = json.loads(text)
        weights, usual = (
            {name: float(value) for name, value in held[part].items()}
            for part in ("weights", "usual")
        )
        return LogisticModel(weights, float(held["bias"]), usual)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            "the stored confidence cannot be read; run `clew calibrate --reset`"
        ) from error


def format_model(model: LogisticModel) -> str:
    """Write a model as JSON."""
    return json.dumps(
        {"bias": model.bias, "weights": dict(model.weights), "usual": dict(model.usual)}, indent=2
    )


async def load_model(memory: KeyValueStore | None) -> LogisticModel:
    """Return the model of this knowledge base, or that of the package where it has none."""
    text = "" if memory is None else (await memory.get(_STORE_KIND, [_STORE_KEY])).get(_STORE_KEY)
    return parse_model(text) if text else load_shipped_model()


async def save_model(memory: KeyValueStore, model: LogisticModel | None) -> None:
    """Keep a refitted model in the knowledge base; None restores that of the package."""
    await memory.set(_STORE_KIND, {_STORE_KEY: format_model(model) if model else ""})
