"""Run a plan: independent sub-questions concurrently, dependent ones in order."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from clew.agents.agent import together
from clew.agents.notebook import Looked, Looker, Note, Notebook
from clew.agents.planning.chinese import is_chinese
from clew.agents.planning.naming import named
from clew.agents.planning.own_part import tells_of
from clew.agents.planning.patterns import Spotted, spotted
from clew.agents.planning.plan import Plan, grounded, needs, open_places, without_places
from clew.agents.planning.relations import speaks_of_it
from clew.agents.writing.extractive import extractive_answer
from clew.agents.writing.reading import Page, page_of, page_of_facts, read
from clew.agents.writing.support import Place, citation
from clew.context import Context
from clew.names import name_key, plain_title
from clew.sentences import sentence_spans
from clew.types import Passage

_RAW = 600  # characters of unrefined context in a note

Show = Callable[[Looked], Page]


def chunks_only(looked: Looked) -> Page:
    """Build the page of the semantic channel: the retrieved passages."""
    return page_of(looked.evidence.chunks)


def facts_only(looked: Looked) -> Page:
    """Build the page of the relational channel: the retrieved facts."""
    return page_of_facts(looked.evidence.facts)


@dataclass(frozen=True)
class Follower:
    """Retrieves and reads for each question of a plan as soon as the answers it needs are known."""

    look: Looker
    book: Notebook
    show: Show = chunks_only
    channel: str = ""
    ground: bool = True
    """Off: placeholders are removed, not filled, and no question waits (ablation without QG)."""
    phrases: bool = False
    """Take an answer matched by a pattern before asking the model."""
    refine: bool = True
    """Off: a note carries the beginning of the whole page instead of the supporting sentence."""

    async def __call__(self, ctx: Context, plan: Plan, /) -> dict[int, Note]:
        """Return the note of each question, by its number from 1."""
        done = {number: asyncio.Event() for number in range(1, len(plan.questions) + 1)}
        notes: dict[int, Note] = {}

        async def one(number: int, question: str) -> None:
            try:
                needed = [n for n in needs(question) if n in done and n < number]
                if self.ground:
                    for n in needed:
                        await done[n].wait()
                answers = {n: notes[n].name or notes[n].answer for n in needed if n in notes}
                notes[number] = await self._one(ctx, question, answers)
            finally:
                done[number].set()

        await together([one(n, text) for n, text in enumerate(plan.questions, start=1)])
        return notes

    async def _one(self, ctx: Context, question: str, answers: dict[int, str]) -> Note:
        query = grounded(question, answers) if self.ground else question
        if open_places(query):
            # An answer it needs was not found: the whole question may still find the passage.
            query = ctx.question if self.ground else without_places(query)
            known = [n for n in self.book.notes if (n.question, n.channel) == (query, self.channel)]
            if known:
                return known[0]
        async with ctx.step(f"{self.channel or 'sub'}-question", query) as step:
            note = await self.note(step.ctx, query)
            step.left = note.answer or "unknown"
        self.book.notes.append(note)
        return note

    async def note(self, ctx: Context, question: str) -> Note:
        """Retrieve for one question and read its answer."""
        retrieval = await self.look(ctx, question)
        if ctx.chat("answer") is None:
            note = await quoted_note(ctx, question, retrieval, self.channel)
            return replace(note, name=full_name(note, retrieval.evidence.chunks))
        page = self.show(retrieval)
        names = named(ctx.view, question)
        match = _seen(question, names, retrieval)
        if match is not None and match.sure and self.phrases:
            note = noted_at(question, match)
        else:
            near_first = self.show is chunks_only  # facts are short: all of them fit
            note = await read(ctx, names, question, page, near_first=near_first)
            if not note.known and match is not None:
                note = noted_at(question, match)
        name = full_name(note, retrieval.evidence.chunks)
        note = replace(note, name=name, channel=self.channel)
        return note if self.refine else replace(note, quote=str(page)[:_RAW])


def _seen(question: str, names: Sequence[str], retrieval: Looked) -> Spotted | None:
    """Match answer patterns in the passages, where the question names exactly one thing."""
    if len(names) != 1 and not is_chinese(question):
        return None
    return spotted(question, "".join(names[:1]), retrieval.evidence.chunks)


def full_name(note: Note, passages: Sequence[Passage]) -> str:
    """Return the page title that the answer shortens ("Otto" for "Otto of Solms"), if near."""
    short = name_key(note.answer).split()
    if not short or note.citation is None:
        return ""
    cited_text = next((p.text for p in passages if p.id == note.citation.chunk), "")
    for text in (note.quote, cited_text):
        for passage in passages:
            title = plain_title(passage.title)
            long = name_key(title).split()
            longer = len(long) > len(short) and " ".join(short) in " ".join(long)
            if longer and f" {' '.join(long)} " in f" {name_key(text)} ":
                return title
    return ""


async def quoted_note(ctx: Context, question: str, looked: Looked, channel: str = "") -> Note:
    """Answer without a model: by a pattern match, else with the best-supported candidate.

    The candidate's sentence must mention every name of the question, or stand in the section about
    it, and must contain a word for the asked relation.
    """
    names = named(ctx.view, question)
    match = _seen(question, names, looked)
    if match is not None:
        return replace(noted_at(question, match), channel=channel)
    if is_chinese(question):  # its terms have no entity type: any candidate would be a guess
        return Note(question, channel=channel)
    asked_ctx = ctx.asking(question)
    answer = await extractive_answer(asked_ctx, looked.evidence, looked.found, "open")
    passages = {p.id: p for p in looked.evidence.chunks}
    for cited in answer.citations:
        fits = answer.candidate and _fits(question, answer.candidate, cited.quote)
        passage = passages.get(cited.chunk)
        if fits and passage is not None and all(tells_of(name, cited, passage) for name in names):
            return Note(question, answer.candidate, cited.quote, cited, channel)
    return Note(question, channel=channel)


def _fits(question: str, candidate: str, quote: str) -> bool:
    """Whether the quote gives the candidate, as a place where the question asks for a place."""
    at = quote.casefold().find(candidate.casefold())
    if not speaks_of_it(question, quote):
        return False
    if at >= 0 and re.search(r"\bnationality\b|\bcountry\b", question, re.IGNORECASE):
        return False  # a name that is merely near is hardly ever the country
    if at < 0 or not re.search(r"^where\b|^in which\b|\bplace of\b", question, re.IGNORECASE):
        return at >= 0
    return re.search(r"\b(?:in|at|to|from|near|of|,)\s+(?:the\s+)?$", quote[:at]) is not None


def noted_at(question: str, seen: Spotted) -> Note:
    """Make a note that cites the sentence around a pattern match."""
    text = seen.passage.text
    span = next(
        ((s, e) for s, e in sentence_spans(text) if s <= seen.start < e), (seen.start, seen.end)
    )
    cited = citation(seen.passage, Place(span[0], max(span[1], seen.end), 1.0))
    return Note(question, seen.text, cited.quote, cited)


async def each(work: Callable[[str], Awaitable[Note]], questions: Sequence[str]) -> list[Note]:
    """Look up several independent questions concurrently."""

    async def one(question: str) -> Note:
        return await work(question)

    return await together([one(question) for question in questions])
