"""What an agent is, and how its independent errands run side by side."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from clew.agents.answer import Answer, Mode
from clew.context import Context
from clew.llm.budget import BudgetEnded
from clew.retrieve.step import Step

T = TypeVar("T")


class Agent(Protocol):
    """Answers the context's question with the help of any retriever."""

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Work until there is an answer, a refusal, or nothing left to work with."""
        ...


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run side by side and give the results in order; a failure stops the others.

    A budget that ends stops nobody: what was paid for is finished first.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_spared(one)) for one in work]
    except BaseExceptionGroup as errors:
        raise _first(errors) from errors
    results = []
    for task in tasks:
        done = task.result()
        if isinstance(done, BudgetEnded):
            raise done
        results.append(done)
    return results


async def _spared(work: Coroutine[Any, Any, T]) -> T | BudgetEnded:
    try:
        return await work
    except BudgetEnded as ended:
        return ended


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
