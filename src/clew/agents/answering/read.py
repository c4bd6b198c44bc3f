"""Read a short answer to one simple question from a few passages, with a model."""

import re
from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel, Field

from clew.agents.citing.support import (
    MIN_SHARE,
    contains_answer,
    find_about,
    find_best_span,
    find_citations,
    has_title,
    make_citation,
    measure_overlap,
    mentions_name,
)
from clew.agents.core.evidence_page import EvidencePage
from clew.agents.core.messages import YES_NO, is_unknown
from clew.agents.core.scratchpad import Note
from clew.context import Context
from clew.llm.chat import UNUSABLE_REPLY, Request
from clew.llm.parse import Out
from clew.llm.prompt import Prompt
from clew.text.language import prompt_language
from clew.text.names import name_key, strip_disambiguation
from clew.text.options import spell_out_choice
from clew.types import Passage

READ_REPLY_TOKENS = 160
"""Tokens of a reply."""
MAX_KEPT = 6
"""Facts that context refinement keeps of one page."""
_MAX_ANSWER_CHARS = 200  # characters of a short answer
_ASKS_PLACE = re.compile(r"^where\b|\bplace of\b|\bbirthplace\b", re.IGNORECASE)
_TOWN_BEFORE = (
    r"\b(?:in|at|near) (?P<towns>(?:[A-Z][\w'’.-]*(?: (?:of |the )?[A-Z][\w'’.-]*){0,3}, ){1,2})"
)
_ASKS_PARENT = re.compile(r"\bthe (father|mother) of\b", re.IGNORECASE)
_PARENT_PAIR = re.compile(
    r"(?P<first>[^,]+?) and (?:(?P<link>his wife|her husband),? )?(?P<second>[^,]+)"
)


class ReadAnswer(BaseModel, title="Read"):
    """What the model must answer."""

    quote: str = ""
    source: int = 0
    answer: str = Field(default="")


class KeptFact(BaseModel, title="Kept"):
    """A fact worth keeping and the line that says it."""

    text: str
    source: int = 0


class RefinedReading(BaseModel, title="RefinedRead"):
    """What context refinement keeps of a page, and the answer read from it."""

    notes: list[KeptFact] = Field(default_factory=list)
    answer: str = Field(default="")


_INPUTS = {"question", "evidence"}
REFINE_READ = Prompt("refine_read", RefinedReading, _INPUTS, documents={"evidence"})
REFINE_READ_GRAPH = Prompt("refine_read_graph", RefinedReading, _INPUTS, documents={"evidence"})
READ = Prompt("read", ReadAnswer, {"question", "evidence"}, documents={"evidence"})
READ_GRAPH = Prompt("read_graph", ReadAnswer, {"question", "evidence"}, documents={"evidence"})


async def read_answer(
    ctx: Context,
    names: Sequence[str],
    question: str,
    page: EvidencePage,
    *,
    near_first: bool = False,
    refine: bool = False,
) -> Note:
    """Ask the model; `near_first`: show only the passages about the names first, then all.

    With `refine` the note also keeps the lines that matter for the question.
    """
    if ctx.chat("answer") is None or not page.items:
        return Note(question)
    near = select_passages_about(page, names) if near_first else EvidencePage()
    if near.items:
        note = await _ask_reader(ctx, question, near, names, refine)
        if note.has_answer or near.items == page.items:
            return note
    return await _ask_reader(ctx, question, page, names, refine)


def select_passages_about(page: EvidencePage, names: Sequence[str]) -> EvidencePage:
    """Select the passages about a name: a small model that sees all may read a wrong one."""
    openings = [f"{key} " for name in names if (key := name_key(strip_disambiguation(name)))]
    near = tuple(
        item
        for item in page.items
        if any(has_title(passage, name) for passage in item.sources for name in names)
        or name_key(item.text).startswith(tuple(openings))
    )
    return EvidencePage(near)


async def _ask_reader(
    ctx: Context, question: str, page: EvidencePage, names: Sequence[str], refine: bool
) -> Note:
    """Ask once; an answer that no passage contains is dropped."""
    async with ctx.step("read", question) as step:
        try:
            ask = _read_refined if refine else _read_plain
            reply, kept = await ask(step.ctx, question, page)
        except UNUSABLE_REPLY as error:
            step.output = f"no usable reply: {error}"
            return Note(question)
        note = replace(check_reading(question, reply, page, names), context=kept)
        step.output = note.answer or f"unknown (the model answered {reply.answer!r})"
        return note


async def _read_plain(
    ctx: Context, question: str, page: EvidencePage
) -> tuple[ReadAnswer, tuple[str, ...]]:
    reply = await _ask(ctx, READ_GRAPH if page.has_graph else READ, question, page)
    return reply, ()


async def _read_refined(
    ctx: Context, question: str, page: EvidencePage
) -> tuple[ReadAnswer, tuple[str, ...]]:
    prompt = REFINE_READ_GRAPH if page.has_graph else REFINE_READ
    reply = await _ask(ctx, prompt, question, page)
    first = reply.notes[0] if reply.notes else KeptFact(text="")
    read = ReadAnswer(quote=first.text, source=first.source, answer=reply.answer)
    return read, keep_supported(reply.notes, page)


async def _ask(ctx: Context, prompt: Prompt[Out], question: str, page: EvidencePage) -> Out:
    chat = ctx.chat("answer")
    assert chat is not None
    return await prompt.ask(
        chat,
        language=prompt_language(question),
        like=Request(max_tokens=READ_REPLY_TOKENS),
        question=question,
        evidence=page,
    )


def keep_supported(notes: Sequence[KeptFact], page: EvidencePage) -> tuple[str, ...]:
    """Return the kept facts that the passages behind their line support.

    A line of a graph without documents is kept as it stands, if the fact is about it.
    """
    kept: dict[str, None] = {}
    for note in notes[:MAX_KEPT]:
        if not 1 <= note.source <= len(page.items) or not note.text.strip():
            continue
        line = page.items[note.source - 1]
        if not line.sources:
            kept |= {line.text: None} if measure_overlap(note.text, line.text) >= 0.5 else {}
        elif find_citations(note.text, page.find_sources([note.source]), page.passages):
            kept[" ".join(note.text.split())] = None
    return tuple(kept)


def check_reading(
    question: str, reply: ReadAnswer, page: EvidencePage, names: Sequence[str] = ()
) -> Note:
    """Locate the answer in the passages by code; return an unknown where it is not found.

    The passage must contain the answer and mention the question's names: a small model that is
    shown another film's page names that film's director.
    """
    answer = choose_parent(question, reply.answer.strip().strip("\"'").rstrip(".。 "))
    if is_unknown(answer) or len(answer) > _MAX_ANSWER_CHARS or _is_question_subject(answer, names):
        return Note(question)
    order = sorted(range(len(page.items)), key=lambda at: at != reply.source - 1)
    yes_no = answer.casefold() in YES_NO
    if yes_no and len(names) > 1:
        about = [find_about(question, name, page.passages) for name in names]
        if about[0] is not None and all(about):
            return Note(question, answer, about[0].quote, about[0])
    options = spell_out_choice(question, answer)
    claims, quote = options or [answer], " ".join([reply.quote, *options]).strip()

    def lacks_answer(passage: Passage) -> bool:
        text = f"{passage.title} {passage.text}"
        return not all(contains_answer(claim, text) for claim in claims)

    # A path leads to several places: the one that says the answer is cited.
    places = [
        (page.items[at], passage)
        for at in order
        for passage in sorted(page.items[at].sources, key=lacks_answer)
    ]
    for item, passage in places:
        text = f"{passage.title} {item.text} {passage.text}"
        if all(mentions_name(name, text) for name in names) and (
            yes_no or all(contains_answer(claim, text) for claim in claims)
        ):
            return make_note(question, add_town(question, answer, passage.text), passage, quote)
    return Note(question)


def _is_question_subject(answer: str, names: Sequence[str]) -> bool:
    """Whether the answer repeats the question's subject, perhaps with a middle name added."""
    if len(names) != 1:
        return False
    given, name = name_key(answer).split(), name_key(strip_disambiguation(names[0])).split()
    ends_alike = len(name) > 1 and given[:1] + given[-1:] == name[:1] + name[-1:]
    return given == name or (ends_alike and set(name) <= set(given))


def add_town(question: str, answer: str, text: str) -> str:
    """Prefix the town where a place is asked for: not only the state of "Hoboken, New Jersey"."""
    if not _ASKS_PLACE.search(question):
        return answer
    found = re.search(_TOWN_BEFORE + re.escape(answer) + r"\b", text)
    return found["towns"] + answer if found else answer


def choose_parent(question: str, answer: str) -> str:
    """Choose the asked parent from a pair ("Otto and his wife Ida"); else return the answer."""
    asked, pair = _ASKS_PARENT.search(question), _PARENT_PAIR.fullmatch(answer)
    if asked is None or pair is None:
        return answer
    mother_first = pair["link"] == "her husband"
    return pair["second" if (asked[1].lower() == "mother") != mother_first else "first"]


def make_note(question: str, answer: str, passage: Passage, quote: str = "") -> Note:
    """Make a note that cites the sentence of the passage that supports the answer.

    Where only the title has the answer ("She built the mill"), the sentence nearest to the question
    is cited.
    """
    place = find_best_span(f"{quote} {answer}" if quote else answer, passage)
    if place.start == place.end:
        place = find_best_span(question, passage)
        if place.share < MIN_SHARE:
            return Note(question, answer)
    cited = make_citation(passage, place)
    return Note(question, answer, cited.quote, cited)
