"""Makes the query of a question whose words are accounted for: what its operators ask for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.agents.rules.table_words import is_same_word, load_operators
from clew.agents.tables.load import Partner, Table
from clew.agents.tables.reading import (
    BEFORE_ROLE,
    Filter,
    Guess,
    Query,
    Reading,
    Unlinked,
    is_measure,
    to_extreme,
)
from clew.agents.tables.values import counts_up

_COUNTED = ("most", "fewest")  # of rows, where no column is measured
_COMPARING = ("<", ">", "<=", ">=")
_DATED = ("last", "first", "old", "young")


@dataclass(frozen=True)
class Sought:
    """What the operators of a question ask for."""

    wants: str
    aggregate: str = ""
    best: str = ""
    group: str = ""
    pair: str = ""
    rank: int = 1
    limit: int = 1
    of_rows: bool = False
    """Whether the noun behind a superlative is the table's: "the most expensive car"."""
    is_bare: bool = False
    """Whether nothing says what there is most of: "who gave the most"."""


def make_query(reading: Reading, sought: Sought, head: int) -> Query | None:
    """Return the query that a question's words make together; None if an operator is left over."""
    table = reading.table
    mentioned = [name for _, _, name in sorted(reading.columns)]
    asked = [name for start, end, name in reading.columns if start <= head < end]
    if sought.wants == "names":
        asked = _find_asked_role(reading)
    owner = _find_asked_partner(reading, head)
    if without := _find_unlinked(reading, sought, owner, asked):
        return without
    if reading.unlinked or _denies_some(reading, asked) or _is_of_partner(reading, asked):
        return None
    if owner is not None:
        own = [one for one in reading.filters if one.column not in owner.columns]
        if not owner.label or not own or any(one.negated or one.how == "empty" for one in own):
            return None  # its rows that are not linked are not here
        asked = [owner.label]
        sought = replace(sought, wants="distinct" if sought.wants == "count" else sought.wants)
    rest = [name for name in mentioned if name not in asked]
    if not (sought.best or sought.aggregate):
        rest = [name for name in rest if name not in _find_owners(reading)]
    query = Query(
        *(table, sought.wants, tuple(reading.filters)),
        aggregate=sought.aggregate,
        best=sought.best,
        group=sought.group,
        score=reading.score,
        rank=sought.rank,
        limit=sought.limit,
        guesses=tuple(reading.guesses),
        entities=frozenset(reading.entities),
        adds_up=head >= 0 and is_measure(reading, head),
        of_rows=sought.of_rows,
        counts_things=head >= 0 and reading.taken[head] in ("kind", "value"),
    )
    found = _choose_plan(query, sought, asked, rest)
    if found is not None and found.wants == "value" and _is_for_one(reading, head):
        if all(one.how == "filled" for one in found.filters):
            return None  # "which machine" asks for one, and this tells all
    if found is None or _tells_far_keys(found):
        return None
    found = _note_unused(reading, _name_keys(found), head)
    said = {one.column for one in found.filters if one.how == "=" and not one.negated}
    is_echo = found.wants == "value" and said.issuperset(found.targets)
    return None if is_echo else found  # "which vet trained Tom": not Tom


def _find_asked_role(reading: Reading) -> list[str]:
    """Return the column that "who" asks for: "who refereed", "who is the author"."""
    for start, _, name in sorted(reading.columns):
        between = [word.fold for word in reading.words[1:start]]
        column = reading.table.columns[name]
        if reading.words[0].fold == "who" and BEFORE_ROLE.issuperset(between):
            if name in reading.entities or _fits(reading.table, name, "names"):
                return [name] if column.type == "text" or name in reading.entities else []
    return []


def _note_unused(reading: Reading, query: Query, head: int) -> Query:
    """Return a query that counts the columns a question names and it does not use as guesses."""
    used = query.columns | query.entities | _find_owners(reading)
    counted = head if query.wants in ("count", "groups") else -1
    left = [at for at, end, name in reading.columns if name not in used and not at <= counted < end]
    words = [reading.words[at].fold if at < len(reading.words) else "" for at in left]
    guesses = [*query.guesses, *(Guess("unused", word) for word in words)]
    if reading.words[0].fold == "who":  # whether those are persons, the names of columns tell
        said = set(_find_asked_role(reading))
        said |= {one.label for one in reading.table.partners if one.link in said}
        told = [*query.targets, query.group] if query.wants != "aggregate" else []
        unsaid = [name for name in told if name and name not in said | query.entities]
        guesses += [Guess("person", name=name) for name in unsaid]
    return replace(query, guesses=tuple(guesses))


def _is_of_partner(reading: Reading, asked: Sequence[str]) -> bool:
    """Whether all that is said is of a linked table, whose own rows are more than those linked."""
    named = {name for _, _, name in reading.columns} - {*asked}
    used = named | {one.column for one in reading.filters}
    return (
        bool(used)
        and "table" not in reading.taken
        and any(list(asked) == [one.link] and used <= one.columns for one in reading.table.partners)
    )


def _is_for_one(reading: Reading, head: int) -> bool:
    """Whether the noun that is asked for is in the singular."""
    if head < 0 or reading.words[0].fold != "which":
        return False
    return reading.words[head].stem == reading.words[head].fold


def _find_asked_partner(reading: Reading, head: int) -> Partner | None:
    """Return the linked table whose rows are asked for: "which members booked Clay"."""
    if head < 0 or reading.taken[head] != "table":
        return None
    word = reading.words[head].fold
    if any(is_same_word(word, own) for own in reading.table.own_words):
        return None
    named = [p for p in reading.table.partners if any(is_same_word(word, w) for w in p.table.words)]
    return named[0] if len(named) == 1 else None


def _denies_some(reading: Reading, asked: Sequence[str]) -> bool:
    """Whether what keys stand for is asked for, and a row of several is denied: other rows of the
    same key may have it.
    """
    keys = [name for name in asked if name in reading.entities]
    shared = [name for name in keys if not reading.table.columns[name].is_key]
    return bool(shared) and any(one.negated and one.how != "flag" for one in reading.filters)


def _find_unlinked(
    reading: Reading, sought: Sought, owner: Partner | None, asked: Sequence[str]
) -> Query | None:
    """The rows of a linked table that nothing refers to: "which members have no car"."""
    partners = reading.table.partners
    if owner is None and sought.wants == "names" and len(partners) == 1:
        owner = partners[0]
    if owner is None:  # "customers" is `customer_id`, which refers to them
        named = reading.entities.intersection(asked)
        owner = next((one for one in partners if one.link in named), None)
    if owner is None or sought.best or sought.aggregate or sought.group or sought.pair:
        return None
    own = [one for one in reading.filters if one.column not in owner.columns]
    denied = [one for one in own if one.negated and one.how != "flag"]
    mentioned = {name for _, _, name in reading.columns} - {owner.link}
    if len(denied) + reading.unlinked != 1 or mentioned or not owner.table.label:
        return None
    kept = tuple(replace(one, negated=False) if one in denied else one for one in own)
    theirs = [one for one in reading.filters if one.column in owner.columns]
    names = {name: name.rpartition(".")[2] for name in owner.columns}
    filters = tuple(replace(one, column=names[one.column]) for one in theirs)
    if any(one.column not in owner.table.columns for one in filters):
        return None
    return Query(
        *(owner.table, "count" if sought.wants == "count" else "value", filters),
        targets=(owner.table.label,),
        score=reading.score,
        guesses=tuple(reading.guesses),
        unlinked=Unlinked(reading.table, kept, owner.rows),
    )


def _choose_plan(query: Query, sought: Sought, asked: list[str], rest: list[str]) -> Query | None:
    """Return the query with what its operators ask for."""
    if sought.best == "?":
        return None
    if sought.pair:
        return _make_pair(query, sought.pair, [*asked, *rest])
    if sought.wants == "share":
        return _make_share(query, asked, rest)
    if sought.wants == "check":
        return _make_check(query, sought, [*asked, *rest])
    if sought.group:
        return _make_groups(query, [*asked, *rest])
    columns = query.table.columns
    numeric = any(columns[name].is_quantity for name in [*asked, *rest])
    numeric = numeric or bool(_find_reading(query, [*asked, *rest]))
    if sought.best or (sought.aggregate and numeric):
        is_amount = sought.is_bare and not numeric and not rest and _is_group(query, asked)
        make = _make_amount_group if is_amount else _make_aggregate
        return make(query, asked, rest)
    if sought.aggregate and (sought.aggregate != "sum" or sought.wants != "count"):
        return None  # "average" of nothing that is a number
    if sought.wants in ("count", "distinct"):
        return _make_count(query, asked, rest)
    if sought.wants == "much":
        return _make_amount(replace(query, wants="value"), [*asked, *rest])
    return _make_lookup(query, asked, rest)


def _tells_far_keys(query: Query) -> bool:
    """Whether keys would be told that a linked table brought: their names are a link further."""
    brought = {name for one in query.table.partners for name in one.columns}
    return bool(query.entities & brought & {*query.targets, query.group})


def _name_keys(query: Query) -> Query:
    """Return a query that tells names for keys: of the linked table, or of the row itself."""
    labels = {one.link: one.label for one in query.table.partners if one.label}
    keys = [name for name in query.entities if query.table.columns[name].is_key]
    own = {name: query.table.label for name in keys if query.table.label}
    names = {name: label for name, label in (own | labels).items() if name in query.entities}
    if query.wants in ("distinct", "aggregate"):
        return query
    targets = tuple(dict.fromkeys(names.get(name, name) for name in query.targets))
    group = labels.get(query.group, query.group) if query.group in names else query.group
    return replace(query, targets=targets, group=group)


def _make_pair(query: Query, pair: str, mentioned: list[str]) -> Query | None:
    """The difference or ratio of two rows that are named, or the ratio of two columns."""
    columns = query.table.columns
    numeric = [name for name in dict.fromkeys(mentioned) if columns[name].is_quantity]
    named = [one for one in query.filters if one.how == "=" and not one.negated]
    if query.best == "range" and len(numeric) == 1:
        return replace(query, wants="aggregate", aggregate="range", measure=numeric[0], best="")
    if len(numeric) == 2 and query.filters:
        return replace(query, wants=pair, measure=numeric[0], second=numeric[1])
    twice = [one for one in named if sum(o.column == one.column for o in named) == 2]
    if len(numeric) != 1 or len(twice) != 2:
        return None
    return replace(query, wants=pair, measure=numeric[0], group=twice[0].column)


def _make_share(query: Query, asked: list[str], rest: list[str]) -> Query | None:
    """The share of the rows that satisfy the conditions."""
    columns = query.table.columns
    numeric = [name for name in [*asked, *rest] if columns[name].is_quantity]
    if not query.filters or numeric:
        return None
    return replace(query, wants="share")


def _make_check(query: Query, sought: Sought, mentioned: list[str]) -> Query | None:
    """Yes or no: whether a row that is named has what is said, or is more than another."""
    table, columns = query.table, query.table.columns
    named = [one for one in query.filters if one.how == "=" and not one.negated]
    row = [one for one in named if one.column == table.label or columns[one.column].is_key]
    numeric = [name for name in mentioned if columns[name].is_quantity]
    numeric += [name for name in mentioned if columns[name].type == "date"]
    if len(row) == 2 and sought.best and numeric and len(query.filters) == 2:
        best = to_extreme(sought.best, columns[numeric[0]])
        return replace(query, best=best, measure=numeric[0], group=row[0].column)
    if len(row) != 1 or sought.aggregate:
        return None
    if sought.best:
        rest = tuple(one for one in query.filters if one is not row[0])
        found = _make_aggregate(replace(query, filters=rest, wants="rows"), [], mentioned)
        if found is None or found.wants != "best":
            return None
        return replace(found, wants="check", targets=(row[0].column,), filters=(*rest, row[0]))
    named_only = {one.column for one in query.filters}
    return query if len(query.filters) > 1 and named_only.issuperset(mentioned) else None


def _find_owners(reading: Reading) -> set[str]:
    """Return columns that only say whose another column is: "the length of the river of …"."""
    found, seen = set(), False
    for start, _, name in sorted(reading.columns):
        before = [word.fold for word in reading.words[max(0, start - 2) : start]]
        if seen and (before[-1:] == ["of"] or before == ["of", "the"]):
            found.add(name)
        seen = True
    return found


def _make_groups(query: Query, mentioned: Sequence[str]) -> Query | None:
    """A number for each value of a column: "the average price per symbol"."""
    columns = query.table.columns
    measure = next((name for name in mentioned if columns[name].is_quantity), "")
    how = query.aggregate or {"max": "max", "min": "min", "least": "min"}.get(query.best, "")
    if query.wants == "count":
        how, measure = ("sum", measure) if query.adds_up else ("", "")
    elif not (measure and how):
        return None
    return replace(query, wants="groups", measure=measure, aggregate=how, best="")


def _make_amount(query: Query, mentioned: list[str]) -> Query | None:
    """The sum of what "how much" asks for if it adds up, else the values themselves."""
    amounts = [name for name in mentioned if query.table.columns[name].is_additive]
    if len(mentioned) == 1 and amounts and query.filters:
        return replace(query, wants="aggregate", aggregate="sum", measure=amounts[0])
    return _make_lookup(query, [], mentioned)


def _make_lookup(query: Query, asked: list[str], rest: list[str]) -> Query | None:
    """The values of the columns that are asked for, else the names of the rows."""
    table, filters = query.table, query.filters
    by_name = query.wants in ("rows", "names") and not asked and bool(filters)
    targets = [table.label] * bool(table.label) if by_name else asked or rest
    if query.wants == "place" and not targets:  # "Where is SN007?"
        places = load_operators().places
        targets = [name for name, one in table.columns.items() if not places.isdisjoint(one.words)]
        targets = targets if len(targets) == 1 else []
    used = {one.column for one in filters if one.how == "="}
    if by_name and query.wants == "names" and table.label in used and rest:
        targets = rest  # "Who is Dana's manager?"
    elif by_name and query.wants == "names" and _asks_partner(query):
        others = [one for one in table.partners if one.label and not used & one.columns]
        targets = [one.label for one in others if one.label not in used and one.link not in used]
        targets = targets if len(targets) == 1 else []
    fitting = [
        name for name in targets if name in query.entities or _fits(table, name, query.wants)
    ]
    targets = [name for name in fitting if name not in used]
    if not targets or not (filters or rest or (asked and query.wants == "rows")):
        return None
    if query.wants == "rows":
        filters = (*filters, *(Filter(name, "filled") for name in rest if name not in targets))
    return replace(query, wants="value", targets=tuple(targets), filters=filters)


def _asks_partner(query: Query) -> bool:
    """Whether "who" cannot be the rows: they are named, or what they refer to is."""
    table, used = query.table, {one.column for one in query.filters}
    return table.label in used or any(one.label in used for one in table.partners)


def _fits(table: Table, column: str, wants: str) -> bool:
    """Whether values of a column can answer who, when or where."""
    found = table.columns[column]
    if wants == "time":
        return found.type == "date" or not load_operators().times.isdisjoint(found.words)
    if wants == "names" and found.type == "text":
        return sum(any(map(str.isdigit, one)) for one in found.rows_by_value) * 2 <= len(
            found.rows_by_value
        )  # codes are nobody's names
    return found.type == "text" or found.is_id if wants in ("names", "place") else True


def _make_aggregate(query: Query, asked: list[str], rest: list[str]) -> Query | None:
    """A sum, mean or extreme: of a column, of the rows, or of the groups of rows."""
    columns = query.table.columns
    dated, counts_rows = query.best in _DATED, query.best in _COUNTED
    is_amount = counts_rows or query.best == "least"
    measured = "date" if dated else "number"
    fitting = [name for name in [*rest, *asked] if columns[name].type == measured]
    fitting = [n for n in fitting if not columns[n].is_id and not _numbers_rows(query.table, n)]
    if dated and not fitting:  # a year may stand in a column of numbers
        fitting = [name for name in rest if columns[name].is_quantity]
    targets = [name for name in [*asked, *rest] if name not in fitting[:1]]
    measure = next(iter(fitting), "")
    if not measure and (measure := _find_reading(query, targets)):
        targets = [name for name in targets if columns[name].type != "date" or dated]
    query = replace(query, best=to_extreme(query.best, columns.get(measure)), measure=measure)
    if not query.best:
        is_amount = bool(measure) and not counts_up(columns[measure].numbers)
        return replace(query, wants="aggregate") if is_amount else None
    if not measure:
        return _make_largest_group(query, asked, rest) if counts_rows else None
    if query.aggregate and targets:
        return replace(query, wants="group", group=targets[0])
    adds_up = is_amount or columns[measure].is_additive
    if adds_up and query.wants == "rows" and targets[:1] == asked[:1] and asked:
        if _is_category(query.table, asked[0]):
            return replace(query, wants="group", group=asked[0], aggregate="sum")
    return _make_best(query, asked, targets)


def _numbers_rows(table: Table, name: str) -> bool:
    """Whether a column only numbers the rows: it is called as they are, and tells them apart."""
    column = table.columns[name]
    own = [any(is_same_word(word, one) for one in table.own_words) for word in column.words]
    return column.is_key and bool(own) and all(own)


def _find_reading(query: Query, targets: Sequence[str]) -> str:
    """Return the column with what a kind of row measures: "the highest temperature"."""
    columns = query.table.columns
    kinds = [one.column for one in query.filters if one.how == "=" and not one.negated]
    found = [name for name, column in columns.items() if column.is_reading]
    others = [name for name in targets if columns[name].type != "date"]
    known = kinds and not others and query.best not in _COUNTED
    return found[0] if known and len(found) == 1 else ""


def _is_category(table: Table, name: str) -> bool:
    """Whether rows share the values of a column, so that what they have is added up."""
    column = table.columns[name]
    named = column.type == "text" or column.is_id
    return named and name != table.label and not column.is_nearly_key


def _make_largest_group(query: Query, asked: list[str], rest: list[str]) -> Query | None:
    """The value that most rows have: "which state has the most airports"."""
    if not asked or query.wants not in ("rows", "names") or query.table.columns[asked[0]].is_key:
        return None
    filters = (*query.filters, *(Filter(name, "filled") for name in rest))
    return replace(query, wants="group", group=asked[0], filters=filters, aggregate="")


def _is_group(query: Query, asked: list[str]) -> bool:
    """Whether what is asked for has several rows, and either an amount or only their number."""
    is_asked = bool(asked) and query.wants in ("rows", "names")
    has_amount = bool(query.aggregate) or bool(query.table.amounts)
    return is_asked and has_amount and _is_category(query.table, asked[0])


def _make_amount_group(query: Query, asked: list[str], rest: list[str]) -> Query | None:
    """The value whose rows have the largest sum of the only amount: "gave the most in total"."""
    if rest or len(query.table.amounts) != 1:
        return None
    return replace(
        query,
        wants="group",
        group=asked[0],
        aggregate="sum",
        best=to_extreme(query.best, None),
        measure=query.table.amounts[0],
        guesses=(*query.guesses, Guess("implied")),
    )


def _make_best(query: Query, asked: list[str], targets: list[str]) -> Query | None:
    """The rows with the largest or smallest value, or that value itself."""
    table = query.table
    if query.wants == "time":
        times = [name for name in table.columns if _fits(table, name, "time")]
        targets = [name for name in targets if name in times] or times[:1]
        return replace(query, wants="best", targets=tuple(targets)) if targets else None
    chosen = [one.column for one in query.filters if one.how == "="]
    if any(chosen.count(name) > 1 for name in chosen):
        return replace(query, wants="best", targets=(max(chosen, key=chosen.count),))
    if not targets and (query.wants in ("rows", "names") or query.of_rows) and table.label:
        targets = [table.label]
    by_name = query.wants in ("rows", "names") or query.of_rows
    if not targets and by_name and query.measure not in asked:
        return None  # no column names the rows that are asked for
    return replace(query, wants="best", targets=tuple(targets[:1]))


def _make_count(query: Query, asked: list[str], rest: list[str]) -> Query | None:
    """A number of rows, or of different values of the column that is counted."""
    table = query.table
    amounts = [name for name in rest if table.columns[name].is_quantity]
    if query.best == "" and not asked and len(amounts) == len(rest) == 1 and query.counts_things:
        return replace(query, wants="aggregate", aggregate="sum", measure=amounts[0])
    stock = [name for name in table.columns if table.columns[name].is_stock]
    if query.counts_things and not rest and not asked and len(stock) == 1:
        return replace(query, wants="aggregate", aggregate="sum", measure=stock[0])
    filters = (*query.filters, *(Filter(name, "filled") for name in rest))
    query = replace(query, filters=filters)
    if not asked:
        return replace(query, wants="count")
    column = table.columns[asked[0]]
    exact = [one.column for one in filters if one.how in ("=", "contains")]
    pinned = any(table.columns[name].is_key or name == table.label for name in exact)
    if column.is_quantity and pinned and query.wants != "distinct":
        return replace(query, wants="value", targets=(column.name,))
    if query.adds_up and query.wants != "distinct":
        return replace(query, wants="aggregate", aggregate="sum", measure=column.name)
    if query.wants != "distinct" and column.is_nearly_key:
        return replace(query, wants="count")
    compared = any(one.how in _COMPARING for one in query.filters)
    compared = compared or any(one.name == column.name for one in query.guesses)
    if query.wants != "distinct" and compared and column.tells_kinds:
        guesses = (*query.guesses, Guess("counted"))
        return replace(query, wants="count", guesses=guesses)  # "animals over 300 kg"
    return replace(query, wants="distinct", targets=(column.name,))
