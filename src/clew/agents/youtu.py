"""Youtu-GraphRAG's agentic retriever: schema-guided sub-questions, then reasoning and reflection.

The question is decomposed by the schema of the knowledge base (section 3.3): sub-questions that can
be answered independently, and the types, relations and attributes they involve. All are retrieved
for at once, and what is found is filtered by these types. The model then reasons over everything
read so far, and answers or asks a new query, until the steps are used up (equation 9).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, Field

from clew.agents.base import Answer, Mode, run_concurrently
from clew.agents.evidence import EvidencePage, show_evidence
from clew.agents.notebook import Notes, format_numbers
from clew.agents.tools import Toolbox
from clew.agents.writing import write_answer
from clew.context import Context
from clew.extract.schema import Schema, TypeKind
from clew.index.details import load_details
from clew.ingest.schema_store import SchemaStore
from clew.llm.prompt import Prompt
from clew.retrieve.labels import relation_names, type_names
from clew.retrieve.pack import fetch_entities
from clew.retrieve.schema_filter import SchemaFilter, SchemaNames

_MAX_NAMES = 100  # of each kind, the schema's own and then the most common
_MAX_DESCRIBED = 5000  # entities whose attributes are counted
_NO_SCHEMA = "(no schema is known)"


class Decomposition(BaseModel):
    """Sub-questions, and what of the schema they involve."""

    reasoning: str = Field(default="", description="which facts the question needs")
    sub_questions: list[str] = Field(default_factory=list)
    types: list[str] = Field(default_factory=list, description="involved entity types")
    relations: list[str] = Field(default_factory=list, description="involved relations")
    attributes: list[str] = Field(default_factory=list, description="involved attributes")


class Reflection(BaseModel):
    """One step: reasoning over all that was read, then an answer or a new query."""

    reasoning: str = Field(default="", description="think step by step, as long as it takes")
    action: Annotated[Literal["answer", "query"], BeforeValidator(lambda it: str(it).lower())]
    text: str = Field(default="", description="the answer, or the new query")


DECOMPOSE = Prompt(
    "decompose_by_schema", Decomposition, {"question", "schema"}, documents={"schema"}
)
REFLECT = Prompt(
    "reflect",
    Reflection,
    {"question", "notes", "evidence", "left"},
    documents={"notes", "evidence"},
)
_ENOUGH = Reflection(action="answer")  # stands for a step that cannot be read


@dataclass
class Memory:
    """The agent's memory: queries with what was read for each, and the thoughts so far."""

    queries: dict[str, EvidencePage] = field(default_factory=dict)
    thoughts: list[str] = field(default_factory=list)
    page: EvidencePage = field(default_factory=EvidencePage)
    """Everything read, each line once, under a number that stays."""

    def add(self, query: str, page: EvidencePage) -> None:
        """Keep what was read for a query."""
        self.queries[query] = page
        self.page = self.page.merge(page)

    def knows(self, query: str) -> bool:
        """Whether this was asked before."""
        return query.casefold() in map(str.casefold, self.queries)

    def notes(self) -> Notes:
        """Return the queries, with the numbers of their evidence, and the thoughts."""
        number = {line: at for at, line in enumerate(self.page.lines, start=1)}
        asked = [
            f"#{n} {query} (evidence: {format_numbers(number[line] for line in page.lines)})"
            for n, (query, page) in enumerate(self.queries.items(), start=1)
        ]
        return Notes({"Queries so far": asked, "Thoughts so far": self.thoughts})


@dataclass(frozen=True)
class Youtu:
    """Decomposes by schema, retrieves by type, then reasons, and answers or queries again."""

    top_k: int = 20  # section 4: top-20 (Table 1) and top-10 (Table 2)
    max_steps: int = 5
    """Steps of reasoning and reflection."""
    sub_questions: int | None = None
    """At most so many; None: as many as the model plans."""
    schema: bool = True
    """Off: no schema guides the decomposition, and no types filter (Table 3)."""
    reflection: bool = True
    """Off: the answer is written from the sub-questions' evidence (Table 3, w/o Agent)."""
    communities: bool = True
    """Off: no community is read (Table 3)."""

    async def __call__(self, ctx: Context, tools: Toolbox, mode: Mode, /) -> Answer:
        """Decompose, retrieve for all sub-questions at once, reflect, answer."""
        questions, involved = await self._decompose(ctx)
        pages = await run_concurrently(
            [self._look_up(ctx, tools, question, involved) for question in questions]
        )
        memory = Memory()
        for question, page in zip(questions, pages, strict=True):
            memory.add(question, page)
        if self.reflection:
            await self._reflect(ctx, tools, memory)
        return await write_answer(ctx, tools, memory.page, mode, memory.notes())

    async def _decompose(self, ctx: Context) -> tuple[list[str], SchemaNames]:
        """Return sub-questions, or the question itself, and what they involve of the schema."""
        schema = await load_schema(ctx) if self.schema else SchemaNames()
        shown = str(schema) if schema else _NO_SCHEMA
        said = await ctx.ask(
            DECOMPOSE, otherwise=Decomposition(), question=ctx.question, schema=shown
        )
        questions = dict.fromkeys(" ".join(one.split()) for one in said.sub_questions)
        kept = [one for one in questions if one][: self.sub_questions]
        return kept or [ctx.question], schema.select(said.types, said.relations, said.attributes)

    async def _look_up(
        self, ctx: Context, tools: Toolbox, query: str, involved: SchemaNames
    ) -> EvidencePage:
        """Retrieve for a query, filter by the involved types, and show what is found."""
        async with ctx.step("look up", query) as step:
            select = SchemaFilter(involved) if involved else None
            found = await tools.within(step.ctx).search(query, most=self.top_k, select=select)
            if not self.communities:
                found = replace(found, communities=())
            return await show_evidence(step.ctx, found)

    async def _reflect(self, ctx: Context, tools: Toolbox, memory: Memory) -> None:
        """Reason, and query for what is missing, until the model would answer.

        No types filter here: what is missing may be of another type than was thought at first.
        """
        for left in range(self.max_steps, 0, -1):
            said = await ctx.ask(
                REFLECT,
                otherwise=_ENOUGH,
                question=ctx.question,
                notes=memory.notes(),
                evidence=memory.page,
                left=str(left - 1),
            )
            query = " ".join(said.text.split())
            if said.action == "answer":
                if said is not _ENOUGH:
                    memory.thoughts.append(f"{said.reasoning}\nSo the answer is: {query}")
                return
            memory.thoughts.append(f"{said.reasoning}\nNew query: {query}")
            if left == 1 or not query or memory.knows(query):
                return
            memory.add(query, await self._look_up(ctx, tools, query, SchemaNames()))


async def load_schema(ctx: Context) -> SchemaNames:
    """Return the schema of the knowledge base: that of its extraction, then what it holds."""
    stored = await SchemaStore(ctx.key_values).load_stored() if ctx.key_values else None
    schema = stored.schema if stored else Schema()

    def list_names(kind: TypeKind, held: Sequence[str]) -> tuple[str, ...]:
        names = dict.fromkeys([*(one.name for one in schema.types_of(kind)), *held])
        return tuple(names)[:_MAX_NAMES]

    return SchemaNames(
        list_names("entity", _most_common(ctx.view.types, await type_names(ctx))),
        list_names("relation", _most_common(ctx.view.relations, await relation_names(ctx))),
        list_names("attribute", await _load_attributes(ctx)),
    )


def _most_common(codes: NDArray[np.int32], names: Sequence[str]) -> list[str]:
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    return [names[at] for at in np.argsort(-counts, kind="stable").tolist() if names[at]]


async def _load_attributes(ctx: Context) -> list[str]:
    """Return the names of attributes, most common first, of the entities with most facts."""
    memo = ctx.view.memo
    if "attribute names" not in memo:
        at = np.searchsorted(ctx.view.keys("entity"), load_details(ctx.view.arrays, "entity").keys)
        degrees = ctx.view.links("entity_fact").degrees()[at]
        most = at[np.argsort(-degrees, kind="stable")[:_MAX_DESCRIBED]]
        entities = await fetch_entities(ctx, most.tolist())
        counts = Counter(name for one in entities.values() for name in one.attributes)
        memo["attribute names"] = [name for name, _ in counts.most_common()]
    names: list[str] = memo["attribute names"]
    return names
