"""Reads a question as a query over tables by a model: which proposal says what it asks."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from clew.agents.core.confidence import Signals
from clew.agents.rules.table_words import is_same_word
from clew.agents.tables.asked import Asked
from clew.agents.tables.confidence import Lead, add_support, measure_judged
from clew.agents.tables.counted import counts_unknown
from clew.agents.tables.explained import adds_unsaid, is_far_fetched
from clew.agents.tables.load import Table
from clew.agents.tables.meanings import Senses, load_senses
from clew.agents.tables.propose import (
    Part,
    list_filters,
    list_parts,
    make_absent,
    make_queries,
    say_condition,
    say_part,
    weigh_conditions,
)
from clew.agents.tables.propose_unlinked import (
    Reference,
    keep_own,
    list_references,
    list_references_to,
    make_unlinked,
)
from clew.agents.tables.reading import Filter, Query
from clew.agents.tables.run import TableResult, find_answer
from clew.agents.tables.said import Said
from clew.agents.tables.support import Support
from clew.agents.tables.wording import say_query
from clew.context import Context, QueryJudge

_MAX_TABLES = 6  # that are read for a question, those with most of its words first
_MAX_QUERIES = 64  # that are compared with a question
_LIKELY, _LEAST_CHANCE = 0.05, 0.02  # of a part that should be used; of any
_COUNTS = ("count", "distinct")
_NO_SENSES: Senses = {}
_VALUE_WORTH = 2.0  # words of a column's name that a value counts as


class ComputedAnswer(NamedTuple):
    """A reading of a question, what it computes, and how far it is trusted."""

    query: Query
    result: TableResult
    confidence: float
    beside: str = ""
    """What it may have asked as well, and how much that is."""


async def judge_queries(
    ctx: Context, tables: Sequence[Table], readings: Iterable[Query]
) -> list[ComputedAnswer]:
    """Return the queries over these tables that a question may mean, the likeliest first.

    `readings` are queries that were found by rules; they are compared with the others.
    """
    if ctx.scorer is None:
        return []
    known = list(readings)
    senses = await load_senses(ctx, tables) if ctx.meaning() == 1 else {}
    return await asyncio.to_thread(rank_queries, ctx.scorer, ctx.question, tables, known, senses)


async def measure_chance(ctx: Context, told: ComputedAnswer) -> float:
    """Return how likely the scorer finds a reading; without a scorer nothing is doubted."""
    if ctx.scorer is None:
        return 1.0
    text = say_query(told.query, told.result)
    chances = await asyncio.to_thread(ctx.scorer.score, ctx.question, [text])
    return float(chances[0])


def rank_queries(
    scorer: QueryJudge,
    question: str,
    tables: Sequence[Table],
    readings: Sequence[Query],
    senses: Senses = _NO_SENSES,
) -> list[ComputedAnswer]:
    """Return queries with the chance that a question means them, the best first."""
    judged = [
        one._replace(confidence=add_support(one.confidence, signals))
        for one, signals in score_queries(scorer, question, tables, readings, senses)
    ]
    return sorted(judged, key=lambda one: -one.confidence)


def score_queries(
    scorer: QueryJudge,
    question: str,
    tables: Sequence[Table],
    readings: Sequence[Query],
    senses: Senses = _NO_SENSES,
) -> list[tuple[ComputedAnswer, Signals]]:
    """Return queries with the scorer's chance of each, and what else speaks for it."""
    asked = Asked(question)
    support, said = Support(asked), Said(question, tables)
    found: dict[str, tuple[Query, TableResult]] = {}
    for query in readings:
        if not said.is_missed(query):
            _note(found, query)
    read = set(found)
    for query in _propose(scorer, asked, choose_tables(asked, tables), senses):
        if len(found) >= _MAX_QUERIES:
            break
        is_denied_twice = query.unlinked is not None and adds_unsaid(question, query)
        if not (said.is_missed(query) or is_denied_twice):
            _note(found, query)
    chances = scorer.score(question, list(found)).tolist() if found else []
    return [
        (ComputedAnswer(*both, chance), support.describe(both[0], by_rules=text in read))
        for (text, both), chance in zip(found.items(), chances, strict=True)
    ]


def weigh_best(
    question: str, ranked: Sequence[ComputedAnswer], readings: Sequence[Query]
) -> ComputedAnswer:
    """Return the best query with its confidence."""
    lead = measure_lead(question, ranked, readings)
    return ranked[0]._replace(confidence=measure_judged(lead))


def measure_lead(
    question: str, ranked: Sequence[ComputedAnswer], readings: Sequence[Query]
) -> Lead:
    """Return what speaks for the best query: its chance, its rival's, and if readings agree."""
    best = ranked[0]
    rivals = (one.confidence for one in ranked if not _agrees(one, best))
    told = [one.values for query in readings if (one := find_answer(query)) is not None]
    agreed = best.result.values in told if told else None
    unknown = counts_unknown(question, best.query)
    return Lead(best.confidence, next(rivals, 0.0), agreed, unknown)


def _agrees(one: ComputedAnswer, best: ComputedAnswer) -> bool:
    """Whether two tell the same, one of them perhaps another column beside it.

    Two counts that are the same number are of the same rows, too: else it is by chance.
    """
    if one.result.values == best.result.values:
        is_number = one.query.wants == best.query.wants and best.query.wants in _COUNTS
        return not is_number or {*one.result.rows} == {*best.result.rows}
    own, other = set(one.query.targets), set(best.query.targets)
    is_same = replace(one.query, targets=()) == replace(best.query, targets=())
    return is_same and bool(own and other) and (own < other or other < own)


def _note(found: dict[str, tuple[Query, TableResult]], query: Query) -> None:
    """Note a query by its words if the rows answer it."""
    if (result := find_answer(query)) is not None:
        found.setdefault(say_query(query, result), (query, result))


def _propose(
    scorer: QueryJudge, asked: Asked, tables: Sequence[Table], senses: Senses
) -> list[Query]:
    """Return the queries that likely parts make, the likeliest first."""
    references = list_references(tables)
    said = [
        _say_all(asked, table, list_references_to(table, references), senses) for table in tables
    ]
    # A joined table has the columns of its own, too: each text is scored once.
    texts = list(dict.fromkeys(t for both in said for one in both for t in one.values()))
    if not texts:
        return []
    chances = dict(zip(texts, scorer.score(asked.question, texts).tolist(), strict=True))
    weighed = {
        id(table): _weigh_all(table, *both, chances)
        for table, both in zip(tables, said, strict=True)
    }
    found: list[tuple[float, Query]] = []
    for table in tables:
        found += _make_likely(asked, table, weighed[id(table)])
        for reference in list_references_to(table, references):
            found += _make_absent(reference, weighed)
    return [query for _, query in sorted(found, key=lambda one: -one[0])]


class Weighed(NamedTuple):
    """The chances of the parts and conditions that a table has for a question."""

    parts: dict[Part, float]
    filters: dict[Filter, float]
    conditions: dict[tuple[Filter, ...], float]
    """The likeliest sets of conditions."""


def _say_all(
    asked: Asked, table: Table, references: Sequence[Reference], senses: Senses
) -> tuple[dict[Part, str], dict[Filter, str]]:
    """Say the parts and conditions of a table."""
    parts = {part: say_part(table, part) for part in list_parts(table, references)}
    every = list_filters(asked, table)
    filters = [one for one in every if not is_far_fetched(one, asked.words, senses)]
    return parts, {one: say_condition(table, one) for one in filters}


def _weigh_all(
    table: Table,
    parts: Mapping[Part, str],
    filters: Mapping[Filter, str],
    chances: dict[str, float],
) -> Weighed:
    """Return the chances of what was said of a table, and of its conditions together."""
    own = {one: chances[text] for one, text in filters.items()}
    known = {one: chances[text] for one, text in parts.items()}
    return Weighed(known, own, weigh_conditions(table, own))


def _make_likely(asked: Asked, table: Table, weighed: Weighed) -> Iterator[tuple[float, Query]]:
    """Yield the queries that likely parts and conditions of a table make."""
    chance_of = {frozenset(some): chance for some, chance in weighed.conditions.items()}
    for query in make_queries(asked, table, weighed.parts, weighed.conditions):
        if _uses_partners(query):
            chance = chance_of[frozenset(query.filters)]
            yield chance * _estimate(query, weighed.parts), query


def _make_absent(
    reference: Reference, weighed: Mapping[int, Weighed]
) -> Iterator[tuple[float, Query]]:
    """Yield what may be asked of rows to which none of another table refers."""
    table = reference.partner.table
    own, theirs = weighed[id(table)], weighed[id(reference.table)]
    if own.parts[Part("without", reference.stem)] < _LIKELY:
        return
    others = weigh_conditions(reference.table, keep_own(reference, theirs.filters))
    for base, chance in make_unlinked(reference, own.conditions, others):
        for query in make_absent(table, own.parts, base):
            yield chance * _estimate(query, own.parts), query


def _uses_partners(query: Query) -> bool:
    """Whether a query over joined tables needs the columns that were brought."""
    partners = query.table.partners
    return not partners or any(one.columns & query.columns for one in partners)


def _estimate(query: Query, parts: dict[Part, float]) -> float:
    """Return how likely a query is by its parts: each that is likely and left out counts, too."""
    chance, shown = 1.0, {query.group, *query.targets}
    for part, own in parts.items():
        if _has_part(query, part):
            chance *= max(own, _LEAST_CHANCE)
        elif own > _LIKELY and not (part.kind == "ask" and part.column in shown):
            chance *= max(1 - own, _LEAST_CHANCE)
    return chance


def _has_part(query: Query, part: Part) -> bool:
    """Whether a query is made of a part."""
    wants, kind, column = query.wants, part.kind, part.column
    match kind:
        case "ask":
            told = query.targets if wants in ("value", "best") else ()
            return column in told or (wants == "group" and column == query.group)
        case "max" | "min":
            return query.best == kind and column == query.measure
        case "sum" | "mean" | "median":
            return query.aggregate == kind and column == query.measure
        case "most" | "fewest":
            best = "max" if kind == "most" else "min"
            return wants == "group" and not query.measure and query.best == best
        case "each" | "over":
            return wants == ("groups" if kind == "each" else "repeated") and column == query.group
        case "difference":
            return wants in ("difference", "ratio")
        case "distinct":
            return wants == kind and column in query.targets
        case "without":
            return query.unlinked is not None and query.unlinked.table.stem == column
    return wants == kind


def choose_tables(asked: Asked, tables: Sequence[Table]) -> list[Table]:
    """Return the tables of which a question says most: values, columns and names."""
    if len(tables) <= _MAX_TABLES:
        return list(tables)
    worth = {id(table): _count_said(asked, table) for table in tables}
    return sorted(tables, key=lambda one: -worth[id(one)])[:_MAX_TABLES]


def _count_said(asked: Asked, table: Table) -> float:
    names = {word for one in table.columns.values() for word in one.words} | table.own_words
    words = [word.fold for word in asked.words if word.fold not in asked.fillers]
    named = sum(any(is_same_word(word, own) for own in names) for word in words)
    valued = {one.at for one in list_filters(asked, table) if one.how == "=" and one.at >= 0}
    return named + _VALUE_WORTH * len(valued)
