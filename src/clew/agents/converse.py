"""Condense a follow-up question and its conversation into one standalone question."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from clew.agents.planning.naming import find_names
from clew.agents.referring import resolve_pronouns
from clew.context import Context
from clew.errors import ParseError
from clew.extract.language import prompt_language
from clew.llm.chat import Request
from clew.llm.prompt import Prompt
from clew.retrieve.naming.question_words import OPENING_WORDS, QUESTION_WORDS
from clew.text import UNSPACED_CHAR, split_words

_MAX_TURNS = 6  # latest turns that are used
_MAX_ANSWER_CHARS = 300  # characters of each answer
_MAX_QUESTION_CHARS = 2000  # and of each question
# Words that a condensed question may lose: question words, but not what is asked for.
_OPTIONAL_WORDS = OPENING_WORDS - frozenset("born die died film song album book".split())
# A reference to something earlier may be replaced by its name: "the bridge", "that year".
_DEFINITE_NOUN = re.compile(r"\b(?:the|this|that|these|those)\s+(?P<noun>\w+)", re.IGNORECASE)
_STEM_LETTERS = 4  # letters by which two forms of a word count as the same
_CONTEXT_WORDS = re.compile(
    r"\b(?:he|she|it|they|him|her|them|his|hers|its|their|theirs|this|that|these|those|there|"
    r"then|the (?:same|first|second|latter|former|other)|also|too|else)\b|^(?:and|but|what about|"
    r"how about|why|so)\b",
    re.IGNORECASE,
)
# Pronouns, but not as part of a word (吉他, 其他, 马耳他, 犹他; 那不勒斯), and bare question words.
_CONTEXT_WORDS_CJK = re.compile(
    r"(?<![吉其耳犹])他(?!那)|[她它]|[这那](?:[个些里位部座本家儿种次年时是]|么)|^[这那](?!不勒斯)|"
    r"呢\s*[？?]?$|其(?=[父母妻夫子女导作])|前者|后者|彼女?[はがのを]|それ|その|그(?:는|녀|의|것|들)|"
    r"^(?:为什么|为何|何时|什么时候|在?哪里|在?哪儿|谁|多少|怎么样?|然后|还有)(?:呢|的)?\s*[？?]?$"
)


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One earlier question of a conversation and its answer."""

    question: str
    answer: str = ""


class CondensedQuestion(BaseModel):
    """What the model must answer."""

    question: str


CONDENSE = Prompt("condense", CondensedQuestion, {"history", "question"}, documents={"history"})


def needs_history(question: str) -> bool:
    """Whether a question seems to depend on earlier turns.

    Length means nothing in scripts without spaces: there only pronouns or a bare question word do.
    """
    if UNSPACED_CHAR.search(question):
        return _CONTEXT_WORDS_CJK.search(question.strip()) is not None
    return len(question.split()) <= 3 or _CONTEXT_WORDS.search(question) is not None


async def condense_question(ctx: Context, history: Sequence[ConversationTurn]) -> str:
    """Rewrite the context's question so that it can be understood without the history."""
    asked_turns = [turn for turn in history if turn.question.strip()][-_MAX_TURNS:]
    recent = [
        ConversationTurn(turn.question[:_MAX_QUESTION_CHARS], turn.answer) for turn in asked_turns
    ]
    if not recent:
        return ctx.question
    async with ctx.step("condense", ctx.question) as step:
        condensed = (
            await _condense_by_model(step.ctx, recent) if ctx.chat("plan") is not None else ""
        )
        question = condensed or _condense_by_rules(ctx, recent)
        step.output = question
        if not condensed and ctx.chat("plan") is not None:
            step.output = f"{question} (the model gave nothing usable: condensed by rules)"
        return question


def _condense_by_rules(ctx: Context, recent: Sequence[ConversationTurn]) -> str:
    """Replace the pronouns; where that fails, put the earlier question in front for its names."""
    if not needs_history(ctx.question):
        return ctx.question
    earlier = [(turn.question, turn.answer) for turn in recent]
    rewritten = resolve_pronouns(ctx.view, ctx.question, earlier)
    return rewritten if rewritten != ctx.question else f"{recent[-1].question} {ctx.question}"


async def _condense_by_model(ctx: Context, recent: Sequence[ConversationTurn]) -> str:
    """Ask the model; return "" when its rewrite is unusable or loses the question."""
    chat = ctx.chat("plan")
    assert chat is not None
    past = "\n".join(
        f"Q: {t.question}\nA: {' '.join(t.answer.split())[:_MAX_ANSWER_CHARS]}" for t in recent
    )
    try:
        reply = await CONDENSE.ask(
            chat,
            language=prompt_language(ctx.question),
            like=Request(max_tokens=120),
            history=past,
            question=ctx.question,
        )
    except ParseError:
        return ""
    question = reply.question.strip()
    known = {*split_words(past), *split_words(ctx.question)} - QUESTION_WORDS
    return question if known & set(split_words(question)) and _keeps_question(ctx, question) else ""


def _keeps_question(ctx: Context, condensed: str) -> bool:
    """Whether a condensed question keeps the names and content words of the original.

    Given a history about Anton Reeve, a model may ask about him again, whoever the question names.
    """
    kept = split_words(condensed)
    names = {word for name in find_names(ctx.view, ctx.question) for word in split_words(name)}
    if not names <= set(kept):
        return False
    if UNSPACED_CHAR.search(ctx.question):  # character pairs, of which a pronoun changes two
        pairs = split_words(ctx.question)
        return 2 * sum(pair in kept for pair in pairs) >= len(pairs)
    replaced = {
        word for found in _DEFINITE_NOUN.finditer(ctx.question) for word in split_words(found[1])
    }
    wanted = set(split_words(ctx.question)) - _OPTIONAL_WORDS - replaced
    return all(any(word.startswith(want[:_STEM_LETTERS]) for word in kept) for want in wanted)
