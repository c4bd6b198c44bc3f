"""Scratchpad of an agent: retrievals and notes so far, from which a cut-off run still answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TypeVar

import numpy as np

from clew.context import Context
from clew.errors import ConfigError
from clew.llm.budget import BudgetEnded
from clew.retrieve.pack import evidence
from clew.retrieve.step import Step
from clew.types import Citation, Evidence, Found, Hit, NamedEntity, Passage, Route, Statement

Item = TypeVar("Item", Passage, Statement, NamedEntity, Route)
_SHOWN = 160
_CLOSE = 3  # passages, paths and entities whose facts are collected
_MANY = 50
_KEPT = 20


@dataclass(frozen=True)
class Looked:
    """One retrieval: the query, the hits and the evidence, or the error."""

    question: str
    found: Found = Found()
    evidence: Evidence = Evidence()
    failed: str = ""


@dataclass(frozen=True)
class Note:
    """An intermediate answer with the quote that supports it."""

    question: str
    answer: str = ""
    quote: str = ""
    citation: Citation | None = None
    channel: str = ""
    name: str = ""
    """The full name that the answer shortens, where a page gives it; used in later questions."""

    @property
    def known(self) -> bool:
        """Whether an answer was found."""
        return bool(self.answer)

    def __str__(self) -> str:
        """Format for a prompt."""
        quoted = f" ({self.quote})" if self.quote else ""
        return f"{self.question} {self.answer or 'unknown'}{quoted}"


@dataclass(eq=False)
class Notebook:
    """Everything one run of an agent has retrieved and noted; append-only."""

    looked: list[Looked] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    background: list[str] = field(default_factory=list)
    """Sentences kept from the first retrieval."""
    draft: str = ""
    joined: str = ""
    """The answer that code computed from the notes; no single passage need contain it."""

    def evidence(self, most: int | None = None) -> Evidence:
        """Merge all evidence without duplicates: cited passages first, then interleaved."""
        cited = {note.citation.chunk for note in self.notes if note.citation}
        chunks = _woven([retrieval.evidence.chunks for retrieval in self.looked])
        chunks.sort(key=lambda passage: passage.id not in cited)
        return Evidence(
            tuple(chunks[:most]),
            tuple(_woven([retrieval.evidence.entities for retrieval in self.looked])),
            tuple(_woven([retrieval.evidence.facts for retrieval in self.looked])),
            tuple(_routes([retrieval.evidence.paths for retrieval in self.looked])),
            self.looked[0].evidence.communities if self.looked else (),
        )

    def found(self) -> Found:
        """Return the hits of the first retrieval, for answering without a model."""
        return self.looked[0].found if self.looked else Found()

    def told(self) -> str:
        """Format background and notes for a prompt, numbered and without duplicates."""
        lines = dict.fromkeys([*self.background, *map(str, self.notes)])
        return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))


def _woven(lists: Sequence[Sequence[Item]]) -> list[Item]:
    """Take the first item of each list, then the second of each, keeping each id once."""
    found: dict[str, Item] = {}
    for row in zip_longest(*lists):
        for item in row:
            if item is not None:
                found.setdefault(str(item.id), item)  # type: ignore[union-attr]
    return list(found.values())


def _routes(lists: Sequence[Sequence[Route]]) -> list[Route]:
    return list(dict.fromkeys(route for row in lists for route in row))


@dataclass(frozen=True)
class Looker:
    """Sends questions to a retriever and records each result in the notebook."""

    retrieve: Step
    book: Notebook
    top_k: int

    async def __call__(self, ctx: Context, question: str, /) -> Looked:
        """Retrieve; a failing retriever yields an empty retrieval, with the reason in the trace."""
        async with ctx.step("retrieve", question) as step:
            try:
                ctx.budget.in_time()
                retrieval = await self._look(step.ctx.asking(question), question)
            except (ConfigError, BudgetEnded):
                raise
            except Exception as error:  # noqa: BLE001  (any retriever may be plugged in: an edge)
                retrieval = Looked(question, failed=str(error) or type(error).__name__)
                step.left = f"failed: {retrieval.failed}"
            else:
                titles = "; ".join(p.title or p.doc for p in retrieval.evidence.chunks)
                step.left = f"{len(retrieval.evidence.chunks)} passages: {titles}"[:_SHOWN]
        self.book.looked.append(retrieval)
        return retrieval

    async def _look(self, ctx: Context, question: str) -> Looked:
        found = await self.retrieve(ctx, Found())
        found = replace(found, chunks=once(found.chunks)[: self.top_k])
        found = replace(found, facts=await graph_facts(ctx, found))
        return Looked(question, found, await evidence(ctx, found))


async def graph_facts(ctx: Context, found: Found) -> tuple[Hit, ...]:
    """Return the facts found in the graph, or else the facts around the other hits.

    Facts that only resemble the question's wording (`by` "sentence") do not count as found.
    """
    if found.facts and any(hit.by != "sentence" for hit in found.facts):
        return found.facts
    links, own = ctx.view.links("chunk_fact"), ctx.view.links("entity_fact")
    near = [int(f) for hit in found.chunks[:_CLOSE] for f in links.row(hit.at)]
    near += [f for path in found.paths[:_CLOSE] for f in path.facts]
    near += [int(f) for hit in found.entities[:_CLOSE] for f in own.row(hit.at)[:_MANY]]
    at = np.array(list(dict.fromkeys(near))[: 4 * _MANY], np.int64)
    if not len(at) or ctx.embed is None:
        return tuple(Hit(int(f), 0.0, "around") for f in at[:_KEPT])
    scores = ctx.view.similar("fact", await ctx.vector(), at)
    order = np.argsort(-scores, kind="stable")[:_KEPT]
    return tuple(Hit(int(at[i]), float(scores[i]), "around") for i in order)


def once(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Keep the first hit of each element."""
    first: dict[int, Hit] = {}
    for hit in hits:
        first.setdefault(hit.at, hit)
    return tuple(first.values())
