"""The agent protocol, the results of `ask` and `search`, and concurrent runs within an agent."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, cast

from clew.context import Context, ShownPrompt, TraceStep
from clew.llm.budget import BudgetExceeded
from clew.retrieve.step import Step
from clew.types import Citation, Evidence, Passage, Usage

Verdict = Literal["answered", "refused"]
Mode = Literal["open", "reject"]


@dataclass(frozen=True)
class Answer:
    """An answer; `candidate` is its short form, where there is one."""

    question: str
    recipe: str
    answer: str
    verdict: Verdict
    citations: tuple[Citation, ...]
    evidence: Evidence
    trace: tuple[TraceStep, ...]
    seconds: float
    candidate: str = ""
    note: str = ""
    usage: Usage = Usage()
    missing: str = ""
    """For a refusal: what the evidence lacked."""
    plain: str = ""
    """The answer alone, where `answer` lists the steps to it as well; this is what is scored."""
    complete: bool = True
    """False when a budget or a model ended the work early: this is the best answer so far."""
    model_error: str = ""
    """Why the model failed, in one line, where one was to answer and this is without it."""
    confidence: float = 0.0
    """How likely the answer is right, 0 to 1, by one model for all recipes; 0 for a refusal."""
    support: float = 0.0
    """The agent's own probability of its answer, where it reads spans; part of the confidence."""
    kind: Literal["", "path", "span", "words", "account", "steps"] = ""
    """Whether it names the ends of paths in a graph, is a span that the reader read, was found
    by the words of a question that no reader knows the language of, quotes what covers a topic, or
    quotes steps."""
    computed: bool = False
    """Whether code compared values that were read, so that no passage need state the answer."""
    hints: Mapping[str, float] = field(default_factory=dict)
    """What the agent knows that speaks for or against its answer; part of the signals."""
    signals: Mapping[str, float] = field(default_factory=dict)
    """What the confidence was computed from."""
    prompts: tuple[ShownPrompt, ...] = ()
    """Every model call, if they were to be recorded."""
    parts: tuple["Answer", ...] = ()
    """The judged answers to the questions, where several were asked in one."""


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


T = TypeVar("T")
U = TypeVar("U")


class Agent(Protocol):
    """Answers the context's question using any retriever."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Answer the question, refuse, or return the best answer so far when the budget ends."""
        ...


@dataclass(eq=False)
class _Branch:
    """Where in a run the current task is: its path of branches, and a count of its entries."""

    path: tuple[int, ...] = ()
    entries: int = 0


_BRANCH: ContextVar[_Branch] = ContextVar("clew_branch")


def next_position() -> tuple[int, ...]:
    """Return the next position in the order of a sequential run."""
    branch = _BRANCH.get(None)
    if branch is None:
        branch = _Branch()
        _BRANCH.set(branch)
    branch.entries += 1
    return (*branch.path, branch.entries)


async def run_concurrently(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently and return their results in order; a failure cancels the rest.

    When a budget ends, calls already under way finish first, then BudgetExceeded is raised.
    What they write into a notebook is ordered as if they had run one after the other.
    """
    at = next_position()
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_catch_budget_end(coroutine, (*at, number)))
                for number, coroutine in enumerate(work)
            ]
    except BaseExceptionGroup as errors:
        raise _first_error(errors) from errors
    results = []
    for task in tasks:
        result = task.result()
        if isinstance(result, BudgetExceeded):
            raise result
        results.append(result)
    return results


async def run_both(one: Coroutine[Any, Any, T], other: Coroutine[Any, Any, U]) -> tuple[T, U]:
    """Run two coroutines of different results concurrently, as `run_concurrently` does."""
    first, second = await run_concurrently(list[Coroutine[Any, Any, T | U]]((one, other)))
    return cast(T, first), cast(U, second)


async def _catch_budget_end(
    work: Coroutine[Any, Any, T], at: tuple[int, ...]
) -> T | BudgetExceeded:
    _BRANCH.set(_Branch(at))
    try:
        return await work
    except BudgetExceeded as ended:
        return ended


def _first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _first_error(first) if isinstance(first, BaseExceptionGroup) else first
