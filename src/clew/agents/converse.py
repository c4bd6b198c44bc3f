"""Follow-up questions: a conversation condensed into one question that stands by itself."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from clew.context import Context
from clew.errors import ParseError
from clew.extract.language import prompt_language
from clew.llm.chat import Request
from clew.llm.prompt import Prompt

_TURNS = 6  # of the history that are read, the latest
_ANSWER = 300  # characters of each answer
_LEANS = re.compile(
    r"\b(?:he|she|it|they|him|her|them|his|hers|its|their|theirs|this|that|these|those|there|"
    r"then|the (?:same|first|second|latter|former|other)|also|too|else)\b|^(?:and|but|what about|"
    r"how about|why|so)\b|他|她|它|那|这|呢",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier question of a conversation and what was answered."""

    question: str
    answer: str = ""


class Condensed(BaseModel):
    """What the model must answer."""

    question: str


CONDENSE = Prompt("condense", Condensed, {"history", "question"}, documents={"history"})


def leans(question: str) -> bool:
    """Whether a question seems to need what was said before it."""
    return len(question.split()) <= 3 or _LEANS.search(question) is not None


async def standalone(ctx: Context, history: Sequence[Turn]) -> str:
    """The context's question, with what it takes from the history written into it."""
    recent = [turn for turn in history if turn.question.strip()][-_TURNS:]
    if not recent:
        return ctx.question
    async with ctx.step("condense", ctx.question) as step:
        step.left = await _condensed(step.ctx, recent)
        return step.left


async def _condensed(ctx: Context, recent: Sequence[Turn]) -> str:
    chat = ctx.chat("plan")
    if chat is None:
        # Without a model the earlier question is put in front, so that its names are looked up.
        return f"{recent[-1].question} {ctx.question}" if leans(ctx.question) else ctx.question
    told = "\n".join(f"Q: {t.question}\nA: {' '.join(t.answer.split())[:_ANSWER]}" for t in recent)
    try:
        said = await CONDENSE.ask(
            chat,
            language=prompt_language(ctx.question),
            like=Request(max_tokens=120),
            history=told,
            question=ctx.question,
        )
    except ParseError:
        return ctx.question
    return said.question.strip() or ctx.question
