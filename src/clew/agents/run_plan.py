"""Run a plan: independent sub-questions concurrently, dependent ones in order."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from clew.agents.answering.extractive import extract_answer
from clew.agents.answering.read import READ_REPLY_TOKENS, read_answer
from clew.agents.citing.support import SupportSpan, make_citation
from clew.agents.core.evidence_page import show_evidence
from clew.agents.core.plan import (
    Plan,
    fill_placeholders,
    find_placeholders,
    has_placeholders,
    strip_placeholders,
)
from clew.agents.core.scratchpad import Note, Notebook, RecordingRetriever, Retrieval
from clew.agents.core.types import run_concurrently
from clew.agents.rules.english_answers import PatternMatch, find_answer, mentions_relation
from clew.agents.rules.question_analysis import find_names
from clew.agents.rules.sections_about import is_about
from clew.context import Context
from clew.layout import Layout
from clew.llm.fit_prompt import shorten_text
from clew.text.language import is_chinese
from clew.text.names import name_key, strip_disambiguation
from clew.text.options import split_options
from clew.text.sentences import sentence_spans
from clew.types import Passage

_RAW_TOKENS = 400  # of an unrefined page that a note carries


@dataclass(frozen=True)
class PlanRunner:
    """Retrieves and reads for each question of a plan as soon as the answers it needs are known."""

    retriever: RecordingRetriever
    book: Notebook
    layout: Layout | None = None
    """What the model reads for each question; None: what the recipe shows."""
    channel: str = ""
    ground: bool = True
    """Off: placeholders are removed, not filled, and no question waits (ablation without QG)."""
    use_patterns: bool = False
    """Take an answer matched by a pattern before asking the model."""
    retrievers: tuple[RecordingRetriever, ...] = ()
    """One for each question of the plan, where they differ."""
    context: Literal["quote", "refined", "raw"] = "quote"
    """What a note carries: the supporting sentence, the lines kept, or the page as it is."""

    async def __call__(self, ctx: Context, plan: Plan, /) -> dict[int, Note]:
        """Return the note of each question, by its number from 1."""
        done = {number: asyncio.Event() for number in range(1, len(plan.questions) + 1)}
        notes: dict[int, Note] = {}
        fallback = asyncio.Lock()  # the whole question is looked up once, by whoever needs it first

        async def run(number: int, question: str) -> None:
            try:
                needed = [n for n in find_placeholders(question) if n in done and n < number]
                if self.ground:
                    for n in needed:
                        await done[n].wait()
                answers = {n: notes[n].name or notes[n].answer for n in needed if n in notes}
                own = self.retrievers[number - 1] if self.retrievers else self.retriever
                runner = replace(self, retriever=own, retrievers=())
                notes[number] = await runner._answer_question(ctx, question, answers, fallback)
            finally:
                done[number].set()

        await run_concurrently([run(n, text) for n, text in enumerate(plan.questions, start=1)])
        return notes

    async def _answer_question(
        self, ctx: Context, question: str, answers: dict[int, str], fallback: asyncio.Lock
    ) -> Note:
        query = fill_placeholders(question, answers) if self.ground else question
        if not has_placeholders(query):
            return await self._note_question(ctx, query)
        # An answer it needs was not found: the whole question may still find the passage.
        query = ctx.question if self.ground else strip_placeholders(query)
        async with fallback:
            known = [n for n in self.book.notes if (n.question, n.channel) == (query, self.channel)]
            return known[0] if known else await self._note_question(ctx, query)

    async def _note_question(self, ctx: Context, query: str) -> Note:
        async with ctx.step(f"{self.channel or 'sub'}-question", query) as step:
            note = await self.look_up(step.ctx, query)
            step.output = note.answer or "unknown"
        self.book.add(note)
        return note

    async def look_up(self, ctx: Context, question: str) -> Note:
        """Retrieve for one question and read its answer."""
        retrieval = await self.retriever(ctx, question)
        if ctx.chat("answer") is None:
            note = await _extract_note(ctx, question, retrieval, self.channel)
            return replace(note, name=_find_full_name(note, retrieval.evidence.chunks))
        part = (self.layout or ctx.layout).for_part()
        page = await show_evidence(ctx, retrieval.evidence, part, reply=READ_REPLY_TOKENS)
        # An option need not be in the passage that has the answer.
        names = find_names(ctx.view, split_options(question)[0])
        match = _match_patterns(question, names, retrieval)
        if match is not None and match.certain and self.use_patterns:
            note = _note_from_match(question, match)
        else:
            near_first = not page.has_graph  # facts are short: all of them fit
            refine = self.context == "refined"
            note = await read_answer(
                ctx, names, question, page, near_first=near_first, refine=refine
            )
            if not note.has_answer and match is not None:
                note = _note_from_match(question, match)
        name = _find_full_name(note, retrieval.evidence.chunks)
        note = replace(note, name=name, channel=self.channel)
        if self.context == "quote":
            return note
        if self.context == "raw":
            return replace(note, context=tuple(shorten_text(str(page), _RAW_TOKENS).splitlines()))
        return replace(note, context=note.context or ((note.quote,) if note.quote else ()))


def _match_patterns(
    question: str, names: Sequence[str], retrieval: Retrieval
) -> PatternMatch | None:
    """Match answer patterns in the passages, where the question names exactly one thing."""
    if len(names) != 1 and not is_chinese(question):
        return None
    return find_answer(question, "".join(names[:1]), retrieval.evidence.chunks)


def _find_full_name(note: Note, passages: Sequence[Passage]) -> str:
    """Return the page title that the answer shortens ("Otto" for "Otto of Solms"), if near."""
    short = name_key(note.answer).split()
    if not short or note.citation is None:
        return ""
    cited_text = next((p.text for p in passages if p.id == note.citation.chunk), "")
    for text in (note.quote, cited_text):
        for passage in passages:
            title = strip_disambiguation(passage.title)
            long = name_key(title).split()
            longer = len(long) > len(short) and " ".join(short) in " ".join(long)
            if longer and f" {' '.join(long)} " in f" {name_key(text)} ":
                return title
    return ""


async def _extract_note(
    ctx: Context, question: str, retrieval: Retrieval, channel: str = ""
) -> Note:
    """Answer without a model: by a pattern match, else with the best-supported candidate.

    The candidate's sentence must mention every name of the question, or stand in the section about
    it, and must contain a word for the asked relation.
    """
    names = find_names(ctx.view, question)
    match = _match_patterns(question, names, retrieval)
    if match is not None:
        return replace(_note_from_match(question, match), channel=channel)
    if is_chinese(question):  # its terms have no entity type: any candidate would be a guess
        return Note(question, channel=channel)
    asked_ctx = ctx.with_question(question)
    answer = await extract_answer(asked_ctx, retrieval.evidence, retrieval.found, "open")
    passages = {p.id: p for p in retrieval.evidence.chunks}
    for cited in answer.citations:
        fits = answer.candidate and _quote_gives_candidate(question, answer.candidate, cited.quote)
        passage = passages.get(cited.chunk)
        if fits and passage is not None and all(is_about(name, cited, passage) for name in names):
            return Note(question, answer.candidate, cited.quote, cited, channel)
    return Note(question, channel=channel)


def _quote_gives_candidate(question: str, candidate: str, quote: str) -> bool:
    """Whether the quote gives the candidate, as a place where the question asks for a place."""
    at = quote.casefold().find(candidate.casefold())
    if not mentions_relation(question, quote):
        return False
    if at >= 0 and re.search(r"\bnationality\b|\bcountry\b", question, re.IGNORECASE):
        return False  # a name that is merely near is hardly ever the country
    if at < 0 or not re.search(r"^where\b|^in which\b|\bplace of\b", question, re.IGNORECASE):
        return at >= 0
    return re.search(r"\b(?:in|at|to|from|near|of|,)\s+(?:the\s+)?$", quote[:at]) is not None


def _note_from_match(question: str, match: PatternMatch) -> Note:
    """Make a note that cites the sentence around a pattern match."""
    text = match.passage.text
    span = next(
        ((s, e) for s, e in sentence_spans(text) if s <= match.start < e), (match.start, match.end)
    )
    cited = make_citation(match.passage, SupportSpan(span[0], max(span[1], match.end), 1.0))
    return Note(question, match.text, cited.quote, cited)
