"""Entry point of every recipe: condense the conversation, run the agent, check the answer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clew.agents.agent import Agent
from clew.agents.answer import Answer, Mode
from clew.agents.converse import Turn, standalone
from clew.agents.writing.refuse import doubted, held_back, unsaid
from clew.agents.writing.written import refusal
from clew.context import Context, Event, Tell
from clew.llm.budget import UNLIMITED, BudgetEnded, Limits
from clew.retrieve.step import Step
from clew.types import Evidence

Streamed = AsyncIterator[Event | Answer]


@dataclass(frozen=True)
class Manner:
    """Options of one question: its budget, a callback for trace events, and the earlier turns."""

    limits: Limits = UNLIMITED
    tell: Tell | None = None
    history: Sequence[Turn] = ()


PLAINLY = Manner()


async def answer_with(
    ctx: Context, agent: Agent, retrieve: Step, mode: Mode, history: Sequence[Turn] = ()
) -> Answer:
    """Condense the question, then run the agent; the answer keeps the question as it was asked."""
    try:
        question = await standalone(ctx, history)
        inner = ctx.asking(question)
        if mode == "reject" and (unclear := unsaid(inner)):
            answer = refusal(ctx, Evidence(), unclear)
        else:
            answer = await agent(inner, retrieve, mode)
            answer = held_back(inner, answer) if mode == "reject" else doubted(inner, answer)
    except BudgetEnded as ended:
        answer = replace(refusal(ctx, Evidence(), str(ended)), complete=False)
    return replace(answer, question=ctx.question)


async def streamed(work: Callable[[Tell], Coroutine[Any, Any, Answer]]) -> Streamed:
    """Yield trace events as they happen, then the answer; closing the iterator cancels the work."""
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    task = asyncio.ensure_future(work(events.put_nowait))
    task.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        yield await task
    finally:
        task.cancel()
