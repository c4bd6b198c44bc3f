"""One confidence for every answer: a logistic model of what speaks for it.

The weights are fitted on questions with known answers (`bench/confidence.py`), stored beside this
module, and refitted on the user's own questions by `clew calibrate`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from clew.agents.core.types import Answer
from clew.context import Context, TraceStep
from clew.errors import StoreError
from clew.odds import to_chance
from clew.store.protocol import KeyValueStore

Floats64 = NDArray[np.float64]
Signals = Mapping[str, float]
"""What speaks for or against an answer, by name, each between -1 and 1."""
DEFAULT_THRESHOLD = 0.5
HOPELESS = 0.04
"""Confidence below which open mode names no answer that is read without a model."""
JUDGED = "judged"
"""The signal of how far the scorer finds an answer to answer; absent without a scorer."""
FOREIGN, UNSAID_STEP, OTHER_SUBJECT = "foreign", "unsaid step", "other subject"
"""The signals of what is said of something else, of a step that nothing cited says, and of an
answer that is said of another thing than the one named."""
DOUBTS = (FOREIGN, UNSAID_STEP, OTHER_SUBJECT)
"""What makes an answer unsure, though open mode still names it."""
_STORE_KIND, _STORE_KEY = "calibration", "confidence"
_RIDGE = 1.0  # strength of the pull towards the weights that are refitted
_STEPS = 50  # of Newton's method, at most
_TOLERANCE = 1e-6
_WORDS = ((0.8, "well supported"), (0.5, "supported"), (0.25, "weakly supported"))


@dataclass(frozen=True)
class LogisticModel:
    """Weights by signal, and an offset; a signal it does not know counts nothing."""

    weights: Mapping[str, float]
    bias: float = 0.0

    def __call__(self, signals: Signals) -> float:
        """Return the probability between 0 and 1."""
        logit = self.bias + sum(
            weight * signals.get(name, 0.0) for name, weight in self.weights.items()
        )
        return to_chance(logit)


ConfidenceModels = Mapping[str, LogisticModel]
"""By what is judged: a candidate (rank), a span (answer), quotes, paths, what a model wrote."""


def fit_logistic(
    rows: Sequence[Signals],
    right: Sequence[bool],
    prior: LogisticModel | None = None,
    ridge: float = _RIDGE,
    counts: Sequence[float] | None = None,
) -> LogisticModel:
    """Fit by Newton's method, pulled towards `prior`; a few questions change it a little.

    `counts` says how many times each row counts, once if it is not given.
    """
    names = sorted({name for row in rows for name in row} | set(prior.weights if prior else ()))
    table = np.array([[1.0, *(row.get(name, 0.0) for name in names)] for row in rows])
    target = np.array(right, np.float64)
    start = np.array([prior.bias if prior else 0.0, *_weights_of(prior, names)])
    penalty = ridge * np.eye(len(start))
    penalty[0, 0] = _TOLERANCE if prior is None else ridge / 10  # the offset is free
    times = np.array([1.0] * len(rows) if counts is None else counts, np.float64)
    weights = _minimise(table, target, start, penalty, times)
    fitted = {name: round(float(w), 4) for name, w in zip(names, weights[1:], strict=True)}
    return LogisticModel(fitted, round(float(weights[0]), 4))


def _minimise(
    table: Floats64, target: Floats64, start: Floats64, penalty: Floats64, times: Floats64
) -> Floats64:
    """Minimise the penalised loss by Newton's method, halving steps that go too far."""

    def loss(weights: Floats64) -> float:
        logits, away = table @ weights, weights - start
        losses = times * (np.logaddexp(0, logits) - target * logits)
        return float(losses.sum() + away @ penalty @ away / 2)

    weights = start.copy()
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(table @ weights, -30, 30)))
        gradient = table.T @ (times * (chance - target)) + penalty @ (weights - start)
        curve = (table * (times * chance * (1 - chance))[:, None]).T @ table + penalty
        step, share = np.linalg.solve(curve, gradient), 1.0
        while loss(weights - share * step) > loss(weights) and share > _TOLERANCE:
            share /= 2
        weights = weights - share * step
        if float(np.abs(share * step).max()) < _TOLERANCE:
            break
    return weights


def _weights_of(model: LogisticModel | None, names: Sequence[str]) -> list[float]:
    return [model.weights.get(name, 0.0) if model else 0.0 for name in names]


def measure_calibration_error(
    confidences: Sequence[float], right: Sequence[bool], bins: int = 10
) -> float:
    """Return the expected calibration error: mean distance of confidence and accuracy by bin."""
    values, target = np.array(confidences, np.float64), np.array(right, np.float64)
    if not len(values):
        return 0.0
    place = np.minimum((values * bins).astype(int), bins - 1)
    gaps = [
        abs(values[place == one].mean() - target[place == one].mean()) * (place == one).mean()
        for one in range(bins)
        if (place == one).any()
    ]
    return float(sum(gaps))


def risk_coverage(
    confidences: Sequence[float], right: Sequence[bool], shares: Sequence[float]
) -> list[float]:
    """Return the precision of the most confident share of the answers, for each share."""
    order = np.argsort(-np.array(confidences), kind="stable")
    sorted_right = np.array(right, np.float64)[order]
    counts = [max(1, round(share * len(sorted_right))) for share in shares]
    return [float(sorted_right[:count].mean()) if len(sorted_right) else 0.0 for count in counts]


def describe_confidence(confidence: float) -> str:
    """Say in plain words how well an answer is supported."""
    return next((words for least, words in _WORDS if confidence >= least), "hardly supported")


def format_signals(signals: Signals) -> str:
    """List the signals that are not 0, the largest first: "fits 1.00, lead 0.42"."""
    told = sorted((one for one in signals.items() if one[1]), key=lambda one: -abs(one[1]))
    return ", ".join(f"{name} {value:.2f}" for name, value in told)


def trace_confidence(ctx: Context, judged: Answer) -> Answer:
    """Trace what the confidence of an answer was made of, and return the answer."""
    if judged.verdict != "refused":
        made_of = format_signals(judged.signals) or "no signal"
        said = f"{judged.confidence:.2f} by {made_of}"
        ctx.trace.append(TraceStep("confidence", judged.candidate, said, 0.0))
    return judged


@cache
def load_shipped_models() -> ConfidenceModels:
    """Load the weights of the package."""
    return parse_models(files("clew.agents.core").joinpath("confidence.json").read_text("utf-8"))


def parse_models(text: str) -> ConfidenceModels:
    """Read models from JSON."""
    try:
        held = json.loads(text)
        return {
            name: LogisticModel(
                {k: float(w) for k, w in one["weights"].items()}, float(one["bias"])
            )
            for name, one in held.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            "the stored confidence cannot be read; run `clew calibrate --reset`"
        ) from error


def format_models(models: ConfidenceModels) -> str:
    """Write models as JSON."""
    held = {
        name: {"bias": model.bias, "weights": dict(model.weights)} for name, model in models.items()
    }
    return json.dumps(held, indent=2, sort_keys=True)


async def load_models(memory: KeyValueStore | None) -> ConfidenceModels:
    """Load the models of this knowledge base, those of the package where it has none."""
    shipped = load_shipped_models()
    if memory is None:
        return shipped
    own = await _load_refitted(memory)
    # What was fitted without the scorer's opinion is nearer to its own questions than the package.
    plain = {f"{JUDGED} {kind}": model for kind, model in own.items()}
    return {**shipped, **{kind: plain[kind] for kind in plain.keys() & shipped.keys()}, **own}


async def _load_refitted(memory: KeyValueStore) -> ConfidenceModels:
    text = (await memory.get(_STORE_KIND, [_STORE_KEY])).get(_STORE_KEY, "")
    return parse_models(text) if text else {}


async def save_models(memory: KeyValueStore, models: ConfidenceModels) -> None:
    """Store refitted models beside those of other chat models; none restores the package's."""
    kept = {**await _load_refitted(memory), **models} if models else {}
    await memory.set(_STORE_KIND, {_STORE_KEY: format_models(kept) if kept else ""})


def name_written(kind: str, chat: str) -> str:
    """Return the name of the confidence in what one chat model writes: some deserve more."""
    return f"{kind}:{chat}"
