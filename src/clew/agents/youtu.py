"""Youtu-GraphRAG's agent: schema-guided sub-questions, typed evidence, reasoning and reflection."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from pydantic import BaseModel, Field

from clew.agents.answering.finish import conclude, conclude_with_citation, run_with_fallback
from clew.agents.core.messages import is_unknown
from clew.agents.core.plan import Plan, validate_questions
from clew.agents.core.scratchpad import Notebook, RecordingRetriever
from clew.agents.core.types import Answer, Mode
from clew.agents.planning.model_plan import ask_planner
from clew.agents.rule_planner import combine_notes, make_rule_plan
from clew.agents.run_plan import PlanRunner
from clew.context import Context
from clew.llm.prompt import Prompt
from clew.retrieve.step import Step
from clew.types import Found

_MAX_TYPES = 30  # most common schema types shown to the model


class TypedSubQuestion(BaseModel, title="Part"):
    """A sub-question and the schema types it is about."""

    question: str
    types: list[str] = Field(default_factory=list)


class TypedSubQuestions(BaseModel, title="Parts"):
    """The decomposed question."""

    parts: list[TypedSubQuestion] = Field(default_factory=list)


class NextStep(BaseModel):
    """One step of reasoning and reflection."""

    thought: str = ""
    action: Literal["answer", "query"]
    text: str


DECOMPOSE_BY_SCHEMA = Prompt(
    "involved", TypedSubQuestions, {"question", "schema"}, documents={"schema"}
)
REFLECT = Prompt("reflect", NextStep, {"question", "notes"}, documents={"notes"})


@dataclass(frozen=True)
class TypeFilter:
    """Filters a retriever's entities and facts by schema type, unless that would leave none."""

    inner: Step
    types: tuple[str, ...]

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Retrieve, then filter."""
        found = await self.inner(ctx, found)
        wanted = {name.casefold() for name in self.types}
        keys = ctx.view.keys("entity")
        members = ctx.view.links("fact_entity")
        at = {hit.at for hit in found.entities}
        at |= {int(i) for hit in found.facts for i in members.row(hit.at)}
        known = await ctx.snapshot.entities([int(keys[i]) for i in sorted(at)])
        fits = {i for i in at if (e := known.get(int(keys[i]))) and e.type.casefold() in wanted}
        entities = tuple(hit for hit in found.entities if hit.at in fits)
        facts = tuple(hit for hit in found.facts if fits & {int(i) for i in members.row(hit.at)})
        return replace(found, entities=entities or found.entities, facts=facts or found.facts)


async def load_schema_types(ctx: Context) -> tuple[str, ...]:
    """Return the entity types of the knowledge base, most common first."""
    codes = ctx.view.types
    examples = ctx.view.arrays.get("type_entity", np.zeros(0, np.int64))  # an entity per type
    if not len(codes) or not len(examples):
        return ()
    counts = np.bincount(codes[codes >= 0], minlength=len(examples))
    order = np.argsort(-counts, kind="stable")[:_MAX_TYPES]
    keys = ctx.view.keys("entity")
    wanted = [int(keys[examples[code]]) for code in order]
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
        return await run_with_fallback(ctx, book, mode, self._answer(ctx, book, retrieve, mode))

    async def _answer(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        plan, types = await self._make_plan(ctx)
        step: Step = TypeFilter(retrieve, types) if types else retrieve
        retriever = RecordingRetriever(step, book, self.top_k)
        if plan.simple:
            await retriever(ctx, ctx.question)
        runner = PlanRunner(retriever, book)
        notes = await runner(ctx, plan)
        short = combine_notes(plan, notes) if plan.join or ctx.chat("plan") is None else ""
        if self.reflection and ctx.chat("plan") is not None and not short:
            book.draft = await self._reflect(ctx, book, runner)
            return await conclude_with_citation(ctx, book, book.draft, mode)
        return await conclude(ctx, book, mode, short)

    async def _make_plan(self, ctx: Context) -> tuple[Plan, tuple[str, ...]]:
        """Return sub-questions and the types they involve; a simple one is kept."""
        known = await load_schema_types(ctx) if self.schema else ()
        plan = await make_rule_plan(ctx) if self.rules or ctx.chat("plan") is None else None
        if plan is not None and (not plan.simple or ctx.chat("plan") is None):
            return plan, ()
        async with ctx.step("plan", ctx.question) as step:
            reply = await ask_planner(
                step.ctx,
                DECOMPOSE_BY_SCHEMA,
                "decompose by schema",
                question=ctx.question,
                schema=f"types: {', '.join(known) or 'thing'}",
            )
            parts = reply.parts[: self.sub_questions] if reply else []
            found = validate_questions([part.question for part in parts], self.sub_questions)
            step.output = str(found)
        shown = {name.casefold() for name in known}
        types = dict.fromkeys(t for part in parts for t in part.types if t.casefold() in shown)
        return Plan(found.questions or (ctx.question,), by="model"), tuple(types)

    async def _reflect(self, ctx: Context, book: Notebook, runner: PlanRunner) -> str:
        """Answer or query for what is missing, until the steps are used up."""
        queries = {note.question.casefold() for note in book.notes}
        for _ in range(self.max_steps):
            step = await ask_planner(
                ctx,
                REFLECT,
                "reflect",
                question=ctx.question,
                notes=book.format_notes() or "(none)",
            )
            if step is None or (step.action == "answer" and not is_unknown(step.text)):
                return step.text.strip() if step else ""
            query = step.text.strip()
            if step.action == "answer" or query.casefold() in queries:
                return ""  # it repeats itself: answer from what there is
            queries.add(query.casefold())
            note = await runner.look_up(ctx, query)
            book.add(replace(note, question=query))
        return ""
