"""Reads questions that count with two numbers: of two rows, or of two columns of a row.

"How much longer is A than B" is read as "is A longer than B": if that is so, the numbers that were
compared are subtracted. "By how much" one column of a row is over another is not sure to be meant
so, and is told with less confidence. "Price times quantity" names two columns to be multiplied.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from clew.agents.core.messages import NO, YES
from clew.agents.rules.table_words import is_same_word, load_operators
from clew.agents.tables.asked import Asked
from clew.agents.tables.column_pairs import make_differences, name_columns
from clew.agents.tables.load import Table
from clew.agents.tables.propose import list_filters
from clew.agents.tables.reading import Query
from clew.agents.tables.run import MULTIPLIED, run_query

DIFFERENCES = ("difference", "ratio")  # of two rows, or of two columns
_MORE_THAN = re.compile(
    r"(?P<by>by )?how much (?P<more>\S+(?: \S+){0,3}?) "
    r"(?P<verb>is|are|was|were|do|does|did|has|have|had) (?P<who>.+?) than (?P<other>.+)",
    re.IGNORECASE,
)
_OF_ONE = frozenset("unit per each single".split())
_ROWS = frozenset("row item good product thing entry record value each every".split())


def turn_to_check(question: str) -> str:
    """Return "Is A longer than B?" of "How much longer is A than B?", else ""."""
    found = _MORE_THAN.fullmatch(question.strip())
    if found is None or not Asked(question).is_of_difference:
        return ""
    return f"{found['verb'].capitalize()} {found['who']} {found['more']} than {found['other']}"


def subtract(query: Query) -> Query | None:
    """Return the difference of the rows that a query compares, if they compare as it says."""
    return replace(query, wants="difference", best="") if _says(query, YES) else None


def denies(query: Query) -> bool:
    """Whether the first of the rows that a query compares has not more, or less, as it says."""
    return _says(query, NO)


def _says(query: Query, said: str) -> bool:
    if query.wants != "check" or not (query.best and query.group and query.measure):
        return False
    result = run_query(query)
    return result is not None and result.values == (said,)


def list_column_differences(question: str, tables: Sequence[Table]) -> Iterator[Query]:
    """Yield the difference of two columns of the row that is named, if no other may be meant."""
    asked = Asked(question)
    if not asked.is_of_difference:
        return
    found: dict[object, Query] = {}
    for table in tables:
        filters = [one for one in list_filters(asked, table) if one.how == "=" and one.at >= 0]
        named = [one for one in filters if one.column == table.label and not one.negated]
        if len(named) != 1:
            continue
        base = Query(table, "value", tuple(named))
        for query in make_differences(base, list(table.columns)):
            pair = frozenset({query.measure, query.second})
            own = [word for name in pair for word in table.columns[name].words]
            if any(is_same_word(word.fold, one) for word in asked.words for one in own):
                found.setdefault((table.name, pair), query)
    if len(found) == 1:
        yield from found.values()


def list_products(question: str, tables: Sequence[Table]) -> Iterator[tuple[Query, bool]]:
    """Yield the sum of two columns' products that a question names: "price times quantity".

    And whether nothing else is said: no word that is neither a value, a name nor an operator.
    """
    asked, operators = Asked(question), load_operators()
    for start, end, _ in operators.find("products", asked.words):
        for table in tables:
            columns = [one for one in table.columns.values() if one.is_quantity]
            named = name_columns(asked.words, columns)
            before = [one for one in named if one[1] == start]
            behind = [one for one in named if end <= one[0] <= end + 1]
            if not before or not behind or before[0][2] == behind[0][2]:
                continue
            own = [one for one in list_filters(asked, table) if one.how == "=" and one.at >= 0]
            some = tuple(one for one in own if not one.negated)
            query = Query(
                table,
                "aggregate",
                some,
                measure=before[0][2],
                aggregate="sum",
                second=behind[0][2],
            )
            taken = {at for first, last, _ in named for at in range(first, last)}
            taken |= {*range(start, end), *(one.at for one in some)}
            yield query, _is_said(asked, table, taken)


def _is_said(asked: Asked, table: Table, taken: set[int]) -> bool:
    """Whether every other word of a question is a filler, asks, or names the rows."""
    operators = load_operators()
    kinds = ("asks", "aggregates", "checks")
    for kind in kinds:
        for first, last, _ in operators.find(kind, asked.words):
            taken |= {*range(first, last)}
    rows = {*table.own_words, *table.columns[table.label].words, *_ROWS}
    return all(
        at in taken or word.fold in asked.fillers or any(is_same_word(word.fold, o) for o in rows)
        for at, word in enumerate(asked.words)
    )


def multiply_price(question: str, query: Query) -> tuple[Query, bool] | None:
    """Return a sum of prices as one of prices times the only quantity of a row.

    And whether the column says that it has the price of one. None where no row has a quantity, or
    the question names the prices themselves.
    """
    adds = query.wants in MULTIPLIED and query.aggregate == "sum"
    if not adds or query.second or not query.measure:
        return None
    concepts, columns = load_operators().concepts_of, query.table.columns
    words = columns[query.measure].words
    asked = [word.fold for word in Asked(question).words]
    named = all(any(is_same_word(word, own) for word in asked) for own in words)
    if named or not any("price" in concepts(own) for own in words):
        return None
    counts = [
        name
        for name, one in columns.items()
        if one.is_quantity and any("quantity" in concepts(own) for own in one.words)
        if not any("price" in concepts(own) for own in one.words)
    ]
    of_one = any("quantity" in concepts(own) or own in _OF_ONE for own in words)
    return (replace(query, second=counts[0]), of_one) if len(counts) == 1 else None
