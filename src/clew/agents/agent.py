"""The agent protocol, and a helper that runs independent coroutines concurrently."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from clew.agents.answer import Answer, Mode
from clew.context import Context
from clew.llm.budget import BudgetEnded
from clew.retrieve.step import Step

T = TypeVar("T")


class Agent(Protocol):
    """Answers the context's question using any retriever."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Answer the question, refuse, or return the best answer so far when the budget ends."""
        ...


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines concurrently and return their results in order; a failure cancels the rest.

    When a budget ends, calls already under way finish first, then BudgetEnded is raised.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_spared(coroutine)) for coroutine in work]
    except BaseExceptionGroup as errors:
        raise _first(errors) from errors
    results = []
    for task in tasks:
        result = task.result()
        if isinstance(result, BudgetEnded):
            raise result
        results.append(result)
    return results


async def _spared(work: Coroutine[Any, Any, T]) -> T | BudgetEnded:
    try:
        return await work
    except BudgetEnded as ended:
        return ended


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
