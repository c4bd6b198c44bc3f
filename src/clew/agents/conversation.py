"""Follow-up questions: a model rewrites one so that it can be understood without the history."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from clew.context import Context
from clew.llm.prompt import Prompt

_MAX_TURNS = 6  # latest turns that are used
_MAX_CHARS = 2000  # of each question and answer


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One earlier question of a conversation and its answer."""

    question: str
    answer: str = ""


class CondensedQuestion(BaseModel, title="Condensed"):
    """A follow-up that can be understood alone."""

    reasoning: str = ""
    question: str = ""


CONDENSE = Prompt("condense", CondensedQuestion, {"history", "question"}, documents={"history"})


async def condense_question(ctx: Context, history: Sequence[ConversationTurn]) -> str:
    """Return the question with what it takes from earlier turns written out.

    Without a model, what was asked and answered last stands behind it in brackets, for the search.
    """
    turns = [turn for turn in history if turn.question.strip()][-_MAX_TURNS:]
    if not turns:
        return ctx.question
    if not ctx.has_model:
        last = turns[-1]
        return f"{ctx.question} ({' '.join(f'{last.question} {last.answer}'.split())[:_MAX_CHARS]})"
    told = "\n".join(
        f"Q: {turn.question[:_MAX_CHARS]}\nA: {' '.join(turn.answer.split())[:_MAX_CHARS]}"
        for turn in turns
    )
    as_asked = CondensedQuestion(question=ctx.question)
    reply = await ctx.ask(
        CONDENSE, step="condense", otherwise=as_asked, history=told, question=ctx.question
    )
    return reply.question.strip() or ctx.question
