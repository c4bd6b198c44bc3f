"""What a question says that every query must say too: periods, ages, what is counted or compared.

Queries are proposed by structure, and the model that chooses among them may pass over a word. A
query that leaves one of these out answers another question, whatever its chance.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

from clew.agents.rules.table_words import Word, is_same_word, load_operators
from clew.agents.tables.asked import Asked
from clew.agents.tables.column_pairs import (
    SaidComparisons,
    find_ranked,
    find_worth,
    name_columns,
)
from clew.agents.tables.counted import Counted
from clew.agents.tables.load import Table
from clew.agents.tables.reading import Filter, Query, find_named_before
from clew.agents.tables.values import load_vocabulary

_AGES = ("old", "young")
_AMOUNTS = frozenset("more less fewer number".split())  # of what is counted or added up
_TWO = 2  # things that are compared
_ADDED = ("aggregate", "group", "groups")
_COMPARED = ("check", "difference", "ratio")
_SINGLE = ("one", "single", "whose")
_NUMBER_OF = ["number", "of"]


class Said:
    """What a question says, over some tables."""

    def __init__(self, question: str, tables: Sequence[Table]) -> None:
        self._asked = Asked(question)
        self._tables = tables
        self._counted = Counted(question, tables)
        self._compared = SaidComparisons(self._asked.words)
        self._names_number = _names_number(self._asked, tables)
        self._joined = JoinedTables(self._asked, tables)

    def is_missed(self, query: Query) -> bool:
        """Whether a query leaves out or denies what the question says."""
        return (
            self._counted.is_missed(query)
            or self._compared.is_missed(query)
            or self._misses_period(query)
            or self._misses_age(query)
            or self._misses_worth(query)
            or self._misses_kind(query)
            or self._misses_things(query)
            or self._misses_row(query)
            or any(self._misses_side(query.table, one) for one in query.filters)
            or self._tells_owned(query)
            or self._misses_measure(query)
            or self._joined.is_missed(query)
            or self._is_of_another(query)
            or (self._names_number and query.wants in ("count", "distinct"))
        )

    def _is_of_another(self, query: Query) -> bool:
        """Whether what is asked for names a column of another table, and nothing names this one.

        "Who was hired first" is not asked of what was opened, if another table knows who was hired.
        """
        columns = query.table.columns
        if any(columns[one.column].type == "text" and one.at >= 0 for one in query.filters):
            return False  # it has a value that is said
        if not self._content:
            return False
        first, *rest = self._content
        own = _list_names(query.table)
        own |= _list_names(query.unlinked.table) if query.unlinked else frozenset()
        if any(is_same_word(word.fold, name) for word in (first, *rest) for name in own):
            return False
        return any(not {first.fold, first.stem}.isdisjoint(_list_names(t)) for t in self._tables)

    @cached_property
    def _content(self) -> list[Word]:
        """The words that are neither operators nor without meaning."""
        operators, words = load_operators(), self._asked.words
        taken = {
            at
            for kind in ("asks", "superlatives", "degrees", "aggregates", "distinct")
            for start, end, _ in operators.find(kind, words)
            for at in range(start, end)
        }
        known = self._asked.fillers
        return [w for at, w in enumerate(words) if at not in taken and w.fold not in known]

    def _misses_period(self, query: Query) -> bool:
        """Whether no condition stands where the question names a period."""
        periods = [one for one in self._asked.periods if not one.is_years]
        filters = [*query.filters, *(query.unlinked.filters if query.unlinked else ())]
        return any(not any(one.covers(f.at) for f in filters) for one in periods)

    def _misses_kind(self, query: Query) -> bool:
        """Whether yes or no is asked and another thing told, or the other way round."""
        is_check = query.wants == "check"
        return self._asked.is_open if is_check else self._asked.is_yes_no

    def _misses_things(self, query: Query) -> bool:
        """Whether "larger" is asked of things with rows of their own, and what refers to them told.

        A farm is larger than another by what its own row says, not by its deliveries.
        """
        if query.wants not in _COMPARED or len(query.named) < _TWO:
            return False
        operators, values = load_operators(), {one.value for one in query.named}
        taken = _AMOUNTS.union(word for value in values for word in value.split())
        if any(operators.find("aggregates", self._asked.words)):
            return False  # "in total"
        if not any(operators.degree_of(w.fold) for w in self._asked.words if w.fold not in taken):
            return False
        if query.measure and self._names(query.table.columns[query.measure].words):
            return False
        if query.table.columns[query.group].is_key:
            return False
        keys = [o for t in self._tables for o in t.columns.values() if o.is_key and not o.is_id]
        return any(values <= one.rows_by_value.keys() for one in keys)

    def _misses_row(self, query: Query) -> bool:
        """Whether groups are ranked where one row is asked for: "whose repair", "in one stay"."""
        if query.wants != "group":
            return False
        words, table = self._asked.words, query.table
        keys = [one for one in table.columns.values() if one.is_key]
        rows = table.own_words.union(*(one.words for one in keys))
        group = table.columns[query.group].words
        asking = {end for _, end, _ in load_operators().find("asks", words)}
        return any(
            word.fold == word.stem
            and (at in asking or words[at - 1].fold in _SINGLE)
            and any(is_same_word(word.fold, own) for own in rows)
            and not any(is_same_word(w.fold, own) for w in words[at : at + 2] for own in group)
            for at, word in enumerate(words[1:], 1)
        )

    def _misses_side(self, table: Table, one: Filter) -> bool:
        """Whether the word before a value names another column that has it: "to Oslo"."""
        having = [
            column
            for column in table.columns.values()
            if column.type == "text" and one.value in column.rows_by_value
        ]
        named = find_named_before(self._asked.words, max(one.at, 0), having)
        return bool(named) and one.how == "=" and one.column not in {c.name for c in named}

    def _tells_owned(self, query: Query) -> bool:
        """Whether "whose dog" is answered by the dog, or by dogs that are counted."""
        words, table = self._asked.words, query.table
        owned = [later.fold for one, later in pairwise(words) if one.fold == "whose"]
        told = [*query.targets, *([query.group] if query.wants in _ADDED else [])]
        own = {word for name in told if name for word in table.columns[name].words}
        return any(is_same_word(fold, one) for fold in owned for one in own)

    def _names(self, own: Sequence[str]) -> bool:
        """Whether the question has one of some words."""
        return any(is_same_word(word.fold, one) for word in self._asked.words for one in own)

    def _misses_measure(self, query: Query) -> bool:
        """Whether "what is the highest rate" is told by who has it, though nothing names these."""
        folds, table = [word.fold for word in self._asked.words], query.table
        if query.wants not in ("best", "group") or folds[:1] != ["what"]:
            return False
        told = {*query.targets, query.group} - {""}
        if (
            folds[1:2] not in (["is"], ["was"])
            or not told
            or query.measure not in find_ranked(self._asked.words, table)
        ):
            return False
        named = {word for name in told for word in table.columns[name].words} | table.own_words
        return not any(is_same_word(fold, one) for fold in folds for one in named)

    def _misses_worth(self, query: Query) -> bool:
        """Whether what things are worth is asked, and only their price or number is told."""
        if not self._asked.is_of_worth or (both := find_worth(query.table)) is None:
            return False
        told = {query.measure, *query.targets} - {""}
        return bool(told & {*both}) and not query.second

    def _misses_age(self, query: Query) -> bool:
        """Whether "oldest" is ranked by a time that is not of what is told, or "largest" by any.

        The first gift is not of the oldest donor; how old persons are, only their birth says.
        """
        if not query.best or not query.measure:
            return False
        table, column = query.table, query.table.columns[query.measure]
        is_time = column.type == "date" or column.has_years
        if is_time and query.wants == "best" and self._asks_size:
            return True
        if not self._asks_age:
            return False
        if not is_time or not load_operators().ages.isdisjoint(column.words):
            return False
        told = {*query.targets, query.group} - {"", query.measure}
        partner = next((one for one in table.partners if query.measure in one.columns), None)
        own = table.label if partner is None else partner.label
        is_other = bool(self._find_asked(table) - {own})
        return self._asked.words[0].fold == "who" or is_other or not told <= {own}

    def _find_asked(self, table: Table) -> set[str]:
        """Return the column of texts that is named right behind "which"."""
        texts = [one for one in table.columns.values() if one.type == "text"]
        return {name for at, _, name in name_columns(self._asked.words, texts) if at == 1}

    @property
    def _asks_size(self) -> bool:
        """Whether a superlative is of sizes, weights or prices."""
        operators = load_operators()
        ranked = [word.fold for word in self._asked.words if operators.degree_of(word.fold, "est")]
        kinds = [operators.measured_by(fold) for fold in ranked]
        return any(kinds) and not any("time" in one for one in kinds)

    @property
    def _asks_age(self) -> bool:
        phrases = load_operators().phrases
        known = phrases["superlatives"] | phrases["degrees"]
        return any(known.get((word.fold,)) in _AGES for word in self._asked.words)


class JoinedTables:
    """Tells which queries over joined tables ask for nothing: an order repeats what its client is.

    What a linked table says of its rows stands once for each row that refers to them, so that it
    can be told, and rows chosen by it, but not added up; what is asked of it alone is asked of that
    table. The numbers that link two tables stand for names.
    """

    def __init__(self, asked: Asked, tables: Sequence[Table]) -> None:
        self._links = {
            (table.name, one.link)
            for table in tables
            for one in table.partners
            if one.label and not one.repeats_link(table)
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


def _list_names(table: Table) -> frozenset[str]:
    """Return the words of a table's name and of its columns'."""
    return table.words.union(word for one in table.columns.values() for word in one.words)


def _names_number(asked: Asked, tables: Sequence[Table]) -> bool:
    """Whether "number of" ends the name of a column of texts or codes: "the phone number of"."""
    folds = [word.fold for word in asked.words]
    names = [
        own
        for table in tables
        for one in table.columns.values()
        if one.has_digits
        for own in one.words
    ]
    before = [folds[at - 1] for at in range(1, len(folds)) if folds[at : at + 2] == _NUMBER_OF]
    return any(is_same_word(word, name) for word in before for name in names)
