"""What an agent is, what answering and searching return, and how agents run work side by side."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, Self, TypeVar, runtime_checkable

from clew.agents.tools import Toolbox
from clew.context import Context, ShownPrompt, TraceStep
from clew.llm.budget import BudgetExceeded
from clew.llm.trained_model import TrainedConfig
from clew.types import Citation, Evidence, Passage, Usage

Verdict = Literal["answered", "refused"]
Mode = Literal["open", "reject"]
T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """An answer; `candidate` is its short form, where there is one."""

    question: str
    recipe: str
    answer: str
    verdict: Verdict
    citations: tuple[Citation, ...]
    evidence: Evidence
    trace: tuple[TraceStep, ...] = ()
    seconds: float = 0.0
    candidate: str = ""
    note: str = ""
    usage: Usage = Usage()
    missing: str = ""
    """For a refusal: what the evidence lacked."""
    complete: bool = True
    """False when a budget or a model ended the work early: this is the best answer so far."""
    confidence: float = 0.0
    """How likely the answer is right, 0 to 1, by one model for all recipes; 0 for a refusal."""
    signals: Mapping[str, float] = field(default_factory=dict)
    """What the confidence is computed from, each between 0 and 1."""
    model_error: str = ""
    """Why the model gave no answer, where it was asked for: this one was made without it."""
    prompts: tuple[ShownPrompt, ...] = ()
    """Every model call, if they were to be recorded."""

    def noting(self, *notes: str) -> "Answer":
        """Return the answer with more notes behind its own."""
        return replace(self, note="; ".join(dict.fromkeys(filter(None, (self.note, *notes)))))


@dataclass(frozen=True)
class Results:
    """The evidence found by a search."""

    question: str
    recipe: str
    evidence: Evidence
    trace: tuple[TraceStep, ...]
    seconds: float
    usage: Usage = Usage()
    note: str = ""
    """What the recipe went without: a tree that is not there."""

    def __iter__(self) -> Iterator[Passage]:
        """Go through the passages, best first."""
        return iter(self.evidence.chunks)

    def __len__(self) -> int:
        """Return the number of passages."""
        return len(self.evidence.chunks)

    def __bool__(self) -> bool:
        """Whether a search was run, which it was, also where it found nothing."""
        return True


class Agent(Protocol):
    """Answers the context's question with tools: all that an agent is."""

    async def __call__(self, ctx: Context, tools: Toolbox, mode: Mode, /) -> Answer:
        """Answer or refuse; raise ModelError or BudgetExceeded where the model cannot go on."""
        ...


@runtime_checkable
class Trainable(Protocol):
    """An agent that a trained model is served by, with the settings it was trained with."""

    def with_training_settings(self, how: TrainedConfig) -> Self:
        """Return a copy with these settings."""
        ...


async def run_concurrently(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently and return their results in order; a failure cancels the rest.

    When a budget ends, calls already under way finish first, then BudgetExceeded is raised.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_catch_budget_end(one)) for one in work]
    except BaseExceptionGroup as errors:
        raise _first_error(errors) from errors
    results = []
    for task in tasks:
        result = task.result()
        if isinstance(result, BudgetExceeded):
            raise result
        results.append(result)
    return results


async def _catch_budget_end(work: Coroutine[Any, Any, T]) -> T | BudgetExceeded:
    try:
        return await work
    except BudgetExceeded as ended:
        return ended


def _first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _first_error(first) if isinstance(first, BaseExceptionGroup) else first
