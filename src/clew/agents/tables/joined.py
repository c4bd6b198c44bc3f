"""Tells which queries over joined tables ask for nothing: each row of an order repeats its client.

What a linked table says of its rows stands once for each row that refers to them, so that it can be
told, and rows chosen by it, but not added up; what is asked of it alone is asked of that table. The
numbers that link two tables stand for names.
"""

from collections.abc import Sequence

from clew.agents.tables.asked import Asked
from clew.agents.tables.load import Table
from clew.agents.tables.reading import Query
from clew.agents.tables.values import load_vocabulary

_ADDED = ("aggregate", "group", "groups")
_COMPARED = ("check", "difference", "ratio")


class JoinedTables:
    """What a question may ask of tables, some of them joined."""

    def __init__(self, asked: Asked, tables: Sequence[Table]) -> None:
        self._links = {
            (table.name, one.link) for table in tables for one in table.partners if one.label
        }
        self._names_ids = any(w.stem in load_vocabulary().identifiers for w in asked.words)

    def is_missed(self, query: Query) -> bool:
        """Whether a query adds up what is repeated, or tells keys whose names are known."""
        return _repeats(query) or self._tells_links(query)

    def _tells_links(self, query: Query) -> bool:
        if self._names_ids or query.wants == "distinct":
            return False
        shown = {query.group, *query.targets} - {""}
        return any((query.table.name, name) in self._links for name in shown)


def _repeats(query: Query) -> bool:
    """Whether a query measures by a column that a linked table repeats on several rows."""
    partner = next((p for p in query.table.partners if query.measure in p.columns), None)
    if partner is None:
        return False
    if query.wants in _ADDED:
        return True
    if query.wants in _COMPARED and query.group:
        return not query.table.columns[query.group].is_key
    return query.columns - {""} <= partner.columns
