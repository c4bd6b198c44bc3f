"""Answers a question from the rows of tables, if one reading of it accounts for every word."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace

from clew.agents.answering.write import make_answer
from clew.agents.core.types import Answer
from clew.agents.rules.table_words import is_same_word
from clew.agents.tables.asked import Asked
from clew.agents.tables.asked_units import Unit, convert_told, lacks_unit, names_other, read_units
from clew.agents.tables.asks import may_ask_tables
from clew.agents.tables.confidence import measure_confidence
from clew.agents.tables.counted import count_rows, lacks_money, says_kinds
from clew.agents.tables.differences import (
    DIFFERENCES,
    denies,
    list_column_differences,
    list_products,
    multiply_price,
    subtract,
    turn_to_check,
)
from clew.agents.tables.explained import (
    adds_unsaid,
    counts_unasked,
    is_of_nothing,
    leaves_column,
    may_be_anothers,
    passes_over_deed,
    ranks_unasked,
)
from clew.agents.tables.judge import (
    ComputedAnswer,
    judge_queries,
    measure_chance,
    weigh_best,
)
from clew.agents.tables.load import Table, join_tables
from clew.agents.tables.meanings import Senses, load_senses
from clew.agents.tables.parse import parse_question
from clew.agents.tables.reading import Filter, Query
from clew.agents.tables.rows import are_unfinished, load_tables
from clew.agents.tables.run import MULTIPLIED, TableResult, find_answer, find_rows, group_filters
from clew.agents.tables.said import Said
from clew.context import Context, TraceStep
from clew.types import Citation, Evidence, Passage

_MAX_CITED = 10  # rows; of more the first are cited
_JOINED = "joined tables"  # memo of a generation
_MAX_VALUES = 50  # shown in an answer
_NOTE = "computed from the rows of {table}: {query}"
_UNFINISHED = "; the last change of rows has not finished, so some may be missing: add them again"
_LEAST = 0.3  # confidence of a reading that is told at all
_DOUBTED = 0.5  # chance of a reading below which others are looked at
_DENIED = 0.03  # … below which it does not stand, even where no other is sure
_SURE = 0.5  # … that stands where the scorer is less sure of another
_SAID = 0.9  # … that says each word of the question: two columns and what is done with them
_UNSURE = 0.45  # … of what is told to be looked at, not as an answer
_SIGNS = {"filled": "has a value", "empty": "is empty or 0", "flag": "is yes"}
_SIGNS |= {"over column": ">", "under column": "<", "is column": "="}


async def answer_from_tables(ctx: Context) -> Answer | None:
    """Return the answer that code computes from rows, or None if no table answers this."""
    judged = ctx.can_score("en")
    tables = await load_tables(ctx) if judged or may_ask_tables(ctx.question) else []
    if not tables:
        return None
    question, wanted = read_units(ctx.question, tables)
    best = await _find_best(replace(ctx, question=question), tables, judged)
    told = None if best is None else _tell_unit(ctx.question, best, wanted)
    return None if told is None else await _write_answer(ctx, told)


async def _find_best(ctx: Context, tables: Sequence[Table], judged: bool) -> ComputedAnswer | None:
    """Return the reading of a question that is told: by rules, or chosen by the scorer."""
    if (product := find_product(ctx.question, tables)) is not None:
        return product
    found = [one async for one in iter_answers(ctx, tables)]
    best = max(found, key=lambda one: one.confidence, default=None)
    chance = await measure_chance(ctx, best) if judged and best is not None else 1.0
    if judged and (best is None or best.query.guesses or chance < _DOUBTED):
        chosen = await _judge_answers(ctx, tables, [one.query for one in found])
        is_unsure = chosen is None or chosen.confidence < _SURE
        stands = is_unsure and chance >= _DENIED and best is not None and best.confidence >= _SURE
        best = best if stands else chosen
    if best is None or best.confidence < _LEAST:
        best = _subtract_columns(ctx, tables)
    if best is None or best.confidence < _LEAST:
        return None
    if ctx.can_score("en") and is_of_nothing(ctx.question, best.query):
        return None
    best = _multiply_price(ctx.question, best)
    if await _is_doubtful(ctx, tables, best):
        best = best._replace(confidence=min(best.confidence, _UNSURE))
    return await _tell_counts(ctx, _tell_measure(ctx.question, best))


async def _tell_counts(ctx: Context, told: ComputedAnswer) -> ComputedAnswer:
    """Return a count of rows for one of kinds, where each row is a thing of the kind; tell both.

    Cats of three breeds are as many as their rows; customers, colours and vans are not.
    """
    query = count_rows(ctx.question, told.query)
    result = find_answer(query) if query is not None else None
    if query is None or result is None or result.values == told.result.values:
        return told
    rows = ComputedAnswer(query, result, told.confidence, f"{told.result.values[0]} different")
    column = query.table.columns[told.query.targets[0]]
    is_thing = column.tells_kinds and ctx.can_score("en")
    if says_kinds(column) or (is_thing and await measure_chance(ctx, rows) >= _DOUBTED):
        return rows
    may_be_rows = column.tells_kinds and bool(query.filters)
    confidence = min(told.confidence, _UNSURE) if may_be_rows else told.confidence
    return told._replace(confidence=confidence, beside=f"in {result.values[0]} rows")


async def _is_doubtful(ctx: Context, tables: Sequence[Table], told: ComputedAnswer) -> bool:
    """Whether a reading leaves out, adds or contradicts what the question says."""
    question, query = ctx.question, told.query
    if leaves_column(question, query, tables) or counts_unasked(question, query):
        return True
    if lacks_money(question, query) or _contradicts_itself(told) or ranks_unasked(question, query):
        return True
    if not ctx.can_score("en"):
        return False
    if adds_unsaid(question, query) or may_be_anothers(question, query):
        return True
    if ctx.meaning() != 1:
        return False
    return passes_over_deed(question, query, await load_senses(ctx, tables))


def _tell_unit(question: str, told: ComputedAnswer, wanted: Unit | None) -> ComputedAnswer | None:
    """Return an answer in the unit asked for; with doubt if it cannot be told in it.

    None where another column has this unit than the one that is asked for.
    """
    if wanted is None:
        return told
    if names_other(question, told.query, wanted):
        return None
    query = convert_told(told.query, wanted)
    if query is not None and (result := find_answer(query)) is not None:
        return ComputedAnswer(query, result, told.confidence)
    if lacks_unit(told.query, wanted):
        return told._replace(confidence=min(told.confidence, _UNSURE))
    return told


def _tell_measure(question: str, told: ComputedAnswer) -> ComputedAnswer:
    """Return an answer to "what is the largest order" that tells its amount beside its code.

    A flat is called by its code; an order or a gift is an amount as well.
    """
    query = told.query
    label = query.table.columns.get(query.table.label)
    is_code = label is not None and (label.is_id or label.holds_codes)
    if query.wants == "best" and query.targets and _asks_in_unit(question, query):
        plain = replace(query, targets=() if is_code else (*query.targets, query.measure))
        result = find_answer(plain)
        return told if result is None else ComputedAnswer(plain, result, told.confidence)
    if query.wants != "best" or query.targets != (query.table.label,) or not is_code:
        return told
    if query.measure not in query.table.amounts:
        return told
    both = replace(query, targets=(query.table.label, query.measure))
    result = find_answer(both) if Asked(question).words[0].fold == "what" else None
    return told if result is None else ComputedAnswer(both, result, told.confidence)


def _asks_in_unit(question: str, query: Query) -> bool:
    """Whether "what" asks for the measure itself, named behind "in": "… in minutes"."""
    words = Asked(question).words
    own = query.table.columns[query.measure].words
    is_named = len(words) > 1 and any(is_same_word(words[-1].fold, one) for one in own)
    return is_named and words[-2].fold == "in" and words[0].fold == "what"


def _contradicts_itself(told: ComputedAnswer) -> bool:
    """Whether two conditions on one time leave no row though each alone has some."""
    query = told.query
    columns = query.table.columns
    own = [one for one in query.filters if columns[one.column].type == "date" and not one.negated]
    if told.result.rows or len({one.column for one in own}) == len(own):
        return False
    return all(find_rows(query.table, [one]) for one in own)


def find_product(question: str, tables: Sequence[Table]) -> ComputedAnswer | None:
    """Return what a question asks that names two columns to be multiplied."""
    for query, is_whole in list_products(question, tables):
        if (result := find_answer(query)) is not None:
            return ComputedAnswer(query, result, _SAID if is_whole else _UNSURE)
    return None


def _multiply_price(question: str, told: ComputedAnswer) -> ComputedAnswer:
    """Return a sum of prices with each times its quantity; surely only of prices of one."""
    found = multiply_price(question, told.query)
    result = find_answer(found[0]) if found is not None else None
    if found is None or result is None:
        return told
    confidence = told.confidence if found[1] else min(told.confidence, _UNSURE)
    return ComputedAnswer(found[0], result, confidence)


def _subtract_columns(ctx: Context, tables: Sequence[Table]) -> ComputedAnswer | None:
    """Return how far two columns of a row lie apart; it is not sure that this is asked."""
    for query in list_column_differences(ctx.question, tables):
        if (result := find_answer(query)) is not None:
            return ComputedAnswer(query, result, _UNSURE)
    return None


async def _judge_answers(
    ctx: Context, tables: Sequence[Table], readings: Sequence[Query]
) -> ComputedAnswer | None:
    """Let the scorer say which query is asked: one that rules read, or one that it proposes."""
    every = [*tables, *_join_once(ctx, tables)]
    judged = await judge_queries(ctx, every, readings)
    judged = _drop_denied(ctx.question, judged, tables)
    kept = [one for one in judged if not _tells_keys(ctx, one.query, tables)]
    return weigh_best(ctx.question, kept, readings) if kept else None


async def iter_answers(ctx: Context, tables: Sequence[Table]) -> AsyncIterator[ComputedAnswer]:
    """Yield what readings of the question compute, until one of them guesses nothing.

    Single tables come first, then joined ones, then both with columns found by meaning: each costs
    more. What was guessed is compared by meaning, too.
    """
    guessed = []
    for some in (tables, _join_once(ctx, tables)):
        for query, result in _run_readings(ctx, some, {}, tables):
            if not query.guesses:
                yield ComputedAnswer(query, result, measure_confidence(query, {}))
                return
            guessed.append((query, result))
    senses = await load_senses(ctx, tables)
    for some in (tables, _join_once(ctx, tables)) if senses else ():
        guessed += _run_readings(ctx, some, senses, tables)
    for query, result in guessed:
        yield ComputedAnswer(query, result, measure_confidence(query, senses))


def _run_readings(
    ctx: Context, some: Sequence[Table], senses: Senses, tables: Sequence[Table]
) -> Iterator[tuple[Query, TableResult]]:
    """Yield the readings of a question over some tables that have an answer, with it."""
    said = Said(ctx.question, tables)
    for query in _parse(ctx.question, some, senses, tables):
        if _tells_keys(ctx, query, tables) or said.is_missed(query):
            continue
        if (result := find_answer(query)) is not None:
            yield query, result


def _parse(
    question: str, some: Sequence[Table], senses: Senses, tables: Sequence[Table]
) -> Iterator[Query]:
    """Yield the readings of a question; one for a difference is read as a comparison."""
    if not Asked(question).is_of_difference:
        yield from parse_question(question, some, senses, tables)
        return
    readings = parse_question(question, some, senses, tables)
    yield from (query for query in readings if query.wants in DIFFERENCES)
    if check := turn_to_check(question):
        compared = map(subtract, parse_question(check, some, senses, tables))
        yield from (query for query in compared if query is not None)


async def compute_apart(ctx: Context, tables: Sequence[Table]) -> ComputedAnswer | None:
    """Return what tables that are none of the knowledge base's files answer, each on its own.

    Readings that guess nothing must agree; where there is none, the scorer chooses.
    """
    question, wanted = read_units(ctx.question, tables)
    found = await _choose_apart(replace(ctx, question=question), tables)
    return None if found is None else _tell_unit(ctx.question, found, wanted)


async def _choose_apart(ctx: Context, tables: Sequence[Table]) -> ComputedAnswer | None:
    if (product := find_product(ctx.question, tables)) is not None:
        return product
    said = Said(ctx.question, tables)
    parsed = _parse(ctx.question, tables, {}, tables)
    readings = [query for query in parsed if not said.is_missed(query)]
    found = [
        ComputedAnswer(query, result, measure_confidence(query, {}))
        for query in readings
        if not query.guesses and (result := find_answer(query)) is not None
    ]
    if found:
        return found[0] if len({one.result.values for one in found}) == 1 else None
    judged = await judge_queries(ctx, tables, readings) if ctx.can_score("en") else []
    judged = _drop_denied(ctx.question, judged, tables)
    best = weigh_best(ctx.question, judged, readings) if judged else None
    return best if best is not None and best.confidence >= _SURE else None


def _drop_denied(
    question: str, judged: Sequence[ComputedAnswer], tables: Sequence[Table]
) -> list[ComputedAnswer]:
    """Leave out how far two lie apart where rules read that it is the other way round."""
    apart = any(one.query.wants == "difference" for one in judged)
    check = turn_to_check(question) if apart else ""
    read = parse_question(check, tables, {}, tables) if check else ()
    denied = {query.measure for query in read if denies(query)}
    return [
        one
        for one in judged
        if not (one.query.wants == "difference" and one.query.measure in denied)
    ]


def _join_once(ctx: Context, tables: Sequence[Table]) -> list[Table]:
    if _JOINED not in ctx.view.memo:
        ctx.view.memo[_JOINED] = join_tables(tables)
    joined: list[Table] = ctx.view.memo[_JOINED]
    return joined


def _tells_keys(ctx: Context, query: Query, tables: Sequence[Table]) -> bool:
    """Whether a query over one table would tell keys whose names a linked table has."""
    shown = query.entities & {*query.targets, query.group}
    if not shown or query.table.partners or query.wants == "distinct":
        return False
    same = [one for one in _join_once(ctx, tables) if one.name == query.table.name]
    return any(partner.link in shown for one in same for partner in one.partners)


async def _write_answer(ctx: Context, found: ComputedAnswer) -> Answer:
    query, result, confidence, beside = found
    cited = result.rows[:_MAX_CITED]
    passages = await _fetch_rows(ctx, query.table, cited)
    for partner in query.table.partners:
        if partner.columns & query.columns:
            others = dict.fromkeys(partner.rows[row] for row in cited)
            there = [row for row in others if row is not None]
            passages += await _fetch_rows(ctx, partner.table, there)
    shown = ", ".join(result.values[:_MAX_VALUES])
    if len(result.values) > _MAX_VALUES:
        shown += f", … ({len(result.values)} in all)"
    marks = "".join(f"[{number}]" for number in range(1, len(passages) + 1))
    citations = [Citation(p.doc, p.id, p.start, p.end, p.text) for p in passages]
    described = describe_query(query)
    note = _NOTE.format(table=query.table.name, query=described)
    if len(result.rows) > len(cited):
        note += f"; {len(result.rows)} rows, the first {len(cited)} are cited"
    if are_unfinished(ctx):
        note += _UNFINISHED
    ctx.trace.append(TraceStep("query a table", described, shown[:200], 0.0))
    evidence = Evidence(chunks=tuple(passages))
    text = f"{shown} ({beside}) {marks}" if beside else f"{shown} {marks}"
    answer = make_answer(ctx, evidence, text.strip(), citations, shown, note)
    return replace(answer, confidence=round(confidence, 4), computed=True)


async def _fetch_rows(ctx: Context, table: Table, rows: Sequence[int]) -> list[Passage]:
    """Return the rows as passages, whole."""
    documents = await ctx.snapshot.documents([table.rows[row][1] for row in rows])
    found = []
    for row in rows:
        name, document_id, chunk = table.rows[row]
        document = documents[document_id]
        text = document.text
        found.append(Passage(chunk, name, document.title, 1.0, text, 0, len(text), by="table"))
    return found


def describe_query(query: Query) -> str:
    """Describe a query in a few words: what is computed, where."""
    of = query.measure or ", ".join(query.targets) or "rows"
    of += f" times {query.second}" if query.second and query.wants in MULTIPLIED else ""
    what = {
        "count": "number of rows",
        "distinct": f"number of different {of}",
        "group": f"{query.group} with the {query.best} {query.aggregate or 'number'} of {of}",
        "groups": f"{query.aggregate or 'number'} of {of} for each {query.group}",
        "repeated": f"{query.group} of more than {query.limit} rows",
        "best": f"{_describe_best(query)} {of}",
        "aggregate": f"{query.aggregate} of {of}",
        "share": "share of the rows",
        "check": "whether there is a row",
        "difference": f"difference of {of}",
        "ratio": f"ratio of {of}{f' to {query.second}' if query.second else ''}",
    }.get(query.wants, of)
    groups = group_filters(query.filters)
    where = " and ".join(" or ".join(map(_describe_filter, some)) for some in groups)
    described = f"{what}, where {where}" if where else what
    if query.unlinked is None:
        return described
    groups = group_filters(query.unlinked.filters)
    named = " and ".join(" or ".join(map(_describe_filter, some)) for some in groups)
    without = f"without a row of {query.unlinked.table.name}"
    return f"{described}, {without}{f' where {named}' if named else ''}"


def _describe_best(query: Query) -> str:
    place = f"no. {query.rank} " if query.rank > 1 else ""
    return f"{place}{query.best}{f' {query.limit}' if query.limit > 1 else ''}"


def _describe_filter(one: Filter) -> str:
    if one.how == "within":
        first, _, last = one.value.partition("/")
        return f"{one.column} {'not ' if one.negated else ''}from {first} to {last}"
    sign = _SIGNS.get(one.how, one.how)
    return f"{'not ' if one.negated else ''}{one.column} {sign} {one.value}".rstrip()
