"""Reads questions for how far two numbers lie apart: of two rows, or of two columns of a row.

"How much longer is A than B" is read as "is A longer than B": if that is so, the numbers that were
compared are subtracted. "By how much" one column of a row is over another is not sure to be meant
so, and is told with less confidence.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from clew.agents.tables.column_pairs import make_differences
from clew.agents.tables.load import Table
from clew.agents.tables.propose import Asked, list_filters
from clew.agents.tables.reading import Query
from clew.agents.tables.run import run_query
from clew.agents.tables.words import is_same_word

DIFFERENCES = ("difference", "ratio")  # of two rows, or of two columns
_MORE_THAN = re.compile(
    r"(?P<by>by )?how much (?P<more>\S+(?: \S+){0,3}?) "
    r"(?P<verb>is|are|was|were|do|does|did|has|have|had) (?P<who>.+?) than (?P<other>.+)",
    re.IGNORECASE,
)


def turn_to_check(question: str) -> str:
    """Return "Is A longer than B?" of "How much longer is A than B?", else ""."""
    found = _MORE_THAN.fullmatch(question.strip())
    if found is None or not Asked(question).is_of_difference:
        return ""
    return f"{found['verb'].capitalize()} {found['who']} {found['more']} than {found['other']}"


def subtract(query: Query) -> Query | None:
    """Return the difference of the rows that a query compares, if they compare as it says."""
    if query.wants != "check" or not (query.best and query.group and query.measure):
        return None
    result = run_query(query)
    if result is None or result.values != ("Yes",):
        return None
    return replace(query, wants="difference", best="")


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
