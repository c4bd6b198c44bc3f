"""What speaks for a query beside the scorer: that rules read it, and that it leaves nothing out.

The scorer compares a whole query with a whole question and may pass over a name. Here it is counted
what a question says and a query does not use: values of the table, and names of its columns. The
weights are fitted on tables held out (`python -m bench.query_scorer.support`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from clew.agents.core.confidence import Signals
from clew.agents.rules.table_words import is_same_word
from clew.agents.tables.asked import Asked
from clew.agents.tables.load import Table
from clew.agents.tables.propose import list_filters
from clew.agents.tables.reading import Filter, Query


@dataclass(frozen=True)
class SaidOfTable:
    """What a question says of one table."""

    values: frozenset[int]
    """The words that are values of texts."""
    names: tuple[str, ...]
    """The words that stand in names of columns."""


@dataclass
class Support:
    """Describes what speaks for the queries that a question may mean."""

    asked: Asked
    _said: dict[int, SaidOfTable] = field(default_factory=dict)

    def note_filters(self, table: Table, filters: Iterable[Filter]) -> SaidOfTable:
        """Note the conditions that may be said of a table."""
        columns = table.columns
        ranks = {at for at, _ in self.asked.named_ranks}  # "second floor" names its column
        places = frozenset(
            one.at
            for one in filters
            if one.at >= 0 and one.how == "="
            if columns[one.column].type in ("text", "flag") or one.at in ranks
        )
        own = {word for column in columns.values() for word in column.words}
        words = [word.fold for word in self.asked.words if word.fold not in self.asked.fillers]
        names = [word for word in words if any(is_same_word(word, one) for one in own)]
        said = self._said[id(table)] = SaidOfTable(places, tuple(names))
        return said

    def describe(self, query: Query, *, by_rules: bool) -> Signals:
        """Return what speaks for a query, and how much it leaves out."""
        table = query.table
        said = self._said.get(id(table))
        if said is None:
            said = self.note_filters(table, list_filters(self.asked, table))
        used = {one.at for one in query.filters}
        own = {word for name in query.columns - {""} for word in table.columns[name].words}
        left = sum(not any(is_same_word(word, one) for one in own) for word in said.names)
        return {
            "by rules": float(by_rules),
            "values left out": float(len(said.values - used)),
            "columns left out": float(left),
            "names rows": float(table.label in query.targets),
        }
