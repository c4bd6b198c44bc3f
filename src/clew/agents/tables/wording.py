"""Says in plain words what a query asks, as the model that compares it with a question reads it."""

from collections.abc import Sequence
from dataclasses import replace

from clew.agents.logic.measured import COMPARED, DATE_COMPARED, DATE_EXTREMES, EXTREMES
from clew.agents.rules.table_words import is_same_word
from clew.agents.tables.load import Partner, Table
from clew.agents.tables.periods import MONTH_NAMES, say_period
from clew.agents.tables.reading import COLUMN_SIGNS, Filter, Query
from clew.agents.tables.run import TableResult, group_filters
from clew.ingest.readers.tables import split_column

_SIGNS = {"=": "is", ">": "over", "<": "under", ">=": "at least", "<=": "at most"}
_DATE_SIGNS = {"=": "on", ">": "after", "<": "before", ">=": "since", "<=": "until"}
_TOTALS = {"sum": "total", "mean": "average", "": "total"}
_MAX_ANSWER = 40  # characters of the answer that are said
_ANY_NUMBER = "4"  # said for every number of rows
_MAX_SAMPLE = 16  # … of a value of a column


def say_query(query: Query, result: TableResult | None) -> str:
    """Say what a query asks of its table, and what the rows answer.

    Not yes or no, and for any number of rows the same: neither tells what was asked for, but a
    scorer that saw them went by them.
    """
    table = query.table
    said = f"{say_table(table)}: {_say_sought(query)}"
    timed = _find_timed(query)
    if timed:  # "the latest order in 2024"
        own = say_column(table, query.measure)
        said += "".join(say_filter(table, one).removeprefix(own) for one in timed)
        query = replace(query, filters=tuple(one for one in query.filters if one not in timed))
    if where := say_filters(query):
        said += f" where {where}"
    if query.unlinked is not None:
        said += f" without any {say_table(query.unlinked.table)}"
        if some := [say_filter(query.unlinked.table, one) for one in query.unlinked.filters]:
            said += f" where {' and '.join(some)}"
    told = result.values[:3] if result and query.wants != "check" else ()
    if told and query.wants == "count":
        told = (_ANY_NUMBER,)
    answer = ", ".join(told)[:_MAX_ANSWER]
    return f"{said} = {answer}" if answer else said


def _find_timed(query: Query) -> list[Filter]:
    """Return the years, months and periods of the column by which rows are ranked."""
    own = [one for one in query.filters if one.column == query.measure and not one.negated]
    spans = [one for one in own if one.how in ("year", "month", "within")]
    return spans if query.wants == "best" else []


def say_table(table: Table) -> str:
    """Say what a table is called."""
    return " ".join(split_column(table.stem))


def say_column(table: Table, name: str) -> str:
    """Say what a column is called, and of what it is if a linked table brought it."""
    words = table.columns[name].words
    partner = next((one for one in table.partners if name in one.columns), None)
    whose = _name_partner(table, partner) if partner else ()
    if any(is_same_word(word, own) for word in words for own in whose):
        whose = ()
    return " ".join([*whose, *words]) or name


def _name_partner(table: Table, partner: Partner) -> Sequence[str]:
    """Return what a linked table is called: as the column that refers to it if two do."""
    is_twice = sum(one.table is partner.table for one in table.partners) > 1
    return split_column(partner.link if is_twice else partner.table.stem)


def say_samples(table: Table, name: str) -> str:
    """Say a column's name, and two of its values if they are words."""
    column = table.columns[name]
    name = say_column(table, name)
    if column.type not in ("text", "time"):
        return name
    some = [str(cell)[:_MAX_SAMPLE] for cell in dict.fromkeys(column.cells) if cell is not None]
    return f"{name} ({', '.join(some[:2])})"


def say_filters(query: Query) -> str:
    """Say the conditions of a query."""
    groups = group_filters(query.filters)
    if query.wants in ("check", "difference", "ratio") and query.group:
        groups = [some for some in groups if some[0].column != query.group]
    elif query.wants == "check" and query.best:
        groups = group_filters(query.filters[:-1])
    return " and ".join(
        " or ".join(say_filter(query.table, one) for one in some) for some in groups
    )


def say_filter(table: Table, one: Filter) -> str:
    """Say a condition."""
    column = table.columns[one.column]
    name = say_column(table, one.column)
    if one.how == "flag":
        return f"{name} is {'no' if one.negated else 'yes'}"
    denied = "not " if one.negated else ""
    if one.how in ("filled", "empty"):
        return f"{denied}{'has' if one.how == 'filled' else 'no'} {name}"
    if one.how == "year":
        return f"{name} {denied}in {one.value}"
    if one.how == "within":
        return f"{name} {denied}{one.said or say_period(one.value)}"
    if one.how == "month":
        year, _, month = one.value.strip("-").rpartition("-")
        return f"{name} {denied}in {MONTH_NAMES.get(int(month), month)} {year}".rstrip()
    is_time = _is_time(table, one.column)
    if one.how in COLUMN_SIGNS:
        return f"{name} {_say_column_sign(one, is_time)} {say_column(table, one.value)}"
    sign = (_DATE_SIGNS if is_time else _SIGNS).get(one.how, one.how)
    sign = "is" if one.how == "=" else sign
    value = _say_day(one.value) if column.type == "date" else one.value
    return f"{name} {f'{sign} not' if one.negated else sign} {value}"


def _say_column_sign(one: Filter, is_time: bool) -> str:
    """Say how two columns of a row are compared."""
    if one.how == "is column":
        return "different from" if one.negated else "same as"
    above, below = ("after", "before") if is_time else ("over", "under")
    return f"{'not ' if one.negated else ''}{above if one.how == 'over column' else below}"


def _say_day(value: str) -> str:
    """Say 2024-03-20 as 20 March 2024, 2024-03 as March 2024."""
    year, _, rest = value.partition("-")
    month, _, day = rest.partition("-")
    if not (year.isdigit() and month.isdigit()):
        return value
    return f"{day.lstrip('0')} {MONTH_NAMES.get(int(month), month)} {year}".strip()


def say_extreme(table: Table, measure: str, best: str) -> str:
    """Say the largest or smallest of a column."""
    words = DATE_EXTREMES if _is_time(table, measure) else EXTREMES
    return f"{words[best]} {say_column(table, measure)}"


def _say_sought(query: Query) -> str:
    table = query.table
    of = " and ".join(say_column(table, name) for name in query.targets)
    measure = say_column(table, query.measure) if query.measure else ""
    group = say_column(table, query.group) if query.group else ""
    total = _TOTALS.get(query.aggregate, query.aggregate)
    if query.wants == "best":
        return _say_best(query, of)
    if query.wants == "check":
        return _say_check(query)
    if query.wants in ("difference", "ratio"):
        return _say_difference(query)
    second = f" times {say_column(table, query.second)}" if query.second else ""
    return {
        "count": "number of rows",
        "distinct": f"number of different {of}",
        "aggregate": f"{total} {measure}{second}",
        "group": f"{group} with {_say_place(query)}{_say_group(query)}",
        "groups": f"{f'{total} {measure}' if measure else 'number of rows'} for each {group}",
        "repeated": f"{group} with more than {query.limit} rows",
        "share": "share of the rows",
    }.get(query.wants, of)


def _say_place(query: Query) -> str:
    place = f"no. {query.rank} " if query.rank > 1 else ""
    return f"{place}{f'{query.limit} ' if query.limit > 1 else ''}"


def _say_best(query: Query, of: str) -> str:
    extreme = _say_place(query) + say_extreme(query.table, query.measure, query.best)
    return f"{of} with the {extreme}" if of else extreme


def _say_group(query: Query) -> str:
    if not query.measure or not query.best:
        return "fewest rows" if query.best == "min" else "most rows"
    total = _TOTALS.get(query.aggregate, query.aggregate)
    return f"{EXTREMES[query.best]} {total} {say_column(query.table, query.measure)}"


def _say_check(query: Query) -> str:
    table = query.table
    if query.bound[0]:
        sign, value = query.bound
        return f"whether {_say_size(query)} is {_SIGNS[sign]} {value}"
    if not query.best:
        return "whether there is a row"
    if not query.group:
        of = " and ".join(say_column(table, name) for name in query.targets)
        extreme = say_extreme(table, query.measure, query.best)
        return f"whether {query.filters[-1].value} is the {of} with the {extreme}"
    names = [one.value for one in query.named]
    if len(names) == 1:
        group = say_column(table, query.group)
        return f"whether {names[0]} is the {group} with {_say_group(query)}"
    return f"whether {_say_compared(query)}"


def _say_difference(query: Query) -> str:
    """Say how far two rows, groups or columns lie apart."""
    if query.second:
        both = " to ".join(say_column(query.table, n) for n in (query.measure, query.second))
        return f"{query.wants} of {both}"
    if query.best:
        return f"by how much {_say_compared(query)}"
    between, joint = ("of", " to ") if query.wants == "ratio" else ("between", " and ")
    names = joint.join(one.value for one in query.named)
    return f"{query.wants} of {_say_size(query)} {between} {names}"


def _say_compared(query: Query) -> str:
    """Say that one of two that are named has more than the other."""
    words = DATE_COMPARED if _is_time(query.table, query.measure) else COMPARED
    names = f" is {words[query.best]} than of ".join(one.value for one in query.named)
    return f"{_say_size(query)} of {names}"


def _say_size(query: Query) -> str:
    """Say what of a row or group is compared: its number of rows, a total or a value."""
    table = query.table
    if not query.measure:
        return "number of rows"
    name = say_column(table, query.measure)
    is_one = query.group and table.columns[query.group].is_key
    if _is_time(table, query.measure) or (is_one and not query.aggregate):
        return name
    return f"{_TOTALS.get(query.aggregate, query.aggregate)} {name}"


def _is_time(table: Table, name: str) -> bool:
    """Whether a column holds dates, times of day or years."""
    column = table.columns.get(name)
    return column is not None and (column.type in ("date", "time") or column.has_years)
