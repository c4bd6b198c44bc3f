"""Tells whether a query counts what a question counts: "how many halls" are rooms, not bookings.

The noun behind "how many" says what is counted. If it is a value of a column, the rows of the table
that has this column are counted: not the rows of another table that refers to it, not all rows, and
no column that the question does not name.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from clew.agents.rules.table import table_for
from clew.agents.rules.table_words import (
    Word,
    is_same_word,
    load_operators,
    split_question,
    strip_plural,
)
from clew.agents.tables.load import Column, Table
from clew.agents.tables.reading import Query
from clew.ingest.readers.tables import split_column

_MONEY = frozenset({"pay", "turnover", "price"})  # concepts
_ROWS_COUNTED = ("count", "group", "groups", "check", "difference", "ratio", "share")
_KINDS = 500  # different values among which a noun is looked for
_COMPUTED = ("count", "distinct", "aggregate", "value", "best", "share")


class Counted:
    """What a question counts, over some tables."""

    def __init__(self, question: str, tables: Sequence[Table]) -> None:
        self._words = split_question(question)
        self._tables = tables

    def is_missed(self, query: Query) -> bool:
        """Whether a query computes something else than how many there are of what is counted."""
        if query.wants not in _COMPUTED:
            return False
        if query.wants in ("count", "distinct") and self._counts_other(query):
            return True
        if not self._values:
            return False
        if self._names_rows(query.table):
            return False
        columns = {
            one.column
            for one in query.filters
            if not one.negated and any(form in one.value.split() for form in self._values)
        }
        if not columns:
            return True
        if query.wants != "count":
            return not self._names_column(query)
        return any(columns <= one.columns for one in query.table.partners)

    def _counts_other(self, query: Query) -> bool:
        """Whether rows are counted that are not what the question counts.

        A row that is named is one, whatever it has; and cows are not counted by rows of cow milk.
        """
        if not self._noun or self._names_rows(query.table):
            return False
        if query.wants == "count" and self._table and query.unlinked is None:
            return True
        columns = query.table.columns
        exact = [columns[one.column] for one in query.filters if one.how == "=" and not one.negated]
        if query.wants == "count" and any(one.is_key and one.type == "text" for one in exact):
            return True
        return len(self._noun) == 1 and self._is_kind(list(columns.values()))

    def _is_kind(self, columns: Sequence[Column]) -> bool:
        """Whether the noun stands in values only before what they are: "cow" of "cow milk"."""
        own = {self._noun[0].fold, self._noun[0].stem}
        texts = [one for one in columns if one.type == "text" and len(one.rows_by_value) <= _KINDS]
        values = [value.split() for one in texts for value in one.rows_by_value]
        having = [words for words in values if not own.isdisjoint(words)]
        return bool(having) and all(own.isdisjoint(words[-1:]) for words in having)

    def names(self, column: Column) -> bool:
        """Whether what is counted is called as a column is, in the plural: no "bike types"."""
        heads = [word for word in self._noun if word.fold != word.stem] + self._noun[-1:]
        return any(is_same_word(word.fold, own) for word in heads for own in column.words[-1:])

    @cached_property
    def _noun(self) -> list[Word]:
        """The words behind "how many" up to a verb or a preposition: the noun with its kind."""
        operators = load_operators()
        folds = [word.fold for word in self._words]
        starts = [at + 2 for at in range(len(folds) - 1) if folds[at : at + 2] == ["how", "many"]]
        found: list[Word] = []
        for word in self._words[starts[0] :] if starts else []:
            if word.fold in operators.auxiliaries or word.fold in operators.fillers:
                break
            found.append(word)
        return found

    @cached_property
    def _table(self) -> str:
        """The table whose name ends with the noun: its rows are counted, and no others."""
        last = self._noun[-1].stem if self._noun else ""
        named = [one for one in self._tables if split_column(one.stem)[-1:]]
        having = [one for one in named if strip_plural(split_column(one.stem)[-1]) == last]
        return having[0].name if having else ""

    @cached_property
    def _values(self) -> frozenset[str]:
        """The words of the noun that are values of a table's texts."""
        forms = {form for word in self._noun for form in (word.fold, word.stem)}
        columns = [one for table in self._tables for one in table.columns.values()]
        texts = [one.rows_by_value for one in columns if one.type == "text"] if forms else []
        return frozenset(form for form in forms if any(form in one for one in texts))

    def _names_rows(self, table: Table) -> bool:
        """Whether the noun names the table itself or one of its own columns: "lab bookings"."""
        brought = {name for one in table.partners for name in one.columns}
        own = {
            word for name in table.columns.keys() - brought for word in table.columns[name].words
        }
        names = own | table.own_words
        return any(is_same_word(word.fold, name) for word in self._noun for name in names)

    def _names_column(self, query: Query) -> bool:
        """Whether a question names the column that is added up, counted or told."""
        columns = query.table.columns
        shown = [columns[name] for name in {query.measure, *query.targets} if name]
        return any(
            one.is_stock
            or any(is_same_word(word.fold, own) for word in self._words for own in one.words)
            for one in shown
        )


def count_rows(question: str, query: Query) -> Query | None:
    """Return what counts the rows, where the different values of a column are counted unasked.

    "How many bikes came in June" may ask for the rows, each a bike, as well as for kinds of bikes.
    """
    words, table = split_question(question), query.table
    if query.wants != "distinct" or any(load_operators().find("distinct", words)):
        return None
    column = table.columns[query.targets[0]]
    is_brought = any(column.name in one.columns for one in table.partners)
    if is_brought or not Counted(question, [table]).names(column):
        return None
    return replace(query, wants="count", targets=())


def says_kinds(column: Column) -> bool:
    """Whether values of a column end in what it is called: a cargo bike is a bike."""
    values = [value.split() for value in column.rows_by_value]
    return column.tells_kinds and any(
        len(value) > 1 and is_same_word(value[-1], column.words[-1]) for value in values
    )


def counts_unknown(question: str, query: Query) -> bool:
    """Whether rows are counted for a noun that names neither the table, a column nor a value.

    "How many bees does the hive have" is not told by how often it was checked.
    """
    if query.measure or query.targets or query.wants not in _ROWS_COUNTED:
        return False
    operators, words = load_operators(), split_question(question)
    noun: list[str] = []
    for word in words[_find_counted(words) :]:
        if word.fold in operators.auxiliaries or word.fold in operators.fillers:
            break
        noun.append(word.fold)
    table = query.table
    known = table.words.union(word for one in table.columns.values() for word in one.words)
    known = known.union(word for one in query.filters for word in one.value.split())
    concepts = {concept for own in table.own_words for concept in operators.concepts_of(own)}
    return bool(noun) and not any(
        operators.concepts_of(word) & concepts or any(is_same_word(word, own) for own in known)
        for word in noun
    )


def _find_counted(words: Sequence[Word]) -> int:
    """Return where the noun stands behind "how many", "the most" or "the fewest"."""
    operators = load_operators()
    found = [end for _, end, meaning in operators.find("asks", words) if meaning == "count"]
    amounts = operators.find("superlatives", words)
    found += [end for _, end, meaning in amounts if meaning in ("most", "fewest")]
    return found[0] if found else len(words)


def lacks_money(question: str, query: Query) -> bool:
    """Whether money is asked for and the column that is told, by another word, has none: litres."""
    if table_for(question).find_asked_measure(question) != "money":
        return False
    concepts = load_operators().concepts_of
    words = [word.fold for word in split_question(question) if not concepts(word.fold) & _MONEY]
    told = [query.measure] if query.wants == "aggregate" else list(query.targets)
    columns = [query.table.columns[name] for name in told if name]
    return any(
        one.is_quantity
        and one.measures != "money"
        and not any(concepts(own) & _MONEY for own in one.words)
        and any(is_same_word(word, own) for word in words for own in one.words)
        for one in columns
    )
