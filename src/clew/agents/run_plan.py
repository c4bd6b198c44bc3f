"""Run a plan: independent sub-questions concurrently, dependent ones in order."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from clew.agents.answering.cells import find_asked_cell
from clew.agents.answering.extractive import note_span
from clew.agents.answering.read import READ_REPLY_TOKENS, read_answer
from clew.agents.citing.support import has_title, mentions_name
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
from clew.agents.planning.check_values import is_of_rival
from clew.agents.reading.answer import QuestionReader, RankedCandidate, load_rank
from clew.agents.reading.choose import Candidate
from clew.agents.reading.follow import Follower
from clew.agents.reading.measured import find_measured
from clew.agents.reading.values import states_value
from clew.agents.rules.chinese import find_chinese_answer
from clew.agents.rules.operators import settle_event
from clew.agents.rules.question_analysis import find_names
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.llm.budget import BudgetExceeded
from clew.llm.fit_prompt import shorten_text
from clew.text.language import is_chinese
from clew.text.names import name_key, strip_disambiguation
from clew.text.options import split_options
from clew.text.sentences import sentence_spans
from clew.text.word_forms import is_read_language
from clew.types import Passage

_RAW_TOKENS = 400  # of an unrefined page that a note carries
_SURE_SPAN = 0.8  # probability from which a span needs no model
# "When was the engineer of N born?": whatever N is, it was not born.
_LIFE_OF_OTHER = re.compile(r"when (?:was|did) the [\w ]+ of .* (?:born|die)\?", re.IGNORECASE)
_MIN_SPAN = 0.05  # probability below which a span is no answer


@dataclass(frozen=True)
class PlanRunner:
    """Retrieves and reads for each question of a plan as soon as the answers it needs are known."""

    retriever: RecordingRetriever
    book: Notebook
    channel: str = ""
    ground: bool = True
    """Off: placeholders are removed, not filled, and no question waits (ablation without QG)."""
    use_spans: bool = False
    """Take a sure span of the reader before asking the model."""
    retrievers: tuple[RecordingRetriever, ...] = ()
    """One for each question of the plan, where they differ."""
    context: Literal["quote", "refined", "raw"] = "quote"
    """What a note carries: the supporting sentence, the lines kept, or the page as it is."""
    near: bool = False
    """Read what is about the names asked for first also where facts are beside it."""
    rivals: tuple[str, tuple[str, ...]] = ("", ())
    """The thing whose value is read, and those it is compared with."""
    dropped: list[str] | None = None
    """Collects the questions that the budget left no calls for; None: its end ends the plan."""

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
                rivals = _find_rivals(plan, number)
                runner = replace(self, retriever=own, retrievers=(), rivals=rivals)
                notes[number] = await runner._answer_question(ctx, question, answers, fallback)
            except BudgetExceeded:
                if self.dropped is None:
                    raise
                self.dropped.append(question)
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
        for hop in note.hops:
            self.book.add(hop)
        self.book.add(note)
        return note

    async def look_up(self, ctx: Context, question: str) -> Note:
        """Retrieve for one question and read its answer."""
        retrieval = await self.retriever(ctx, question)
        question = settle_event(question, _find_sentences_about(ctx, question, retrieval))
        if ctx.chat("answer") is None:
            note = await self._read_spans(ctx, question, retrieval.evidence.chunks)
            name = _find_full_name(note, retrieval.evidence.chunks)
            return replace(note, name=name, channel=self.channel)
        part = ctx.layout.for_part()
        page = await show_evidence(ctx, retrieval.evidence, part, reply=READ_REPLY_TOKENS)
        # An option need not be in the passage that has the answer.
        names = find_names(ctx.view, split_options(question)[0])
        note = Note(question)
        if self.use_spans:
            note = await self._read_spans(ctx, question, retrieval.evidence.chunks)
            note = replace(note, hops=())  # a model is shown the answer with its own quote
        if not note.has_answer or note.probability < _SURE_SPAN:
            # Facts are short: all of them fit.
            near_first = not page.has_graph or (self.near and page.has_passages)
            refine = self.context == "refined"
            read = await read_answer(
                ctx, names, question, page, near_first=near_first, refine=refine
            )
            if not read.has_answer and not note.has_answer:
                # Of facts alone the spans that state them are read.
                told = retrieval.evidence.chunks or page.passages
                note = await self._read_spans(ctx, question, told)
            note = read if read.has_answer else note
        name = _find_full_name(note, retrieval.evidence.chunks)
        note = replace(note, name=name, channel=self.channel)
        if self.context == "quote":
            return note
        if self.context == "raw":
            return replace(note, context=tuple(shorten_text(str(page), _RAW_TOKENS).splitlines()))
        return replace(note, context=note.context or ((note.quote,) if note.quote else ()))

    async def _read_spans(self, ctx: Context, question: str, passages: Sequence[Passage]) -> Note:
        """Read the answer without a model, following one bridge where the question has one."""
        if is_chinese(question):
            place = find_chinese_answer(question, passages)
            return note_span(question, *place) if place else Note(question)
        if not is_read_language(ctx.question):
            place = find_measured(question, find_names(ctx.view, question), passages)
            return note_span(question, *place) if place else Note(question)
        if self.rivals[1]:
            cell = await find_asked_cell(ctx.with_question(question), passages)
            if cell is not None and cell.short:
                return Note(question, cell.short, cell.citation.quote, cell.citation)
        # The page about "the director of N" need not mention N; that about N does.
        table = table_for(question)
        of_itself = not (table.roles.search(question) or _LIFE_OF_OTHER.match(question))
        follow = Follower(hops=1, beam=1)

        def keeps(one: Candidate) -> bool:
            grounded = not of_itself or _is_grounded(ctx, one)
            if _is_of_rival(self.rivals, one):
                return False
            return grounded and _is_stated(ctx, one, question, of_itself)

        rank = await load_rank(ctx)
        reader = QuestionReader(self.retriever, rank, follow, of_itself, keeps)
        return _note_best(question, await reader.read(ctx.with_question(question), passages))


def _find_rivals(plan: Plan, number: int) -> tuple[str, tuple[str, ...]]:
    """Return the thing that a question asks a value of, and the others of its plan."""
    join = plan.join
    if join is None or join.how in ("same", "both"):
        return "", ()
    for option, numbers in zip(join.options, join.question_numbers, strict=False):
        if number in numbers:
            return option, tuple(one for one in join.options if one != option)
    return "", ()


def _is_of_rival(rivals: tuple[str, tuple[str, ...]], candidate: Candidate) -> bool:
    """Whether a value was read where it is said of another of the things compared."""
    own, others = rivals
    last = candidate.readings[-1]
    start, end = last.sentence()
    sentence = last.passage.text[start:end]
    return bool(others) and is_of_rival(own, others, sentence, last.start - start)


def _find_sentences_about(ctx: Context, question: str, retrieval: Retrieval) -> list[str]:
    """Return the sentences of pages about a question's names, then those that mention one."""
    names, passages = find_names(ctx.view, question), retrieval.evidence.chunks
    own = [p for p in passages if any(has_title(p, name) for name in names)]
    return [
        p.text[start:end]
        for p in (*own, *(p for p in passages if p not in own))
        for start, end in sentence_spans(p.text)
        if p in own or any(mentions_name(name, p.text[start:end]) for name in names)
    ]


def _is_grounded(ctx: Context, candidate: Candidate) -> bool:
    """Whether an answer was followed to, or read in a passage that mentions what is asked about."""
    last = candidate.readings[-1]
    names = find_names(ctx.view, last.question)
    text = f"{last.passage.title} {last.passage.text}"
    followed = candidate.chain is not None
    return followed or not names or any(mentions_name(name, text) for name in names)


def _is_stated(ctx: Context, candidate: Candidate, question: str, of_itself: bool) -> bool:
    """Whether an answer is said of what is asked about, as what is asked for.

    Where a place of a thing itself is asked for, the first step to it is one as well.
    """
    first, last = candidate.readings[0], candidate.readings[-1]
    followed = first is not last
    if followed and of_itself and table_for(question).find_answer_kind(question) == "place":
        first = replace(first, question=question)
        if not states_value(find_names(ctx.view, question), first, of_itself=True):
            return False
    return states_value(find_names(ctx.view, last.question), last, of_itself=of_itself or followed)


def _note_best(question: str, ranked: Sequence[RankedCandidate]) -> Note:
    """Make a note of the best candidate, if it is likely at all."""
    if not ranked or ranked[0].probability < _MIN_SPAN:
        return Note(question)
    *hops, last = ranked[0].notes(question)
    return replace(last, probability=ranked[0].probability, hops=tuple(hops))


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
