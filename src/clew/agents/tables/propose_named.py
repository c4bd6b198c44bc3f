"""Proposes what may be asked of rows and groups that a question names.

Of two: whether one has more, how much more, how many times as much. Of one: whether it is the one
with the most. Of a total: whether it is over a number.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from clew.agents.tables.asked import Asked
from clew.agents.tables.column_pairs import list_column_filters
from clew.agents.tables.reading import Filter, Query

_TWO = 2
_MAX_MEASURES = 4  # columns by which what is named is compared, the likeliest first
_MAX_TOTALS = 2  # … of which totals are compared with a number
_ORDERED = ("number", "date", "time")


@dataclass(frozen=True)
class Measures:
    """By what things that are named may be compared, the likeliest first."""

    columns: tuple[str, ...]
    extremes: tuple[tuple[str, str], ...]
    """Columns with max or min; "" is the number of rows."""
    has_means: bool

    @classmethod
    def choose(cls, base: Query, parts: Sequence[tuple[str, str]]) -> "Measures":
        """Return what parts of a query, kinds with their columns, compare by."""
        columns = base.table.columns
        known = [(kind, name) for kind, name in parts if not name or _is_ordered(base, name)]
        names = dict.fromkeys(name for _, name in known if name)
        extremes = [(name, kind) for kind, name in known if kind in ("max", "min")]
        counted = {"most": "max", "fewest": "min"}
        extremes += [("", counted[kind]) for kind, _ in known if kind in counted]
        has_means = any(kind == "mean" for kind, _ in known)
        some = [name for name in names if columns[name].type in _ORDERED]
        return cls(tuple(some[:_MAX_MEASURES]), tuple(extremes), has_means)


def _is_ordered(base: Query, name: str) -> bool:
    column = base.table.columns[name]
    return column.is_quantity or column.type in ("date", "time")


def make_named(
    asked: Asked, base: Query, parts: Sequence[tuple[str, str]], may_check: bool
) -> Iterator[Query]:
    """Yield what a question may ask of the rows or groups that a set of conditions names."""
    measures = Measures.choose(base, parts)
    named = [one for one in base.filters if one.how == "=" and not one.negated and one.at >= 0]
    for name in dict.fromkeys(one.column for one in named):
        own = [one for one in named if one.column == name]
        if len(own) == _TWO:
            yield from _compare_two(asked, replace(base, group=name), measures, may_check)
    if may_check:
        yield from _check_named(base, measures)
        yield from _check_bounds(asked, base, measures)
    if not asked.is_yes_no and len(named) == 1:
        yield from _subtract_columns(base, measures)


def _check_named(base: Query, measures: Measures) -> Iterator[Query]:
    """Yield whether the only one of its column that is named, by whatever word, is the best."""
    named = [one for one in base.filters if one.how == "=" and not one.negated]
    for own in named:
        if sum(one.column == own.column for one in named) == 1:
            yield from _check_best(base, own, measures)


def _compare_two(asked: Asked, base: Query, measures: Measures, may_check: bool) -> Iterator[Query]:
    """Yield whether one of two has more, and how much more it has."""
    is_one = base.table.columns[base.group].is_key
    sizes = [(name, "") for name in measures.columns if name != base.group]
    if measures.has_means and not is_one:
        sizes += [(name, "mean") for name, _ in sizes if base.table.columns[name].is_quantity]
    sizes += [] if is_one else [("", "")]
    for measure, aggregate in sizes:
        sized = replace(base, measure=measure, aggregate=aggregate)
        if may_check:
            yield from (replace(sized, wants="check", best=best) for best in ("max", "min"))
        if not asked.is_yes_no:
            yield from _choose(sized, is_one)
            yield from (replace(sized, wants="difference", best=b) for b in ("max", "min", ""))
            if not measure or base.table.columns[measure].is_quantity:
                yield replace(sized, wants="ratio")


def _choose(sized: Query, is_one: bool) -> Iterator[Query]:
    """Yield which of two has more, or less."""
    for best in ("max", "min"):
        if is_one:
            named = (sized.group,)
            yield replace(sized, wants="best", best=best, group="", targets=named)
        elif not sized.measure or sized.table.columns[sized.measure].is_quantity:
            how = sized.aggregate or "sum" * bool(sized.measure)
            yield replace(sized, wants="group", best=best, aggregate=how)


def _check_best(base: Query, own: Filter, measures: Measures) -> Iterator[Query]:
    """Yield whether the row or group that is named is the one with the most."""
    rest = tuple(one for one in base.filters if one is not own)
    checked = replace(base, wants="check", filters=(*rest, own))
    is_one = base.table.columns[own.column].is_key
    for measure, best in measures.extremes:
        ranked = replace(checked, measure=measure, best=best)
        if measure == own.column or (is_one and not measure):
            continue
        if is_one:
            yield replace(ranked, targets=(own.column,))
        elif not measure:
            yield replace(ranked, group=own.column)
        else:
            yield replace(ranked, targets=(own.column,))  # by its best row
            if base.table.columns[measure].is_quantity:
                how = ("sum", "mean") if measures.has_means else ("sum",)
                yield from (replace(ranked, group=own.column, aggregate=one) for one in how)


def _check_bounds(asked: Asked, base: Query, measures: Measures) -> Iterator[Query]:
    """Yield whether a total or a number of rows is over or under a number of the question."""
    columns, taken = base.table.columns, {one.at for one in base.filters}
    if any(columns[one.column].is_key and one.how == "=" for one in base.filters):
        return  # one row has no total
    totals = [name for name in measures.columns if columns[name].is_quantity][:_MAX_TOTALS]
    for at, value in asked.numbers:
        for sign in () if at in taken else (asked.signs.get(at, ""),):
            for bound in ((sign, value),) if sign else ((">", value), ("<", value)):
                made = replace(base, wants="check", bound=bound)
                yield from (replace(made, measure=name) for name in ("", *totals))


def _subtract_columns(base: Query, measures: Measures) -> Iterator[Query]:
    """Yield how far two alike columns of what is named lie apart."""
    ordered = [one for name, one in base.table.columns.items() if _is_ordered(base, name)]
    for one in list_column_filters(base.table, ordered):
        if one.how == "over column" and not one.columns.isdisjoint(measures.columns):
            yield replace(base, wants="difference", measure=one.column, second=one.value)
