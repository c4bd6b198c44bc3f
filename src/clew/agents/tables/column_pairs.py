"""Conditions that compare two columns of one row: paid after it was due, as many goals as theirs.

Which two columns can be compared is told by their types, units and values alone; which of these
comparisons a question means is left to the model (`clew.agents.tables.judge`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from clew.agents.rules.table_words import Word, is_same_word, load_operators
from clew.agents.tables.load import Column, Table
from clew.agents.tables.reading import COLUMN_SIGNS, Filter, Mention, Query
from clew.agents.tables.values import load_vocabulary

_MAX_PAIRS = 5  # pairs of columns that are proposed, those most alike first
_MAX_VALUES = 4_000  # of two columns of texts
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "over column": lambda one, other: one > other,
    "under column": lambda one, other: one < other,
    "is column": lambda one, other: one == other,
}

# What a phrase before the name of a column says of the other one; how far it may stand away.
_SIDES = dict.fromkeys((">", ">=", "after", "since"), "over column")
_SIDES |= dict.fromkeys(("<", "<=", "before", "until"), "under column")
_MAX_BETWEEN = 2  # words: "below the usual level", "quantity is below"
_DENIALS = frozenset("not never no".split())


def make_column_test(column: Column, other: Column, one: Filter) -> Callable[[int], bool]:
    """Return what tells whether a row's values compare as a condition says; both must be there."""
    if column.type not in ("number", "date", "time"):
        return lambda row: (
            (own := column.folded[row]) is not None
            and (theirs := other.folded[row]) is not None
            and (own == theirs) != one.negated
        )
    compare = _COMPARE[one.how]
    return lambda row: (
        (own := column.numbers[row]) is not None
        and (theirs := other.numbers[row]) is not None
        and compare(own, theirs) != one.negated
    )


def swap_columns(one: Filter) -> Filter:
    """Return the same condition said from the other column: due before it was paid."""
    turned = {"over column": "under column", "under column": "over column"}
    return Filter(one.value, turned.get(one.how, one.how), one.column, one.negated)


def list_column_filters(table: Table, columns: Sequence[Column]) -> Iterator[Filter]:
    """Yield the comparisons of two of these columns that make sense, each from both sides."""
    alike = {(a.name, b.name): _measure_likeness(a, b) for a, b in combinations(columns, 2)}
    there = sorted((pair for pair in alike if alike[pair]), key=lambda pair: -alike[pair])
    for first, second in there[:_MAX_PAIRS]:
        if table.columns[first].type in ("number", "date", "time"):
            for one in (Filter(first, how, second) for how in ("over column", "under column")):
                yield from (one, swap_columns(one))
        yield Filter(first, "is column", second)
        yield Filter(first, "is column", second, negated=True)


def name_columns(words: Sequence[Word], columns: Sequence[Column]) -> list[Mention]:
    """Return where the words of a question name columns: the longest name at each place."""
    found: list[Mention] = []
    at = 0
    while at < len(words):
        held = [
            (len(one.words), one.name)
            for one in columns
            if one.words
            and len(words) - at >= len(one.words)
            and all(map(is_same_word, (w.fold for w in words[at:]), one.words))
        ]
        size, name = max(held, default=(0, ""))
        if size:
            found.append((at, at + size, name))
        at += max(1, size)
    return found


def find_sides(
    words: Sequence[Word], table: Table, filters: Sequence[Filter]
) -> dict[str, tuple[str, str]]:
    """Return the columns that a question compares another one with: the side, and which other.

    "Below the reorder level" tells on which side of that column the other one is, and a column that
    is named before it ("a quantity below …") is the other one; "" if none is.
    """
    compared = {frozenset((one.column, one.value)) for one in filters}
    named = name_columns(words, list(table.columns.values()))
    said: dict[str, tuple[str, str]] = {}
    for start, end, sign in load_operators().find("comparisons", words):
        denied = start > 0 and words[start - 1].fold in _DENIALS
        if end < len(words) and _is_number(words[end]):
            continue  # "more than 45 minutes" compares them with a number
        follow = [one for one in named if end <= one[0] <= end + _MAX_BETWEEN]
        if any(_is_number(words[until]) for _, until, _ in follow if until < len(words)):
            continue  # "below Elo 2100", too
        behind = [name for _, _, name in follow]
        there = behind and any(behind[0] in pair for pair in compared)
        if there and sign in _SIDES and not denied:
            near = [name for _, until, name in named if start - _MAX_BETWEEN <= until <= start]
            before = [name for name in near if {name, behind[0]} in compared]
            said[behind[0]] = (_SIDES[sign], before[-1] if before else "")
    return said


def _is_number(word: Word) -> bool:
    return word.fold[:1].isdigit() or (word.fold,) in load_operators().phrases["numbers"]


def agrees(one: Filter, said: Mapping[str, tuple[str, str]]) -> bool:
    """Whether a comparison of two columns does not deny what a question says of them."""
    sides = ((one.value, one.column, one.how), (one.column, one.value, swap_columns(one).how))
    known = [(said[to], other, how) for to, other, how in sides if to in said]
    return all(side == how and before in ("", other) for (side, before), other, how in known)


def find_ranked(words: Sequence[Word], table: Table) -> frozenset[str]:
    """Return the columns that are named right behind a word of degree: "the lowest quantity"."""
    operators = load_operators()
    ends = {end for _, end, _ in operators.find("superlatives", words)}
    ends |= {at + 1 for at, word in enumerate(words) if operators.degree_of(word.fold, "est")}
    columns = list(table.columns.values())
    named = {name for at, _, name in name_columns(words, columns) if at in ends}
    units = load_vocabulary().units
    without = {one.name: one.words[:-1] for one in columns if one.last_of_name in units}
    named |= {
        name
        for name, own in without.items()
        for at in ends
        if own and [word.fold for word in words[at : at + len(own)]] == [*own]
    }
    return frozenset(named)


class SaidComparisons:
    """What a question says of two columns of a row, over each table that is asked."""

    def __init__(self, words: Sequence[Word]) -> None:
        self._words = words
        self._said: dict[int, dict[str, tuple[str, str]]] = {}
        self._ranked: dict[int, frozenset[str]] = {}

    def is_missed(self, query: Query) -> bool:
        """Whether a query leaves out that columns are compared as a question says, or denies it.

        Or ranks the rows by another column than the one behind the only word of degree.
        """
        table = query.table
        if id(table) not in self._ranked:
            self._ranked[id(table)] = find_ranked(self._words, table)
        ranked = self._ranked[id(table)]
        is_other = len(ranked) == 1 and query.measure not in ranked
        if query.best and query.measure and is_other and not self._says(query, ranked):
            return table.columns[next(iter(ranked))].is_quantity
        if id(table) not in self._said:
            columns = list(table.columns.values())
            pairs = list(list_column_filters(table, columns))
            self._said[id(table)] = find_sides(self._words, table, pairs)
        said = self._said[id(table)]
        if not said or query.wants in ("difference", "ratio", "check"):
            return False
        own = [one for one in query.filters if one.how in COLUMN_SIGNS]
        return not all(
            any(name in one.columns and agrees(one, said) for one in own) for name in said
        )

    def _says(self, query: Query, ranked: frozenset[str]) -> bool:
        """Whether a word that only the measure is called by is said: "returned the most rolls"."""
        columns = query.table.columns
        others = {word for name in ranked for word in columns[name].words}
        own = [word for word in columns[query.measure].words if word not in others]
        return any(is_same_word(word.fold, one) for word in self._words for one in own)


def make_differences(base: Query, measures: Sequence[str]) -> Iterator[Query]:
    """Yield how far two rows that are named lie apart in a column, or a row in two columns."""
    columns = base.table.columns
    named = [one.column for one in base.filters if one.how == "=" and not one.negated]
    twice = [name for name in dict.fromkeys(named) if named.count(name) == 2]
    numeric = [name for name in measures if columns[name].is_quantity and name not in named]
    for name in twice:
        for measure in numeric:
            yield replace(base, wants="difference", measure=measure, group=name)
    if twice or not named:
        return
    for one in list_column_filters(base.table, [columns[name] for name in numeric]):
        if one.how == "over column":
            yield replace(base, wants="difference", measure=one.column, second=one.value)


def _measure_likeness(one: Column, other: Column) -> float:
    """Return how alike the values of two columns are, more if their names are; 0 if not at all."""
    if one.type != other.type or one.is_id or other.is_id or one.has_years != other.has_years:
        return 0.0
    if one.type == "text":
        own, theirs = one.rows_by_value.keys(), other.rows_by_value.keys()
        small = len(own) + len(theirs) <= _MAX_VALUES
        shared = len(own & theirs) / len(own | theirs) if small and own else 0.0
    elif one.type == "flag" or one.is_rank != other.is_rank or _differ_in_unit(one, other):
        return 0.0
    else:
        shared = _measure_overlap(one, other)
    named_alike = not set(one.words).isdisjoint(other.words)
    return shared + named_alike if shared else 0.0


def _differ_in_unit(one: Column, other: Column) -> bool:
    units = {column.shown_unit[0].casefold() for column in (one, other)} - {""}
    measured = {one.measures, other.measures} - {""}
    return len(units) > 1 or len(measured) > 1


def _measure_overlap(one: Column, other: Column) -> float:
    """Return the share of the range of two columns' numbers that both have."""
    if one.range is None or other.range is None:
        return 0.0
    lows, highs = zip(one.range, other.range, strict=True)
    whole = max(highs) - min(lows)
    return max(0.0, min(highs) - max(lows)) / whole if whole else 1.0


def find_worth(table: Table) -> tuple[str, str] | None:
    """Return the price and the stock of rows that have both, and no column of what they are worth.

    What the things of a row are worth is then the product of the two.
    """
    concepts, columns = load_operators().concepts_of, table.columns
    named = {name: {c for w in one.words for c in concepts(w)} for name, one in columns.items()}
    stocks = [name for name, one in columns.items() if one.is_stock]
    others = [name for name, one in columns.items() if one.is_quantity and name not in stocks]
    prices = [name for name in others if "price" in named[name]]
    if len(stocks) != 1 or len(prices) != 1 or any("turnover" in named[name] for name in others):
        return None
    return prices[0], stocks[0]
