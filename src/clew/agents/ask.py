"""From a question in a conversation to an answer by an agent: the one way every recipe goes."""

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
    """What it may cost, who hears each step, and what was said before."""

    limits: Limits = UNLIMITED
    tell: Tell | None = None
    history: Sequence[Turn] = ()


PLAINLY = Manner()


async def answer_with(
    ctx: Context, agent: Agent, retrieve: Step, mode: Mode, history: Sequence[Turn] = ()
) -> Answer:
    """Condense, then let the agent work; the answer keeps the question as it was asked."""
    try:
        question = await standalone(ctx, history)
        asked = ctx.asking(question)
        if mode == "reject" and (vague := unsaid(asked)):
            answer = refusal(ctx, Evidence(), vague)
        else:
            answer = await agent(asked, retrieve, mode)
            answer = held_back(asked, answer) if mode == "reject" else doubted(asked, answer)
    except BudgetEnded as ended:
        answer = replace(refusal(ctx, Evidence(), str(ended)), complete=False)
    return replace(answer, question=ctx.question)


async def streamed(work: Callable[[Tell], Coroutine[Any, Any, Answer]]) -> Streamed:
    """Events as they happen, then the answer; leaving the loop early stops the work."""
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    task = asyncio.ensure_future(work(events.put_nowait))
    task.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        yield await task
    finally:
        task.cancel()
