"""Run a logic plan over the knowledge base: operators by code, lookups by graph or by reading."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from pydantic import BaseModel, Field

from clew.agents.answering.read import make_note
from clew.agents.citing.support import contains_answer
from clew.agents.core.evidence_page import EvidencePage, show_evidence
from clew.agents.core.scratchpad import Note, Notebook, RecordingRetriever, Retrieval
from clew.agents.core.types import run_concurrently
from clew.agents.logic.compute import (
    Item,
    Items,
    Uncomputable,
    apply_aggregate,
    apply_combine,
    apply_compare,
    apply_filter,
    apply_get,
    apply_sort,
)
from clew.agents.logic.forms import (
    Aggregate,
    Combine,
    Compare,
    Filter,
    Get,
    LogicPlan,
    Operator,
    Retrieve,
    Sort,
    fill_refs,
    find_refs,
    format_operator,
    needs_all_items,
)
from clew.agents.planning.model_plan import ask_planner
from clew.agents.run_plan import PlanRunner
from clew.context import Context
from clew.llm.chat import Request
from clew.llm.prompt import Prompt
from clew.retrieve.pack import fetch_evidence
from clew.text.unicode import split_words
from clew.types import HEAD, TAIL, Citation, Fact, Found, Hit

_MAX_FACTS_PER_ENTITY = 400  # facts of one entity that are considered
_SAME_RELATION_COSINE = 0.62  # cosine at which two relations mean the same (MiniLM)
FactsByPosition = dict[int, Fact]
"""By position in the view."""
MAX_GRAPH_LOOKUPS = 200  # items of earlier steps looked up one by one in the graph, for free
_MAX_SHOWN_ITEMS = 20  # of one operator's result
_MAX_READ_LOOKUPS = 12  # of these that need reading, at one or more calls each


class ListedItem(BaseModel, title="Listed"):
    """One collected thing."""

    text: str
    source: int = 0


class ListedItems(BaseModel, title="Collected"):
    """Everything a question asks for."""

    items: list[ListedItem] = Field(default_factory=list)


_LIST_REQUEST = Request(max_tokens=250)
LIST_ITEMS = Prompt("list", ListedItems, {"question", "evidence"}, documents={"evidence"})


@dataclass(frozen=True)
class LogicResult:
    """The items of every step that ran, and why the first failing step failed."""

    results: dict[int, Items]
    error: str = ""

    @property
    def items(self) -> Items:
        """The result of the last step."""
        return () if self.error or not self.results else self.results[max(self.results)]


@dataclass(frozen=True)
class LogicRunner:
    """Runs logic plans; the findings of each step go into the notebook."""

    retriever: RecordingRetriever
    book: Notebook
    near: bool = False
    """Read what is about the names asked for first also where facts are beside it."""

    async def __call__(self, ctx: Context, plan: LogicPlan, /) -> LogicResult:
        """Run step by step; adjacent independent lookups run concurrently."""
        results: dict[int, Items] = {}
        at = 0
        while at < len(plan.steps):
            wave = _next_wave(plan.steps, at)
            try:
                found = await run_concurrently(
                    [self._run_step(ctx, plan, n, results) for n in wave]
                )
            except Uncomputable as error:
                return LogicResult(results, str(error))
            results |= dict(zip(wave, found, strict=True))
            at = wave[-1]
        return LogicResult(results)

    async def _run_step(
        self, ctx: Context, plan: LogicPlan, number: int, results: dict[int, Items]
    ) -> Items:
        step = plan.steps[number - 1]
        async with ctx.step(f"#{number} {type(step).__name__.lower()}", str(step)) as opened:
            if isinstance(step, Retrieve):
                items = await self._run_retrieve(
                    opened.ctx, step, results, needs_all_items(plan, number)
                )
            else:
                items = _compute_step(step, results)
            opened.output = "; ".join(item.text for item in items) or "nothing"
            shown = [item.text for item in items[:_MAX_SHOWN_ITEMS]]
            more = f" and {len(items) - len(shown)} more" if len(shown) < len(items) else ""
            self.book.results[number] = (
                f"#{number} {format_operator(step)} = {'; '.join(shown)}{more}"
            )
            return items

    async def _run_retrieve(
        self, ctx: Context, step: Retrieve, results: dict[int, Items], many: bool
    ) -> Items:
        """Look up for each item that a reference stands for."""
        needed = list(dict.fromkeys(step.refs))
        rows = _bind_all_items(needed, results) if many else [_bind_first_items(needed, results)]
        if len(rows) == 1:
            return await self._look_up_one(ctx, _fill_step(step, rows[0]), many)
        steps = [_fill_step(step, row) for row in rows]
        known = await run_concurrently(
            [self._look_up_in_graph(ctx, filled_step) for filled_step in steps]
        )
        unread = [at for at, items in enumerate(known) if not items]
        if len(unread) > _MAX_READ_LOOKUPS:
            # Some of them would not do: counts and sums need all.
            raise Uncomputable(f"{len(unread)} items are too many to read one by one")
        read = await run_concurrently([self._read_or_empty(ctx, steps[at]) for at in unread])
        found = {**dict(enumerate(known)), **dict(zip(unread, read, strict=True))}
        items = tuple(item for at in range(len(steps)) for item in found[at])
        if not items:
            raise Uncomputable(f"no passage answers: {phrase_question(steps[0])}")
        return items

    async def _read_or_empty(self, ctx: Context, step: Retrieve) -> Items:
        """Read for one of many lookups; return () when nothing is found."""
        try:
            return await self._read_passages(ctx, step, many=True)
        except Uncomputable:
            return ()

    async def _look_up_one(self, ctx: Context, step: Retrieve, many: bool) -> Items:
        known = await self._look_up_in_graph(ctx, step)
        if known:
            return known if many else known[:1]
        return await self._read_passages(ctx, step, many)

    async def _look_up_in_graph(self, ctx: Context, step: Retrieve) -> Items:
        known = () if step.asks else await look_up_relation(ctx, step)
        for item in known:
            quote = item.citation.quote if item.citation else ""
            self.book.add(Note(phrase_question(step), item.text, quote, item.citation))
        facts = list(dict.fromkeys(item.fact for item in known if item.fact is not None))
        if facts:
            self.book.add(await _retrieve_facts(ctx, phrase_question(step), facts))
        return known

    async def _read_passages(self, ctx: Context, step: Retrieve, many: bool) -> Items:
        """Read passages, with a model or by answer patterns."""
        question = phrase_question(step)
        if many and ctx.chat("plan") is not None:
            retrieval = await self.retriever(ctx, question)
            room = _LIST_REQUEST.max_tokens or 0
            part = ctx.layout.for_part()
            page = await show_evidence(ctx, retrieval.evidence, part, reply=room, role="plan")
            return await self._collect_items(ctx, question, page, step.subject)
        note = await PlanRunner(self.retriever, self.book, near=self.near).look_up(ctx, question)
        self.book.add(note)
        if not note.has_answer:
            raise Uncomputable(f"no passage answers: {question}")
        return (Item(note.answer, step.subject, note.citation),)

    async def _collect_items(
        self, ctx: Context, question: str, page: EvidencePage, subject: str
    ) -> Items:
        """List everything the passages name; items their passage does not contain are dropped.

        An empty list counts as not found: counting it would invent a zero.
        """
        reply = await ask_planner(
            ctx,
            LIST_ITEMS,
            "collect",
            _LIST_REQUEST,
            question=question,
            evidence=page,
        )
        items = []
        for listed in reply.items if reply else ():
            if not 1 <= listed.source <= len(page.items):
                continue
            item = page.items[listed.source - 1]
            if listed.text.strip() and item.sources and contains_answer(listed.text, item.text):
                note = make_note(question, listed.text.strip(), item.sources[0])
                self.book.add(note)
                items.append(Item(note.answer, subject, note.citation))
        if not items:
            listed_some = reply is not None and reply.items
            why = "no passage contains what was listed" if listed_some else "no passage answers"
            raise Uncomputable(f"{why}: {question}")
        return tuple(items)


async def _retrieve_facts(ctx: Context, question: str, facts: Sequence[int]) -> Retrieval:
    """Fetch the facts that a look-up found in the graph, with the passages that state them."""
    links = ctx.view.links("fact_chunk")
    chunks = dict.fromkeys(int(c) for f in facts for c in links.row(f)[:1])
    found = Found(
        chunks=tuple(Hit(c, 1.0, "relation") for c in chunks),
        facts=tuple(Hit(f, 1.0, "relation") for f in facts),
    )
    return Retrieval(question, found, await fetch_evidence(ctx, found, full=True))


def phrase_question(step: Retrieve) -> str:
    """Phrase a lookup as a question."""
    if step.asks:
        return step.asks
    if step.subject == "?":
        return f"What has {step.object} as its {step.relation}?"
    if step.object == "?":
        return f"What is the {step.relation} of {step.subject}?"
    return f"Is {step.object} the {step.relation} of {step.subject}?"


def _bind_first_items(needed: Sequence[int], results: dict[int, Items]) -> dict[int, str]:
    for ref in needed:
        if not results.get(ref):
            raise Uncomputable(f"step #{ref} found nothing")
    return {ref: results[ref][0].text for ref in needed}


def _bind_all_items(needed: Sequence[int], results: dict[int, Items]) -> list[dict[int, str]]:
    """Bind the references to every combination of items."""
    _bind_first_items(needed, results)
    texts = [list(dict.fromkeys(item.text for item in results[ref])) for ref in needed]
    if (many := prod(map(len, texts))) > MAX_GRAPH_LOOKUPS:
        raise Uncomputable(f"{many} items are too many to look up one by one")
    return [dict(zip(needed, row, strict=True)) for row in product(*texts)]


def _fill_step(step: Retrieve, row: dict[int, str]) -> Retrieve:
    parts = (step.subject, step.relation, step.object, step.asks)
    return Retrieve(*(fill_refs(part, row) for part in parts))


def _next_wave(steps: tuple[Operator, ...], at: int) -> list[int]:
    """Return the numbers of the steps from `at` on that can run together: independent lookups."""
    wave = [at + 1]
    if not isinstance(steps[at], Retrieve):
        return wave
    for number in range(at + 2, len(steps) + 1):
        step = steps[number - 1]
        if not isinstance(step, Retrieve) or set(step.refs) & set(wave):
            break
        wave.append(number)
    return wave


def _compute_step(step: Operator, results: dict[int, Items]) -> Items:
    match step:
        case Filter():
            value = fill_refs(step.value, _bind_first_items(find_refs(step.value), results))
            return apply_filter(replace(step, value=value), results[step.of])
        case Sort():
            return apply_sort(step, results[step.of])
        case Aggregate():
            return apply_aggregate(step, results[step.of])
        case Get():
            return apply_get(step, results[step.of])
        case Combine():
            return apply_combine(step, results[step.left], results[step.right])
        case Compare():
            return apply_compare(step, results[step.left], results[step.right])
        case Retrieve():
            return ()


# -- relations in the graph


async def look_up_relation(ctx: Context, step: Retrieve) -> Items:
    """Return the other ends of the facts that have the known end and this relation."""
    known, role = (step.object, TAIL) if step.subject == "?" else (step.subject, HEAD)
    [entities] = ctx.view.find_by_own_name([known])
    relations = ctx.view.relations
    if not len(entities) or not len(relations) or not split_words(step.relation):
        return ()
    links = ctx.view.links("entity_fact")
    at = [int(f) for e in entities for f in links.row(int(e)) if relations[int(f)] >= 0][
        :_MAX_FACTS_PER_ENTITY
    ]
    keys = ctx.view.keys("fact")
    found = await ctx.snapshot.facts([int(keys[f]) for f in at])
    facts = {f: found[int(keys[f])] for f in at if int(keys[f]) in found}
    entity_keys = ctx.view.keys("entity")
    own = await ctx.snapshot.entities([int(entity_keys[int(e)]) for e in entities])
    entity_ids = {entity.id for entity in own.values()}
    fits = {
        f: fact
        for f, fact in facts.items()
        if any(p.entity in entity_ids and p.role == role for p in fact.participants)
    }
    chosen = await _match_relation(ctx, step.relation, fits)
    return await _collect_other_ends(ctx, chosen, TAIL if role == HEAD else HEAD, known)


async def _match_relation(ctx: Context, relation: str, facts: FactsByPosition) -> FactsByPosition:
    """Keep facts whose relation shares words with the asked one, else is near it in meaning."""
    wanted = set(split_words(relation))
    same = {f: fact for f, fact in facts.items() if wanted & set(split_words(fact.relation))}
    if same or ctx.embed is None or not facts:
        return same
    labels = list(dict.fromkeys(fact.relation for fact in facts.values()))
    asked, *others = await ctx.vectors([relation, *labels])
    near = {
        label
        for label, v in zip(labels, others, strict=True)
        if float(v @ asked) >= _SAME_RELATION_COSINE
    }
    return {f: fact for f, fact in facts.items() if fact.relation in near}


async def _collect_other_ends(ctx: Context, facts: FactsByPosition, role: str, known: str) -> Items:
    """Return the participants at the other end, each with the citation of its fact."""
    members, keys = ctx.view.links("fact_entity"), ctx.view.keys("entity")
    around = sorted({int(e) for f in facts for e in members.row(f)})
    found = await ctx.snapshot.entities([int(keys[e]) for e in around])
    names = {entity.id: entity.name for entity in found.values()}
    cited = await _cite_facts(ctx, list(facts))
    items: dict[str, Item] = {}
    for at, fact in facts.items():
        for end in fact.participants:
            if end.role == role and end.entity in names:
                item = Item(names[end.entity], known, cited.get(fact.id), at)
                items.setdefault(end.entity, item)
    return tuple(items.values())


async def _cite_facts(ctx: Context, facts: list[int]) -> dict[str, Citation]:
    """Cite each fact; a graph imported without texts has no citations."""
    chunks = ctx.view.links("fact_chunk")
    hits = tuple(Hit(f, 1.0, "relation") for f in facts if len(chunks.row(f)))
    gathered = await fetch_evidence(ctx, Found(facts=hits))
    return {
        s.id: Citation(s.doc, s.chunk, s.start, s.end, s.quote)
        for s in gathered.facts
        if s.quote and s.end - s.start == len(s.quote)
    }
