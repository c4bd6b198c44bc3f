"""Run a logic plan over the knowledge base: operators by code, lookups by graph or by reading."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from pydantic import BaseModel, Field

from clew.agents.agent import together
from clew.agents.follow import Follower, chunks_only
from clew.agents.logic.computing import (
    Item,
    Items,
    Uncomputable,
    combined,
    compared,
    folded,
    kept,
    ordered,
    taken,
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
    filled,
    refs,
    wants_many,
)
from clew.agents.logic.graph_lookup import related
from clew.agents.notebook import Looker, Note, Notebook
from clew.agents.planning.ask_plan import ask_plainly
from clew.agents.writing.reading import Page, noted
from clew.agents.writing.support import said_in
from clew.context import Context
from clew.llm.chat import Request
from clew.llm.prompt import Prompt

_EACH = 200  # items of earlier steps looked up one by one in the graph, which costs nothing
_READ = 12  # of these that need reading, at one or more calls each


class Listed(BaseModel):
    """One collected thing."""

    text: str
    source: int = 0


class Collected(BaseModel):
    """Everything a question asks for."""

    items: list[Listed] = Field(default_factory=list)


LIST = Prompt("list", Collected, {"question", "evidence"}, documents={"evidence"})


@dataclass(frozen=True)
class Ran:
    """The items of every step that ran, and why the first failing step failed."""

    results: dict[int, Items]
    stuck: str = ""

    @property
    def items(self) -> Items:
        """The result of the last step."""
        return () if self.stuck or not self.results else self.results[max(self.results)]


@dataclass(frozen=True)
class LogicRunner:
    """Runs logic plans; the findings of each step go into the notebook."""

    look: Looker
    book: Notebook

    async def __call__(self, ctx: Context, plan: LogicPlan, /) -> Ran:
        """Run step by step; adjacent independent lookups run concurrently."""
        results: dict[int, Items] = {}
        at = 0
        while at < len(plan.steps):
            wave = _wave(plan.steps, at)
            try:
                found = await together([self._step(ctx, plan, n, results) for n in wave])
            except Uncomputable as error:
                return Ran(results, str(error))
            results |= dict(zip(wave, found, strict=True))
            at = wave[-1]
        return Ran(results)

    async def _step(
        self, ctx: Context, plan: LogicPlan, number: int, results: dict[int, Items]
    ) -> Items:
        step = plan.steps[number - 1]
        async with ctx.step(f"#{number} {type(step).__name__.lower()}", str(step)) as opened:
            if isinstance(step, Retrieve):
                items = await self._retrieve(opened.ctx, step, results, wants_many(plan, number))
            else:
                items = _computed(step, results)
            opened.left = "; ".join(item.text for item in items) or "nothing"
            return items

    async def _retrieve(
        self, ctx: Context, step: Retrieve, results: dict[int, Items], many: bool
    ) -> Items:
        """Look up for each item that a reference stands for."""
        needed = list(dict.fromkeys(step.refs))
        rows = _rows(needed, results) if many else [_first(needed, results)]
        if len(rows) == 1:
            return await self._one(ctx, _filled(step, rows[0]), many)
        steps = [_filled(step, row) for row in rows]
        known = await together([self._known(ctx, filled_step) for filled_step in steps])
        unread = [at for at, items in enumerate(known) if not items]
        if len(unread) > _READ:
            # Some of them would not do: counts and sums need all.
            raise Uncomputable(f"{len(unread)} things are too many to read up on one by one")
        read = await together([self._if_any(ctx, steps[at]) for at in unread])
        found = {**dict(enumerate(known)), **dict(zip(unread, read, strict=True))}
        items = tuple(item for at in range(len(steps)) for item in found[at])
        if not items:
            raise Uncomputable(f"nothing says: {asked(steps[0])}")
        return items

    async def _if_any(self, ctx: Context, step: Retrieve) -> Items:
        """Read for one of many lookups; return () when nothing is found."""
        try:
            return await self._read(ctx, step, many=True)
        except Uncomputable:
            return ()

    async def _one(self, ctx: Context, step: Retrieve, many: bool) -> Items:
        known = await self._known(ctx, step)
        if known:
            return known if many else known[:1]
        return await self._read(ctx, step, many)

    async def _known(self, ctx: Context, step: Retrieve) -> Items:
        """Look up in the graph itself."""
        known = () if step.asks else await related(ctx, step)
        for item in known:
            quote = item.citation.quote if item.citation else ""
            self.book.notes.append(Note(asked(step), item.text, quote, item.citation))
        return known

    async def _read(self, ctx: Context, step: Retrieve, many: bool) -> Items:
        """Read passages, with a model or by answer patterns."""
        question = asked(step)
        if many and ctx.chat("plan") is not None:
            page = chunks_only(await self.look(ctx, question))
            return await self._collect(ctx, question, page, step.subject)
        note = await Follower(self.look, self.book).note(ctx, question)
        self.book.notes.append(note)
        if not note.known:
            raise Uncomputable(f"nothing says: {question}")
        return (Item(note.answer, step.subject, note.citation),)

    async def _collect(self, ctx: Context, question: str, page: Page, subject: str) -> Items:
        """List everything the passages name; items their passage does not contain are dropped.

        An empty list counts as not found: counting it would invent a zero.
        """
        reply = await ask_plainly(
            ctx, LIST, "collect", Request(max_tokens=250), question=question, evidence=str(page)
        )
        items = []
        for listed in reply.items if reply else ():
            if not 1 <= listed.source <= len(page.passages):
                continue
            passage = page.passages[listed.source - 1]
            if listed.text.strip() and said_in(listed.text, f"{page.lines[listed.source - 1]}"):
                note = noted(question, listed.text.strip(), passage)
                self.book.notes.append(note)
                items.append(Item(note.answer, subject, note.citation))
        if not items:
            why = (
                "what was listed stands in no passage" if reply and reply.items else "nothing says"
            )
            raise Uncomputable(f"{why}: {question}")
        return tuple(items)


def asked(step: Retrieve) -> str:
    """Phrase a lookup as a question."""
    if step.asks:
        return step.asks
    if step.subject == "?":
        return f"What has {step.object} as its {step.relation}?"
    if step.object == "?":
        return f"What is the {step.relation} of {step.subject}?"
    return f"Is {step.object} the {step.relation} of {step.subject}?"


def _first(needed: Sequence[int], results: dict[int, Items]) -> dict[int, str]:
    """Bind each reference to the first item of its step."""
    for ref in needed:
        if not results.get(ref):
            raise Uncomputable(f"what #{ref} stands for was not found")
    return {ref: results[ref][0].text for ref in needed}


def _rows(needed: Sequence[int], results: dict[int, Items]) -> list[dict[int, str]]:
    """Bind the references to every combination of items."""
    _first(needed, results)
    texts = [list(dict.fromkeys(item.text for item in results[ref])) for ref in needed]
    if (many := prod(map(len, texts))) > _EACH:
        raise Uncomputable(f"{many} things are too many to look up one by one")
    return [dict(zip(needed, row, strict=True)) for row in product(*texts)]


def _filled(step: Retrieve, row: dict[int, str]) -> Retrieve:
    parts = (step.subject, step.relation, step.object, step.asks)
    return Retrieve(*(filled(part, row) for part in parts))


def _wave(steps: tuple[Operator, ...], at: int) -> list[int]:
    """Return the numbers of the steps from `at` on that can run together: independent lookups."""
    wave = [at + 1]
    if not isinstance(steps[at], Retrieve):
        return wave
    for number in range(at + 2, len(steps) + 1):
        step = steps[number - 1]
        if not isinstance(step, Retrieve):
            break
        if set(step.refs) & set(wave):
            break
        wave.append(number)
    return wave


def _computed(step: Operator, results: dict[int, Items]) -> Items:
    match step:
        case Filter():
            value = filled(step.value, _first(refs(step.value), results))
            return kept(replace(step, value=value), results[step.of])
        case Sort():
            return ordered(step, results[step.of])
        case Aggregate():
            return folded(step, results[step.of])
        case Get():
            return taken(step, results[step.of])
        case Combine():
            return combined(step, results[step.left], results[step.right])
        case Compare():
            return compared(step, results[step.left], results[step.right])
        case Retrieve():
            return ()
