"""Conditions that compare two columns of one row: paid after it was due, as many goals as theirs.

Which two columns can be compared is told by their types, units and values alone; which of these
comparisons a question means is left to the model (`clew.agents.tables.judge`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from clew.agents.tables.load import Column, Table
from clew.agents.tables.reading import Filter, Query

_MAX_PAIRS = 5  # pairs of columns that are proposed, those most alike first
_MAX_VALUES = 4_000  # of two columns of texts
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "over column": lambda one, other: one > other,
    "under column": lambda one, other: one < other,
    "is column": lambda one, other: one == other,
}


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
    return len(units) > 1


def _measure_overlap(one: Column, other: Column) -> float:
    """Return the share of the range of two columns' numbers that both have."""
    if one.range is None or other.range is None:
        return 0.0
    lows, highs = zip(one.range, other.range, strict=True)
    whole = max(highs) - min(lows)
    return max(0.0, min(highs) - max(lows)) / whole if whole else 1.0
