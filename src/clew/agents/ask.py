"""Entry point of every recipe: condense the conversation, run the agent, check the answer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clew.agents.agent import Agent
from clew.agents.answer import Answer, Mode
from clew.agents.converse import ConversationTurn, condense_question
from clew.agents.writing.refuse import (
    explain_lone_pronoun,
    mark_if_unmentioned,
    refuse_if_unmentioned,
)
from clew.agents.writing.written import make_refusal
from clew.context import Context, Event, EventListener
from clew.llm.budget import UNLIMITED, BudgetExceeded, UsageLimits
from clew.retrieve.step import Step
from clew.types import Evidence

AnswerStream = AsyncIterator[Event | Answer]


@dataclass(frozen=True)
class AskOptions:
    """Options of one question: its budget, a callback for trace events, and the earlier turns."""

    limits: UsageLimits = UNLIMITED
    on_event: EventListener | None = None
    history: Sequence[ConversationTurn] = ()


DEFAULT_OPTIONS = AskOptions()


async def answer_with(
    ctx: Context, agent: Agent, retrieve: Step, mode: Mode, history: Sequence[ConversationTurn] = ()
) -> Answer:
    """Condense the question, then run the agent; the answer keeps the question as it was asked."""
    try:
        question = await condense_question(ctx, history)
        inner = ctx.with_question(question)
        if mode == "reject" and (unclear := explain_lone_pronoun(inner)):
            answer = make_refusal(ctx, Evidence(), unclear)
        else:
            answer = await agent(inner, retrieve, mode)
            answer = (
                refuse_if_unmentioned(inner, answer)
                if mode == "reject"
                else mark_if_unmentioned(inner, answer)
            )
    except BudgetExceeded as ended:
        answer = replace(make_refusal(ctx, Evidence(), str(ended)), complete=False)
    return replace(answer, question=ctx.question)


async def stream_answer(
    work: Callable[[EventListener], Coroutine[Any, Any, Answer]],
) -> AnswerStream:
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
