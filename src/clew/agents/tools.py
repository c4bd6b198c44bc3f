"""The tools over a knowledge base: what an agent, or a program by MCP, may call.

A tool is one function: its name, its docstring and its parameters are what a model is told, and it
returns `Evidence` whose items can be cited. Add one by writing it and naming it in `TOOLS`.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import PurePath
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from clew.agents.calculate import compute
from clew.agents.tables import query_tables
from clew.context import Context
from clew.errors import ConfigError, InputError, StoreError, UnknownNameError
from clew.graph.paths import find_short_paths
from clew.llm.budget import BudgetExceeded
from clew.llm.tools import ToolCall, ToolSpec
from clew.machine_memory import is_lack_of_memory
from clew.retrieve.graph_cache import facts_between, neighbour_graph
from clew.retrieve.lookup import NearFacts
from clew.retrieve.pack import fetch_evidence
from clew.retrieve.signals import run_recipe
from clew.retrieve.step import Step
from clew.types import Evidence, Finding, Found, Hit, Kind, Passage, Path, Route

_MAX_PASSAGES = 50
_MAX_ITEMS = 50  # facts, neighbours and paths of one call
_MAX_NAMESAKES = 3  # entities of one name that are looked at
_MAX_TRACE_CHARS = 160
_MAX_WALKED = 10  # paths that are shown while an answer is made


@dataclass(frozen=True)
class Toolbox:
    """The tools bound to one question's context and retriever; what they find is kept in `found`.

    A tool that fails on what it was given returns a finding that says so, for the model to read.
    """

    ctx: Context
    retrieve: Step
    top_k: int | None = None
    """Passages of a search; None: as many as the recipe's layout shows."""
    found: list[Evidence] = field(default_factory=list)
    """All that was found so far, in order."""
    hint: Evidence = Evidence()
    """What code read of the question, shown with what is searched for it."""

    def within(self, ctx: Context) -> "Toolbox":
        """Return the same tools with another context, such as that of a traced step."""
        return replace(self, ctx=ctx)

    @property
    def passages(self) -> int:
        """How many passages a search returns unless the call says."""
        return self.top_k or self.ctx.layout.max_passages

    def specs(self, names: Sequence[str] = ()) -> tuple[ToolSpec, ...]:
        """Describe these tools, by default all that find something here, for a model."""
        view = self.ctx.view
        return tuple(
            describe_tool(TOOLS[name])
            for name in names or TOOLS
            if name not in _NEEDS or view.count(_NEEDS[name])
        )

    async def search(
        self, query: str, *, most: int | None = None, select: Step | None = None
    ) -> Evidence:
        """Search as `search` does, raising what goes wrong.

        `most` is the agent's number of passages, which that of the caller overrides; `select`
        filters what is found. Where a query names nothing that is known, a model is told so.
        """
        number = self.top_k or most or self.passages
        try:
            return await self._run(
                "search", query, lambda tools: find(tools, query, number, select)
            )
        except UnknownNameError as error:
            if not self.ctx.has_model:
                raise
            return _explain("search", str(error))

    def evidence(self) -> Evidence:
        """Return all that was found so far, each element once, in the order found."""
        kinds = ("chunks", "entities", "facts", "communities")
        once = {
            kind: tuple(
                {
                    one.id: one for e in reversed(self.found) for one in reversed(getattr(e, kind))
                }.values()
            )[::-1]
            for kind in kinds
        }
        routes = dict.fromkeys(path for evidence in self.found for path in evidence.paths)
        told = dict.fromkeys(one for evidence in self.found for one in evidence.findings)
        return Evidence(**once, paths=tuple(routes), findings=tuple(told))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Evidence:
        """Call a tool by name, as a model asks for it; what is wrong comes back as a finding."""
        shown = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        if name not in TOOLS:
            known = ", ".join(TOOLS)
            return _explain(name, f"there is no tool {name!r}; there are {known}")
        try:
            given = arguments_of(TOOLS[name]).model_validate(dict(arguments))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            return _explain(name, f"{name}({shown}): {place}: {first['msg'].lower()}")
        try:
            named = {key: getattr(given, key) for key in type(given).model_fields}
            return await self._run(name, shown, lambda tools: TOOLS[name](tools, **named))
        except InputError as error:
            return _explain(name, f"{name}({shown}): {error}")

    async def _run(
        self, name: str, given: str, work: Callable[["Toolbox"], Awaitable[Evidence]]
    ) -> Evidence:
        """Run a tool as a traced step, in which its own steps are nested; keep what it finds."""
        self.ctx.budget.check_time()
        async with self.ctx.step(name, given[:_MAX_TRACE_CHARS]) as step:
            try:
                evidence = await work(replace(self, ctx=step.ctx))
            except (ConfigError, BudgetExceeded, StoreError, InputError):
                raise
            except Exception as error:  # any retriever may be plugged in: an edge
                if is_lack_of_memory(error):
                    raise
                raise InputError(f"{name} failed: {error or type(error).__name__}") from error
            step.output = describe_evidence(evidence)[:_MAX_TRACE_CHARS]
            shown = evidence.chunks or evidence.facts
            step.docs = tuple(dict.fromkeys(one.doc for one in shown if one.doc))
            step.walked = _list_walked(evidence)
        self.found.append(evidence)
        return evidence


Tool = Callable[..., Awaitable[Evidence]]


async def search(tools: Toolbox, query: str, k: int | None = None) -> Evidence:
    """Search the documents by a question or by keywords; returns the k best passages."""
    return await find(tools, query, max(1, min(k or tools.passages, _MAX_PASSAGES)))


async def find(tools: Toolbox, query: str, most: int, select: Step | None = None) -> Evidence:
    """Run the retriever on a query; what it finds is filtered by `select` and cut to `most`."""
    ctx = tools.ctx.with_question(query)
    found = await run_recipe(tools.retrieve, ctx)
    if select is not None:
        found = await select(ctx, found)
    once = {hit.at: hit for hit in reversed(found.chunks)}
    chunks = tuple(hit for hit in found.chunks if once[hit.at] is hit)[:most]
    evidence = await fetch_evidence(ctx, replace(found, chunks=chunks), full=True)
    return (
        replace(evidence, findings=tools.hint.findings) if query == tools.ctx.question else evidence
    )


async def facts(tools: Toolbox, query: str, k: int = 10) -> Evidence:
    """Find the statements of the graph that are nearest to a sentence or a triple."""
    ctx = tools.ctx.with_question(query)
    if not ctx.view.count("fact") or ctx.embed is None:
        return Evidence()
    return await fetch_evidence(
        ctx, await NearFacts(top_k=max(1, min(k, _MAX_ITEMS)))(ctx, Found())
    )


async def entity(tools: Toolbox, name: str) -> Evidence:
    """Look up a person, place or thing by name: type, description, attributes, facts about it."""
    ctx = tools.ctx
    places = _find_named(ctx, name)
    around = [fact for at in places for fact in await _facts_around(ctx, at, name)]
    owners = ctx.view.links("owners")
    pages = sorted({int(chunk) for at in places for chunk in owners.row(at)})[:_MAX_NAMESAKES]
    hits = tuple(Hit(at, 1.0, "name") for at in places)
    about = tuple(Hit(at, 1.0, "page") for at in pages)
    found = await fetch_evidence(ctx, Found(about, hits, tuple(around)), full=True)
    if pages:
        return found
    return replace(found, findings=(Finding(f"{name} has no document of its own", "entity"),))


async def neighbours(tools: Toolbox, name: str, query: str = "") -> Evidence:
    """List what shares a fact with an entity, the facts nearest to the query first."""
    ctx = tools.ctx
    around = [
        f for at in _find_named(ctx, name) for f in await _facts_around(ctx, at, query or name)
    ]
    return await fetch_evidence(ctx, Found(facts=tuple(around)))


async def paths(tools: Toolbox, start: str, end: str) -> Evidence:
    """Find the shortest paths of facts, at most three, between two entities."""
    ctx = tools.ctx
    one, other = _find_named(ctx, start), _find_named(ctx, end)
    seeds = np.array(list(dict.fromkeys([*one, *other])), np.int64)
    links = neighbour_graph(ctx.view)
    table = find_short_paths(links, seeds, codes=ctx.view.codes("entity"))
    routes = []
    for row in sorted((tuple(r[r >= 0].tolist()) for r in table.nodes), key=len):
        ends = {row[0], row[-1]}
        if ends & set(one) and ends & set(other) and len(ends) == 2:
            joined = (
                int(facts_between(ctx.view, a, b)[0]) for a, b in zip(row, row[1:], strict=False)
            )
            routes.append(Path(row, tuple(joined), 1 / len(row), "shortest"))
    return await fetch_evidence(ctx, Found(paths=tuple(routes[:_MAX_ITEMS])), full=True)


async def communities(tools: Toolbox, query: str, k: int = 5) -> Evidence:
    """Find the topics of the whole collection that are nearest to a query, with summaries."""
    ctx = tools.ctx.with_question(query)
    if not ctx.view.count("community") or ctx.embed is None:
        return _explain("communities", "no topics were made yet; `clew tree --grow` makes them")
    at, scores = ctx.nearest("community", await ctx.vector(), max(1, min(k, _MAX_ITEMS)))
    hits = tuple(Hit(int(a), float(s), "near") for a, s in zip(at, scores, strict=True))
    return await fetch_evidence(ctx, Found(communities=hits))


async def read(tools: Toolbox, document: str, start: int = 0, end: int | None = None) -> Evidence:
    """Read a document, given by its name or title, between two character positions.

    By default its beginning is read, at most 6,000 characters at once.
    """
    ctx = tools.ctx
    name, key = await _find_document(ctx, document)
    held = (await ctx.snapshot.documents([key]))[key]
    begin = max(0, min(start, len(held.text)))
    most = begin + _MAX_READ_CHARS
    stop = min(most if end is None else min(end, most), len(held.text))
    text = held.text[begin:stop]
    if not text.strip():
        raise InputError(f"{document!r} has {len(held.text)} characters, and no text there")
    return Evidence((Passage(f"{held.id}:{begin}", name, held.title, 1.0, text, begin, stop),))


async def sql(tools: Toolbox, query: str) -> Evidence:
    """Query tables of the documents by one SQLite SELECT; they are described when they are found.

    Select `row` as well, or group_concat(row), so that the rows can be cited.
    """
    return await query_tables(tools.ctx, query)


async def calculate(tools: Toolbox, expression: str) -> Evidence:
    """Compute numbers and dates: + - * / **, <, min, max, sum, mean, round, days and years.

    Dates are written date("1999-12-31"); days(d, e) and years(d, e) count what lies between two.
    """
    return Evidence(findings=(Finding(f"{expression} = {compute(expression)}", "calculate"),))


_MAX_READ_CHARS = 6000
TOOLS: dict[str, Tool] = {
    tool.__name__: tool
    for tool in (search, facts, entity, neighbours, paths, communities, read, sql, calculate)
}


_NEEDS: Mapping[str, Kind] = {
    "facts": "fact",
    "entity": "entity",
    "neighbours": "fact",
    "paths": "fact",
    "communities": "community",
}
"""What a knowledge base must have for a tool to be offered."""


@cache
def arguments_of(tool: Tool) -> type[BaseModel]:
    """Return the model of a tool's arguments, from its signature."""
    _, *parameters = inspect.signature(tool).parameters.values()
    fields: dict[str, Any] = {
        one.name: (one.annotation, ... if one.default is one.empty else one.default)
        for one in parameters
    }
    return create_model(tool.__name__, __config__=ConfigDict(extra="ignore"), **fields)


@cache
def describe_tool(tool: Tool) -> ToolSpec:
    """Return a tool's name, docstring and the JSON schema of its arguments."""
    schema = arguments_of(tool).model_json_schema()
    schema.pop("title", None)
    return ToolSpec(tool.__name__, inspect.getdoc(tool) or "", schema)


def describe_evidence(evidence: Evidence) -> str:
    """Say in one line what was found, for the trace."""
    counts = {
        kind: len(getattr(evidence, kind))
        for kind in ("entities", "facts", "paths", "communities", "findings")
    }
    parts = [f"{count} {kind}" for kind, count in counts.items() if count]
    if evidence.chunks:
        titles = "; ".join(passage.title or passage.doc for passage in evidence.chunks)
        parts.insert(0, f"{len(evidence.chunks)} passages: {titles}")
    return ", ".join(parts) or "nothing"


def format_call(call: ToolCall) -> str:
    """Write a call on one line, as a model is reminded of it."""
    return f"{call.tool}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})"


def _explain(tool: str, why: str) -> Evidence:
    return Evidence(findings=(Finding(why, tool),))


def _find_named(ctx: Context, name: str) -> list[int]:
    """Return the positions of the entities with this name or alias; InputError where none has."""
    found = [int(at) for at in ctx.view.find_by_name_or_alias(name)]
    if not found:
        raise InputError(f"no entity is named {name!r}; search for it instead")
    return found[:_MAX_NAMESAKES]


async def _find_document(ctx: Context, name: str) -> tuple[str, str]:
    """Return the name and the id of a document, by its name or the title of its page."""
    if ctx.sources is None:
        raise InputError("documents cannot be read here")
    known = await ctx.sources([name])
    if not known:
        owners = ctx.view.links("owners")
        pages = [int(c) for at in ctx.view.find_by_name_or_alias(name) for c in owners.row(int(at))]
        hits = tuple(Hit(at, 1.0, "page") for at in pages[:1])
        known = await ctx.sources(
            [one.doc for one in (await fetch_evidence(ctx, Found(hits))).chunks]
        )
    if not known:  # the end of a name, or a name without its folder and its kind
        every = await ctx.sources(None)
        near = [one for one in every if name in (PurePath(one).name, PurePath(one).stem)]
        known = {one: every[one] for one in near[:1]} if len(near) == 1 else {}
    for found, source in known.items():
        return found, source.document
    raise InputError(f"there is no document {name!r}; search for it instead")


async def _facts_around(ctx: Context, entity: int, query: str) -> list[Hit]:
    """Return the facts of an entity, those nearest to a query first."""
    at = ctx.view.links("entity_fact").row(entity).astype(np.int64)
    if ctx.embed is None or not len(at):
        return [Hit(int(one), 0.0, "around") for one in at[:_MAX_ITEMS]]
    near = ctx.cosines("fact", await ctx.vector(query), at)
    order = np.argsort(-near, kind="stable")[:_MAX_ITEMS]
    return [Hit(int(at[i]), float(near[i]), "around") for i in order]


def _list_walked(evidence: Evidence) -> tuple[Route, ...]:
    """List the best paths, then facts that were found in the graph, each as a path of its own."""
    alone = (
        Route(fact.entities, (fact.text,), fact.score, fact.by, (fact,))
        for fact in evidence.facts
        if len(fact.entities) > 1
    )
    return (*evidence.paths, *alone)[:_MAX_WALKED]
