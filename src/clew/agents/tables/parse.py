"""Reads a question as a query over one table: its words are columns, values, operators or fillers.

A table answers only if every word of the question is accounted for. Nothing is known about any
table in advance: columns are found by their names, filters by the values in the cells.
"""

from collections.abc import Sequence
from dataclasses import replace

from clew.agents.tables.conditions import (
    add_comparisons,
    add_numbers,
    add_parts_of_values,
    add_text_filters,
    add_values,
    literal_type,
)
from clew.agents.tables.load import Table
from clew.agents.tables.reading import Filter, Mention, Query, Reading, find_columns
from clew.agents.tables.words import Word, is_same_word, load_operators, split_question

_NOUN_WEIGHT = 1.0


def parse_question(question: str, tables: Sequence[Table]) -> list[Query]:
    """Return the readings of a question over the tables that can answer it, the best first."""
    words = split_question(question)
    found = [query for table in tables if (query := _read(words, table)) is not None]
    return sorted(found, key=lambda query: -query.score)


def _read(words: list[Word], table: Table) -> Query | None:
    reading = Reading(table, words, load_operators(), [""] * len(words))
    ask = _find_ask(reading)
    if ask is None:
        return None
    add_values(reading, 2)  # "Town 7" before the column "town"
    find_columns(reading)
    comparisons, texts = reading.find("comparisons"), reading.find("texts")
    aggregates, best = reading.find("aggregates"), reading.find("superlatives")
    distinct, negations = reading.find("distinct"), reading.find("negations")
    add_comparisons(reading, comparisons)
    add_text_filters(reading, texts)
    add_values(reading)
    add_parts_of_values(reading)
    add_numbers(reading)
    head = _find_head(reading, ask)
    if not _account_for_rest(reading, head, ask[2]):
        return None
    if negations:
        reading.filters = [replace(one, negated=True) for one in reading.filters[-1:]]
    return _make_query(
        reading,
        ask[2] if not distinct else "distinct",
        head,
        aggregates[0][2] if aggregates else "",
        best[0][2] if best else "",
    )


def _find_ask(reading: Reading) -> Mention | None:
    """Return how the question begins; "what is the number of" asks like "how many"."""
    asks = reading.find("asks")
    if not asks or asks[0][0] > 1:
        return None
    counts = [one for one in asks[1:] if one[2] == "count"]
    for start, end, meaning in asks[1:]:
        if meaning != "count":
            reading.take(start, end, "")  # "name" may be a column
    return next(iter(counts), asks[0])


def _find_head(reading: Reading, ask: Mention) -> int:
    """Return the noun that the question asks for ("which car", "how many different states")."""
    at = ask[1]
    skipped = ("distinct", "aggregates", "superlatives")
    while at < len(reading.words) and (
        reading.taken[at] in skipped
        or (not reading.taken[at] and reading.words[at].fold in ("the", "of", "all"))
    ):
        at += 1
    return at if at < len(reading.words) and ask[2] in ("count", "rows") else -1


def _account_for_rest(reading: Reading, head: int, asks: str) -> bool:
    """Whether every word is accounted for: names of the table, the head noun, fillers."""
    for at, word in enumerate(reading.words):
        if reading.taken[at]:
            continue
        if any(is_same_word(word.fold, own) for own in reading.table.words):
            reading.take(at, at + 1, "table")
            reading.score += _NOUN_WEIGHT
        elif word.fold in reading.operators.fillers:
            reading.take(at, at + 1, "filler")
        elif (at == head and not literal_type(word.fold)) or _is_compound(reading, at):
            reading.take(at, at + 1, "noun")
        else:
            return False
    has_content = bool(reading.filters or reading.columns)
    return has_content and _is_grounded(reading, head, asks)


def _is_grounded(reading: Reading, head: int, asks: str) -> bool:
    """Whether the noun asked for is the table's, a column, or vouched for by a column's name."""
    if head < 0 or reading.taken[head] != "noun" or "column" in reading.taken:
        return True
    # "Which currency has the code JPY?": a value that one row alone has.
    columns = reading.table.columns
    exact = [one for one in reading.filters if one.how == "=" and columns[one.column].is_key]
    return bool(exact) and asks == "rows" and "noun" in reading.taken[head + 1 :]


def _is_compound(reading: Reading, at: int) -> bool:
    """Whether a word is joined to a column or a value: "numeric code", "the code JPY"."""
    if literal_type(reading.words[at].fold):
        return False  # a number that no column has is not part of a name
    before = reading.taken[at - 1] if at else ""
    behind = reading.taken[at + 1] if at + 1 < len(reading.taken) else ""
    return before == "column" or behind == "value"


def _make_query(reading: Reading, wants: str, head: int, aggregate: str, best: str) -> Query | None:
    table = reading.table
    mentioned = [name for _, _, name in sorted(reading.columns)]
    asked = [name for start, end, name in reading.columns if start <= head < end]
    rest = [name for name in mentioned if name not in asked]
    query = Query(table, wants, tuple(reading.filters), score=reading.score)
    if best or (aggregate and mentioned):
        return _make_aggregate(query, asked, rest, aggregate, best)
    if wants in ("count", "distinct"):
        return _make_count(query, asked, rest)
    return _make_lookup(query, asked, rest)


def _make_lookup(query: Query, asked: list[str], rest: list[str]) -> Query | None:
    """The values of the columns that are asked for, else the names of the rows."""
    table, filters = query.table, query.filters
    by_name = query.wants in ("rows", "names") and not asked and bool(filters)
    targets = [table.label] * bool(table.label) if by_name else asked or rest
    used = {one.column for one in filters if one.how == "="}
    targets = [name for name in targets if name not in used and _fits(table, name, query.wants)]
    if not targets or not (filters or rest):
        return None
    if query.wants == "rows":
        filters = (*filters, *(Filter(name, "filled") for name in rest if name not in targets))
    return replace(query, wants="value", targets=tuple(targets), filters=filters)


def _fits(table: Table, column: str, wants: str) -> bool:
    """Whether values of a column can answer who, when or where."""
    found = table.columns[column]
    if wants == "time":
        return found.type == "date" or "year" in found.words
    return found.type == "text" if wants in ("names", "place") else True


def _make_aggregate(
    query: Query, asked: list[str], rest: list[str], aggregate: str, best: str
) -> Query | None:
    """A sum, mean or extreme: of a column, of the rows, or of the groups of rows."""
    table = query.table
    numeric = [name for name in rest if table.columns[name].type != "text"]
    others = [name for name in rest if name not in numeric]
    target = next(iter(asked or others), "")
    measure = numeric[0] if numeric else ""
    if best and not measure and target:
        if table.columns[target].type != "text" and not asked:
            return None
        return replace(query, wants="group", group=target, best=best)
    if best and aggregate and target:
        return replace(
            query, wants="group", group=target, best=best, aggregate=aggregate, measure=measure
        )
    if not measure:
        measure = next((name for name in asked if table.columns[name].type != "text"), "")
        if not measure:
            return None
    if best:
        named = query.wants == "rows" or bool(target and target != measure)
        label = target if target and target != measure else table.label
        targets = (label,) if named and label else ()
        return replace(query, wants="best", best=best, measure=measure, targets=targets)
    return replace(query, wants="aggregate", aggregate=aggregate, measure=measure)


def _make_count(query: Query, asked: list[str], rest: list[str]) -> Query | None:
    """A number of rows, or of different values of the column that is counted."""
    table = query.table
    filters = (*query.filters, *(Filter(name, "filled") for name in rest))
    query = replace(query, filters=filters)
    if not asked:
        return replace(query, wants="count")
    column = table.columns[asked[0]]
    pinned = any(table.columns[one.column].is_key or one.column == table.label for one in filters)
    if column.type == "number" and pinned and query.wants != "distinct":
        return replace(query, wants="value", targets=(column.name,))
    filled = sum(cell is not None for cell in column.cells)
    if query.wants != "distinct" and len(column.rows_by_value) >= 0.9 * filled:
        return replace(query, wants="count")
    return replace(query, wants="distinct", targets=(column.name,))
