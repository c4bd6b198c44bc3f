"""Judges: a model marks an answer. Replies are remembered in the knowledge base like any other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from clew.errors import AuthError, ModelError
from clew.evaluate.datasets import Question
from clew.extract.language import prompt_language
from clew.llm.chat import Chat, Request
from clew.llm.prompt import Prompt

_LONGEST = 300  # tokens of a verdict
_READ = 6000  # characters of an answer that the judge is shown
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


@dataclass(frozen=True)
class Judge:
    """Marks answers with one model; a judge that gives no number gives no value, and says why."""

    chat: Chat

    async def marks(
        self, metric: str, question: Question, answer: str, short: str, evidence: Sequence[str]
    ) -> dict[str, float]:
        """The value of a metric and of its criteria, each on its paper's scale."""
        try:
            if metric in ("accuracy", "judge@1"):
                said = answer if metric == "accuracy" else short or answer
                return {metric: await self._correct(question, said)}
            if metric == "e-score":
                return await self._evidence(question, answer, evidence)
            prompt = A_SCORE if metric == "a-score" else G_E
            marks = await prompt.ask(
                self.chat,
                language=prompt_language(question.text),
                like=Request(max_tokens=_LONGEST),
                **_inputs(question, answer),
            )
        except AuthError:
            raise  # no other answer can be judged either
        except ModelError as error:
            raise Unjudged(str(error)) from error
        # Graph-R1 reports the mean of its seven marks in percent, GraphSearch its three out of ten.
        return _mean(metric, marks.model_dump(), 10.0 if metric == "g-e" else 1.0)

    async def _correct(self, question: Question, said: str) -> float:
        verdict = await CORRECT.ask(
            self.chat,
            language=prompt_language(question.text),
            like=Request(max_tokens=_LONGEST),
            **_inputs(question, said),
        )
        return float(verdict.correct)

    async def _evidence(
        self, question: Question, answer: str, evidence: Sequence[str]
    ) -> dict[str, float]:
        marks = await E_SCORE.ask(
            self.chat,
            language=prompt_language(question.text),
            like=Request(max_tokens=_LONGEST),
            question=question.asked(),
            evidence="\n\n".join(evidence)[:_EVIDENCE],
            answer=answer[:_READ] or "(no answer)",
        )
        return _mean("e-score", marks.model_dump(), 1.0)


class Unjudged(ModelError):  # noqa: N818  (reads as what happened)
    """The judge gave nothing that could be read."""


def _inputs(question: Question, said: str) -> dict[str, str]:
    return {
        "question": question.asked(),
        "reference": "\n".join(question.answers),
        "answer": said[:_READ] or "(no answer)",
    }


def _mean(metric: str, marks: Mapping[str, int], times: float) -> dict[str, float]:
    values = {f"{metric}.{name}": float(mark) for name, mark in marks.items()}
    return {metric: times * sum(values.values()) / len(values), **values}
