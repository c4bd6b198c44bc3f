"""End of an agent run: the written answer, or the best so far when the budget is spent."""

from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any

from clew.agents.answer import Answer, Mode
from clew.agents.notebook import Note, Notebook
from clew.agents.writing.bearing import Quote, borne, crossed
from clew.agents.writing.extractive import extractive_answer
from clew.agents.writing.kinds import kind_fits
from clew.agents.writing.reading import noted, unknown
from clew.agents.writing.support import said_in
from clew.agents.writing.wordings import in_words_of
from clew.agents.writing.written import (
    composed_answer,
    quoted_chain,
    refusal,
    refused,
    written_answer,
)
from clew.context import Context
from clew.errors import AuthError, ModelError
from clew.llm.budget import BudgetEnded
from clew.types import Passage

_SHOWN = 8  # passages the final answer is written from
_YES_NO = ("yes", "no", "是", "否")


async def bounded(
    ctx: Context, book: Notebook, mode: Mode, work: Coroutine[Any, Any, Answer]
) -> Answer:
    """Run an agent; if a budget or model ends it early, return the best answer so far, marked."""
    try:
        answer = await work
    except AuthError:
        raise
    except (BudgetEnded, ModelError) as ended:
        if isinstance(ended, ModelError) and not _begun(ctx, book):
            raise
        async with ctx.step("best so far", str(ended)) as step:
            answer = await _so_far(step.ctx, book, mode, str(ended))
            step.left = answer.verdict
    return _told_of_failures(book, _in_its_language(answer))


def _in_its_language(answer: Answer) -> Answer:
    """Translate a refusal into the language of the question."""
    if answer.verdict != "refused":
        return answer
    reason = answer.missing or answer.answer.removeprefix("Refused: ").rstrip(".")
    missing = in_words_of(answer.question, reason)
    if missing == reason:
        return replace(answer, missing=reason)
    return replace(answer, missing=missing, answer=refused(answer.question, missing))


def _begun(ctx: Context, book: Notebook) -> bool:
    """Whether the model (or its cache) has replied and anything was found; else failures raise."""
    spent = ctx.budget.spent.total
    return bool(spent.calls or spent.cached_calls) and bool(book.evidence().chunks or book.notes)


def _told_of_failures(book: Notebook, answer: Answer) -> Answer:
    """Note how many retrievals failed; if all did, that becomes the reason of the refusal."""
    failed = [looked.failed for looked in book.looked if looked.failed]
    if not failed:
        return answer
    of = len(book.looked)
    if len(failed) == of and answer.verdict == "refused":
        missing = in_words_of(answer.question, f"every look-up failed: {failed[0]}")
        text = refused(answer.question, missing)
        answer = replace(answer, answer=text, missing=missing)
    failure_note = f"{len(failed)} of {of} look-ups failed: {'; '.join(dict.fromkeys(failed))}"
    return replace(answer, note="; ".join(filter(None, (answer.note, failure_note))))


async def concluded(ctx: Context, book: Notebook, mode: Mode, short: str = "") -> Answer:
    """Write the answer from all notes and evidence; `short` is the answer that code computed."""
    evidence = book.evidence()
    if short:
        if mode == "reject" and not _rests(book.notes):
            return refusal(ctx, evidence, f"no passage bears out what was computed: {short}")
        if ctx.chat("answer") is None:
            return quoted_chain(ctx, evidence, book.notes, short)
        return composed_answer(ctx, evidence, book.notes, short)
    if mode == "reject" and book.notes and not any(note.known for note in book.notes):
        return refusal(ctx, evidence, f"no passage says: {book.notes[0].question}")
    if ctx.chat("answer") is None:
        return await extractive_answer(ctx, evidence, book.found(), mode)
    top = replace(evidence, chunks=evidence.chunks[:_SHOWN])
    answer = await written_answer(ctx, top, mode, book.told())
    return replace(answer, evidence=evidence)


def _rests(notes: Sequence[Note]) -> bool:
    """Whether any known note has a citation."""
    return any(note.known and note.citation for note in notes)


async def borne_out(ctx: Context, book: Notebook, said: str, mode: Mode) -> Answer:
    """Cite the agent's own final answer; write a new answer where no passage supports it."""
    short = said.strip().rstrip(".。")
    if not short or unknown(short):
        return await concluded(ctx, book, mode)
    evidence = book.evidence()
    fits = mode == "open" or kind_fits(ctx.question, short)
    if fits and short.casefold() not in _YES_NO:
        note = _read_in(ctx.question, short, evidence.chunks)
        if note is not None:
            return composed_answer(ctx, evidence, [*book.notes, note], short)
    answer = await concluded(ctx, book, mode)
    if mode == "reject" or answer.verdict == "refused":
        return answer
    return replace(answer, candidate=short)


def _read_in(question: str, short: str, passages: Sequence[Passage]) -> Note | None:
    """Return a note of the first passage with a sentence that entails the answer."""
    for passage in passages:
        if not said_in(short, f"{passage.title} {passage.text}"):
            continue
        note = noted(question, short, passage)
        if note.citation is None:
            continue
        start = note.citation.start - passage.start
        quote = Quote(passage, start, start + len(note.quote))
        if borne(short, [quote]) and not crossed(short, note.quote):
            return note
    return None


async def _so_far(ctx: Context, book: Notebook, mode: Mode, ended: str) -> Answer:
    """Answer without another model call: from the notes if there are any, else by quoting."""
    evidence, known = book.evidence(), [note for note in book.notes if note.known]
    if known and (mode == "open" or _rests(known)):
        short, read = _best_known(ctx, book, known)
        answer = composed_answer(ctx, evidence, read, short)
    elif mode == "reject" and book.notes:
        answer = refusal(ctx, evidence, f"no passage says: {book.notes[0].question}")
    elif evidence.chunks:
        answer = await extractive_answer(ctx, evidence, book.found(), mode)
        if ctx.chat("answer") is not None:
            answer = replace(answer, note="this is quoted evidence, not a composed answer")
    else:
        answer = refusal(ctx, evidence, f"nothing was found before the end: {ended}")
    return incomplete(answer, ended)


def _best_known(ctx: Context, book: Notebook, known: list[Note]) -> tuple[str, list[Note]]:
    """Return the combined or supported draft answer, else the last cited note's, and the notes."""
    draft = book.draft
    cited_answers = {text for note in known if note.citation for text in (note.answer, note.name)}
    if draft and (draft == book.joined or draft in cited_answers):
        return draft, known
    drafted = _read_in(ctx.question, draft, book.evidence().chunks) if draft else None
    if drafted is not None:
        return drafted.answer, [*known, drafted]
    return next((note for note in reversed(known) if note.citation), known[-1]).answer, known


def incomplete(answer: Answer, ended: str) -> Answer:
    """Mark the answer as the best so far, with what ended the work."""
    note = f"incomplete: {ended.rstrip('.')}; this is the best so far"
    return replace(answer, note="; ".join(filter(None, (note, answer.note))), complete=False)
