"""Youtu-GraphRAG's agent: schema-guided sub-questions, typed evidence, reasoning and reflection."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from pydantic import BaseModel, Field

from clew.agents.answer import Answer, Mode
from clew.agents.follow import Follower
from clew.agents.notebook import Looker, Note, Notebook
from clew.agents.planning.ask_plan import ask_plainly
from clew.agents.planning.plan import Plan, sound
from clew.agents.steps import rule_plan, worked_out
from clew.agents.writing.finish import borne_out, bounded, concluded
from clew.agents.writing.reading import unknown
from clew.context import Context
from clew.llm.prompt import Prompt
from clew.retrieve.step import Step
from clew.types import Found

_TYPES = 30  # most common schema types shown to the model


class Part(BaseModel):
    """A sub-question and the schema types it is about."""

    question: str
    types: list[str] = Field(default_factory=list)


class Parts(BaseModel):
    """The decomposed question."""

    parts: list[Part] = Field(default_factory=list)


class NextStep(BaseModel):
    """One step of reasoning and reflection."""

    thought: str = ""
    action: Literal["answer", "query"]
    text: str


INVOLVED = Prompt("involved", Parts, {"question", "schema"}, documents={"schema"})
REFLECT = Prompt("reflect", NextStep, {"question", "notes"}, documents={"notes"})


@dataclass(frozen=True)
class OfTypes:
    """Filters a retriever's entities and facts by schema type, unless that would leave none."""

    inner: Step
    types: tuple[str, ...] = field(default=())

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Retrieve, then filter."""
        found = await self.inner(ctx, found)
        wanted = {name.casefold() for name in self.types}
        if not wanted:
            return found
        keys = ctx.view.keys("entity")
        members = ctx.view.links("fact_entity")
        at = {hit.at for hit in found.entities}
        at |= {int(i) for hit in found.facts for i in members.row(hit.at)}
        known = await ctx.snapshot.entities([int(keys[i]) for i in sorted(at)])
        fits = {i for i in at if (e := known.get(int(keys[i]))) and e.type.casefold() in wanted}
        entities = tuple(hit for hit in found.entities if hit.at in fits)
        facts = tuple(hit for hit in found.facts if fits & {int(i) for i in members.row(hit.at)})
        return replace(found, entities=entities or found.entities, facts=facts or found.facts)


async def schema_types(ctx: Context) -> tuple[str, ...]:
    """Return the entity types of the knowledge base, most common first."""
    codes = ctx.view.types
    bearers = ctx.view.arrays.get("type_entity", np.zeros(0, np.int64))
    if not len(codes) or not len(bearers):
        return ()
    counts = np.bincount(codes[codes >= 0], minlength=len(bearers))
    order = np.argsort(-counts, kind="stable")[:_TYPES]
    keys = ctx.view.keys("entity")
    wanted = [int(keys[bearers[code]]) for code in order]
    entities = await ctx.snapshot.entities(wanted)
    return tuple(entities[key].type for key in wanted if key in entities and entities[key].type)


@dataclass(frozen=True)
class Youtu:
    """Decomposes by schema, retrieves by type, then answers or queries again, up to `max_steps`."""

    top_k: int = 20  # paper, Table 1 (Table 2: 10)
    max_steps: int = 5  # paper: reasoning and reflection
    sub_questions: int = 3
    schema: bool = True
    """Off: no types are shown and none filter (ablation "w/o Schema")."""
    reflection: bool = True
    """Off: answer directly from the sub-questions' evidence (ablation "w/o Agent")."""
    rules: bool = True

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Decompose, retrieve concurrently, reflect, answer."""
        book = Notebook()
        return await bounded(ctx, book, mode, self._work(ctx, book, retrieve, mode))

    async def _work(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        plan, types = await self._plan(ctx)
        retriever = Looker(OfTypes(retrieve, types) if types else retrieve, book, self.top_k)
        if plan.simple:
            await retriever(ctx, ctx.question)
        runner = Follower(retriever, book)
        notes = await runner(ctx, plan)
        short = worked_out(plan, notes) if plan.join or ctx.chat("plan") is None else ""
        if self.reflection and ctx.chat("plan") is not None and not short:
            book.draft = await self._reflect(ctx, book, runner)
            return await borne_out(ctx, book, book.draft, mode)
        return await concluded(ctx, book, mode, short)

    async def _plan(self, ctx: Context) -> tuple[Plan, tuple[str, ...]]:
        """Return sub-questions and the types they involve; a simple question stays whole."""
        known = await schema_types(ctx) if self.schema else ()
        plan = await rule_plan(ctx) if self.rules or ctx.chat("plan") is None else None
        if plan is not None and (not plan.simple or ctx.chat("plan") is None):
            return plan, ()
        async with ctx.step("plan", ctx.question) as step:
            reply = await ask_plainly(
                step.ctx,
                INVOLVED,
                "decompose by schema",
                question=ctx.question,
                schema=f"types: {', '.join(known) or 'thing'}",
            )
            parts = reply.parts[: self.sub_questions] if reply else []
            found = sound([part.question for part in parts], self.sub_questions)
            step.left = str(found)
        shown = {name.casefold() for name in known}
        types = dict.fromkeys(t for part in parts for t in part.types if t.casefold() in shown)
        return Plan(found.questions or (ctx.question,), by="model"), tuple(types)

    async def _reflect(self, ctx: Context, book: Notebook, runner: Follower) -> str:
        """Answer or query for what is missing, until the steps are used up."""
        queries = {note.question.casefold() for note in book.notes}
        for _ in range(self.max_steps):
            step = await ask_plainly(
                ctx, REFLECT, "reflect", question=ctx.question, notes=book.told() or "(none)"
            )
            if step is None or (step.action == "answer" and not unknown(step.text)):
                return step.text.strip() if step else ""
            query = step.text.strip()
            if step.action == "answer" or query.casefold() in queries:
                return ""  # it repeats itself: answer from what there is
            queries.add(query.casefold())
            note = await runner.note(ctx, query)
            book.notes.append(replace_question(note, query))
        return ""


def replace_question(note: Note, question: str) -> Note:
    """Return the note with the question as it was asked."""
    return replace(note, question=question)
