"""Answers comparisons over tables that stand in documents, by the code that answers over files.

A question that compares ("which is faster, A or B", "the least memory"), or that counts, adds up or
chooses rows which are quoted, is answered from the rows of a table in the documents quoted. What no
reading computes is told with doubt: a cell that shares words with such a question says nothing
about which is more.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from clew.agents.answering.cell_check import doubt_cell
from clew.agents.answering.cells import Row, find_rows, lies_in_rows
from clew.agents.answering.write import make_answer
from clew.agents.core.types import Answer
from clew.agents.rules.table_words import has_degree, is_same_word, load_operators, split_question
from clew.agents.tables.answer import compute_apart, describe_query
from clew.agents.tables.judge import ComputedAnswer
from clew.agents.tables.load import Column, Table
from clew.agents.tables.reading import COLUMN_SIGNS, Query
from clew.context import Context
from clew.types import Citation, Passage

_MAX_PASSAGES = 3  # whose documents are looked at
_MEMO = "documents of chunks"
_MAX_CHUNKS = 20_000  # of a knowledge base in which tables are looked for
_MAX_CHARS = 400_000  # of a document that is looked at
_MIN_ROWS = 2
_MOST = 0.45  # confidence of a comparison that no reading of the question computes
_COMPARING = ("best", "check", "difference", "ratio")
_COMPUTING = ("comparisons", "aggregates", "products", "pairs")  # words of such questions
_LIMITS = (">", "<", ">=", "<=")
_LEAST = 0.5  # confidence of rows that are counted, added up or chosen
_NOTE = "computed from a table of {name}: {query}"
_DATED = ("date", "time")  # columns that "first", "old" and "late" are said of
_DROPPED = "*`_ "  # marks around a cell


async def compare_rows(ctx: Context, answer: Answer) -> Answer:
    """Return what a table in the documents quoted says to a comparison, else the answer itself."""
    if ctx.chat("answer") is not None or answer.parts:
        return answer
    checked = await doubt_cell(ctx, answer)
    told = await _compute_rows(ctx, checked, doubted=checked.confidence < answer.confidence)
    return await doubt_cell(ctx, told, by_rows=True)


async def _compute_rows(ctx: Context, answer: Answer, *, doubted: bool) -> Answer:
    """Return what the rows of a table say to a question that one cell does not answer."""
    compares = has_degree(ctx.question)
    if not (compares or doubted or _computes(ctx, answer)):
        return answer
    places = await _find_tables(ctx, answer.evidence.chunks[:_MAX_PASSAGES])
    tables = [table for table, _ in places]
    found = await compute_apart(ctx, tables) if tables else None
    chosen = found is not None and doubted and _is_other(answer, found)
    if found is not None and (
        chosen or _is_compared(ctx, found.query) or _is_counted(answer, found)
    ):
        rows = next(rows for table, rows in places if table is found.query.table)
        return _write(ctx, answer, found, rows)
    if (
        not compares
        or answer.verdict == "refused"
        or not (_quotes_rows(answer) or _is_uncompared(ctx, answer))
    ):
        return answer
    return replace(answer, confidence=min(answer.confidence, _MOST))


def _is_other(answer: Answer, found: ComputedAnswer) -> bool:
    """Whether rows that are likely say something else than a cell that is doubtful."""
    return found.confidence >= _LEAST and ", ".join(found.result.values) != answer.candidate


def _computes(ctx: Context, answer: Answer) -> bool:
    """Whether a question asks for more than a cell, a sum or a number of rows, and rows are quoted.

    Or nothing that answers it.
    """
    operators, words = load_operators(), split_question(ctx.question)
    counts = any(wants == "count" for _, _, wants in operators.find("asks", words))
    said = (any(operators.find(kind, words)) for kind in _COMPUTING)
    if any(operators.find("products", words)):
        return True
    unsure = answer.verdict == "refused" or answer.confidence < _LEAST
    return (counts or any(said)) and (unsure or _quotes_rows(answer))


def _is_compared(ctx: Context, query: Query) -> bool:
    return query.wants in _COMPARING and _says_measure(ctx, query)


def _is_counted(answer: Answer, found: ComputedAnswer) -> bool:
    """Whether rows are counted, added up, or chosen by two of their columns, and that is likely."""
    query = found.query
    chosen = any(one.how in COLUMN_SIGNS or one.how in _LIMITS for one in query.filters)
    wanted = query.wants in ("count", "aggregate", "difference") or chosen
    return wanted and found.confidence >= max(_LEAST, answer.confidence * answer.computed)


def _says_measure(ctx: Context, query: Query) -> bool:
    """Whether a question tells what is compared: by name, or by an adjective of that unit.

    Without that it is unknown which end of a column is meant: the better boat, the quickest one.
    """
    if not query.measure:
        return True
    operators, column = load_operators(), query.table.columns[query.measure]
    if column.type in _DATED or column.has_years:
        return True
    concepts = operators.concepts_of
    return any(
        column.measures in operators.measured_by(word.fold)
        or any(
            is_same_word(word.fold, o) or concepts(word.fold) & concepts(o) for o in column.words
        )
        for word in split_question(ctx.question)
    )


def _quotes_rows(answer: Answer) -> bool:
    return any(lies_in_rows(one, answer.evidence.chunks) for one in answer.citations)


def _is_uncompared(ctx: Context, answer: Answer) -> bool:
    """Whether one of two is told ("A or B") though nothing computed it and no quote compares."""
    is_choice = " or " in ctx.question and not answer.computed
    return is_choice and not any(has_degree(one.quote) for one in answer.citations)


async def _find_tables(
    ctx: Context, passages: Sequence[Passage]
) -> list[tuple[Table, Sequence[Row]]]:
    """Return the tables of the documents that passages are of, with their rows."""
    held = await _load_documents(ctx) if any("|" in one.text for one in passages) else {}
    first = {held[one.id]: one for one in reversed(passages) if one.id in held}
    documents = await ctx.snapshot.documents(list(first))
    found: list[tuple[Table, Sequence[Row]]] = []
    for key, document in documents.items():
        if len(document.text) <= _MAX_CHARS and "|" in document.text:
            text, shown = document.text, first[key]
            whole = Passage(shown.id, shown.doc, shown.title, 1.0, text, 0, len(text))
            found += _make_tables(whole, key)
    return found


async def _load_documents(ctx: Context) -> dict[str, str]:
    """Return the document of each chunk, once per generation; none where there are very many."""
    keys = ctx.view.keys("chunk").tolist()
    if len(keys) > _MAX_CHUNKS:
        return {}
    if _MEMO not in ctx.view.memo:
        chunks = await ctx.snapshot.chunks(keys)
        ctx.view.memo[_MEMO] = {one.id: one.document for one in chunks.values()}
    found: dict[str, str] = ctx.view.memo[_MEMO]
    return found


def _make_tables(whole: Passage, document: str) -> list[tuple[Table, Sequence[Row]]]:
    """Return the tables of a document whose rows all have the same columns."""
    groups: dict[tuple[str, tuple[str, ...]], list[Row]] = defaultdict(list)
    for row in find_rows([whole]):
        names = tuple(name.strip(_DROPPED) for name, _ in row.cells)
        if all(names) and len(set(names)) == len(names):
            groups[row.section, names].append(row)
    found: list[tuple[Table, Sequence[Row]]] = []
    for (section, names), rows in groups.items():
        cells = [[value.strip(_DROPPED) or None for _, value in row.cells] for row in rows]
        columns = {name: Column(name, [row[at] for row in cells]) for at, name in enumerate(names)}
        if len(rows) >= _MIN_ROWS and columns[names[0]].is_key:
            places = [(whole.doc, document, whole.id)] * len(rows)
            title = section.replace("#", " ") or whole.title
            found.append((Table(f"{whole.doc}#{title}", names[0], columns, places), rows))
    return found


def _write(ctx: Context, answer: Answer, found: ComputedAnswer, rows: Sequence[Row]) -> Answer:
    """Write what was computed, with the rows it was computed from."""
    shown, passages = ", ".join(found.result.values), answer.evidence.chunks
    cited = [_cite(rows[row], passages) for row in found.result.rows]
    marks = "".join(f"[{number}]" for number in range(1, len(cited) + 1))
    note = _NOTE.format(name=rows[0].passage.doc, query=describe_query(found.query))
    written = make_answer(ctx, answer.evidence, f"{shown} {marks}".strip(), cited, shown, note)
    return replace(written, confidence=round(found.confidence, 4), computed=True)


def _cite(row: Row, passages: Sequence[Passage]) -> Citation:
    """Cite a row in the passage that holds it."""
    whole = row.passage
    holding = [p for p in passages if p.doc == whole.doc and p.start <= row.start < p.end]
    chunk, page = (holding[0].id, holding[0].page) if holding else (whole.id, None)
    quote = whole.text[row.start : row.end]
    return Citation(whole.doc, chunk, row.start, row.end, quote, row.section, page)
