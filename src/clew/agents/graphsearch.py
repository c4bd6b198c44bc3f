"""GraphSearch: six modules over two channels of retrieval (GraphSearch 2025, section 4).

A question is decomposed twice: into sub-questions, which are searched for in text, and into triples
with unknowns, which are searched for in the graph. Each sub-query is grounded by the answers before
it, retrieved, refined and answered. A draft of the whole answer is then verified, and expanded by
further sub-queries while evidence is missing. Every module is one prompt, and one field that
switches it off.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from typing import Any, Literal

from pydantic import BaseModel, Field

from clew.agents.base import Answer, Mode, run_concurrently
from clew.agents.evidence import show_evidence
from clew.agents.notebook import Note, Notes, fill_placeholders, find_numbers, join_pages
from clew.agents.tools import Toolbox
from clew.agents.writing import UNKNOWN, write_answer
from clew.context import Context
from clew.layout import Layout, Section
from clew.llm.prompt import Prompt
from clew.types import Evidence

ChannelName = Literal["semantic", "relational"]
BOTH_CHANNELS: tuple[ChannelName, ...] = ("semantic", "relational")
_ENTITY = re.compile(r"Entity#\d+")


class Verdict(StrEnum):
    """What evidence verification decides."""

    ACCEPT = "ACCEPT"
    REJECT = "REJECT"

    @classmethod
    def _missing_(cls, value: object) -> "Verdict | None":
        """Read it however it is written: Accept, reject."""
        return cls.__members__.get(str(value).strip().upper())


class SubQuestions(BaseModel):
    """Sub-queries of the semantic channel."""

    reasoning: str = Field(default="", description="think first")
    queries: list[str] = Field(default_factory=list, description="sub-questions, in order")

    def texts(self) -> list[str]:
        """Return the sub-queries, each on one line."""
        return [" ".join(query.split()) for query in self.queries if query.strip()]


class Triple(BaseModel):
    """A triple; what is not known is Entity#1, Entity#2 and so on."""

    subject: str
    relation: str
    object: str


class TripleQuery(BaseModel):
    """One sub-query of the relational channel."""

    triples: list[Triple] = Field(default_factory=list)


class TripleQueries(BaseModel):
    """Sub-queries of the relational channel."""

    reasoning: str = Field(default="", description="think first")
    queries: list[TripleQuery] = Field(default_factory=list, description="sub-queries, in order")

    def texts(self) -> list[str]:
        """Return the sub-queries, each on one line: `subject | relation | object; ...`."""
        lines = (
            "; ".join(f"{one.subject} | {one.relation} | {one.object}" for one in query.triples)
            for query in self.queries
        )
        return [line for line in lines if line]


class Grounded(BaseModel):
    """A sub-query whose placeholders are filled."""

    reasoning: str = Field(default="", description="what each placeholder stands for, and why")
    query: str = ""


class Refined(BaseModel):
    """What matters of the evidence for a sub-query."""

    reasoning: str = Field(default="", description="what each item says of the query")
    items: list[int] = Field(default_factory=list, description="the numbers of items that matter")
    context: str = Field(default="", description="what they say")


class SubAnswer(BaseModel):
    """The intermediate answer of a sub-query."""

    reasoning: str = Field(default="", description="think first")
    answer: str = UNKNOWN


class Draft(BaseModel):
    """The reasoning from the sub-queries to an answer of the question, and its gaps."""

    reasoning: str = Field(default="", description="the chain of reasoning, step by step")
    gaps: str = Field(default="", description="what a step needs and the notes do not say")
    answer: str = Field(default="", description="the answer the chain leads to")

    def __str__(self) -> str:
        """Format for a prompt."""
        gaps = f"\nGaps: {self.gaps}" if self.gaps else ""
        return f"{self.reasoning}{gaps}\nDrafted answer: {self.answer or UNKNOWN}"


class Verification(BaseModel):
    """Whether the evidence carries the draft."""

    reasoning: str = Field(default="", description="check the draft step by step first")
    verdict: Verdict
    missing: str = Field(default="", description="the evidence that is missing or contradicts")


_READ = {"question", "notes"}
DECOMPOSE_TEXT = Prompt("decompose_text", SubQuestions, {"question"})
DECOMPOSE_TRIPLES = Prompt("decompose_triples", TripleQueries, {"question"})
GROUND = Prompt("ground", Grounded, {"query", "notes"}, documents={"notes"})
REFINE_TEXT = Prompt("refine_text", Refined, {"query", "evidence"}, documents={"evidence"})
REFINE_TRIPLES = Prompt("refine_triples", Refined, {"query", "evidence"}, documents={"evidence"})
SUB_ANSWER = Prompt("sub_answer", SubAnswer, {"query", "context"}, documents={"context"})
DRAFT = Prompt("draft", Draft, _READ, documents={"notes"})
VERIFY = Prompt("verify", Verification, _READ, documents={"notes"})
EXPAND_TEXT = Prompt("expand_text", SubQuestions, _READ, documents={"notes"})
EXPAND_TRIPLES = Prompt("expand_triples", TripleQueries, _READ, documents={"notes"})
_NOT_VERIFIED = Verification(verdict=Verdict.ACCEPT)  # stands for a reply that cannot be read


async def read_passages(tools: Toolbox, query: str, found: Evidence, most: int) -> Evidence:
    """Return the passages of what was found: all that the semantic channel reads."""
    return Evidence(chunks=found.chunks)


async def read_graph(tools: Toolbox, query: str, found: Evidence, most: int) -> Evidence:
    """Return the entities and facts: all that the relational channel reads.

    Where the retriever found no facts, those nearest to the triples are looked up.
    """
    facts = found.all_facts
    if not facts:
        facts = (await tools.call("facts", {"query": query, "k": most})).facts
    return Evidence(entities=found.entities[:most], facts=facts[:most])


def needs_answers(plan: Sequence[str], at: int) -> set[int]:
    """Return which sub-questions of a plan `#1`, `#2`, ... of another refer to."""
    return {number - 1 for number in find_numbers(plan[at])} & set(range(at))


def needs_entities(plan: Sequence[str], at: int) -> set[int]:
    """Return which sub-queries of a plan are the first to name the unknowns of another."""
    unknowns = [set(_ENTITY.findall(query)) for query in plan[: at + 1]]
    first = (next(i for i, seen in enumerate(unknowns) if name in seen) for name in unknowns[at])
    return set(first) - {at}


@dataclass(frozen=True)
class Channel:
    """What differs between the channels: prompts, and what of the evidence is read."""

    decompose: Prompt[Any]
    refine: Prompt[Refined]
    expand: Prompt[Any]
    modality: Literal["text", "graph"]
    layout: Layout
    read: Callable[[Toolbox, str, Evidence, int], Awaitable[Evidence]]
    needs: Callable[[Sequence[str], int], set[int]]

    def search_text(self, query: str) -> str:
        """Return what is searched for: the query; of triples what is known of them."""
        if self.modality == "text":
            return query
        return " ".join(re.split(r"[|;\s]+", _ENTITY.sub(" ", query))).strip()


CHANNELS: dict[ChannelName, Channel] = {
    "semantic": Channel(
        *(DECOMPOSE_TEXT, REFINE_TEXT, EXPAND_TEXT, "text"),
        *(Layout((Section("passages"),)), read_passages, needs_answers),
    ),
    "relational": Channel(
        *(DECOMPOSE_TRIPLES, REFINE_TRIPLES, EXPAND_TRIPLES, "graph"),
        *(Layout((Section("facts"), Section("entities"))), read_graph, needs_entities),
    ),
}


@dataclass
class History:
    """All that a run has worked out: both channels, the draft and the verifier's findings."""

    background: list[Note] = field(default_factory=list)
    channels: dict[ChannelName, list[Note]] = field(default_factory=dict)
    draft: Draft | None = None
    findings: list[str] = field(default_factory=list)
    verdict: Verdict | None = None
    """The verifier's last word, if it was asked."""

    @property
    def all(self) -> list[Note]:
        """All notes."""
        return [*self.background, *chain.from_iterable(self.channels.values())]

    def notes(self, *, contexts: bool = True) -> Notes:
        """Return it as an input of prompts."""
        held = {"Background": [one for one in self.background if contexts]}
        held |= {f"{name} channel": notes for name, notes in self.channels.items()}
        return Notes(
            {
                **{
                    title: [one if contexts else replace(one, context="") for one in notes]
                    for title, notes in held.items()
                },
                "Draft": [str(self.draft)] if self.draft else [],
                "Verification": self.findings,
            }
        )


@dataclass(frozen=True)
class GraphSearch:
    """The workflow; a field that is off leaves its module out (Table 3)."""

    decompose: bool = True
    refine: bool = True
    ground: bool = True
    """Off: placeholders stay as they are, and no sub-query waits for another."""
    draft: bool = True
    verify: bool = True
    expand: bool = True
    channels: tuple[ChannelName, ...] = BOTH_CHANNELS
    """Figure 5: one of them alone."""
    top_k: int = 30  # implementation details; passages, facts and entities of each retrieval
    max_reflections: int = 2  # the paper does not say; the authors' code has 1
    expand_on: Verdict = Verdict.REJECT
    """The authors' code expands on ACCEPT."""

    async def __call__(self, ctx: Context, tools: Toolbox, mode: Mode, /) -> Answer:
        """Retrieve iteratively in both channels, reflect, and answer from what was kept."""
        names = [n for n in self.channels if ctx.modality in ("all", CHANNELS[n].modality)]
        run = History(channels={name: [] for name in names})
        work = [self._read_background(ctx, tools, names)]
        if self.decompose:
            work += [self._run_channel(ctx, tools, name) for name in names]
        run.background, *histories = await run_concurrently(work)
        run.channels |= dict(zip(names, histories, strict=False))
        await self._reflect(ctx, tools, run)
        # Contexts that were not refined are the evidence itself, which is shown.
        notes = run.notes(contexts=self.refine)
        answer = await write_answer(ctx, tools, join_pages(run.all), mode, notes)
        if run.verdict is None:
            return answer
        # The last verdict stands behind the answer: what was rejected is not sure.
        accepted = float(run.verdict is Verdict.ACCEPT)
        return replace(answer, signals={**answer.signals, "verified": accepted})

    async def _read_background(
        self, ctx: Context, tools: Toolbox, names: Sequence[ChannelName]
    ) -> list[Note]:
        """Retrieve for the whole question and refine that for each channel."""
        async with ctx.step("background", ctx.question) as step:
            tools = tools.within(step.ctx)
            found = await tools.search(ctx.question, most=self.top_k)
            if not self.refine:
                page = await show_evidence(step.ctx, found)
                return [Note(ctx.question, str(page), page=page)]
            return await run_concurrently(
                [
                    self._refine(step.ctx, tools, CHANNELS[name], ctx.question, found)
                    for name in names
                ]
            )

    async def _run_channel(self, ctx: Context, tools: Toolbox, name: ChannelName) -> list[Note]:
        """Decompose the question and answer all sub-queries of one channel."""
        channel = CHANNELS[name]
        async with ctx.step(f"{name} channel", ctx.question) as step:
            said = await step.ctx.ask(
                channel.decompose, otherwise=channel.decompose.out(), question=ctx.question
            )
            queries = said.texts() or [ctx.question]
            notes = await self._answer_all(step.ctx, tools, channel, queries, [])
            step.output = "; ".join(f"{note.query} {note.answer}" for note in notes)
            return notes

    async def _answer_all(
        self,
        ctx: Context,
        tools: Toolbox,
        channel: Channel,
        queries: Sequence[str],
        earlier: Sequence[Note],
    ) -> list[Note]:
        """Answer sub-queries, those at once whose placeholders are resolved; return all notes."""
        plan = [*(note.planned for note in earlier), *queries]
        done = dict(enumerate(earlier))
        while left := [at for at in range(len(plan)) if at not in done]:
            ready = [at for at in left if not (self.ground and channel.needs(plan, at) & set(left))]
            answered = await run_concurrently(
                [self._answer_one(ctx, tools, channel, plan, at, done) for at in ready]
            )
            done |= dict(zip(ready, answered, strict=True))
        return [done[at] for at in range(len(plan))]

    async def _answer_one(
        self,
        ctx: Context,
        tools: Toolbox,
        channel: Channel,
        plan: Sequence[str],
        at: int,
        done: dict[int, Note],
    ) -> Note:
        """Ground one sub-query, retrieve for it, refine that and answer from it."""
        async with ctx.step(f"sub-query {at + 1}", plan[at]) as step:
            tools, query = tools.within(step.ctx), plan[at]
            if self.ground and channel.needs(plan, at):
                before = [done[i] for i in sorted(done) if i < at]
                query = await _ground(step.ctx, query, before)
            found = await tools.search(channel.search_text(query), most=self.top_k)
            note = await self._refine(step.ctx, tools, channel, query, found)
            said = await step.ctx.ask(
                SUB_ANSWER,
                otherwise=SubAnswer(),
                query=query,
                context=note.context if self.refine else note.page,
            )
            step.output = said.answer
            return replace(note, answer=said.answer.strip(), number=at + 1, planned=plan[at])

    async def _refine(
        self, ctx: Context, tools: Toolbox, channel: Channel, query: str, found: Evidence
    ) -> Note:
        """Show what the channel reads of the evidence, and keep of it what matters."""
        most = tools.top_k or self.top_k
        evidence = await channel.read(tools, channel.search_text(query), found, most)
        page = await show_evidence(ctx, evidence, channel.layout, role="plan")
        if not (self.refine and page.items):
            return Note(query, str(page), page=page)
        everything = Refined(context=str(page), items=[*range(1, len(page.items) + 1)])
        said = await ctx.ask(channel.refine, otherwise=everything, query=query, evidence=page)
        return Note(query, said.context.strip(), page=page, kept=tuple(said.items))

    async def _reflect(self, ctx: Context, tools: Toolbox, run: History) -> None:
        """Draft and verify; as long as the verdict asks for it, expand and do both again."""
        for turn in range(self.max_reflections + 1):
            if self.draft:
                question, notes = ctx.question, run.notes()
                run.draft = await ctx.ask(
                    DRAFT, otherwise=run.draft or Draft(), question=question, notes=notes
                )
            if not self.verify:
                return
            said = await ctx.ask(
                VERIFY, otherwise=_NOT_VERIFIED, question=ctx.question, notes=run.notes()
            )
            if said is _NOT_VERIFIED:
                return
            run.findings.append(f"{said.verdict}: {said.missing}".strip(": "))
            run.verdict = said.verdict
            last = turn == self.max_reflections
            if last or not self.expand or said.verdict is not self.expand_on:
                return
            if not await self._expand(ctx, tools, run):
                return

    async def _expand(self, ctx: Context, tools: Toolbox, run: History) -> bool:
        """Let every channel ask for the missing evidence; return whether one asked anything."""
        grown = await run_concurrently(
            [self._expand_channel(ctx, tools, name, run) for name in run.channels]
        )
        before = len(run.all)
        run.channels = dict(zip(run.channels, grown, strict=True))
        return len(run.all) > before

    async def _expand_channel(
        self, ctx: Context, tools: Toolbox, name: ChannelName, run: History
    ) -> list[Note]:
        """Let one channel ask for the missing evidence; return its old and new notes."""
        channel, earlier = CHANNELS[name], run.channels[name]
        async with ctx.step(f"expand {name} channel", run.findings[-1]) as step:
            said = await step.ctx.ask(
                channel.expand,
                otherwise=channel.expand.out(),
                question=ctx.question,
                notes=run.notes(),
            )
            known = {text.casefold() for note in earlier for text in (note.query, note.planned)}
            new = [query for query in said.texts() if query.casefold() not in known]
            step.output = "; ".join(new) or "nothing new"
            return await self._answer_all(step.ctx, tools, channel, new, earlier)


async def _ground(ctx: Context, query: str, earlier: Sequence[Note]) -> str:
    """Let the model fill a sub-query's placeholders; where it cannot be read, by the answers."""
    filled = Grounded(query=fill_placeholders(query, earlier))
    notes = Notes({"Earlier sub-queries": earlier})
    said = await ctx.ask(GROUND, otherwise=filled, query=query, notes=notes)
    return " ".join(said.query.split()) or filled.query
