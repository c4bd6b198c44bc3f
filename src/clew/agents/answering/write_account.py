"""Give an account with a model: its points that passages support, then the quotes none tells.

What is quoted without a model is the least that is said: a model adds to it and words it.
"""

from collections.abc import Sequence
from dataclasses import replace

from clew.agents.answering.account import measure_account, select_about
from clew.agents.answering.cite_written import cite_written
from clew.agents.answering.extractive import (
    QUOTED_NOTE,
    overlaps,
    quote_account,
    quote_whole,
    wants_account,
)
from clew.agents.answering.units import stem_words
from clew.agents.answering.write import (
    NO_REPLY,
    TOO_LONG,
    WrittenAnswer,
    ask_writer,
)
from clew.agents.citing.check import check_short_answer
from clew.agents.core.confidence import DEFAULT_THRESHOLD, HOPELESS
from clew.agents.core.evidence_page import EvidenceLine, EvidencePage, show_evidence
from clew.agents.core.messages import strip_marks
from clew.agents.core.types import Answer, Mode
from clew.agents.reading.lists import wants_several
from clew.context import Context
from clew.layout import Layout, Section
from clew.llm.chat import ContextTooLong
from clew.llm.prompt import Prompt
from clew.retrieve.rank import ANSWER_MARK
from clew.types import Citation, Evidence, Found

ACCOUNT = Prompt("account", WrittenAnswer, {"question", "evidence"}, documents={"evidence"})
Point = tuple[str, list[Citation]]
"""A sentence and what it cites."""
ADDED_NOTE = "the quotes add what the model's points leave out"
_UNSUPPORTED = "no passage supports what the model wrote"
_LAYOUT = Layout((Section("passages"),))
_MAX_TOKENS = 700  # of a reply: about ten sentences with their sources
_TOLD = 0.7  # least share of a quote's words that points about it have


async def give_account(
    ctx: Context, evidence: Evidence, found: Found, mode: Mode, said: str = ""
) -> Answer | None:
    """Give an account with a model where breadth is wanted and something covers the topic.

    `said` is what an agent answers by itself: one more point to be checked.
    """
    if ctx.chat("answer") is None or any(hit.by == ANSWER_MARK for hit in found.entities):
        return None
    if not await wants_account(ctx):
        return None
    quoted = await quote_whole(ctx, evidence, found) or await quote_account(ctx, evidence, found)
    return await write_account(ctx, quoted, mode, said) if quoted else None


async def write_account(ctx: Context, quoted: Answer, mode: Mode, said: str = "") -> Answer | None:
    """Let the model tell what passages say, and add the quotes that it leaves out.

    None where neither is about what is asked: the question is then answered as any other.
    """
    if "passages" not in ctx.layout.kinds:  # the caller wants none to be shown
        return None
    signals, confidence = await measure_account(ctx, quoted.citations, quoted.evidence.chunks)
    if confidence < HOPELESS:
        return None
    page = await _show_by_page(ctx, quoted)
    reply, why = await _ask_for_points(ctx, page)
    points = [(said, list[int]())] if said else []
    points += [(one.text, page.find_sources(one.sources)) for one in reply.sentences]
    # Marks of the documents' own notes are copied with what they say.
    written = [(strip_marks(text), sources) for text, sources in points]
    checked, _ = await cite_written(ctx, written, page.passages, quoted.evidence.all_facts)
    told = _drop_repeated([one for one in checked if one[1]])
    measured = replace(quoted, kind="account", signals=signals, confidence=confidence)
    if not told:
        if not (why or reply.enough) and confidence < DEFAULT_THRESHOLD:
            return None
        return replace(measured, note=f"{why or _UNSUPPORTED}: {QUOTED_NOTE}")
    added = [one for one in quoted.citations if not _is_told(one, told)]
    text, citations = _format(told, added)
    short = ""
    if wants_several(ctx.question):
        short = check_short_answer(ctx, reply.short, [text], page.passages, mode)
    note = ADDED_NOTE if added else ""
    return replace(measured, answer=text, citations=citations, candidate=short, note=note)


async def _show_by_page(ctx: Context, quoted: Answer) -> EvidencePage:
    """Show what is about the topic, by document: what is quoted comes first if not all fits.

    A small model tells something of everything that it is shown.
    """
    cited = {one.chunk for one in quoted.citations}
    homes = [passage for passage in quoted.evidence.chunks if passage.id in cited]
    best = dict.fromkeys((*homes, *select_about(ctx, quoted.evidence.chunks)))
    page = await show_evidence(ctx, Evidence(tuple(best)), _LAYOUT, reply=_MAX_TOKENS)
    docs = {passage.doc: at for at, passage in reversed(list(enumerate(page.passages)))}

    def place(item: EvidenceLine) -> tuple[int, int]:
        return docs[item.sources[0].doc], item.sources[0].start

    return replace(page, items=tuple(sorted(page.items, key=place)))


async def _ask_for_points(ctx: Context, page: EvidencePage) -> tuple[WrittenAnswer, str]:
    """Ask once; also return why nothing came of it, "" if something did."""
    reply, why = None, NO_REPLY
    async with ctx.step("write", ctx.question) as step:
        try:
            reply = await ask_writer(step.ctx, ACCOUNT, page, _MAX_TOKENS)
        except ContextTooLong as error:
            why = f"{TOO_LONG} ({error})"
        step.output = f"{len(reply.sentences)} points" if reply else why
    return (reply, "") if reply else (WrittenAnswer(enough=False), why)


def _drop_repeated(points: Sequence[Point]) -> list[Point]:
    """Drop points that say nothing new: small models say the same again in fewer words."""
    kept: list[Point] = []
    for text, citations in points:
        words = stem_words(text)
        if not any(words <= stem_words(before) for before, _ in kept):
            kept.append((text, citations))
    return kept


def _is_told(quote: Citation, points: Sequence[Point]) -> bool:
    """Whether the points that cite a quote's place have most of its words and every number."""
    about = [text for text, cited in points if any(overlaps(quote, one) for one in cited)]
    words, said = stem_words(quote.quote), stem_words(" ".join(about))
    lacks = any(any(map(str.isdigit, word)) for word in words - said)
    return not lacks and len(words & said) >= _TOLD * len(words)


def _format(points: Sequence[Point], added: Sequence[Citation]) -> tuple[str, tuple[Citation, ...]]:
    """Write a line for each point, then the quotes; also return all citations, as numbered."""
    every = [one for _, cited in points for one in cited]
    numbers = {one: at for at, one in enumerate(dict.fromkeys((*every, *added)), start=1)}
    marks = ["".join(f"[{numbers[one]}]" for one in dict.fromkeys(cited)) for _, cited in points]
    lines = [f"- {text} {mark}" for (text, _), mark in zip(points, marks, strict=True)]
    lines += [f"“{one.quote}” [{numbers[one]}]" for one in added]
    return "\n".join(lines), tuple(numbers)
