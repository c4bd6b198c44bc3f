"""Runs a query over a table's rows: filter, group, aggregate; the rows used are the evidence."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from statistics import fmean, median
from typing import Any

from clew.agents.core.messages import NO, YES
from clew.agents.rules.table_words import fold_text
from clew.agents.tables.column_pairs import make_column_test
from clew.agents.tables.load import Column, Table
from clew.agents.tables.periods import is_within, list_whole_years
from clew.agents.tables.reading import COLUMN_SIGNS, Filter, Query
from clew.agents.tables.values import is_year, load_vocabulary
from clew.text.dates import parse_clock, parse_whole_date
from clew.text.quantities import parse_number, split_unit, to_float

_AGGREGATES: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "mean": fmean,
    "median": median,
    "max": max,
    "min": min,
    "range": lambda numbers: max(numbers) - min(numbers),
}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "=": lambda one, other: one == other,
    "<": lambda one, other: one < other,
    ">": lambda one, other: one > other,
    "<=": lambda one, other: one <= other,
    ">=": lambda one, other: one >= other,
}
_MATCH: dict[str, Callable[[str, str], bool]] = {
    "=": lambda cell, part: cell == part,
    "contains": lambda cell, part: part in cell,
    "starts": lambda cell, part: cell.startswith(part),
    "ends": lambda cell, part: cell.endswith(part),
}
MULTIPLIED = ("aggregate", "group", "groups")
"""What a query wants where it multiplies its two measures."""
_TWO = 2  # rows or groups that are compared
_DENYING = ("flag", *COLUMN_SIGNS)  # conditions whose tests see to their denial


@dataclass(frozen=True)
class TableResult:
    """The values that answer, and the rows they are from; `number` for one that was computed."""

    values: tuple[str, ...]
    rows: tuple[int, ...]
    number: float | None = None


def run_query(query: Query) -> TableResult | None:
    """Return what the rows say, or None if no row fits."""
    rows = _drop_linked(query, find_rows(query.table, query.filters))
    if query.wants == "count":
        return TableResult((str(len(rows)),), tuple(rows), len(rows))
    compute = _COMPUTED.get(query.wants)
    if compute is not None:
        return compute(query, rows)
    return _read_values(query.table, query.targets, rows)


def find_answer(query: Query) -> TableResult | None:
    """Return what the rows say, or None if there is nothing to tell; a count may be 0."""
    result = run_query(query)
    return result if result is not None and (result.rows or query.wants == "count") else None


def _drop_linked(query: Query, rows: list[int]) -> list[int]:
    """Return the rows that nothing of another table refers to, where that is asked for."""
    if (other := query.unlinked) is None:
        return rows
    used = {other.rows[row] for row in find_rows(other.table, other.filters)}
    return [row for row in rows if row not in used]


def find_rows(table: Table, filters: Sequence[Filter]) -> list[int]:
    """Return the rows that satisfy all filters; values of one column are alternatives."""
    found = list(range(len(table)))
    for some in group_filters(filters):
        tests = [(_make_test(table, one), one.negated and one.how not in _DENYING) for one in some]
        found = [row for row in found if any(test(row) != negated for test, negated in tests)]
    return found


def group_filters(filters: Sequence[Filter]) -> list[list[Filter]]:
    """Group the values that one column may have; every other filter stands alone."""
    groups: dict[object, list[Filter]] = defaultdict(list)
    for one in filters:
        alternative = one.how == "=" and not one.negated
        groups[one.column if alternative else one].append(one)
    return list(groups.values())


def _make_test(table: Table, one: Filter) -> Callable[[int], bool]:
    column = table.columns[one.column]
    if one.how in COLUMN_SIGNS:
        return make_column_test(column, table.columns[one.value], one)
    if one.how == "within":
        return _make_period_test(column, one.value)
    if one.how == "filled":
        return lambda row: column.cells[row] is not None
    if one.how == "flag":
        return lambda row: column.is_true(row) is (not one.negated)
    if one.how == "empty":
        return lambda row: column.cells[row] is None or column.numbers[row] == 0
    if one.how == "year" and column.type == "date":
        return lambda row: (
            (own := column.numbers[row]) is not None
            and str(date.fromordinal(int(own)).year) == one.value
        )
    if one.how == "year":
        return lambda row: str(column.cells[row])[:4] == one.value
    if one.how == "month":
        return lambda row: (
            (own := column.numbers[row]) is not None
            and one.value in date.fromordinal(int(own)).isoformat()
        )
    if column.type == "text" or one.how not in _COMPARE:
        matches, folded = _MATCH[one.how], fold_text(one.value)
        return lambda row: (cell := column.folded[row]) is not None and matches(cell, folded)
    compare, limit = _COMPARE[one.how], _to_number(column, one.value, one.how)
    return lambda row: (
        limit is not None and (own := column.numbers[row]) is not None and compare(own, limit)
    )


def _make_period_test(column: Column, period: str) -> Callable[[int], bool]:
    """Return what tells whether a row's date lies in a period, or its year in whole years."""
    if column.type == "date":
        return lambda row: (
            (own := column.numbers[row]) is not None
            and is_within(date.fromordinal(int(own)), period)
        )
    first, last = list_whole_years(period) or (1, 0)
    return lambda row: (own := column.numbers[row]) is not None and first <= own <= last


def _to_number(column: Column, value: str, how: str) -> float | None:
    """Return the number that a column is compared with, in its unit; of dates the day."""
    if column.type == "date":
        return _to_day(value, is_end=how in (">", "<="))
    if column.type == "time":
        return parse_clock(value)
    number = parse_number(value)
    if number is not None:
        return number
    quantity = split_unit(value)
    known = load_vocabulary().units
    if quantity is None or (number := to_float(quantity.digits, ".")) is None:
        return None
    family, size = known.get(quantity.unit, ("", 1.0))
    own = column.unit[0].casefold() or (column.words[-1] if column.words else "")
    own_family, own_size = known.get(own, (family, size))
    return number * size / own_size if family == own_family else None


def _to_day(value: str, is_end: bool) -> float | None:
    """Return a day's number; of a year or month its last day, or its first."""
    year = parse_number(value)
    if year is not None and year.is_integer() and is_year(year):
        return float(
            date(int(year), 12, 31).toordinal() if is_end else date(int(year), 1, 1).toordinal()
        )
    day = parse_whole_date(value)
    if day is None:
        return None
    if is_end and value.count("-") == 1:
        following = date(day.year + day.month // 12, day.month % 12 + 1, 1)
        return float(following.toordinal() - 1)
    return float(day.toordinal())


def _read_values(table: Table, targets: Sequence[str], rows: Sequence[int]) -> TableResult | None:
    values: dict[str, None] = {}
    used = []
    for row in rows:
        cells = [table.columns[name].cells[row] for name in targets]
        if any(cell is not None for cell in cells):
            shown = [
                _add_unit(table.columns[name], format_cell(cell))
                for name, cell in zip(targets, cells, strict=True)
                if cell is not None
            ]
            values[", ".join(shown)] = None
            used.append(row)
    return TableResult(tuple(values), tuple(used)) if values else None


def _count_distinct(query: Query, rows: Sequence[int]) -> TableResult | None:
    column = query.table.columns[query.targets[0]]
    first = {fold: row for row in rows if (fold := column.folded[row]) is not None}
    return TableResult((str(len(first)),), tuple(first.values()), len(first))


def _aggregate(query: Query, rows: Sequence[int]) -> TableResult | None:
    numbers = _find_numbers(query)
    used = [row for row in rows if numbers[row] is not None]
    if not used or query.table.columns[query.measure].type != "number":
        return None
    value = _AGGREGATES[query.aggregate]([n for row in used if (n := numbers[row]) is not None])
    return TableResult((_format_quantity(query, value),), tuple(used), value)


def _find_numbers(query: Query) -> Sequence[float | None]:
    """Return the numbers that a query adds up: of its measure, or of two columns multiplied."""
    columns = query.table.columns
    numbers = columns[query.measure].numbers
    if not query.second or query.wants not in MULTIPLIED:
        return numbers
    pairs = zip(numbers, columns[query.second].numbers, strict=True)
    return [None if a is None or b is None else a * b for a, b in pairs]


def _format_quantity(query: Query, value: float) -> str:
    """Format a computed number with the unit of its column's values."""
    column = query.table.columns[query.measure]
    unit, leads = column.shown_unit
    shown = _format_computed(value, column, is_mean=query.aggregate in ("mean", "median"))
    if not unit:
        return shown
    if leads:
        return f"{unit}{' ' * unit.isalpha()}{shown}"
    return f"{shown}{' ' * (unit != '%')}{unit}"


def _add_unit(column: Column, cell: str) -> str:
    """Return a value with the unit that only the name of its column has."""
    unit, leads = column.shown_unit
    if not unit or column.unit[0] or leads or column.type != "number":
        return cell
    return f"{cell} {unit}"


def _format_computed(value: float, column: Column, is_mean: bool) -> str:
    """Format a number as its column does: money with cents or none, means with two decimals."""
    family, _ = load_vocabulary().units.get(column.shown_unit[0].casefold(), ("", 1.0))
    if family == "money" and (abs(value) >= 1 or not value):
        shown = f"{value:,.2f}".removesuffix(".00")
    elif is_mean:
        shown = format_mean(value)
    else:
        shown = f"{value:,.10g}"
    return shown if column.is_grouped else shown.replace(",", "")


def _find_share(query: Query, rows: Sequence[int]) -> TableResult | None:
    if not len(query.table):
        return None
    share = 100 * len(rows) / len(query.table)
    return TableResult((f"{format_mean(share)}%",), tuple(rows), share)


def _check(query: Query, rows: Sequence[int]) -> TableResult | None:
    """Answer yes or no; None if what is named has no row, or no number."""
    if query.bound[0]:
        return _check_bound(query, rows)
    if query.best and len(query.named) != _TWO:
        return _check_best(query, rows)
    if query.best:
        sizes = _size_named(query, rows)
        if len(sizes) != _TWO:
            return None
        is_so = sizes[0] > sizes[1] if query.best == "max" else sizes[0] < sizes[1]
        return TableResult((YES if is_so else NO,), tuple(rows))
    columns, label = query.table.columns, query.table.label
    named = [f for f in query.filters if f.how == "=" and not f.negated]
    named = [f for f in named if f.column == label or columns[f.column].is_key][:1]
    there = find_rows(query.table, named)
    if not there:
        return None
    return TableResult((YES if rows else NO,), tuple(rows or there))


def _check_best(query: Query, rows: Sequence[int]) -> TableResult | None:
    """Whether what is named, the last filter, is among the best of the others' rows or groups."""
    if not query.filters:
        return None
    find = _find_best_group if query.group else _find_best_rows
    best = find(query, find_rows(query.table, query.filters[:-1]))
    if best is None or not rows:
        return None
    is_best = not set(rows).isdisjoint(best.rows)
    return TableResult((YES if is_best else NO,), tuple(dict.fromkeys([*rows, *best.rows])))


def _check_bound(query: Query, rows: Sequence[int]) -> TableResult | None:
    """Whether the total, mean or number of rows is over or under a number."""
    sign, value = query.bound
    size, limit = _measure_named(query, rows), parse_number(value)
    if size is None or limit is None or not rows:
        return None
    return TableResult((YES if _COMPARE[sign](size, limit) else NO,), tuple(rows))


def _size_named(query: Query, rows: Sequence[int]) -> list[float]:
    """Return the numbers of the values that are named, in the question's order."""
    column = query.table.columns[query.group]
    own = [[row for row in rows if column.folded[row] == one.value] for one in query.named]
    return [size for some in own if (size := _measure_named(query, some)) is not None]


def _measure_named(query: Query, rows: Sequence[int]) -> float | None:
    """Return the number of rows, or their sum or mean; of times that of the only row."""
    if not query.measure:
        return float(len(rows))
    column = query.table.columns[query.measure]
    known = any(column.numbers[row] is not None for row in rows)
    if not known or (column.type != "number" and len(rows) > 1):
        return None
    return _measure_group(query, rows)


def _compare_two(query: Query, rows: Sequence[int]) -> TableResult | None:
    """Return the difference or ratio of two rows or groups, or of two columns of the rows."""
    if query.second:
        both = [replace(query, measure=name) for name in (query.measure, query.second)]
        measured = [_measure_named(one, rows) for one in both]
        sizes = [size for size in measured if size is not None]
    else:
        sizes = _size_named(query, rows)
    if len(sizes) != _TWO or (query.wants == "ratio" and not sizes[1]):
        return None
    if query.wants == "ratio":
        value = sizes[0] / sizes[1]
        return TableResult((format_mean(value),), tuple(rows), value)
    return _subtract(query, sizes[0] - sizes[1], rows)


def _subtract(query: Query, value: float, rows: Sequence[int]) -> TableResult:
    """Tell how far two lie apart; if the first has less than is said, that it has."""
    value = -value if query.best == "min" else value if query.best else abs(value)
    shown = _format_apart(query, abs(value))
    if value < 0:
        shown += " less" if query.best == "max" else " more"
    return TableResult((shown,), tuple(rows), value)


def _format_apart(query: Query, value: float) -> str:
    column = query.table.columns.get(query.measure)
    if column is None:
        return format_number(value)
    unit = {"date": "day", "time": "minute"}.get(column.type, "")
    return f"{value:.0f} {unit}{'s' * (value != 1)}" if unit else _format_quantity(query, value)


def _find_best_rows(query: Query, rows: Sequence[int]) -> TableResult | None:
    column = query.table.columns[query.measure]
    known = [(number, row) for row in rows if (number := column.numbers[row]) is not None]
    if not known:
        return None
    values = sorted({number for number, _ in known}, reverse=query.best == "max")
    if query.limit == 1:
        values = values[query.rank - 1 : query.rank]
    order = {value: place for place, value in enumerate(values)}
    winners = [row for number, row in known if number in order]
    winners.sort(key=lambda row: order[column.numbers[row] or 0.0])
    winners = winners[: query.limit] if query.limit > 1 else winners
    if not winners:
        return None
    if query.targets:
        return _read_values(query.table, query.targets, winners)
    shown = dict.fromkeys(_add_unit(column, format_cell(column.cells[row])) for row in winners)
    return TableResult(tuple(shown), tuple(winners), values[0])


def _find_best_group(query: Query, rows: Sequence[int]) -> TableResult | None:
    members = _group_rows(query, rows)
    if not members:
        return None
    sizes = {key: _measure_group(query, some) for key, some in members.items()}
    values = sorted(set(sizes.values()), reverse=query.best == "max")
    value = values[min(query.rank, len(values)) - 1]
    winners = [key for key, size in sizes.items() if size == value]
    if query.limit > 1:
        winners = sorted(sizes, key=lambda key: values.index(sizes[key]))[: query.limit]
    used = tuple(row for key in winners for row in members[key])
    cells = query.table.columns[query.group].cells
    return TableResult(tuple(format_cell(cells[members[key][0]]) for key in winners), used, value)


def _find_repeated(query: Query, rows: Sequence[int]) -> TableResult | None:
    """Return the values that more than so many rows have."""
    often = [some for some in _group_rows(query, rows).values() if len(some) > query.limit]
    cells = query.table.columns[query.group].cells
    values = tuple(format_cell(cells[some[0]]) for some in often)
    return TableResult(values, tuple(row for some in often for row in some)) if values else None


def _list_groups(query: Query, rows: Sequence[int]) -> TableResult | None:
    members = _group_rows(query, rows)
    cells = query.table.columns[query.group].cells
    values = tuple(
        f"{format_cell(cells[some[0]])}: {_format_group(query, some)}" for some in members.values()
    )
    return TableResult(values, tuple(rows)) if values else None


def _format_group(query: Query, rows: Sequence[int]) -> str:
    value = _measure_group(query, rows)
    return _format_quantity(query, value) if query.measure else format_number(value)


def _group_rows(query: Query, rows: Sequence[int]) -> dict[str, list[int]]:
    """Return the rows of each value of the column that is grouped by."""
    group, members = query.table.columns[query.group], defaultdict(list)
    for row in rows:
        if (fold := group.folded[row]) is not None:
            members[fold].append(row)
    return dict(members)


def _measure_group(query: Query, rows: Sequence[int]) -> float:
    if not query.measure:
        return len(rows)
    numbers = _find_numbers(query)
    known = [n for row in rows if (n := numbers[row]) is not None]
    return _AGGREGATES[query.aggregate or "sum"](known) if known else 0.0


def format_cell(cell: Any) -> str:
    """Format a value as it stands in the table."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return format_number(cell) if isinstance(cell, float) else " ".join(str(cell).split())


def format_number(number: float) -> str:
    """Format a computed number without noise."""
    return f"{number:.10g}"


def format_mean(number: float) -> str:
    """Format what was divided: two decimals, more only of what is smaller than one."""
    return f"{number:.4g}" if abs(number) < 1 else format_number(round(number, 2))


_COMPUTED: dict[str, Callable[[Query, Sequence[int]], TableResult | None]] = {
    "distinct": _count_distinct,
    "group": _find_best_group,
    "groups": _list_groups,
    "repeated": _find_repeated,
    "best": _find_best_rows,
    "aggregate": _aggregate,
    "share": _find_share,
    "check": _check,
    "difference": _compare_two,
    "ratio": _compare_two,
}
