"""Asking a model for a plan, and making sure that what comes back can be carried out."""

import re
from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel, Field

from clew.agents.planning.plan import Plan, sound
from clew.context import Context
from clew.errors import ParseError
from clew.extract.language import prompt_language
from clew.llm.chat import Request
from clew.llm.fit import Out
from clew.llm.prompt import Prompt
from clew.text import words

_SHORT = Request(max_tokens=200)


class Verdict(StrEnum):
    """Whether the evidence bears a drafted answer out."""

    ACCEPT = "ACCEPT"
    REJECT = "REJECT"


class Questions(BaseModel):
    """Sub-questions, in logical order."""

    questions: list[str] = Field(default_factory=list)


class Triple(BaseModel):
    """One fact to look up; unknowns are written `Entity#1`."""

    subject: str
    relation: str
    object: str = ""


class Triples(BaseModel):
    """A chain of facts to look up."""

    facts: list[Triple] = Field(default_factory=list)


class Draft(BaseModel):
    """A reasoned answer."""

    steps: list[str] = Field(default_factory=list)
    answer: str = ""


class Checked(BaseModel):
    """The verdict on a draft."""

    verdict: Verdict
    missing: str = ""


DECOMPOSE = Prompt("decompose", Questions, {"question"})
RELATIONS = Prompt("relations", Triples, {"question"})
DRAFT = Prompt("draft", Draft, {"question", "notes"}, documents={"notes"})
VERIFY = Prompt("verify", Checked, {"question", "notes", "draft"}, documents={"notes"})
EXPAND = Prompt("expand", Questions, {"question", "notes", "missing"}, documents={"notes"})


async def ask_plainly(
    ctx: Context, prompt: Prompt[Out], name: str, like: Request = _SHORT, **inputs: str
) -> Out | None:
    """Ask the planning model; None, and a line in the trace, when nothing usable comes back."""
    async with ctx.step(name, ctx.question) as step:
        chat = step.ctx.chat("plan")
        if chat is None:
            step.left = "no model"
            return None
        language = prompt_language(ctx.question)
        try:
            said = await prompt.ask(chat, language=language, like=like, **inputs)
        except ParseError as error:
            step.left = f"nothing usable: {error}"
            return None
        step.left = _brief(said)
        return said


def _brief(said: BaseModel) -> str:
    return said.model_dump_json()[:200]


async def model_plan(ctx: Context, most: int) -> Plan:
    """Sub-questions in words by the model; whole when what it says makes no plan."""
    said = await ask_plainly(ctx, DECOMPOSE, "decompose", question=ctx.question)
    return _plan_of(ctx, said.questions if said else [], most)


async def relational_plan(ctx: Context, most: int) -> Plan:
    """Sub-queries as facts with unknowns, each put as the question for its unknown."""
    said = await ask_plainly(ctx, RELATIONS, "decompose into facts", question=ctx.question)
    return _plan_of(ctx, as_questions(said.facts[:most]) if said else [], most)


def _plan_of(ctx: Context, questions: Sequence[str], most: int) -> Plan:
    kept = sound(questions, most)
    # A plan that has lost every word of the question answers another one.
    if not set(words(ctx.question)) & set(words(" ".join(kept))):
        return Plan((ctx.question,), by="model")
    return Plan(tuple(kept), by="model")


def as_questions(facts: list[Triple]) -> list[str]:
    """Each fact as the question for its unknown; `Entity#2` becomes the fact that answers it."""
    answers: dict[str, int] = {}
    found = []
    for number, fact in enumerate(facts, start=1):
        subject, thing = (
            _UNKNOWN.sub(lambda u: f"#{answers.get(u[1], 0) or ''}", part.strip())
            for part in (fact.subject, fact.object)
        )
        new = _UNKNOWN.search(fact.object) or _UNKNOWN.search(fact.subject)
        if new is not None and new[1] not in answers:
            answers[new[1]] = number
        relation = fact.relation.strip()
        if not relation:
            continue
        if thing and thing != "#":
            found.append(
                f"What has {relation} {thing}?"
                if subject in ("", "#")
                else f"Is {thing} the {relation} of {subject}?"
            )
        else:
            found.append(f"What is the {relation} of {subject}?")
    return found


_UNKNOWN = re.compile(r"(?:Entity|实体)\s?#(\d{1,2})", re.IGNORECASE)
