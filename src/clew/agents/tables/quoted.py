"""Judges what was quoted of the rows of tables where no reading of a question computes an answer.

A row has the names of its columns and some values, so it shares words with many questions that it
does not answer. What is told of one is a cell, or stands in a cell that is a text of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from clew.agents.core.types import Answer
from clew.agents.rules.table_words import fold_text, has_degree
from clew.agents.tables.asks import asks_for_number
from clew.agents.tables.load import Table
from clew.agents.tables.rows import load_tables
from clew.agents.tables.run import format_cell
from clew.context import Context

_MEMO = "cells of chunks"
_MOST = 0.45  # confidence of what no reading of the question vouches for
_MOST_OF_NUMBER = 0.25  # of one row, where several are to be counted or compared
_TEXT_WORDS = 12  # of a cell that is a text of its own


async def judge_quoted_rows(ctx: Context, answer: Answer) -> Answer:
    """Return an answer that was read in rows with what a cell says, and no more confidence."""
    if answer.verdict == "refused" or ctx.chat("answer") is not None:
        return answer
    if answer.computed and not has_degree(ctx.question):
        return answer
    cited = {one.chunk for one in answer.citations}
    known = await _load_cells(ctx) if cited else {}
    if not cited or not cited <= known.keys():
        return answer
    cells = [format_cell(cell) for chunk in sorted(cited) for cell in known[chunk]]
    if _stands_in_text(answer.candidate, cells):
        return answer
    most = _MOST_OF_NUMBER if asks_for_number(ctx.question) else _MOST
    candidate = _cut_to_cell(answer.candidate, cells)
    return replace(answer, candidate=candidate, confidence=min(answer.confidence, most))


async def _load_cells(ctx: Context) -> Mapping[str, Sequence[Any]]:
    """Return the cells of each row by its chunk, once per generation."""
    if _MEMO not in ctx.view.memo:
        tables = await load_tables(ctx)
        ctx.view.memo[_MEMO] = {
            chunk: cells for table in tables for chunk, cells in _list_rows(table).items()
        }
    found: Mapping[str, Sequence[Any]] = ctx.view.memo[_MEMO]
    return found


def _list_rows(table: Table) -> dict[str, list[Any]]:
    columns = [one.cells for one in table.columns.values()]
    return {
        chunk: [cells[row] for cells in columns if cells[row] is not None]
        for row, (_, _, chunk) in enumerate(table.rows)
    }


def _stands_in_text(candidate: str, cells: Sequence[str]) -> bool:
    """Whether what is told is of a cell that is a text; a row that has one may be quoted."""
    texts = [cell for cell in cells if len(cell.split()) >= _TEXT_WORDS]
    return any(candidate in text for text in texts)


def _cut_to_cell(candidate: str, cells: Sequence[str]) -> str:
    """Return the cell that a candidate is or begins with: "Juno", of "Juno; species: cat"."""
    folded = fold_text(candidate)
    begun = [cell for cell in cells if f"{folded} ".startswith(f"{fold_text(cell)} ")]
    return max(begun, key=len, default=candidate)
