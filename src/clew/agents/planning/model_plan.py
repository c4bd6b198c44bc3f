"""Plan with a model, and validate the plan it returns."""

import re
from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel, Field

from clew.agents.citing.support import mentions_name
from clew.agents.core.plan import Plan, ValidatedQuestions, validate_questions
from clew.agents.rules.question_analysis import find_names
from clew.context import Context, TraceStep
from clew.llm.chat import UNUSABLE_REPLY, Request
from clew.llm.fit_prompt import PromptInput
from clew.llm.parse import Out
from clew.llm.prompt import Prompt
from clew.retrieve.question import content_words
from clew.text.language import prompt_language
from clew.text.unicode import split_words

_SHORT_REPLY = Request(max_tokens=200)
_STEM_LETTERS = 5  # letters that forms of a word share
_MAX_LOST_SHARE = 0.5  # share of the question's words that a plan may put in other words
_UNKNOWN_ENTITY = re.compile(r"(?:Entity|实体)\s?#([0-9]{1,2})", re.IGNORECASE)


class Verdict(StrEnum):
    """Whether the evidence bears a drafted answer out."""

    ACCEPT = "ACCEPT"
    REJECT = "REJECT"


class SubQuestions(BaseModel, title="Questions"):
    """Sub-questions, in logical order."""

    questions: list[str] = Field(default_factory=list)


class QueryTriple(BaseModel, title="Triple"):
    """One fact to look up; unknowns are written `Entity#1`."""

    subject: str
    relation: str
    object: str = ""


class QueryTriples(BaseModel, title="Triples"):
    """A chain of facts to look up."""

    facts: list[QueryTriple] = Field(default_factory=list)


class DraftAnswer(BaseModel, title="Draft"):
    """A reasoned answer."""

    steps: list[str] = Field(default_factory=list)
    answer: str = ""


class DraftCheck(BaseModel, title="Checked"):
    """The verdict on a draft."""

    verdict: Verdict
    missing: str = ""


DECOMPOSE = Prompt("decompose", SubQuestions, {"question"})
DECOMPOSE_TO_TRIPLES = Prompt("relations", QueryTriples, {"question"})
DRAFT = Prompt("draft", DraftAnswer, {"question", "notes"}, documents={"notes"})
VERIFY = Prompt("verify", DraftCheck, {"question", "notes", "draft"}, documents={"notes", "draft"})
EXPAND = Prompt(
    "expand",
    SubQuestions,
    {"question", "notes", "draft", "missing"},
    documents={"notes", "draft"},
)


async def ask_planner(
    ctx: Context,
    prompt: Prompt[Out],
    name: str,
    like: Request = _SHORT_REPLY,
    **inputs: PromptInput,
) -> Out | None:
    """Ask the planning model; return None, with a line in the trace, when the reply is unusable."""
    async with ctx.step(name, ctx.question) as step:
        chat = step.ctx.chat("plan")
        if chat is None:
            step.output = "no model"
            return None
        language = prompt_language(ctx.question)
        try:
            reply = await prompt.ask(chat, language=language, like=like, **inputs)
        except UNUSABLE_REPLY as error:
            step.output = f"no usable reply: {error}"
            return None
        step.output = reply.model_dump_json()[:200]
        return reply


async def plan_with_model(ctx: Context, most: int) -> Plan:
    """Decompose into sub-questions with the model; keep the question whole if that fails."""
    async with ctx.step("plan", ctx.question) as step:
        reply = await ask_planner(step.ctx, DECOMPOSE, "decompose", question=ctx.question)
        found = validate_questions(reply.questions if reply else [], most)
        step.output = str(found)
        return _to_plan(ctx, found)


async def plan_as_triples(ctx: Context, most: int) -> Plan:
    """Decompose into triples with unknowns, each phrased as the question for its unknown."""
    async with ctx.step("plan", ctx.question) as step:
        reply = await ask_planner(
            step.ctx, DECOMPOSE_TO_TRIPLES, "decompose into facts", question=ctx.question
        )
        found = validate_questions(triples_to_questions(reply.facts[:most]) if reply else [], most)
        step.output = str(found)
        return _to_plan(ctx, found)


def _to_plan(ctx: Context, found: ValidatedQuestions) -> Plan:
    # A plan that shares no word with the question answers another one.
    if not set(split_words(ctx.question)) & set(split_words(" ".join(found.questions))):
        return Plan((ctx.question,), by="model")
    return Plan(found.questions, by="model")


async def plan_and_check(ctx: Context, most: int) -> Plan:
    """Plan with the model; a plan that lost a name or most of what is asked is dropped."""
    plan = await plan_with_model(ctx, most)
    if lost := _find_lost_words(ctx, plan.questions):
        ctx.trace.append(TraceStep("check plan", str(plan), f"dropped: it lost {lost}", 0.0))
        return Plan((ctx.question,), by="model")
    return plan


def _find_lost_words(ctx: Context, questions: Sequence[str]) -> str:
    """Return the names a plan lost, or the words if most of what is asked is gone; else ""."""
    kept = " ".join(questions)
    names = [name for name in find_names(ctx.view, ctx.question) if not mentions_name(name, kept)]
    if names:
        return ", ".join(names)
    asked = {word[:_STEM_LETTERS] for word in content_words(ctx.question)}
    lost = asked - {word[:_STEM_LETTERS] for word in split_words(kept)}
    return ", ".join(sorted(lost)) if len(lost) > _MAX_LOST_SHARE * len(asked) else ""


def triples_to_questions(facts: Sequence[QueryTriple]) -> list[str]:
    """Phrase each triple as the question for its unknown; `Entity#2` becomes its triple's number.

    An unknown that no triple answers becomes `#0`, so that its question is dropped as invalid.
    """
    triples = [(f.subject.strip(), f.relation.strip(), f.object.strip()) for f in facts]
    triples = [parts for parts in triples if parts[1] and (parts[0] or parts[2])]
    answers: dict[str, int] = {}
    for number, parts in enumerate(triples, start=1):
        new = [unknown for unknown in _find_unknowns(parts) if unknown not in answers]
        if new:
            answers[new[0]] = number
    return [_to_question(parts, number, answers) for number, parts in enumerate(triples, start=1)]


def _find_unknowns(parts: tuple[str, str, str]) -> list[str]:
    """Return the unknowns a triple may answer: its object, or its subject where it has both."""
    subject, _, thing = parts
    ends = [thing] + ([subject] if thing else [])
    return [found[1] for end in ends if (found := _UNKNOWN_ENTITY.fullmatch(end)) is not None]


def _to_question(parts: tuple[str, str, str], number: int, answers: dict[str, int]) -> str:
    def fill(text: str) -> str:
        return _UNKNOWN_ENTITY.sub(lambda unknown: f"#{answers.get(unknown[1], 0)}", text)

    def fill_end(text: str) -> str:
        whole = _UNKNOWN_ENTITY.fullmatch(text)
        asked = whole is not None and answers.get(whole[1]) == number
        return "" if asked else fill(text)  # "" for the unknown that this triple asks for

    subject, relation, thing = fill_end(parts[0]), fill(parts[1]), fill_end(parts[2])
    if not thing:
        return f"What is the {relation} of {subject or '#0'}?"
    if not subject:
        return f"What has {relation} {thing}?"
    return f"Is {thing} the {relation} of {subject}?"
