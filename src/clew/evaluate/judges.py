"""LLM judges that score answers; replies are cached in the knowledge base like any other."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field

from clew.errors import AuthError, ModelError, ParseError
from clew.evaluate.datasets import Question
from clew.extract.language import prompt_language
from clew.llm.chat import Chat, Hear, Reply, Request
from clew.llm.prompt import Prompt
from clew.llm.wrap import Resampled

_LONGEST = 300  # tokens of a reply
_READ = 6000  # characters of the answer in the prompt
_EVIDENCE = 8000


class Verdict(BaseModel):
    """Right or wrong."""

    correct: bool
    reason: str = ""


class AnswerMarks(BaseModel):
    """The three criteria of GraphSearch's A-Score."""

    correctness: int = Field(ge=0, le=10)
    coherence: int = Field(ge=0, le=10)
    comprehensiveness: int = Field(ge=0, le=10)


class EvidenceMarks(BaseModel):
    """The three criteria of GraphSearch's E-Score."""

    relevance: int = Field(ge=0, le=10)
    knowledgeability: int = Field(ge=0, le=10)
    factuality: int = Field(ge=0, le=10)


class GenerationMarks(BaseModel):
    """The seven dimensions of Graph-R1's generation evaluation."""

    comprehensiveness: int = Field(ge=0, le=10)
    knowledgeability: int = Field(ge=0, le=10)
    correctness: int = Field(ge=0, le=10)
    relevance: int = Field(ge=0, le=10)
    diversity: int = Field(ge=0, le=10)
    coherence: int = Field(ge=0, le=10)
    factuality: int = Field(ge=0, le=10)


_WITH_REFERENCE = frozenset({"question", "reference", "answer"})
_SAID = frozenset({"answer"})
CORRECT = Prompt("judge_correct", Verdict, _WITH_REFERENCE, _SAID)
A_SCORE = Prompt("judge_answer", AnswerMarks, _WITH_REFERENCE, _SAID)
G_E = Prompt("judge_generation", GenerationMarks, _WITH_REFERENCE, _SAID)
E_SCORE = Prompt(
    "judge_evidence",
    EvidenceMarks,
    frozenset({"question", "evidence", "answer"}),
    frozenset({"evidence", "answer"}),
)

_PROMPTS: dict[str, Prompt[Any]] = {
    **dict.fromkeys(("accuracy", "judge@1"), CORRECT),
    "a-score": A_SCORE,
    "e-score": E_SCORE,
    "g-e": G_E,
}
_MARKS: dict[str, type[BaseModel]] = {
    "a-score": AnswerMarks,
    "e-score": EvidenceMarks,
    "g-e": GenerationMarks,
}


def no_marks(metric: str) -> dict[str, float]:
    """Return 0 for a metric and each of its criteria, the score of a failed question."""
    criteria = _MARKS[metric].model_fields if metric in _MARKS else ()
    return dict.fromkeys([metric, *(f"{metric}.{name}" for name in criteria)], 0.0)


@dataclass
class _Heard:
    """Chat wrapper that records whether any reply came from the model instead of the cache."""

    inner: Chat
    fresh: bool = field(default=False, init=False)

    @property
    def name(self) -> str:
        """Name of the wrapped model."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Ask, and record whether the model itself was called."""
        reply = await self.inner(request, hear)
        self.fresh = self.fresh or not reply.usage.cached_calls
        return reply


@dataclass(frozen=True)
class Judge:
    """Scores answers with one model; an unreadable reply raises JudgeError."""

    chat: Chat

    async def marks(
        self, metric: str, question: Question, answer: str, short: str, evidence: Sequence[str]
    ) -> dict[str, float]:
        """Return the value of a metric and of its criteria, on the scale of its paper."""
        judged = short or answer if metric == "judge@1" else answer
        inputs = {"question": question.asked(), "answer": judged[:_READ] or "(no answer)"}
        if metric == "e-score":
            inputs["evidence"] = "\n\n".join(evidence)[:_EVIDENCE]
        else:
            inputs["reference"] = "\n".join(question.answers)

        async def ask(chat: Chat) -> BaseModel:
            scores: BaseModel = await _PROMPTS[metric].ask(
                chat,
                language=prompt_language(question.text),
                like=Request(max_tokens=_LONGEST),
                **inputs,
            )
            return scores

        try:
            scores = await self._usable(ask)
        except AuthError:
            raise  # would fail for every other answer, too
        except ModelError as error:
            raise Unjudged(str(error)) from error
        if isinstance(scores, Verdict):
            return {metric: float(scores.correct)}
        # Graph-R1 reports the mean of its seven criteria in percent, GraphSearch three out of ten.
        return _mean(metric, scores.model_dump(), 10.0 if metric == "g-e" else 1.0)

    async def _usable(self, ask: Callable[[Chat], Coroutine[Any, Any, BaseModel]]) -> BaseModel:
        """Ask again with a new sample while an unparsable reply came from the cache.

        Otherwise one bad cached reply would leave its question without a value in every run.
        """
        sample = 0
        while True:
            chat = _Heard(Resampled(self.chat, sample) if sample else self.chat)
            try:
                return await ask(chat)
            except ParseError:
                if chat.fresh:
                    raise
            sample += 1


class Unjudged(ModelError):  # noqa: N818  (reads as what happened)
    """The judge gave no readable reply."""


def _mean(metric: str, marks: Mapping[str, int], times: float) -> dict[str, float]:
    values = {f"{metric}.{name}": float(mark) for name, mark in marks.items()}
    return {metric: times * sum(values.values()) / len(values), **values}
