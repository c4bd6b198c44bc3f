"""Conclude an agent's run: write the answer, or return the best so far when a budget ends."""

import re
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any

from clew.agents.answering.extractive import QUOTED_NOTE, extract_answer, wants_account
from clew.agents.answering.read import make_note
from clew.agents.answering.write import (
    NO_REPLY,
    compose_answer,
    format_refusal,
    make_refusal,
    quote_chain,
    write_answer,
)
from clew.agents.answering.write_account import give_account
from clew.agents.citing.entailment import Quote, is_entailed, swaps_names
from clew.agents.citing.support import contains_answer
from clew.agents.core.messages import YES_NO, all_translations, is_unknown, localise
from clew.agents.core.scratchpad import Note, Notebook
from clew.agents.core.types import Answer, Mode
from clew.agents.reading.lists import wants_several
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.errors import AuthError, ModelError
from clew.llm.budget import BudgetExceeded
from clew.llm.chat import ContextTooLong
from clew.text.options import spell_out_choice, split_options
from clew.text.unicode import split_words
from clew.types import Passage

_MAX_SHORT_WORDS = 8  # a longer final answer is a sentence: untrained models write them
_BEGINS_WITH_YES_NO = re.compile(r"(yes|no|是|否)的?\s*[,.;:，。；：]", re.I)
_NUMBER = re.compile(
    r"\d|[零一二三四五六七八九十百千万亿]|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|"
    r"eleven|twelve|twenty|thirty|forty|fifty|hundred|thousand|million|none|once|twice)\b",
    re.I,
)


async def run_with_fallback(
    ctx: Context, book: Notebook, mode: Mode, work: Coroutine[Any, Any, Answer]
) -> Answer:
    """Run an agent; if a budget or model ends it early, return the best answer so far, marked."""
    try:
        answer = await work
    except AuthError:
        raise
    except (BudgetExceeded, ModelError) as ended:
        works = not isinstance(ended, ModelError) or isinstance(ended, ContextTooLong)
        if not works and not _has_progress(ctx, book):
            raise
        async with ctx.step("best so far", str(ended)) as step:
            answer = await _best_so_far(step.ctx, book, mode, str(ended))
            step.output = answer.verdict
    return note_failures(book, answer)


def note_failures(book: Notebook, answer: Answer) -> Answer:
    """Return the answer in the question's language, with a note of the retrievals that failed."""
    return _add_failure_note(book, _localise_refusal(answer))


def _localise_refusal(answer: Answer) -> Answer:
    if answer.verdict != "refused":
        return answer
    reason = answer.missing or answer.answer.removeprefix("Refused: ").rstrip(".")
    missing = localise(answer.question, reason)
    if missing == reason:
        return replace(answer, missing=reason)
    return replace(answer, missing=missing, answer=format_refusal(answer.question, missing))


def _has_progress(ctx: Context, book: Notebook) -> bool:
    """Whether the model (or its cache) has replied and anything was found; else failures raise."""
    spent = ctx.budget.spent.total
    return bool(spent.calls or spent.cached_calls) and bool(book.evidence().chunks or book.notes)


def _add_failure_note(book: Notebook, answer: Answer) -> Answer:
    """Note how many retrievals failed; if all did, that becomes the reason of the refusal."""
    failed = [retrieval.error for retrieval in book.retrievals if retrieval.error]
    if not failed:
        return answer
    of = len(book.retrievals)
    # What was asked wrongly is no failure of ours, and says itself what to do.
    own = all(retrieval.refused for retrieval in book.retrievals)
    if own and answer.verdict != "refused":
        return answer
    if len(failed) == of and answer.verdict == "refused":
        reason = failed[0] if own else f"every retrieval failed: {failed[0]}"
        missing = localise(answer.question, reason)
        text = format_refusal(answer.question, missing)
        answer = replace(answer, answer=text, missing=missing)
        if own:
            return answer
    failure_note = f"{len(failed)} of {of} retrievals failed: {'; '.join(dict.fromkeys(failed))}"
    return replace(answer, note="; ".join(filter(None, (answer.note, failure_note))))


async def conclude(
    ctx: Context, book: Notebook, mode: Mode, short: str = "", said: str = ""
) -> Answer:
    """Write the answer from all notes and evidence; `short` is the answer that code computed.

    Where breadth is wanted that is an account, with what the agent has `said` itself.
    """
    evidence = book.evidence()
    if short:
        if mode == "reject" and not _has_citation(book.notes):
            return make_refusal(ctx, evidence, f"no passage supports the computed answer: {short}")
        if ctx.chat("answer") is None:
            return quote_chain(ctx, evidence, book.notes, short)
        return compose_answer(ctx, evidence, book.notes, short)
    account = await give_account(ctx, evidence, book.first_hits(), mode, said)
    return account or await conclude_briefly(ctx, book, mode)


async def conclude_briefly(ctx: Context, book: Notebook, mode: Mode) -> Answer:
    """Write a short answer from all notes and evidence; quote what is near if no model can."""
    evidence = book.evidence()
    if mode == "reject" and book.notes and not any(note.has_answer for note in book.notes):
        return make_refusal(ctx, evidence, f"no passage answers: {book.notes[0].question}")
    if ctx.chat("answer") is None:
        return await extract_answer(ctx, evidence, book.first_hits())
    written = await write_answer(ctx, evidence, mode, book.format_notes())
    if mode == "reject" or written.missing not in all_translations(NO_REPLY):
        return written
    quoted = await extract_answer(ctx, evidence, book.first_hits())
    return replace(quoted, note=f"{NO_REPLY}: {QUOTED_NOTE}", hints=written.hints)


def _has_citation(notes: Sequence[Note]) -> bool:
    return any(note.has_answer and note.citation for note in notes)


async def conclude_with_citation(
    ctx: Context, book: Notebook, final: str, mode: Mode, stated: Sequence[Passage] = ()
) -> Answer:
    """Cite the agent's final answer; write a new one where it is long or no passage supports it.

    `stated` are the spans of the facts that the agent read; they are searched first.
    """
    short = _shorten(ctx.question, final.strip().rstrip(".。"))
    if not short or is_unknown(short):
        return await conclude(ctx, book, mode)
    if await wants_account(ctx) and not wants_several(ctx.question):
        return await conclude(ctx, book, mode, said=short)
    written = None
    if len(split_words(short)) > _MAX_SHORT_WORDS:
        written = await conclude(ctx, book, mode)
        quoted = written.note.startswith(NO_REPLY)
        if written.verdict == "answered" and written.candidate and not quoted:
            return written
    if cited := _cite_final_answer(ctx, book, short, mode, stated):
        return cited
    answer = written or await conclude(ctx, book, mode)
    if mode == "reject":
        return answer
    if answer.verdict == "refused":  # in open mode what the agent answered is an answer
        return compose_answer(ctx, book.evidence(), book.notes, short)
    return replace(answer, candidate=short)


def _cite_final_answer(
    ctx: Context, book: Notebook, short: str, mode: Mode, stated: Sequence[Passage]
) -> Answer | None:
    """Return the answer with the passages that support it; None where one is missing."""
    evidence = book.evidence()
    claims = spell_out_choice(ctx.question, short) or [short]
    fits = mode == "open" or all(fits_answer_type(ctx.question, claim) for claim in claims)
    if not fits or short.casefold() in YES_NO:
        return None
    passages = (*stated, *evidence.chunks)
    notes = [
        _find_own_note(one, book.notes) or _find_supporting_note(ctx.question, one, passages)
        for one in claims
    ]
    if not all(notes):
        return None
    found = list(filter(None, notes))
    whole = {short, *claims}  # answers to the question itself, as a letter or in words
    earlier = [
        note
        for note in book.notes
        if note not in found and (note.question != ctx.question or note.answer not in whole)
    ]
    return compose_answer(ctx, evidence, [*earlier, *found], short)


def _shorten(question: str, final: str) -> str:
    """Return the yes or no that a sentence begins with, else the text; an option stays whole."""
    begins = None if split_options(question)[1] else _BEGINS_WITH_YES_NO.match(final)
    return begins[1] if begins else final


def _find_own_note(short: str, notes: Sequence[Note]) -> Note | None:
    """Return the last note with this answer, if a passage was cited for it."""
    same = (note for note in reversed(notes) if note.answer == short)
    return next((note for note in same if contains_answer(short, note.quote)), None)


def _find_supporting_note(question: str, short: str, passages: Sequence[Passage]) -> Note | None:
    """Return a note of the first passage with a sentence that entails the answer."""
    for passage in passages:
        if not contains_answer(short, f"{passage.title} {passage.text}"):
            continue
        note = make_note(question, short, passage)
        if note.citation is None:
            continue
        start = note.citation.start - passage.start
        quote = Quote(passage, start, start + len(note.quote))
        if is_entailed(short, [quote]) and not swaps_names(short, note.quote):
            return note
    return None


async def _best_so_far(ctx: Context, book: Notebook, mode: Mode, ended: str) -> Answer:
    """Answer without another model call: from the notes if there are any, else by quoting."""
    evidence, known = book.evidence(), [note for note in book.notes if note.has_answer]
    if known and (mode == "open" or _has_citation(known)):
        short, read = _best_known_answer(ctx, book, known)
        answer = compose_answer(ctx, evidence, read, short)
    elif mode == "reject" and book.notes:
        answer = make_refusal(ctx, evidence, f"no passage answers: {book.notes[0].question}")
    elif evidence.chunks:
        answer = await extract_answer(ctx, evidence, book.first_hits())
        if ctx.chat("answer") is not None:
            answer = replace(answer, note=QUOTED_NOTE)
    else:
        answer = make_refusal(ctx, evidence, f"nothing was found before the run ended: {ended}")
    return mark_incomplete(answer, ended)


def _best_known_answer(ctx: Context, book: Notebook, known: list[Note]) -> tuple[str, list[Note]]:
    """Return the combined or supported draft answer, else the last cited note's, and the notes."""
    draft = book.draft
    cited_answers = {text for note in known if note.citation for text in (note.answer, note.name)}
    if draft and (draft == book.combined_answer or draft in cited_answers):
        return draft, known
    drafted = _find_supporting_note(ctx.question, draft, book.evidence().chunks) if draft else None
    if drafted is not None:
        return drafted.answer, [*known, drafted]
    return next((note for note in reversed(known) if note.citation), known[-1]).answer, known


def mark_incomplete(answer: Answer, ended: str) -> Answer:
    """Mark the answer as the best so far, with what ended the work."""
    note = f"incomplete: {ended.rstrip('.')}; this is the best answer so far"
    return replace(answer, note="; ".join(filter(None, (note, answer.note))), complete=False)


def fits_answer_type(question: str, short: str) -> bool:
    """Whether a date or number is given where one is asked for, and no number for a person."""
    kind = table_for(question).find_answer_kind(question)
    if kind in ("date", "number"):
        return _NUMBER.search(short) is not None
    return kind != "person" or not short[:1].isdigit()
