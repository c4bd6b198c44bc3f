"""Follow-up questions: a conversation condensed into one question that stands by itself."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from clew.agents.planning.naming import named
from clew.agents.referring import resolved
from clew.context import Context
from clew.errors import ParseError
from clew.extract.language import prompt_language
from clew.llm.chat import Request
from clew.llm.prompt import Prompt
from clew.retrieve.naming.question_words import OPENING_WORDS, QUESTION_WORDS
from clew.text import UNSPACED_CHAR, words

_TURNS = 6  # of the history that are read, the latest
_ANSWER = 300  # characters of each answer
_ASKED = 2000  # and of each question
# Words that a condensed question need not have: question words, but not what is asked for.
_FILLING = OPENING_WORDS - frozenset("born die died film song album book".split())
# What stands for something said before may give way to its name: "the bridge", "that year".
_STANDS_FOR = re.compile(r"\b(?:the|this|that|these|those)\s+(?P<noun>\w+)", re.IGNORECASE)
_ROOT = 4  # letters by which two forms of a word are one
_LEANS = re.compile(
    r"\b(?:he|she|it|they|him|her|them|his|hers|its|their|theirs|this|that|these|those|there|"
    r"then|the (?:same|first|second|latter|former|other)|also|too|else)\b|^(?:and|but|what about|"
    r"how about|why|so)\b",
    re.IGNORECASE,
)
# Pronouns, but not as part of a word (吉他, 其他, 马耳他, 犹他; 那不勒斯), and bare question words.
_LEANS_UNSPACED = re.compile(
    r"(?<![吉其耳犹])他(?!那)|[她它]|[这那](?:[个些里位部座本家儿种次年时是]|么)|^[这那](?!不勒斯)|"
    r"呢\s*[？?]?$|其(?=[父母妻夫子女导作])|前者|后者|彼女?[はがのを]|それ|その|그(?:는|녀|의|것|들)|"
    r"^(?:为什么|为何|何时|什么时候|在?哪里|在?哪儿|谁|多少|怎么样?|然后|还有)(?:呢|的)?\s*[？?]?$"
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
    """Whether a question seems to need what was said before it.

    Few words tell nothing of a script without spaces: there only a pronoun does, or no subject.
    """
    if UNSPACED_CHAR.search(question):
        return _LEANS_UNSPACED.search(question.strip()) is not None
    return len(question.split()) <= 3 or _LEANS.search(question) is not None


async def standalone(ctx: Context, history: Sequence[Turn]) -> str:
    """The context's question, with what it takes from the history written into it."""
    asked = [turn for turn in history if turn.question.strip()][-_TURNS:]
    recent = [Turn(turn.question[:_ASKED], turn.answer) for turn in asked]
    if not recent:
        return ctx.question
    async with ctx.step("condense", ctx.question) as step:
        condensed = await _by_model(step.ctx, recent) if ctx.chat("plan") is not None else ""
        question = condensed or _by_rules(ctx, recent)
        step.left = question
        if not condensed and ctx.chat("plan") is not None:
            step.left = f"{question} (the model gave nothing usable: condensed by rules)"
        return question


def _by_rules(ctx: Context, recent: Sequence[Turn]) -> str:
    """The pronoun's name in its place; else the earlier question in front, to lend its names."""
    if not leans(ctx.question):
        return ctx.question
    said = [(turn.question, turn.answer) for turn in recent]
    alone = resolved(ctx.view, ctx.question, said)
    return alone if alone != ctx.question else f"{recent[-1].question} {ctx.question}"


async def _by_model(ctx: Context, recent: Sequence[Turn]) -> str:
    """The model's wording; empty when it is none, or is about neither question nor history."""
    chat = ctx.chat("plan")
    assert chat is not None
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
        return ""
    question = said.question.strip()
    known = {*words(told), *words(ctx.question)} - QUESTION_WORDS
    return question if known & set(words(question)) and _keeps(ctx, question) else ""


def _keeps(ctx: Context, condensed: str) -> bool:
    """Whether a condensed question still asks what was asked: its names and what it says of them.

    A model that is told of Anton Reeve may ask about him again, whoever the new question names.
    """
    said = words(condensed)
    names = {word for name in named(ctx.view, ctx.question) for word in words(name)}
    if not names <= set(said):
        return False
    if UNSPACED_CHAR.search(ctx.question):  # pairs of letters, of which a pronoun spoils two
        pairs = words(ctx.question)
        return 2 * sum(pair in said for pair in pairs) >= len(pairs)
    replaced = {word for found in _STANDS_FOR.finditer(ctx.question) for word in words(found[1])}
    wanted = set(words(ctx.question)) - _FILLING - replaced
    return all(any(word.startswith(one[:_ROOT]) for word in said) for one in wanted)
