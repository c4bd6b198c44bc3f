"""Scratchpad of an agent: retrievals and notes so far, from which a cut-off run still answers."""

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from operator import itemgetter
from typing import TypeVar

import numpy as np

from clew.agents.core.types import next_position
from clew.context import Context, TraceStep
from clew.errors import ConfigError, InputError, StoreError
from clew.layout import EvidenceKind
from clew.llm.budget import BudgetExceeded
from clew.machine_memory import is_lack_of_memory
from clew.retrieve.linking.order_found import order_found, put_named_first
from clew.retrieve.pack import fetch_evidence
from clew.retrieve.signals import run_recipe
from clew.retrieve.step import Step
from clew.text.unicode import split_words
from clew.types import (
    Citation,
    Evidence,
    Found,
    Hit,
    NamedEntity,
    Passage,
    Report,
    Route,
    Statement,
)

Item = TypeVar("Item", Passage, Statement, NamedEntity, Report)
_MAX_TRACE_CHARS = 160
_NEAREST_HITS = 3  # passages, paths and entities whose facts are collected
_MAX_FACTS_PER_ENTITY = 50
_MAX_FACTS = 20
_MAX_WALKED = 10  # paths that are told when a retrieval ends
_NOT_WALKED = ("around", "sentence")  # facts that only stand near what was found


@dataclass(frozen=True)
class Retrieval:
    """One retrieval: the query, the hits and the evidence, or the error."""

    question: str
    found: Found = Found()
    evidence: Evidence = Evidence()
    error: str = ""
    refused: bool = False
    """Whether the error is that the question cannot be looked up: it names nothing known."""


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
    context: tuple[str, ...] = ()
    """Lines of the evidence kept for later prompts, where the agent keeps them."""
    probability: float = 1.0
    """How likely the answer is, where it was read as a span."""
    signs: Mapping[str, float] = field(default_factory=dict)
    """What speaks for a yes or no, for its confidence."""
    hops: tuple["Note", ...] = ()
    """What was read on the way to the answer, where it was read along a chain."""

    @property
    def has_answer(self) -> bool:
        """Whether an answer was found."""
        return bool(self.answer)

    def __str__(self) -> str:
        """Format for a prompt: question and answer, then what was kept for them."""
        quoted = f" ({self.quote})" if self.quote and not self.context else ""
        lines = "".join(f"\n   - {' '.join(line.split())}" for line in self.context)
        return f"{self.question} {self.answer or 'unknown'}{quoted}{lines}"


@dataclass(eq=False)
class Notebook:
    """Everything one run of an agent has retrieved and noted, in the order of a sequential run."""

    background: list[str] = field(default_factory=list)
    """Sentences kept from the first retrieval."""
    draft: str = ""
    draft_steps: tuple[str, ...] = ()
    """The reasoning behind the draft."""
    findings: list[str] = field(default_factory=list)
    """What a verifier said of the drafts."""
    thoughts: list[str] = field(default_factory=list)
    """What the agent thought at each step of its reasoning."""
    dropped: list[str] = field(default_factory=list)
    """Sub-questions that the budget left no calls for."""
    results: dict[int, str] = field(default_factory=dict)
    """What each operator of a logic plan returned, by its number."""
    combined_answer: str = ""
    """The answer that code computed from the notes; no single passage need contain it."""
    _entries: list[tuple[tuple[int, ...], Retrieval | Note]] = field(default_factory=list)

    def add(self, entry: Retrieval | Note) -> None:
        """Add a retrieval or a note; those of concurrent sub-questions are kept in plan order."""
        insort(self._entries, (next_position(), entry), key=itemgetter(0))

    @property
    def retrievals(self) -> list[Retrieval]:
        """The retrievals, in order."""
        return [entry for _, entry in self._entries if isinstance(entry, Retrieval)]

    @property
    def notes(self) -> list[Note]:
        """The notes, in order."""
        return [entry for _, entry in self._entries if isinstance(entry, Note)]

    def evidence(self, most: int | None = None) -> Evidence:
        """Merge all evidence without duplicates: what is cited first, then interleaved."""
        citations = [note.citation for note in self.notes if note.citation]
        cited = {citation.chunk for citation in citations}
        found = [retrieval.evidence for retrieval in self.retrievals]
        chunks = _interleave([evidence.chunks for evidence in found])
        chunks.sort(key=lambda passage: passage.id not in cited)
        facts = _interleave([evidence.facts for evidence in found])
        facts.sort(key=lambda fact: not any(_states(fact, citation) for citation in citations))
        return Evidence(
            tuple(chunks[:most]),
            tuple(_interleave([evidence.entities for evidence in found])),
            tuple(facts),
            tuple(dict.fromkeys(path for evidence in found for path in evidence.paths)),
            tuple(_interleave([evidence.communities for evidence in found])),
        )

    def first_hits(self) -> Found:
        """Return the hits of the first retrieval, for answering without a model."""
        return next((retrieval.found for retrieval in self.retrievals), Found())

    def format_notes(self) -> str:
        """Format background, notes, draft and findings, numbered and without duplicates."""
        if not any(note.channel in _CHANNEL_TITLES for note in self.notes):
            lines = [*self.background, *map(str, self.notes)]
            results = [text for _, text in sorted(self.results.items())]
            parts = [
                _number(lines),
                *_list_under("Results of the plan:", results),
                *_list_under("Earlier thoughts:", self.thoughts),
            ]
            return "\n".join(filter(None, parts))
        parts = _list_under("Background:", self.background)
        for channel, title in _CHANNEL_TITLES.items():
            notes = [str(note) for note in self.notes if note.channel == channel]
            parts += [title, _number(notes)] if notes else []
        return "\n".join([*parts, *self.format_draft()])

    def format_draft(self) -> list[str]:
        """Format the draft with its reasoning, and what the verifier said, as lines."""
        answer = [f"Drafted answer: {self.draft}"] if self.draft else []
        steps = _list_under("Draft:", self.draft_steps)
        return [*steps, *answer, *_list_under("Check of the draft:", self.findings)]


_CHANNEL_TITLES = {
    "semantic": "Found in texts:",
    "relational": "Found in the graph:",
    "expansion": "Found afterwards:",
}


def _states(fact: Statement, citation: Citation) -> bool:
    """Whether a citation lies within the span that states a fact."""
    return fact.chunk == citation.chunk and fact.start <= citation.start < fact.end


def _number(lines: Sequence[str]) -> str:
    numbered = enumerate(dict.fromkeys(lines), start=1)
    return "\n".join(f"{number}. {line}" for number, line in numbered)


def _list_under(title: str, lines: Sequence[str]) -> list[str]:
    """Put a title over lines, each on one line; nothing over none."""
    listed = [f"- {' '.join(line.split())}" for line in dict.fromkeys(lines)]
    return [title, *listed] if listed else []


def _interleave(lists: Sequence[Sequence[Item]]) -> list[Item]:
    """Take the first item of each list, then the second of each, keeping each id once."""
    found: dict[str, Item] = {}
    for row in zip_longest(*lists):
        for item in row:
            if item is not None:
                found.setdefault(item.id, item)
    return list(found.values())


_MAX_PAGE_CHUNKS = 2  # passages of a page that are looked up by its name
_MAX_MENTIONS = 4  # passages that mention a name


@dataclass(frozen=True)
class RecordingRetriever:
    """Sends questions to a retriever and records each result in the notebook."""

    retrieve: Step
    book: Notebook
    top_k: int
    kinds: tuple[EvidenceKind, ...] | None = None
    """Keep only these kinds of evidence; None: all."""
    select: Step | None = None
    """Filters what was found, before its texts are fetched."""

    async def __call__(self, ctx: Context, question: str, /) -> Retrieval:
        """Retrieve; a failing retriever yields an empty retrieval, with the reason in the trace."""
        async with ctx.step("retrieve", question) as step:
            try:
                ctx.budget.check_time()
                retrieval = await self._retrieve(step.ctx.with_question(question), question)
            except (ConfigError, BudgetExceeded, StoreError):  # damage is no missing evidence
                raise
            except Exception as error:  # any retriever may be plugged in: an edge
                if is_lack_of_memory(error):
                    raise
                said = str(error) or type(error).__name__
                retrieval = Retrieval(question, error=said, refused=isinstance(error, InputError))
                step.output = f"failed: {retrieval.error}"
            else:
                titles = "; ".join(p.title or p.doc for p in retrieval.evidence.chunks)
                found = f"{len(retrieval.evidence.chunks)} passages: {titles}"
                no_text = self.kinds is not None and "passages" not in self.kinds
                found = retrieval.found.sizes() if no_text else found
                step.output = found[:_MAX_TRACE_CHARS]
                shown = retrieval.evidence.chunks or retrieval.evidence.facts
                step.docs = tuple(dict.fromkeys(one.doc for one in shown if one.doc))
                step.walked = _list_walked(retrieval.evidence)
        self.book.add(retrieval)
        return retrieval

    async def find_page(self, ctx: Context, name: str) -> tuple[Passage, ...]:
        """Return how the page about a name begins, if there is one: no retrieval is needed then."""
        owners = ctx.view.links("owners")
        known = [owners.row(int(at)) for at in ctx.view.find_by_name_or_alias(name)]
        places = sorted({int(at) for row in known for at in row})[:_MAX_PAGE_CHUNKS]
        return await self._fetch(ctx, name, [Hit(at, 1.0, by="page") for at in places])

    async def find_mentions(self, ctx: Context, name: str, question: str) -> tuple[Passage, ...]:
        """Return the passages with all words of a name that are nearest to a question."""
        places = ctx.view.bm25.chunks_with_all(list(dict.fromkeys(split_words(name))))
        if not len(places) or ctx.embed is None:
            return ()
        scores = ctx.view.cosines("chunk", await ctx.vector(question), places)
        order = np.argsort(-scores, kind="stable")[:_MAX_MENTIONS]
        hits = [Hit(int(places[at]), float(scores[at]), by="mention") for at in order]
        return await self._fetch(ctx, name, hits)

    async def _fetch(self, ctx: Context, name: str, hits: Sequence[Hit]) -> tuple[Passage, ...]:
        """Fetch and record the passages found for a name."""
        if not hits:
            return ()
        async with ctx.step("find page", name) as step:
            found = Found(chunks=tuple(hits))
            evidence = await fetch_evidence(ctx, found)
            step.output = f"{len(evidence.chunks)} passages"
            step.docs = tuple(dict.fromkeys(one.doc for one in evidence.chunks))
        self.book.add(Retrieval(name, found, evidence))
        return evidence.chunks

    async def _retrieve(self, ctx: Context, question: str) -> Retrieval:
        found = await run_recipe(self.retrieve, ctx)
        found = replace(found, chunks=drop_duplicate_hits(found.chunks))
        found = replace(found, facts=await _find_graph_facts(ctx, found))
        if self.select is not None:
            found = await self.select(ctx, found)
        found = replace(found, chunks=found.chunks[: self.top_k])
        if self.kinds is not None:
            found = _select_kinds(found, self.kinds)
        orders = {one.kind: one.order for one in ctx.layout.sections if one.order != "found"}
        shown = await order_found(ctx, put_named_first(ctx, found), orders)
        if len(shown.facts) < len(found.facts) or len(shown.paths) < len(found.paths):
            kept = f"{len(shown.facts)} of {len(found.facts)} facts, "
            kept += f"{len(shown.paths)} of {len(found.paths)} paths"
            ctx.trace.append(TraceStep("keep linked", "to what the question names", kept, 0.0))
        return Retrieval(question, found, await fetch_evidence(ctx, shown, full=True))


def _list_walked(evidence: Evidence) -> tuple[Route, ...]:
    """List the best paths, then facts that were found in the graph, each as a path of its own."""
    alone = (
        Route(fact.entities, (fact.text,), fact.score, fact.by, (fact,))
        for fact in evidence.facts
        if len(fact.entities) > 1 and fact.by not in _NOT_WALKED
    )
    return (*evidence.paths, *alone)[:_MAX_WALKED]


def _select_kinds(found: Found, kinds: Sequence[EvidenceKind]) -> Found:
    return replace(
        found,
        chunks=found.chunks if "passages" in kinds else (),
        entities=found.entities if "entities" in kinds else (),
        facts=found.facts if "facts" in kinds else (),
        paths=found.paths if "paths" in kinds else (),
        communities=found.communities if "communities" in kinds else (),
    )


async def _find_graph_facts(ctx: Context, found: Found) -> tuple[Hit, ...]:
    """Return the facts found in the graph, or else the facts around the other hits.

    Facts that only resemble the question's wording (`by` "sentence") do not count as found.
    """
    if found.facts and any(hit.by != "sentence" for hit in found.facts):
        return found.facts
    links, own = ctx.view.links("chunk_fact"), ctx.view.links("entity_fact")
    near = [int(f) for hit in found.chunks[:_NEAREST_HITS] for f in links.row(hit.at)]
    near += [f for path in found.paths[:_NEAREST_HITS] for f in path.facts]
    near += [
        int(f)
        for hit in found.entities[:_NEAREST_HITS]
        for f in own.row(hit.at)[:_MAX_FACTS_PER_ENTITY]
    ]
    at = np.array(list(dict.fromkeys(near))[: 4 * _MAX_FACTS_PER_ENTITY], np.int64)
    if not len(at) or ctx.embed is None:
        return tuple(Hit(int(f), 0.0, "around") for f in at[:_MAX_FACTS])
    scores = ctx.view.cosines("fact", await ctx.vector(), at)
    order = np.argsort(-scores, kind="stable")[:_MAX_FACTS]
    return tuple(Hit(int(at[i]), float(scores[i]), "around") for i in order)


def drop_duplicate_hits(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Keep the first hit of each element."""
    first: dict[int, Hit] = {}
    for hit in hits:
        first.setdefault(hit.at, hit)
    return tuple(first.values())
