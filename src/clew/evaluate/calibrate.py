"""Refit the confidence of answers on questions whose answers are known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from clew.agents.core.confidence import (
    DEFAULT_THRESHOLD,
    LogisticModel,
    Signals,
    fit_logistic,
    load_shipped_models,
    measure_calibration_error,
    name_written,
)
from clew.agents.core.messages import strip_marks
from clew.agents.core.types import Answer
from clew.agents.judge import WRITTEN, judged_kind
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
    """The refitted models, and how well they judge questions that they were not fitted on."""

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
    accounts: int = 0
    """Answers that quote several passages: their confidence is measured, and is not refitted."""
    folds: int = FOLDS
    models: Mapping[str, LogisticModel] = field(default_factory=dict)

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

    kind: str
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
    by_model = kb.models is not None and kb.models.has("answer")
    judged, accounts = list[JudgedAnswer](), 0
    for number, question in enumerate(scored, start=1):
        answer = await kb.ask(question.text, recipe=recipe)
        if answer.model_error:
            raise ModelError(answer.model_error)
        if answer.kind == "account":  # how much of the topic its quotes cover was measured
            accounts += 1
        else:
            judged.append(judge_outcome(question, answer, by_model=by_model))
        report("asking", number, len(scored))
    chat = kb.models.chat("answer").name if by_model else ""
    fit = fit_outcomes([one for one in judged if one.signals], chat)
    unanswerable = sum(not one.answerable for one in scored)
    return replace(fit, unanswerable=unanswerable, accounts=accounts)


def judge_outcome(question: Question, answer: Answer, *, by_model: bool) -> JudgedAnswer:
    """Compare an answer with the golds: the short answer by F1, others by what they contain."""
    golds = question.answers if question.answerable else ()
    kind = judged_kind(answer, by_model=by_model)
    if answer.candidate:
        right = bool(golds) and f1(answer.candidate, golds) >= RIGHT
    else:
        right = bool(golds) and sub_exact_match(strip_marks(answer.answer), golds) > 0
    return JudgedAnswer(kind, answer.signals, right)


def fit_outcomes(judged: Sequence[JudgedAnswer], chat: str = "") -> ConfidenceFit:
    """Fit a model for each kind of answer, from where the shipped ones stand.

    What a chat model writes has its own: one that is always right is trusted from then on.
    """
    right = sum(one.right for one in judged)
    if not right or (right == len(judged) and not chat):
        kind = "right" if right else "wrong"
        raise InputError(f"all answers are {kind}: there is nothing to tell apart")
    fitted = _fit_kinds(judged)
    models = {
        name_written(kind, chat) if kind in WRITTEN else kind: one for kind, one in fitted.items()
    }
    outcomes, shipped = [one.right for one in judged], load_shipped_models()
    before = [shipped[one.kind](one.signals) for one in judged]
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
        models=models,
    )


def _measure_loss(confidences: Sequence[float], right: Sequence[bool]) -> float:
    """Return the mean squared distance of confidence and outcome (Brier 1950)."""
    squares = [(one - was) ** 2 for one, was in zip(confidences, right, strict=True)]
    return sum(squares) / max(1, len(squares))


def _fit_kinds(judged: Sequence[JudgedAnswer]) -> dict[str, LogisticModel]:
    """Fit a model for each kind of answer."""
    shipped, fitted = load_shipped_models(), dict[str, LogisticModel]()
    for kind in dict.fromkeys(one.kind for one in judged):
        some = [one for one in judged if one.kind == kind]
        rows, outcome = [one.signals for one in some], [one.right for one in some]
        fitted[kind] = fit_logistic(rows, outcome, shipped[kind])
    return fitted


def _judge_held_out(judged: Sequence[JudgedAnswer]) -> list[float]:
    """Return for each answer the confidence by weights that were fitted without it."""
    after = [0.0] * len(judged)
    for fold in range(FOLDS):
        others = [one for at, one in enumerate(judged) if at % FOLDS != fold]
        models = {**load_shipped_models(), **_fit_kinds(others)}
        for at in range(fold, len(judged), FOLDS):
            after[at] = models[judged[at].kind](judged[at].signals)
    return after
