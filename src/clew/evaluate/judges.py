"""LLM judges that score answers; replies are cached in the knowledge base like any other."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field

from clew.errors import AuthError, ModelError, ParseError
from clew.evaluate.datasets import Question
from clew.llm.chat import Chat, Reply, Request, TextCallback
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
_FENCED_INPUTS = frozenset({"answer"})
CORRECTNESS_PROMPT = Prompt("judge_correct", CorrectnessVerdict, _WITH_REFERENCE, _FENCED_INPUTS)
A_SCORE_PROMPT = Prompt("judge_answer", AnswerMarks, _WITH_REFERENCE, _FENCED_INPUTS)
G_E_PROMPT = Prompt("judge_generation", GenerationMarks, _WITH_REFERENCE, _FENCED_INPUTS)
E_SCORE_PROMPT = Prompt(
    "judge_evidence",
    EvidenceMarks,
    frozenset({"question", "evidence", "answer"}),
    frozenset({"evidence", "answer"}),
)

_PROMPTS: dict[str, Prompt[Any]] = {
    **dict.fromkeys(("accuracy", "judge@1"), CORRECTNESS_PROMPT),
    "a-score": A_SCORE_PROMPT,
    "e-score": E_SCORE_PROMPT,
    "g-e": G_E_PROMPT,
}
_CRITERIA_MODELS: dict[str, type[BaseModel]] = {
    "a-score": AnswerMarks,
    "e-score": EvidenceMarks,
    "g-e": GenerationMarks,
}


def zero_scores(metric: str) -> dict[str, float]:
    """Return 0 for a metric and each of its criteria, the score of a failed question."""
    criteria = _CRITERIA_MODELS[metric].model_fields if metric in _CRITERIA_MODELS else ()
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

        async def ask(chat: Chat) -> BaseModel:
            scores: BaseModel = await _PROMPTS[metric].ask(
                chat,
                language=prompt_language(question.text),
                like=Request(max_tokens=_MAX_REPLY_TOKENS),
                **inputs,
            )
            return scores

        try:
            scores = await self._ask_until_parsed(ask)
        except AuthError:
            raise  # would fail for every other answer, too
        except ModelError as error:
            raise JudgeError(str(error)) from error
        if isinstance(scores, CorrectnessVerdict):
            return {metric: float(scores.correct)}
        # Graph-R1 reports the mean of its seven criteria in percent, GraphSearch three out of ten.
        return _mean_score(metric, scores.model_dump(), 10.0 if metric == "g-e" else 1.0)

    async def _ask_until_parsed(
        self, ask: Callable[[Chat], Coroutine[Any, Any, BaseModel]]
    ) -> BaseModel:
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


def _mean_score(metric: str, marks: Mapping[str, int], times: float) -> dict[str, float]:
    values = {f"{metric}.{name}": float(mark) for name, mark in marks.items()}
    return {metric: times * sum(values.values()) / len(values), **values}
