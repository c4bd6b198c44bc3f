"""LLM judges that score answers; replies are cached in the knowledge base like any other."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, Field

from clew.agents.base import run_concurrently
from clew.errors import AuthError, ModelError, ParseError
from clew.evaluate.datasets import Question
from clew.evaluate.rubrics import CRITERIA, PAIRWISE, get_rubric
from clew.llm.chat import Chat, Reply, Request, TextCallback
from clew.llm.parse import Out
from clew.llm.prompt import Prompt
from clew.llm.wrappers import ResampledChat
from clew.text.language import prompt_language

_MAX_REPLY_TOKENS = 300  # tokens of a reply
_MAX_ANSWER_CHARS = 6000  # characters of the answer in the prompt
_MAX_EVIDENCE_CHARS = 8000


class CorrectnessVerdict(BaseModel, title="Verdict"):
    """Right or wrong."""

    correct: bool
    reason: str = ""


class CriterionScore(BaseModel, title="Score"):
    """One criterion, out of ten."""

    score: int = Field(ge=0, le=10)
    reason: str = ""


class PairVerdict(BaseModel, title="Better"):
    """Which of two answers is better by each criterion: 1, 2, or 0 for neither."""

    comprehensiveness: Literal[0, 1, 2]
    diversity: Literal[0, 1, 2]
    empowerment: Literal[0, 1, 2]
    overall: Literal[0, 1, 2]


_WITH_REFERENCE = frozenset({"question", "reference", "answer"})
_CRITERION = frozenset({"criterion", "rubric"})
_FENCED_INPUTS = frozenset({"answer"})
CORRECTNESS_PROMPT = Prompt("judge_correct", CorrectnessVerdict, _WITH_REFERENCE, _FENCED_INPUTS)
CRITERION_PROMPT = Prompt(
    "judge_criterion", CriterionScore, _WITH_REFERENCE | _CRITERION, _FENCED_INPUTS
)
EVIDENCE_PROMPT = Prompt(
    "judge_evidence",
    CriterionScore,
    frozenset({"question", "evidence", "answer"}) | _CRITERION,
    frozenset({"evidence", "answer"}),
)
PAIR_PROMPT = Prompt(
    "judge_pair",
    PairVerdict,
    frozenset({"question", "first", "second"}),
    frozenset({"first", "second"}),
)


def zero_scores(metric: str) -> dict[str, float]:
    """Return 0 for a metric and each of its criteria, the score of a failed question."""
    criteria = CRITERIA.get(metric, ())
    return dict.fromkeys([metric, *(f"{metric}.{name}" for name in criteria)], 0.0)


@dataclass
class _CacheAwareChat:
    """Chat wrapper that records whether any reply came from the model instead of the cache."""

    inner: Chat
    called_model: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        """Name of the wrapped model."""
        return self.inner.name

    async def __call__(self, request: Request, /, on_text: TextCallback | None = None) -> Reply:
        """Ask, and record whether the model itself was called."""
        reply = await self.inner(request, on_text)
        self.called_model = self.called_model or not reply.usage.cached_calls
        return reply


@dataclass(frozen=True)
class Judge:
    """Scores answers with one model; an unreadable reply raises JudgeError."""

    chat: Chat

    async def score(
        self, metric: str, question: Question, answer: str, short: str, evidence: Sequence[str]
    ) -> dict[str, float]:
        """Return the value of a metric and of its criteria, on the scale of its paper."""
        judged = short or answer if metric == "judge@1" else answer
        inputs = {
            "question": question.prompt_text(),
            "answer": judged[:_MAX_ANSWER_CHARS] or "(no answer)",
        }
        if metric == "e-score":
            inputs["evidence"] = "\n\n".join(evidence)[:_MAX_EVIDENCE_CHARS]
        else:
            inputs["reference"] = "\n".join(question.answers)
        if metric not in CRITERIA:
            return {metric: float((await self._ask(CORRECTNESS_PROMPT, question, inputs)).correct)}
        prompt = EVIDENCE_PROMPT if metric == "e-score" else CRITERION_PROMPT
        marks = await run_concurrently(
            [
                self._ask(prompt, question, inputs | _describe_criterion(metric, name, question))
                for name in CRITERIA[metric]
            ]
        )
        values = {
            f"{metric}.{name}": float(mark.score)
            for name, mark in zip(CRITERIA[metric], marks, strict=True)
        }
        # Graph-R1 reports the mean of its seven criteria in percent, GraphSearch three out of ten.
        times = 10.0 if metric == "g-e" else 1.0
        return {metric: times * sum(values.values()) / len(values), **values}

    async def compare(self, question: Question, one: str, other: str) -> dict[str, float]:
        """Return for each criterion how often `one` is better, asked in both orders.

        A judge that prefers whatever stands first gives each answer one half.
        """
        shown = [text[:_MAX_ANSWER_CHARS] or "(no answer)" for text in (one, other)]
        verdicts = await run_concurrently(
            [
                self._ask(
                    PAIR_PROMPT,
                    question,
                    {"question": question.prompt_text(), "first": first, "second": second},
                )
                for first, second in (shown, shown[::-1])
            ]
        )
        points = {1: 1.0, 2: 0.0, 0: 0.5}
        forward, backward = (verdict.model_dump() for verdict in verdicts)
        return {name: (points[forward[name]] + 1 - points[backward[name]]) / 2 for name in PAIRWISE}

    async def _ask(self, prompt: Prompt[Out], question: Question, inputs: Mapping[str, str]) -> Out:
        """Ask one prompt; what the judge cannot answer raises JudgeError."""

        async def ask(chat: Chat) -> Out:
            return await prompt.ask(
                chat,
                language=prompt_language(question.text),
                like=Request(max_tokens=_MAX_REPLY_TOKENS),
                **inputs,
            )

        try:
            return await self._ask_until_parsed(ask)
        except AuthError:
            raise  # would fail for every other answer, too
        except ModelError as error:
            raise JudgeError(str(error)) from error

    async def _ask_until_parsed(self, ask: Callable[[Chat], Coroutine[Any, Any, Out]]) -> Out:
        """Ask again with a new sample while an unparsable reply came from the cache.

        Otherwise one bad cached reply would leave its question without a value in every run.
        """
        sample = 0
        while True:
            chat = _CacheAwareChat(ResampledChat(self.chat, sample) if sample else self.chat)
            try:
                return await ask(chat)
            except ParseError:
                if chat.called_model:
                    raise
            sample += 1


class JudgeError(ModelError):
    """The judge gave no readable reply."""


def _describe_criterion(metric: str, name: str, question: Question) -> dict[str, str]:
    return {"criterion": name, "rubric": get_rubric(metric, name, question.text)}
