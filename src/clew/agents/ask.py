"""Decide by code whether the evidence covers the question: small models always say "enough".

Entry point of every recipe: condense the conversation, run the agent, check the answer.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clew.agents.answering.write import make_refusal
from clew.agents.citing.support import mentions_name
from clew.agents.conversation import ConversationTurn, condense_question, find_lone_pronoun
from clew.agents.core.messages import CANDIDATE_LABEL
from clew.agents.core.types import Agent, Answer, Mode
from clew.agents.rules.question_analysis import find_subject_names
from clew.context import Context, Event, EventListener
from clew.llm.budget import UNLIMITED, BudgetExceeded, UsageLimits
from clew.retrieve.step import Step
from clew.types import Evidence


def explain_lone_pronoun(ctx: Context) -> str:
    """Return the reason if a question does not say whom it is about: "Where was she born?"."""
    pronoun = "" if ctx.given_entities else find_lone_pronoun(ctx.view, ctx.question)
    return pronoun and f"the question does not say whom or what “{pronoun}” means"


def find_unmentioned_names(ctx: Context, answer: Answer) -> tuple[str, ...]:
    """Return the names in the question that no passage mentions, if they are at least half.

    A long question names things in passing; its actual subject may well be there.
    """
    names = find_subject_names(ctx.view, ctx.question)
    texts = [f"{passage.title} {passage.text}" for passage in answer.evidence.chunks]
    missing = [name for name in names if not any(mentions_name(name, text) for text in texts)]
    return tuple(missing) if 2 * len(missing) >= len(names) else ()


def refuse_if_unmentioned(ctx: Context, answer: Answer) -> Answer:
    """Turn the answer into a refusal if the evidence never mentions the question's subject."""
    missing = find_unmentioned_names(ctx, answer)
    if not missing:
        return answer
    # Without evidence the agent's own reason stands.
    if answer.verdict == "refused" and not answer.evidence.chunks:
        return answer
    if answer.verdict == "refused" and missing[0] in answer.missing:
        return answer
    about = make_refusal(ctx, answer.evidence, f"nothing is said about {', '.join(missing[:3])}")
    return replace(about, complete=answer.complete, note=answer.note)


def mark_if_unmentioned(ctx: Context, answer: Answer) -> Answer:
    """In open mode, mark quotes that never mention the question's subject as the nearest found.

    An answer by a model is left alone: it may know more than the documents and marks it itself.
    """
    if answer.verdict != "answered" or not answer.citations or ctx.chat("answer") is not None:
        return answer
    missing = find_unmentioned_names(ctx, answer)
    if missing and len(missing) == len(find_subject_names(ctx.view, ctx.question)):
        why = f"nothing is said about {', '.join(missing[:3])}"
    elif not (why := explain_lone_pronoun(ctx)):
        return answer
    lines = [line for line in answer.answer.splitlines() if not line.startswith(CANDIDATE_LABEL)]
    head = f"{why[0].upper()}{why[1:]}; the nearest there is:"
    return replace(answer, answer="\n".join([head, *lines]), candidate="")


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
