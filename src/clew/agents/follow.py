"""Carrying out a plan: what does not depend on another runs side by side, the rest in order."""

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
    """What the semantic channel reads."""
    return page_of(looked.evidence.chunks)


def facts_only(looked: Looked) -> Page:
    """What the relational channel reads."""
    return page_of_facts(looked.evidence.facts)


@dataclass(frozen=True)
class Follower:
    """Looks up and reads the questions of a plan, each as soon as what it needs is known."""

    look: Looker
    book: Notebook
    show: Show = chunks_only
    channel: str = ""
    ground: bool = True
    """Off: placeholders are taken out, not filled, and nothing waits (ablation without QG)."""
    phrases: bool = False
    """Take what code reads off a known turn of phrase before asking the model."""
    refine: bool = True
    """Off: a note carries the beginning of all that was read, not the sentence that says it."""

    async def __call__(self, ctx: Context, plan: Plan, /) -> dict[int, Note]:
        """The note of each question, by its number from 1."""
        done = {number: asyncio.Event() for number in range(1, len(plan.questions) + 1)}
        notes: dict[int, Note] = {}

        async def one(number: int, question: str) -> None:
            try:
                behind = [n for n in needs(question) if n in done and n < number]
                if self.ground:
                    for n in behind:
                        await done[n].wait()
                answers = {n: notes[n].name or notes[n].answer for n in behind if n in notes}
                notes[number] = await self._one(ctx, question, answers)
            finally:
                done[number].set()

        await together([one(n, text) for n, text in enumerate(plan.questions, start=1)])
        return notes

    async def _one(self, ctx: Context, question: str, answers: dict[int, str]) -> Note:
        asked = grounded(question, answers) if self.ground else question
        if open_places(asked):
            # What it needs was not found: the whole question may still lead to the passage.
            asked = ctx.question if self.ground else without_places(asked)
            known = [n for n in self.book.notes if (n.question, n.channel) == (asked, self.channel)]
            if known:
                return known[0]
        async with ctx.step(f"{self.channel or 'sub'}-question", asked) as step:
            note = await self.note(step.ctx, asked)
            step.left = note.answer or "unknown"
        self.book.notes.append(note)
        return note

    async def note(self, ctx: Context, question: str) -> Note:
        """Look one question up and read it."""
        looked = await self.look(ctx, question)
        if ctx.chat("answer") is None:
            note = await quoted_note(ctx, question, looked, self.channel)
            return replace(note, name=full_name(note, looked.evidence.chunks))
        page = self.show(looked)
        names = named(ctx.view, question)
        seen = _seen(question, names, looked)
        if seen is not None and seen.sure and self.phrases:
            note = noted_at(question, seen)
        else:
            near_first = self.show is chunks_only  # facts are short: all of them fit at once
            note = await read(ctx, names, question, page, near_first=near_first)
            if not note.known and seen is not None:
                note = noted_at(question, seen)
        name = full_name(note, looked.evidence.chunks)
        note = replace(note, name=name, channel=self.channel)
        return note if self.refine else replace(note, quote=str(page)[:_RAW])


def _seen(question: str, names: Sequence[str], looked: Looked) -> Spotted | None:
    """What code reads off the passages, where the question names one thing."""
    if len(names) != 1 and not is_chinese(question):
        return None
    return spotted(question, "".join(names[:1]), looked.evidence.chunks)


def full_name(note: Note, passages: Sequence[Passage]) -> str:
    """The title that the answer is short for ("Otto" for "Otto of Solms"), if one stands by it."""
    said = name_key(note.answer).split()
    if not said or note.citation is None:
        return ""
    home = next((p.text for p in passages if p.id == note.citation.chunk), "")
    for text in (note.quote, home):
        for passage in passages:
            title = plain_title(passage.title)
            words = name_key(title).split()
            longer = len(words) > len(said) and " ".join(said) in " ".join(words)
            if longer and f" {' '.join(words)} " in f" {name_key(text)} ":
                return title
    return ""


async def quoted_note(ctx: Context, question: str, looked: Looked, channel: str = "") -> Note:
    """A reading without a model: a known turn of phrase, else the best-supported candidate.

    The candidate only from a sentence that names what the question names, or stands in the part
    of a passage that is about it, and has a word for what is asked.
    """
    names = named(ctx.view, question)
    seen = _seen(question, names, looked)
    if seen is not None:
        return replace(noted_at(question, seen), channel=channel)
    if is_chinese(question):  # its terms are of no kind: any candidate would be a guess
        return Note(question, channel=channel)
    asked = ctx.asking(question)
    answer = await extractive_answer(asked, looked.evidence, looked.found, "open")
    passages = {p.id: p for p in looked.evidence.chunks}
    for cited in answer.citations:
        said = answer.candidate and _fits(question, answer.candidate, cited.quote)
        home = passages.get(cited.chunk)
        if said and home is not None and all(tells_of(name, cited, home) for name in names):
            return Note(question, answer.candidate, cited.quote, cited, channel)
    return Note(question, channel=channel)


def _fits(question: str, candidate: str, quote: str) -> bool:
    """Whether the quote says the candidate, and as a place where a place is asked."""
    at = quote.casefold().find(candidate.casefold())
    if not speaks_of_it(question, quote):
        return False
    if at >= 0 and re.search(r"\bnationality\b|\bcountry\b", question, re.IGNORECASE):
        return False  # a name that merely stands near is hardly ever the country
    if at < 0 or not re.search(r"^where\b|^in which\b|\bplace of\b", question, re.IGNORECASE):
        return at >= 0
    return re.search(r"\b(?:in|at|to|from|near|of|,)\s+(?:the\s+)?$", quote[:at]) is not None


def noted_at(question: str, seen: Spotted) -> Note:
    """A note that cites the sentence around what was spotted."""
    text = seen.passage.text
    span = next(
        ((s, e) for s, e in sentence_spans(text) if s <= seen.start < e), (seen.start, seen.end)
    )
    cited = citation(seen.passage, Place(span[0], max(span[1], seen.end), 1.0))
    return Note(question, seen.text, cited.quote, cited)


async def each(work: Callable[[str], Awaitable[Note]], questions: Sequence[str]) -> list[Note]:
    """Read several independent questions side by side."""

    async def one(question: str) -> Note:
        return await work(question)

    return await together([one(question) for question in questions])
