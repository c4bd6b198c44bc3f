"""Proposes the queries that a question may mean: parts first, then what the likely ones make.

Nothing of the wording is understood here: every column may be asked for, counted, added up or
compared, and every value, number, date and flag may be a condition. A model tells which parts a
question says, and then which query (`clew.agents.tables.judge`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations

from clew.agents.rules.table_words import Word, is_same_word
from clew.agents.tables.asked import Asked
from clew.agents.tables.column_pairs import (
    agrees,
    find_sides,
    find_worth,
    list_column_filters,
)
from clew.agents.tables.load import Column, Table
from clew.agents.tables.propose_named import make_named
from clew.agents.tables.propose_unlinked import Reference
from clew.agents.tables.reading import Filter, Query
from clew.agents.tables.run import find_rows, group_filters
from clew.agents.tables.values import counts_up, is_year
from clew.agents.tables.wording import say_column, say_extreme, say_filter, say_samples, say_table
from clew.ingest.readers.tables import split_column
from clew.text.quantities import parse_number

_MAX_COLUMNS = 24  # of a table that are looked at
_MAX_FILTERS = 80  # conditions that are compared with a question
_MAX_KINDS = 2_000  # values of a column among which words of a question are looked for
_MIN_PART, _MIN_NAME = 4, 3  # letters of a word, or a name, that stands for a value it is part of
_MAX_VALUE_WORDS = 8
_LIKELY_PARTS, _LIKELY_FILTERS = 4, 6  # of the best that queries are made of
_LEAST_PART, _LEAST_FILTER = 0.002, 0.05
_UNSAID = 0.3  # how far it is trusted that a value is meant that stands nowhere in the question
_MAX_LIMIT = 20
_MAX_PAIRED = 3  # columns of which two may be asked for together
_COMPARING = (">", "<", ">=", "<=")
_PLAIN = {"distinct": "distinct", "ask": "value"}
_OF_ROWS = {"most": "max", "fewest": "min"}
_MAX_YEARS = 2  # of a column that a day or month without a year may be of
_MAX_SETS, _MAX_BEAM, _MAX_TOGETHER = 12, 64, 4  # of conditions
_MAX_ALIKE, _MAX_EMPTY = 2, 3  # sets of conditions that choose the same rows, or none
_MAX_CHOSEN = 20_000  # rows of a table in which it is looked which are chosen
_MAX_CATEGORY = 6  # values of a column that may be meant by other words


@dataclass(frozen=True)
class Part:
    """What a query may be made of: a column that is asked for, or something computed."""

    kind: str
    """ask, count, distinct, sum, mean, median, max, min, most, fewest, each, over, share, check,
    difference or without."""
    column: str = ""
    """A column; of what is without rows that refer to it, the table of these."""


def list_parts(table: Table, references: Iterable[Reference] = ()) -> list[Part]:
    """Return the parts that queries over a table may have, and what refers to its rows."""
    found = [Part(kind) for kind in ("count", "most", "fewest", "share", "check", "difference")]
    found += [Part("without", one.stem) for one in references]
    brought = _list_brought(table)
    for column in _choose_columns(table):
        name = column.name
        found.append(Part("ask", name))
        # What is repeated, or numbers the rows, is not to be added up.
        if column.is_quantity and (name in brought or counts_up(column.numbers)):
            found += [Part(kind, name) for kind in ("max", "min")]
        elif column.is_quantity:
            found += [Part(kind, name) for kind in ("sum", "mean", "median", "max", "min")]
        elif column.type in ("date", "time"):
            found += [Part(kind, name) for kind in ("max", "min")]
        if not column.is_key and (column.type == "text" or column.is_id or column.has_few_numbers):
            found += [Part(kind, name) for kind in ("distinct", "each", "over")]
    return found


def _list_brought(table: Table) -> frozenset[str]:
    """Return the columns that linked tables brought."""
    return frozenset(name for one in table.partners for name in one.columns)


def _choose_columns(table: Table) -> list[Column]:
    """Return the columns that are looked at: some of its own, and some that were brought."""
    brought = _list_brought(table)
    again = {one.label for one in table.partners if one.repeats_link(table)}
    own = [one for name, one in table.columns.items() if name not in brought]
    others = [one for name, one in table.columns.items() if name in brought - again]
    return [*own[:_MAX_COLUMNS], *others[:_MAX_COLUMNS]]


def say_part(table: Table, part: Part) -> str:
    """Say a part as the model reads it."""
    if part.kind == "without":
        return f"{say_table(table)}: without any {' '.join(split_column(part.column))}"
    name = say_column(table, part.column) if part.column else ""
    said = {
        "count": "number of rows",
        "most": "with the most rows",
        "fewest": "with the fewest rows",
        "share": "share of the rows",
        "check": "whether it is so",
        "difference": "how far two lie apart",
        "distinct": f"number of different {name}",
        "sum": f"total {name}",
        "mean": f"average {name}",
        "median": f"median {name}",
        "each": f"for each {name}",
        "over": f"{name} with more than one row",
    }.get(part.kind, "")
    if part.kind == "ask":
        said = f"the {say_samples(table, part.column)}"
    elif part.kind in ("max", "min"):
        said = say_extreme(table, part.column, part.kind)
    return f"{say_table(table)}: {said}"


def say_condition(table: Table, one: Filter) -> str:
    """Say a condition as the model reads it."""
    return f"{say_table(table)}: where {say_filter(table, one)}"


def list_filters(asked: Asked, table: Table) -> list[Filter]:
    """Return the conditions that a question may say: of values, numbers, times and flags."""
    columns = _choose_columns(table)
    own = dict.fromkeys(
        one for column in columns for one in _list_own_filters(asked, table, column)
    )
    pairs = list(list_column_filters(table, columns))
    said = find_sides(asked.words, table, pairs)
    return [*list(own)[:_MAX_FILTERS], *(one for one in pairs if agrees(one, said))]


def _list_own_filters(asked: Asked, table: Table, column: Column) -> Iterator[Filter]:
    name = column.name
    if column.truths is not None:
        yield Filter(name, "flag")
        yield Filter(name, "flag", negated=True)
    yield from _compare_with(asked, column)
    if column.type == "text" or column.is_id:
        named = _list_named(asked, table)
        for at, how, value in _find_values(asked, _list_values(table, column), named):
            yield Filter(name, how, value, at=at)
            yield Filter(name, how, value, negated=True, at=at)
        if not column.is_key and len(column.rows_by_value) <= _MAX_CATEGORY:
            yield from (Filter(name, "=", value) for value in column.rows_by_value)
    if any(cell is None for cell in column.cells):
        yield Filter(name, "empty")
        yield Filter(name, "filled")
    elif column.is_quantity and 0.0 in column.numbers:
        yield Filter(name, "empty")
    if column.is_quantity and column.reaches(0.0):  # some, or less than none
        yield from (Filter(name, sign, "0") for sign in _list_sides_of_none(column))


def _list_sides_of_none(column: Column) -> list[str]:
    """Return on which sides of 0 a column has numbers, where not all are on one."""
    known = [number for number in column.numbers if number is not None]
    return [">"] * any(n > 0 for n in known) + ["<"] * any(n < 0 for n in known)


def _compare_with(asked: Asked, column: Column) -> Iterator[Filter]:
    """Yield the conditions that numbers, dates and times of a question may be."""
    if column.type == "number":
        yield from _compare_numbers(asked, column)
    if column.type == "date" or column.has_years:
        yield from _compare_times(asked, column)
    if column.type == "time":
        for at, value in asked.clock_times:
            yield from (Filter(column.name, sign, value, at=at) for sign in ("=", *_COMPARING))


def _compare_numbers(asked: Asked, column: Column) -> Iterator[Filter]:
    for at, value in asked.numbers:
        if column.has_years and not (value.isdigit() and is_year(int(value))):
            continue
        if column.has_years and any(one.covers(at) for one in asked.periods):
            continue
        sign = asked.signs.get(at, "")
        if parse_number(value) in column.numbers and not sign:
            yield Filter(column.name, "=", value, at=at)
        for how in ((sign,) if sign else _COMPARING) if column.is_quantity else ():
            yield Filter(column.name, how, value, at=at)
    for at, rank in asked.named_ranks:
        behind = asked.words[at + 1].fold
        is_named = column.is_rank or any(is_same_word(behind, w) for w in column.words)
        if float(rank) in column.numbers and is_named:
            yield Filter(column.name, "=", str(rank), at=at)
    if column.is_rank and 1.0 in column.numbers:
        yield Filter(column.name, "=", "1")  # who won


def _compare_times(asked: Asked, column: Column) -> Iterator[Filter]:
    for one in asked.periods:
        if column.type == "date" or one.is_whole_years:
            yield Filter(column.name, "within", one.value, at=one.start, said=one.said)
    for at, how, value in asked.times:
        if column.type != "date":
            continue  # years are numbers
        days = dict.fromkeys(_list_days(column))
        if how == "day" and value.startswith("-"):
            yield from (Filter(column.name, "=", d, at=at) for d in days if d.endswith(value))
        elif how in ("year", "month"):
            yield Filter(column.name, how, value, at=at)
        else:
            yield Filter(column.name, "=", value, at=at)
        years = dict.fromkeys(day[:4] for day in days) if value.startswith("-") else ("",)
        for year in list(years)[-_MAX_YEARS:]:
            whole = f"{year}{value.rstrip('-')}"
            yield from (Filter(column.name, sign, whole, at=at) for sign in _COMPARING)


def _list_days(column: Column) -> Iterator[str]:
    """Yield the dates of a column as they are compared."""
    for number in column.numbers:
        if number is not None:
            yield date.fromordinal(int(number)).isoformat()


def _list_values(table: Table, column: Column) -> Mapping[str, Sequence[int]]:
    """Return the values of a column; if it was brought, those to which no row refers, too."""
    partner = next((one for one in table.partners if column.name in one.columns), None)
    own = column.name.removeprefix(f"{partner.table.stem}.") if partner else ""
    if partner is None or own not in partner.table.columns:
        return column.rows_by_value
    return partner.table.columns[own].rows_by_value


def _list_named(asked: Asked, table: Table) -> set[int]:
    """Return the words that are just as a column of texts is called: they are no form of a value.

    "Brewery" is the column, and not the job of a brewer.
    """
    texts = [one for one in table.columns.values() if one.type == "text" and len(one.words) == 1]
    names = {one.words[0] for one in texts}
    return {at for at, word in enumerate(asked.words) if {word.fold, word.stem} & names}


def _find_values(
    asked: Asked, values: Mapping[str, Sequence[int]], named: AbstractSet[int]
) -> Iterator[tuple[int, str, str]]:
    """Find the values of a column that the question says, whole or in part."""
    words = asked.words
    taken: set[int] = set()
    for size in range(min(_MAX_VALUE_WORDS, len(words)), 0, -1):
        for at in range(len(words) - size + 1):
            some = words[at : at + size]
            if taken.intersection(range(at, at + size)):
                continue
            forms = {" ".join(w.fold for w in some), " ".join(w.stem for w in some)}
            for form in forms & values.keys():
                if size == 1 and form in asked.fillers and len(form) < _MIN_PART:
                    continue
                taken.update(range(at, at + size))
                yield at, "=", form
    if len(values) > _MAX_KINDS:
        return
    yield from _find_parts(asked, values, taken | named)


def _find_parts(
    asked: Asked, values: Mapping[str, Sequence[int]], taken: set[int]
) -> Iterator[tuple[int, str, str]]:
    """Find values of which the question says words, in any order and form."""
    known: dict[str, list[str]] = {}
    for value in values:
        for part in value.split():
            if len(part) >= _MIN_NAME or not part.isalpha():
                known.setdefault(part, []).append(value)
    said: dict[str, set[int]] = {}
    for at, word in enumerate(asked.words):
        if at in taken or word.fold in asked.fillers:
            continue
        least = _MIN_NAME if word.text[:1].isupper() else _MIN_PART
        if len(word.fold) < least and word.fold.isalpha():
            continue
        having = {v for part in known if _is_form(word, part) for v in known[part]}
        for value in having:
            said.setdefault(value, set()).add(at)
        parts = {part for part in known if _is_form(word, part)}
        if len(having) > 1 and len(parts) == 1:
            yield at, "contains", next(iter(parts))
    most = max((len(places) for places in said.values()), default=0)
    best = [value for value, places in said.items() if len(places) == most]
    for value in best[:3]:
        yield min(said[value]), "=", value


def _is_form(word: Word, part: str) -> bool:
    return word.fold == part or word.stem == part or is_same_word(word.fold, part)


def make_queries(
    asked: Asked,
    table: Table,
    parts: Mapping[Part, float],
    conditions: Iterable[tuple[Filter, ...]],
) -> Iterator[Query]:
    """Yield the queries that the likely parts make with each set of conditions."""
    chosen = _choose_parts(table, parts, 2 * _LIKELY_PARTS)
    kinds = [(one.kind, one.column) for one in chosen]
    may_check = asked.is_closed and not asked.is_open and Part("check") in chosen
    for some in conditions:
        base = Query(table, "value", some)
        yield from make_named(asked, base, kinds, may_check)
        if asked.is_of_difference:
            continue
        yield from _make_plain(base, chosen)
        yield from _make_repeated(asked, base, chosen)
        if asked.is_of_worth and (both := find_worth(table)):
            price, stock = both
            yield replace(base, wants="aggregate", aggregate="sum", measure=price, second=stock)
        yield from _make_extremes(asked, base, chosen)
        is_one_name = len(some) == 1 and some[0].how == "=" and not some[0].negated
        if may_check and some and not is_one_name:
            yield replace(base, wants="check")


def make_absent(table: Table, parts: Mapping[Part, float], base: Query) -> Iterator[Query]:
    """Yield what the likely parts ask of rows to which none refers."""
    yield from _make_plain(base, _choose_parts(table, parts, _LIKELY_PARTS))


def _choose_parts(table: Table, parts: Mapping[Part, float], most: int) -> list[Part]:
    """Return the likeliest parts, and what names the rows: that may be all that is asked."""
    likely = [one for one in parts if parts[one] >= _LEAST_PART and one.kind != "without"]
    chosen = sorted(likely, key=lambda one: -parts[one])[:most]
    named = Part("ask", table.label)
    return [*chosen, named] if table.label and named not in chosen else chosen


def weigh_conditions(
    table: Table, filters: Mapping[Filter, float]
) -> dict[tuple[Filter, ...], float]:
    """Return the likeliest sets of conditions with their chances.

    A word of a question says one condition, whatever others it could say: they are alternatives. Of
    sets that choose the same rows few are kept, and so of those that choose none. A value
    that stands nowhere in the question is less likely than the model, which sees it alone, says.
    """
    filters = {one: p * _UNSAID if _is_unsaid(one) else p for one, p in filters.items()}
    groups: dict[object, list[Filter]] = {}
    for one in sorted(filters, key=lambda f: -filters[f]):
        if filters[one] >= _LEAST_FILTER:
            groups.setdefault(one.at if one.at >= 0 else one.columns, []).append(one)
    found: dict[tuple[Filter, ...], float] = {(): 1.0}
    for some in list(groups.values())[:_LIKELY_FILTERS]:
        more = dict(found)
        none = max(1 - max(filters[one] for one in some), 0.01)
        total = none + sum(filters[one] for one in some)
        for chosen, chance in found.items():
            more[chosen] = chance * none / total
            for one in some[:_LIKELY_PARTS]:
                if len(chosen) < _MAX_TOGETHER and not _clash((*chosen, one)):
                    more[*chosen, one] = chance * filters[one] / total
        best = sorted(more, key=lambda one: -more[one])[:_MAX_BEAM]
        found = {one: more[one] for one in best}
    kept = _drop_alike(table, found) if len(table) <= _MAX_CHOSEN else list(found)
    return {some: found[some] for some in kept[:_MAX_SETS]}


def _is_unsaid(one: Filter) -> bool:
    """Whether no word of the question says a value; flags and empty cells have no words."""
    return one.at < 0 and one.how == "="


def _drop_alike(table: Table, sets: Iterable[tuple[Filter, ...]]) -> list[tuple[Filter, ...]]:
    """Return some of the sets of conditions that choose the same rows, the first ones."""
    rows: dict[Filter, frozenset[int]] = {}
    times: Counter[frozenset[int]] = Counter()
    kept = []
    for some in sets:
        for one in some:
            if one not in rows:
                rows[one] = frozenset(find_rows(table, [one]))
        chosen = frozenset(range(len(table))).intersection(
            *(frozenset().union(*(rows[one] for one in own)) for own in group_filters(some))
        )
        times[chosen] += 1
        if times[chosen] <= (_MAX_ALIKE if chosen else _MAX_EMPTY):
            kept.append(some)
    return kept


def _clash(some: Sequence[Filter]) -> bool:
    """Whether two conditions are of the same word of the question, or of one flag."""
    placed = [one.at for one in some if one.at >= 0]
    if len(set(placed)) < len(placed):
        return True
    own = [one.column for one in some if one.how in ("flag", "empty", "filled")]
    return any(sum(one.column == name for one in some) > 1 for name in own)


def _make_plain(base: Query, parts: Sequence[Part]) -> Iterator[Query]:
    """Yield the queries that a single part makes, and numbers for each value of a column."""
    told = {one.column for one in base.filters if one.how == "=" and not one.negated}
    for part in parts:
        column, kind = part.column, part.kind
        if kind == "count" or (kind == "share" and base.filters):
            yield replace(base, wants=kind)
        elif kind == "distinct" or (kind == "ask" and column not in told):
            yield replace(base, wants=_PLAIN[kind], targets=(column,))
        elif kind in ("sum", "mean", "median"):
            yield replace(base, wants="aggregate", aggregate=kind, measure=column)
        elif kind in ("max", "min"):
            yield replace(base, wants="best", best=kind, measure=column)
        elif kind == "each":
            yield replace(base, wants="groups", group=column)
    asks = [one.column for one in parts if one.kind == "ask" and one.column not in told]
    yield from (replace(base, targets=both) for both in _pair_columns(base.table, asks))
    columns = base.table.columns
    computed = [p for p in parts if p.kind in ("sum", "mean", "max", "min")]
    for part in [one for one in computed if columns[one.column].is_quantity]:
        for each in [one for one in parts if one.kind == "each"][:2]:
            group, measure = each.column, part.column
            yield replace(base, wants="groups", group=group, aggregate=part.kind, measure=measure)


def _pair_columns(table: Table, asks: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield two columns that may be asked for together, of the likeliest, in the table's order."""
    order = {name: at for at, name in enumerate(table.columns)}
    for both in combinations(asks[:_MAX_PAIRED], 2):
        yield tuple(sorted(both, key=order.__getitem__))


def _make_repeated(asked: Asked, base: Query, parts: Sequence[Part]) -> Iterator[Query]:
    """Yield the values that more rows have than a number of the question, or more than one."""
    limits = {1: None}
    for at, value in asked.numbers:
        number = parse_number(value)
        if number is not None and number.is_integer() and 1 < number <= _MAX_LIMIT:
            sign = asked.signs.get(at, "")
            limits |= {int(number) - (sign == ">="): None}
    for part in [one for one in parts if one.kind == "over"]:
        for limit in limits:
            yield replace(base, wants="repeated", group=part.column, limit=limit)


def _make_extremes(asked: Asked, base: Query, parts: Sequence[Part]) -> Iterator[Query]:
    """Yield the rows or groups with the largest or smallest of something."""
    asks = [one.column for one in parts if one.kind == "ask"][:_LIKELY_PARTS]
    if base.table.label and base.table.label not in asks:
        asks.append(base.table.label)
    extremes = [one for one in parts if one.kind in ("max", "min")][:3]
    counted = [best for kind, best in _OF_ROWS.items() if any(p.kind == kind for p in parts)]
    for rank, limit in _list_places(asked):
        placed = replace(base, rank=rank, limit=limit)
        for column in asks:
            others = [one for one in extremes if one.column != column]
            yield from (_rank(placed, one, (column,)) for one in others)
            if not base.table.columns[column].is_key:
                yield from _make_best_groups(replace(placed, group=column), others, counted)
        for both in _pair_columns(base.table, asks):
            own = [one for one in extremes if one.column not in both]
            yield from (_rank(placed, one, both) for one in own)


def _rank(base: Query, extreme: Part, targets: tuple[str, ...]) -> Query:
    """Return what tells columns of the rows with the largest or smallest."""
    best, measure = extreme.kind, extreme.column
    return replace(base, wants="best", best=best, measure=measure, targets=targets)


def _make_best_groups(
    base: Query, extremes: Sequence[Part], counted: Sequence[str]
) -> Iterator[Query]:
    """Yield the groups of rows with the largest or smallest total, average or number."""
    for one in extremes:
        column = base.table.columns[one.column]
        if column.is_quantity and not counts_up(column.numbers):
            made = replace(base, wants="group", best=one.kind, measure=one.column)
            yield from (replace(made, aggregate=how) for how in ("sum", "mean"))
    yield from (replace(base, wants="group", best=best) for best in counted)


def _list_places(asked: Asked) -> list[tuple[int, int]]:
    """Return which of the best a question may ask for, and how many."""
    counts = [parse_number(value) for _, value in asked.numbers]
    few = [int(n) for n in counts if n is not None and n.is_integer() and 1 < n <= _MAX_LIMIT]
    ranks = asked.ranks[:1] or ([2] if asked.may_pass_first else [])
    return [(1, 1), *((rank, 1) for rank in ranks), *((1, n) for n in few[:1])]
