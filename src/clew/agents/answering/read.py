"""Read a short answer to one simple question from a few passages, with a model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from clew.agents.citing.support import (
    MIN_SHARE,
    contains_answer,
    find_best_span,
    has_title,
    make_citation,
    mentions_name,
)
from clew.agents.core.messages import YES_NO, is_unknown
from clew.agents.core.scratchpad import Note
from clew.context import Context
from clew.errors import ParseError
from clew.llm.chat import Request
from clew.llm.prompt import Prompt
from clew.text.language import prompt_language
from clew.text.names import name_key, strip_disambiguation
from clew.text.options import spell_out_choice
from clew.types import Passage, Statement

_MAX_REPLY_TOKENS = 160  # tokens of a reply
_MAX_PASSAGE_CHARS = 1200  # characters of one passage
_MAX_ANSWER_CHARS = 200  # characters of a short answer
_MAX_PAGE_CHARS = 4000  # characters of all passages together
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


READ = Prompt("read", ReadAnswer, {"question", "evidence"}, documents={"evidence"})


@dataclass(frozen=True)
class EvidencePage:
    """Numbered lines shown to a model, and the passage of a document behind each."""

    passages: tuple[Passage, ...] = ()
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Format for a prompt."""
        return "\n".join(f"[{number}] {line}" for number, line in enumerate(self.lines, start=1))


def build_page(passages: Sequence[Passage], max_chars: int = _MAX_PAGE_CHARS) -> EvidencePage:
    """Build a page of as many of the best passages as fit, at least one."""
    return _fit_page([(passage, _format_passage(passage)) for passage in passages], max_chars)


def build_fact_page(facts: Sequence[Statement], max_chars: int = _MAX_PAGE_CHARS) -> EvidencePage:
    """Build a page of facts; each line belongs to the span of the document that states it."""
    rows = [
        (
            Passage(
                *(fact.chunk, fact.doc, fact.title, fact.score),
                *(fact.quote, fact.start, fact.end),
            ),
            line,
        )
        for fact in facts
        if (line := _format_fact(fact))
    ]
    return _fit_page(list({line: (passage, line) for passage, line in rows}.values()), max_chars)


def _fit_page(rows: Sequence[tuple[Passage, str]], max_chars: int) -> EvidencePage:
    chosen = 0
    for _, line in rows:
        max_chars -= len(line)
        if max_chars < 0 and chosen:
            break
        chosen += 1
    return EvidencePage(
        tuple(p for p, _ in rows[:chosen]), tuple(line for _, line in rows[:chosen])
    )


def _format_passage(passage: Passage, most: int = _MAX_PASSAGE_CHARS) -> str:
    title = f"{passage.title}: " if passage.title else ""
    return f"{title}{' '.join(passage.text.split())[:most]}"


def _format_fact(fact: Statement) -> str:
    if fact.relation and len(fact.entities) == 2:
        return f"{fact.entities[0]} | {fact.relation} | {fact.entities[1]}"
    known = not fact.title or fact.title in fact.text
    return fact.text if known else f"{fact.title}: {fact.text}"


async def read_answer(
    ctx: Context,
    names: Sequence[str],
    question: str,
    page: EvidencePage,
    *,
    near_first: bool = False,
) -> Note:
    """Ask the model; `near_first`: show only the passages about the names first, then all."""
    if ctx.chat("answer") is None or not page.passages:
        return Note(question)
    near = select_passages_about(page, names) if near_first else EvidencePage()
    if near.passages:
        note = await _ask_reader(ctx, question, near, names)
        if note.has_answer or near.passages == page.passages:
            return note
    return await _ask_reader(ctx, question, page, names)


def select_passages_about(page: EvidencePage, names: Sequence[str]) -> EvidencePage:
    """Select the passages about a name, each shown whole: a small model may read a wrong page."""
    openings = [f"{key} " for name in names if (key := name_key(strip_disambiguation(name)))]
    near = tuple(
        passage
        for passage, line in zip(page.passages, page.lines, strict=True)
        if any(has_title(passage, name) for name in names)
        or name_key(line).startswith(tuple(openings))
    )
    return EvidencePage(
        near, tuple(_format_passage(passage, _MAX_PAGE_CHARS // len(near)) for passage in near)
    )


async def _ask_reader(
    ctx: Context, question: str, page: EvidencePage, names: Sequence[str]
) -> Note:
    """Ask once; an answer that no passage contains is dropped."""
    async with ctx.step("read", question) as step:
        chat = step.ctx.chat("answer")
        assert chat is not None
        try:
            reply = await READ.ask(
                chat,
                language=prompt_language(question),
                like=Request(max_tokens=_MAX_REPLY_TOKENS),
                question=question,
                evidence=str(page),
            )
        except ParseError as error:
            step.output = f"no usable reply: {error}"
            return Note(question)
        note = check_reading(question, reply, page, names)
        step.output = note.answer or f"unknown (the model answered {reply.answer!r})"
        return note


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
    order = list(range(len(page.passages)))
    order.sort(key=lambda at: at != reply.source - 1)
    yes_no = answer.casefold() in YES_NO
    options = spell_out_choice(question, answer)
    claims, quote = options or [answer], " ".join([reply.quote, *options]).strip()
    for at in order:
        passage = page.passages[at]
        text = f"{passage.title} {page.lines[at]} {passage.text}"
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
