"""Youtu-GraphRAG's agent: schema-guided sub-questions, typed evidence, reasoning and reflection."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from clew.agents.answering.finish import conclude, conclude_with_citation, run_with_fallback
from clew.agents.core.evidence_page import show_evidence
from clew.agents.core.messages import is_unknown
from clew.agents.core.plan import Plan, strip_placeholders, validate_questions
from clew.agents.core.scratchpad import Notebook, RecordingRetriever
from clew.agents.core.types import Answer, Mode
from clew.agents.planning.model_plan import ask_planner
from clew.agents.rule_planner import combine_notes, make_rule_plan
from clew.agents.run_plan import PlanRunner
from clew.context import Context
from clew.extract.schema import Schema, type_key
from clew.index.details import load_details
from clew.ingest.schema_store import SchemaStore
from clew.llm.prompt import Prompt
from clew.retrieve.labels import relation_names, type_names
from clew.retrieve.pack import fetch_entities
from clew.retrieve.step import Step
from clew.types import Found, Hit

_MAX_NAMES = 30  # most common names of each kind shown to the model
_MAX_OWNED = 8  # attributes shown of one type
_MAX_DESCRIBED = 5000  # entities whose attributes are counted


class TypedSubQuestion(BaseModel, title="Part"):
    """A sub-question and the parts of the schema it is about."""

    question: str
    types: list[str] = Field(default_factory=list)
    relations: list[str] = Field(default_factory=list)
    attributes: list[str] = Field(default_factory=list)


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
REFLECT = Prompt(
    "reflect", NextStep, {"question", "notes", "evidence"}, documents={"notes", "evidence"}
)


@dataclass(frozen=True)
class SchemaNames:
    """Entity types, relations and attributes: of a knowledge base, or those a question involves."""

    types: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    owners: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Entity types with their attributes."""

    def select(self, part: TypedSubQuestion) -> "SchemaNames":
        """Return what a sub-question names that the schema has; the rest is dropped."""
        return SchemaNames(
            _known(part.types, self.types),
            _known(part.relations, self.relations),
            _known(part.attributes, self.attributes),
        )

    def __str__(self) -> str:
        """Format for a prompt: attributes of a type in brackets behind it, then all others."""
        owned = {name for _, names in self.owners for name in names}
        attributes = [f"{kind} ({', '.join(names)})" for kind, names in self.owners]
        attributes += [name for name in self.attributes if name not in owned]
        return (
            f"entity types: {', '.join(self.types) or 'thing'}\n"
            f"relations: {', '.join(self.relations) or '(any)'}\n"
            f"attributes: {', '.join(attributes) or '(none)'}"
        )


def _known(named: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    by_key = {type_key(name): name for name in names}
    found = (by_key.get(type_key(name)) for name in named)
    return tuple(dict.fromkeys(name for name in found if name is not None))


@dataclass(frozen=True)
class SchemaFilter:
    """Keeps what was found of the involved types and relations; a kind is never left empty.

    A fact fits by its relation or by the type of a participant, a path by the type of its end, a
    passage if it states or mentions something that fits. Entities with an involved attribute come
    first.
    """

    involved: SchemaNames

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Filter entities, facts, paths and passages."""
        fits = await self._fitting(ctx, found)
        entities = tuple(hit for hit in found.entities if hit.at in fits)
        related = await self._related(ctx, found)
        members = ctx.view.links("fact_entity")
        facts = tuple(
            hit
            for hit in found.facts
            if hit.at in related or (fits & {int(i) for i in members.row(hit.at)})
        )
        paths = tuple(path for path in found.paths if path.entities[-1] in fits)
        kept = replace(
            found,
            entities=await self._attributed_first(ctx, entities or found.entities),
            facts=facts or found.facts,
            paths=paths or found.paths,
        )
        return replace(kept, chunks=_fitting_chunks(ctx, kept) or found.chunks)

    async def _fitting(self, ctx: Context, found: Found) -> set[int]:
        """Return the positions of the entities that have an involved type."""
        names = await type_names(ctx)
        codes = {at for at, name in enumerate(names) if name in self.involved.types}
        members, types = ctx.view.links("fact_entity"), ctx.view.types
        at = {hit.at for hit in found.entities} | {p.entities[-1] for p in found.paths}
        at |= {int(i) for hit in found.facts for i in members.row(hit.at)}
        return {one for one in at if int(types[one]) in codes}

    async def _related(self, ctx: Context, found: Found) -> set[int]:
        """Return the positions of the facts that have an involved relation."""
        names = await relation_names(ctx)
        codes = {at for at, name in enumerate(names) if name in self.involved.relations}
        relations = ctx.view.relations
        return {hit.at for hit in found.facts if int(relations[hit.at]) in codes}

    async def _attributed_first(self, ctx: Context, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        wanted = {type_key(name) for name in self.involved.attributes}
        if not wanted:
            return hits
        known = await fetch_entities(ctx, [hit.at for hit in hits])

        def lacks(hit: Hit) -> bool:
            return not wanted & {type_key(name) for name in known[hit.at].attributes}

        return tuple(sorted(hits, key=lacks))


def _fitting_chunks(ctx: Context, kept: Found) -> tuple[Hit, ...]:
    """Return the passages that state a kept fact or mention a kept entity."""
    by_fact, by_entity = ctx.view.links("fact_chunk"), ctx.view.links("entity_chunk")
    facts = {hit.at for hit in kept.facts} | {f for path in kept.paths for f in path.facts}
    where = {int(c) for at in facts for c in by_fact.row(at)}
    where |= {int(c) for hit in kept.entities for c in by_entity.row(hit.at)}
    return tuple(hit for hit in kept.chunks if hit.at in where)


async def load_schema(ctx: Context) -> SchemaNames:
    """Return the schema of the knowledge base: what it holds, most common first, and its file."""
    kinds = _most_common(ctx.view.types, await type_names(ctx))
    relations = _most_common(ctx.view.relations, await relation_names(ctx))
    owned = await _load_attributes(ctx)
    totals = sum(owned.values(), Counter[str]())
    attributes: dict[str, None] = dict.fromkeys(name for name, _ in totals.most_common())
    stored = await _load_stored_schema(ctx)
    attributes |= dict.fromkeys(one.name for one in stored.types_of("attribute"))
    relations |= dict.fromkeys(one.name for one in stored.types_of("relation"))
    kinds |= dict.fromkeys(one.name for one in stored.types_of("entity"))
    types, related, told = (tuple(n)[:_MAX_NAMES] for n in (kinds, relations, attributes))
    owners = (
        (kind, tuple(name for name, _ in owned[kind].most_common(_MAX_OWNED) if name in told))
        for kind in types
        if kind in owned
    )
    return SchemaNames(types, related, told, tuple(one for one in owners if one[1]))


async def _load_attributes(ctx: Context) -> dict[str, Counter[str]]:
    """Count the attributes of each entity type, over the entities with most facts that have any."""
    memo = ctx.view.memo
    if "attributes of types" not in memo:
        described = load_details(ctx.view.arrays, "entity").keys
        at = np.searchsorted(ctx.view.keys("entity"), described)
        degrees = ctx.view.links("entity_fact").degrees()[at]
        most = at[np.argsort(-degrees, kind="stable")[:_MAX_DESCRIBED]]
        found: dict[str, Counter[str]] = {}
        for entity in (await fetch_entities(ctx, most.tolist())).values():
            if entity.attributes:
                found.setdefault(entity.type, Counter()).update(entity.attributes.keys())
        memo["attributes of types"] = found
    counts: dict[str, Counter[str]] = memo["attributes of types"]
    return counts


def _most_common(codes: NDArray[np.int32], names: Sequence[str]) -> dict[str, None]:
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    order = np.argsort(-counts, kind="stable").tolist()
    return dict.fromkeys(names[at] for at in order if names[at])


async def _load_stored_schema(ctx: Context) -> Schema:
    """Return the schema that bounded extraction, if it was stored."""
    if ctx.key_values is None:
        return Schema()
    history = await SchemaStore(ctx.key_values).load_stored()
    return history.schema if history else Schema()


@dataclass(frozen=True)
class Youtu:
    """Decomposes by schema, retrieves by type, then answers or queries again, up to `max_steps`."""

    top_k: int = 20  # paper, Table 1 (Table 2: 10)
    max_steps: int = 5  # paper: reasoning and reflection
    sub_questions: int = 4  # paper, §A.8.1: its example has four
    schema: bool = True
    """Off: no schema is shown and none filters (ablation "w/o Schema")."""
    reflection: bool = True
    """Off: answer directly from the sub-questions' evidence (ablation "w/o Agent")."""
    rules: bool = True

    async def __call__(self, ctx: Context, retrieve: Step, mode: Mode, /) -> Answer:
        """Decompose, retrieve concurrently, reflect, answer."""
        book = Notebook()
        return await run_with_fallback(ctx, book, mode, self._answer(ctx, book, retrieve, mode))

    async def _answer(self, ctx: Context, book: Notebook, retrieve: Step, mode: Mode) -> Answer:
        plan, involved = await self._make_plan(ctx)
        retriever = RecordingRetriever(retrieve, book, self.top_k)
        filtered = tuple(_with_filter(retriever, names) for names in involved)
        if plan.simple:
            await (filtered[0] if filtered else retriever)(ctx, ctx.question)
        runner = PlanRunner(retriever, book, retrievers=filtered)
        notes = await runner(ctx, plan)
        short = combine_notes(plan, notes) if plan.join or ctx.chat("plan") is None else ""
        if self.reflection and ctx.chat("plan") is not None and not short:
            book.draft = await self._reflect(ctx, book, runner)
            return await conclude_with_citation(ctx, book, book.draft, mode)
        return await conclude(ctx, book, mode, short)

    async def _make_plan(self, ctx: Context) -> tuple[Plan, tuple[SchemaNames, ...]]:
        """Return sub-questions and what each involves of the schema; a simple one is kept."""
        plan = await make_rule_plan(ctx) if self.rules or ctx.chat("plan") is None else None
        if plan is not None and (not plan.simple or ctx.chat("plan") is None):
            return plan, ()
        schema = await load_schema(ctx) if self.schema else SchemaNames()
        async with ctx.step("plan", ctx.question) as step:
            reply = await ask_planner(
                step.ctx,
                DECOMPOSE_BY_SCHEMA,
                "decompose by schema",
                question=ctx.question,
                schema=str(schema) if self.schema else "(none)",
            )
            parts = reply.parts if reply else []
            found = validate_questions([part.question for part in parts], self.sub_questions)
            by_text = {_plain(part.question): schema.select(part) for part in parts}
            involved = [by_text.get(_plain(q), SchemaNames()) for q in found.questions]
            shown = [", ".join((*n.types, *n.relations, *n.attributes)) for n in involved]
            step.output = f"{found}; involved: {' | '.join(shown)}" if any(shown) else str(found)
        if not found.questions:
            return Plan((ctx.question,), by="model"), ()
        return Plan(found.questions, by="model"), tuple(involved)

    async def _reflect(self, ctx: Context, book: Notebook, runner: PlanRunner) -> str:
        """Answer or query for what is missing, until the steps are used up."""
        queries = {note.question.casefold() for note in book.notes}
        for _ in range(self.max_steps):
            notes = book.format_notes() or "(none)"
            page = await show_evidence(
                ctx, book.evidence(), ctx.layout.for_part(), beside=notes, reply=200, role="plan"
            )
            step = await ask_planner(
                ctx, REFLECT, "reflect", question=ctx.question, notes=notes, evidence=page
            )
            if step is None or (step.action == "answer" and not is_unknown(step.text)):
                return step.text.strip() if step else ""
            if step.thought.strip():
                book.thoughts.append(step.thought)
            query = step.text.strip()
            if step.action == "answer" or query.casefold() in queries:
                return ""  # it repeats itself: answer from what there is
            queries.add(query.casefold())
            note = await runner.look_up(ctx, query)
            book.add(replace(note, question=query))
        return ""


def _with_filter(retriever: RecordingRetriever, involved: SchemaNames) -> RecordingRetriever:
    return (
        retriever
        if involved == SchemaNames()
        else replace(retriever, select=SchemaFilter(involved))
    )


def _plain(question: str) -> str:
    """Return a question without placeholders: validation renumbers them."""
    return strip_placeholders(question).casefold()
