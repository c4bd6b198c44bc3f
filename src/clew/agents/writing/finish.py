"""How an agent ends: with a written answer, or with the best so far when its budget is spent."""

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from clew.agents.answer import Answer, Mode
from clew.agents.notebook import Notebook
from clew.agents.writing.extractive import extractive_answer
from clew.agents.writing.reading import noted, unknown
from clew.agents.writing.support import said_in
from clew.agents.writing.written import composed_answer, quoted_chain, refusal, written_answer
from clew.context import Context
from clew.llm.budget import BudgetEnded

BY_RULES = "no language model is configured: planned by rules, read by extraction, joined by code"
_SHOWN = 8  # passages the final answer is written from


async def bounded(
    ctx: Context, book: Notebook, mode: Mode, work: Coroutine[Any, Any, Answer]
) -> Answer:
    """Do the work; a budget that ends leaves the best answer so far, marked as that."""
    try:
        return await work
    except BudgetEnded as ended:
        return await _so_far(ctx, book, mode, str(ended))


async def concluded(ctx: Context, book: Notebook, mode: Mode, short: str = "") -> Answer:
    """Write the answer from everything noted and found; `short` is what code has worked out."""
    evidence = book.evidence()
    if short:
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


async def borne_out(ctx: Context, book: Notebook, said: str, mode: Mode) -> Answer:
    """An agent's own final answer with the passage that says it; written anew where none does."""
    short = said.strip().rstrip(".。")
    if not short or unknown(short):
        return await concluded(ctx, book, mode)
    evidence = book.evidence()
    if short.casefold() not in ("yes", "no", "是", "否"):
        for passage in evidence.chunks:
            if said_in(short, f"{passage.title} {passage.text}"):
                note = noted(ctx.question, short, passage)
                return composed_answer(ctx, evidence, [*book.notes, note], short)
    answer = await concluded(ctx, book, mode)
    if mode == "reject" or answer.verdict == "refused":
        return answer
    return replace(answer, candidate=short)


async def _so_far(ctx: Context, book: Notebook, mode: Mode, ended: str) -> Answer:
    """Without another model call: the notes if there are any, else quoted evidence."""
    evidence, known = book.evidence(), [note for note in book.notes if note.known]
    if known:
        answer = composed_answer(ctx, evidence, known, book.draft or known[-1].answer)
    elif evidence.chunks:
        answer = await extractive_answer(ctx, evidence, book.found(), mode)
    else:
        answer = refusal(ctx, evidence, f"nothing was found before {ended}")
    return replace(answer, note=f"incomplete: {ended}; this is the best so far", complete=False)
