"""Runs a query over a table's rows: filter, group, aggregate; the rows used are the evidence."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import fmean, median
from typing import Any

from clew.agents.tables.load import Column, Table, parse_date, parse_number
from clew.agents.tables.reading import Filter, Query
from clew.agents.tables.words import fold_text

_AGGREGATES: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "mean": fmean,
    "median": median,
    "max": max,
    "min": min,
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


@dataclass(frozen=True)
class TableResult:
    """The values that answer, and the rows they are from; `number` for one that was computed."""

    values: tuple[str, ...]
    rows: tuple[int, ...]
    number: float | None = None


def run_query(query: Query) -> TableResult | None:
    """Return what the rows say, or None if no row fits."""
    rows = find_rows(query.table, query.filters)
    match query.wants:
        case "count":
            return TableResult((str(len(rows)),), tuple(rows), len(rows))
        case "distinct":
            return _count_distinct(query, rows)
        case "group":
            return _find_best_group(query, rows)
        case "groups":
            return _list_groups(query, rows)
        case "best":
            return _find_best_rows(query, rows)
        case "aggregate":
            return _aggregate(query, rows)
    return _read_values(query.table, query.targets, rows)


def find_rows(table: Table, filters: Sequence[Filter]) -> list[int]:
    """Return the rows that satisfy all filters; values of one column are alternatives."""
    found = list(range(len(table)))
    for some in group_filters(filters):
        tests = [(_make_test(table.columns[one.column], one), one.negated) for one in some]
        found = [row for row in found if any(test(row) != negated for test, negated in tests)]
    return found


def group_filters(filters: Sequence[Filter]) -> list[list[Filter]]:
    """Group the values that one column may have; every other filter stands alone."""
    groups: dict[object, list[Filter]] = defaultdict(list)
    for one in filters:
        alternative = one.how == "=" and not one.negated
        groups[one.column if alternative else one].append(one)
    return list(groups.values())


def _make_test(column: Column, one: Filter) -> Callable[[int], bool]:
    if one.how == "filled":
        return lambda row: column.cells[row] is not None
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
    compare, limit = _COMPARE[one.how], _to_number(column, one.value)
    return lambda row: (
        limit is not None and (own := column.numbers[row]) is not None and compare(own, limit)
    )


def _to_number(column: Column, value: str) -> float | None:
    if column.type != "date":
        return parse_number(value)
    day = parse_date(value) or parse_date(f"{value}-01-01")
    return float(day.toordinal()) if day else None


def _read_values(table: Table, targets: Sequence[str], rows: Sequence[int]) -> TableResult | None:
    values: dict[str, None] = {}
    used = []
    for row in rows:
        cells = [table.columns[name].cells[row] for name in targets]
        if any(cell is not None for cell in cells):
            values[", ".join(format_cell(cell) for cell in cells if cell is not None)] = None
            used.append(row)
    return TableResult(tuple(values), tuple(used)) if values else None


def _count_distinct(query: Query, rows: Sequence[int]) -> TableResult | None:
    column = query.table.columns[query.targets[0]]
    first = {fold: row for row in rows if (fold := column.folded[row]) is not None}
    return TableResult((str(len(first)),), tuple(first.values()), len(first))


def _aggregate(query: Query, rows: Sequence[int]) -> TableResult | None:
    numbers = query.table.columns[query.measure].numbers
    used = [row for row in rows if numbers[row] is not None]
    if not used or query.table.columns[query.measure].type != "number":
        return None
    value = _AGGREGATES[query.aggregate]([n for row in used if (n := numbers[row]) is not None])
    return TableResult((format_number(value),), tuple(used), value)


def _find_best_rows(query: Query, rows: Sequence[int]) -> TableResult | None:
    column = query.table.columns[query.measure]
    known = [(number, row) for row in rows if (number := column.numbers[row]) is not None]
    if not known:
        return None
    choose = max if query.best == "max" else min
    value = choose(known)[0]
    winners = [row for number, row in known if number == value]
    if query.targets:
        return _read_values(query.table, query.targets, winners)
    return TableResult((format_cell(column.cells[winners[0]]),), tuple(winners), value)


def _find_best_group(query: Query, rows: Sequence[int]) -> TableResult | None:
    members = _group_rows(query, rows)
    if not members:
        return None
    sizes = {key: _measure_group(query, some) for key, some in members.items()}
    value = (max if query.best == "max" else min)(sizes.values())
    winners = [key for key, size in sizes.items() if size == value]
    used = tuple(row for key in winners for row in members[key])
    cells = query.table.columns[query.group].cells
    return TableResult(tuple(format_cell(cells[members[key][0]]) for key in winners), used, value)


def _list_groups(query: Query, rows: Sequence[int]) -> TableResult | None:
    members = _group_rows(query, rows)
    cells = query.table.columns[query.group].cells
    values = tuple(
        f"{format_cell(cells[some[0]])}: {format_number(_measure_group(query, some))}"
        for some in members.values()
    )
    return TableResult(values, tuple(rows)) if values else None


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
    numbers = query.table.columns[query.measure].numbers
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
