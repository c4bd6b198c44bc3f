"""Refit the confidence of answers on questions whose answers are known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.agents.base import Answer
from clew.agents.confidence import (
    DEFAULT_THRESHOLD,
    LogisticModel,
    Signals,
    fit_logistic,
    load_shipped_model,
    measure_calibration_error,
)
from clew.agents.messages import strip_marks
from clew.engine import KnowledgeBase
from clew.errors import InputError, ModelError
from clew.evaluate.datasets import Question
from clew.evaluate.metrics.answers import f1, sub_exact_match
from clew.ingest.embedding import ProgressCallback

MIN_QUESTIONS = 20
FOLDS = 5
"""Parts of the questions; each is judged by weights fitted on the others."""
RIGHT = 0.5  # F1 from which a short answer counts as right


@dataclass(frozen=True)
class ConfidenceFit:
    """The refitted model, and how well they judge questions that they were not fitted on."""

    questions: int
    right: int
    error_before: float
    """Calibration error of the shipped weights."""
    error_after: float
    """That of weights that were fitted without the question."""
    loss_before: float
    """Mean squared distance of the shipped confidence and the outcome."""
    loss_after: float
    precision: float
    """Of the answers at the default threshold, each judged by weights fitted without it."""
    coverage: float
    unanswerable: int = 0
    """Questions without an answer in the documents that were asked."""
    folds: int = FOLDS
    model: LogisticModel = LogisticModel()

    @property
    def better(self) -> bool:
        """Whether the refitted weights judge questions better that they were not fitted on."""
        return self.loss_after < self.loss_before and self.error_after <= self.error_before

    @property
    def one_sided(self) -> bool:
        """Whether nothing shows how sure one may be where the documents have no answer.

        Such weights would trust what is told of questions that have none.
        """
        return not self.unanswerable


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """What spoke for an answer, and whether it was right."""

    signals: Signals
    right: bool


async def refit_confidence(
    kb: KnowledgeBase, questions: Sequence[Question], recipe: str | None, report: ProgressCallback
) -> ConfidenceFit:
    """Ask every question in open mode, and fit the shipped models to the outcomes.

    Whatever is told of a question that the documents do not answer is wrong.
    """
    scored = [one for one in questions if one.answers or not one.answerable]
    if len(scored) < MIN_QUESTIONS:
        raise InputError(
            f"{len(scored)} questions with answers are too few to refit the confidence; "
            f"give {MIN_QUESTIONS}"
        )
    judged: list[JudgedAnswer] = []
    for number, question in enumerate(scored, start=1):
        answer = await kb.ask(question.text, recipe=recipe)
        if answer.model_error:
            raise ModelError(answer.model_error)
        judged.append(judge_outcome(question, answer))
        report("asking", number, len(scored))
    fit = fit_outcomes([one for one in judged if one.signals])
    return replace(fit, unanswerable=sum(not one.answerable for one in scored))


def judge_outcome(question: Question, answer: Answer) -> JudgedAnswer:
    """Compare an answer with the golds: the short answer by F1, others by what they contain."""
    golds = question.answers if question.answerable else ()
    if answer.candidate:
        right = bool(golds) and f1(answer.candidate, golds) >= RIGHT
    else:
        right = bool(golds) and sub_exact_match(strip_marks(answer.answer), golds) > 0
    return JudgedAnswer(answer.signals, right)


def fit_outcomes(judged: Sequence[JudgedAnswer]) -> ConfidenceFit:
    """Fit the model of confidence to outcomes, from where that of the package stands."""
    right = sum(one.right for one in judged)
    if right in (0, len(judged)):
        kind = "right" if right else "wrong"
        raise InputError(f"all answers are {kind}: there is nothing to tell apart")
    outcomes, shipped = [one.right for one in judged], load_shipped_model()
    before = [shipped(one.signals) for one in judged]
    after = _judge_held_out(judged)
    kept = [one.right for one, new in zip(judged, after, strict=True) if new >= DEFAULT_THRESHOLD]
    return ConfidenceFit(
        len(judged),
        right,
        measure_calibration_error(before, outcomes),
        measure_calibration_error(after, outcomes),
        _measure_loss(before, outcomes),
        _measure_loss(after, outcomes),
        sum(kept) / max(1, len(kept)),
        len(kept) / len(judged),
        model=_fit(judged),
    )


def _measure_loss(confidences: Sequence[float], right: Sequence[bool]) -> float:
    """Return the mean squared distance of confidence and outcome (Brier 1950)."""
    squares = [(one - was) ** 2 for one, was in zip(confidences, right, strict=True)]
    return sum(squares) / max(1, len(squares))


def _fit(judged: Sequence[JudgedAnswer]) -> LogisticModel:
    rows, outcomes = [one.signals for one in judged], [one.right for one in judged]
    return fit_logistic(rows, outcomes, load_shipped_model())


def _judge_held_out(judged: Sequence[JudgedAnswer]) -> list[float]:
    """Return for each answer the confidence by weights that were fitted without it."""
    after = [0.0] * len(judged)
    for fold in range(FOLDS):
        model = _fit([one for at, one in enumerate(judged) if at % FOLDS != fold])
        for at in range(fold, len(judged), FOLDS):
            after[at] = model(judged[at].signals)
    return after
