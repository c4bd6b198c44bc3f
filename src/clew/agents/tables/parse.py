"""Reads a question as a query over one table: its words are columns, values, operators or fillers.

A table answers only if every word of the question is accounted for. Nothing is known about any
table in advance: columns are found by their names, filters by the values in the cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.agents.tables.chinese import asks_in_chinese, write_in_english
from clew.agents.tables.conditions import (
    add_comparisons,
    add_months,
    add_numbers,
    add_parts_of_values,
    add_text_filters,
    add_values,
    literal_type,
)
from clew.agents.tables.load import Table
from clew.agents.tables.reading import Filter, Mention, Query, Reading, find_columns, to_extreme
from clew.agents.tables.senses import (
    Senses,
    find_choice,
    find_comparatives,
    find_superlatives,
)
from clew.agents.tables.words import Word, is_same_word, load_operators, split_question

_NOUN_WEIGHT = 1.0
_MAX_BEFORE_ASK = 1  # words before it: "in which year"
_OF_NUMBER = {"max": "most", "min": "fewest"}
_COUNTED = ("most", "fewest")  # of rows, where no column is measured
_DATED = ("last", "first", "old", "young")


def may_ask_tables(question: str) -> bool:
    """Whether a question begins like one that rows could answer; others need not load tables."""
    if asks_in_chinese(question):
        return True
    asks = next(load_operators().find("asks", split_question(question)), None)
    return asks is not None and asks[0] <= _MAX_BEFORE_ASK


def parse_question(
    question: str, tables: Sequence[Table], senses: Senses | None = None
) -> list[Query]:
    """Return the readings of a question over the tables that can answer it, the best first.

    With `senses`, words that nothing else accounts for may stand for the columns they mean.
    """
    words = split_question(write_in_english(question, tables))
    named = {table.name: table.words for table in tables}
    found = []
    for table in tables:
        others = frozenset().union(*(some for name, some in named.items() if name != table.name))
        query = _read(words, table, others - table.words, senses or {})
        found += [query] if query is not None else []
    return sorted(found, key=lambda query: -query.score)


def _read(words: list[Word], table: Table, foreign: frozenset[str], senses: Senses) -> Query | None:
    reading = Reading(table, words, load_operators(), [""] * len(words), foreign)
    ask = _find_ask(reading)
    if ask is None:
        return None
    add_values(reading, 2)  # "Town 7" before the column "town"
    find_columns(reading)
    group = _find_group(reading)
    comparisons, texts = reading.find("comparisons"), reading.find("texts")
    aggregates, distinct = reading.find("aggregates"), reading.find("distinct")
    reading.find("placements")  # they are accounted for
    negations = reading.find("negations")
    best = find_superlatives(reading, senses, ask[1])
    add_comparisons(reading, comparisons + find_comparatives(reading, senses))
    add_text_filters(reading, texts)
    add_values(reading)
    add_parts_of_values(reading)
    add_months(reading)
    add_numbers(reading)
    best = best or find_choice(reading, senses)
    head = _find_head(reading, ask)
    if not _account_for_rest(reading, head, ask[2]):
        return None
    if negations:
        *others, last = reading.filters or [Filter("", "")]
        reading.filters = [*others, replace(last, negated=True)] if last.column else others
    sought = _Sought(
        "distinct" if distinct else ask[2],
        aggregates[0][2] if aggregates else "",
        _name_best(reading, best),
        group,
    )
    return _make_query(reading, sought, head)


@dataclass(frozen=True)
class _Sought:
    """What the operators of a question ask for."""

    wants: str
    aggregate: str = ""
    best: str = ""
    group: str = ""


def _name_best(reading: Reading, best: Sequence[Mention]) -> str:
    """Return what a superlative asks for, or ""; "the largest number of" asks for the most."""
    for _, end, meaning in best[:1]:
        behind = [word.fold for word in reading.words[end : end + 2]]
        return _OF_NUMBER.get(meaning, meaning) if behind == ["number", "of"] else meaning
    return ""


def _find_group(reading: Reading) -> str:
    """Return the column after "per" or "for each", which is then no other part of the question."""
    for start, end, _ in reading.find("groupings"):
        mention = next((one for one in reading.columns if one[0] == end), None)
        if mention is not None:
            reading.columns.remove(mention)
            return mention[2]
        reading.take(start, end, "")
    return ""


def _find_ask(reading: Reading) -> Mention | None:
    """Return how the question begins; "what is the number of" asks like "how many"."""
    asks = reading.find("asks")
    if not asks or asks[0][0] > _MAX_BEFORE_ASK:
        return None
    counts = [one for one in asks[1:] if one[2] == "count" and not _follows_measure(reading, one)]
    for start, end, meaning in asks[1:]:
        if meaning != "count":
            reading.take(start, end, "")  # "name" may be a column
    return next(iter(counts), asks[0])


def _follows_measure(reading: Reading, ask: Mention) -> bool:
    """Whether "number of" stands after "the largest": then it names what is compared."""
    if not ask[0] or ask[1] - ask[0] < 2:
        return False
    before = reading.words[ask[0] - 1].fold
    return (before,) in reading.operators.phrases["superlatives"]


def _find_head(reading: Reading, ask: Mention) -> int:
    """Return the noun that the question asks for ("which car", "how many different states")."""
    at = ask[1]
    skipped = ("distinct", "aggregates", "superlatives")
    while at < len(reading.words) and (
        reading.taken[at] in skipped
        or (not reading.taken[at] and reading.words[at].fold in ("the", "of", "all"))
    ):
        at += 1
    return at if at < len(reading.words) and ask[2] in ("count", "rows") else -1


def _account_for_rest(reading: Reading, head: int, asks: str) -> bool:
    """Whether every word is accounted for: names of the table, the head noun, fillers."""
    for at, word in enumerate(reading.words):
        if reading.taken[at]:
            continue
        if any(is_same_word(word.fold, own) for own in reading.table.words):
            reading.take(at, at + 1, "table")
            reading.score += _NOUN_WEIGHT
        elif word.fold in reading.operators.fillers:
            reading.take(at, at + 1, "filler")
        elif word.text[:1].isupper() or any(is_same_word(word.fold, o) for o in reading.foreign):
            return False  # a name that no cell has, or what another table holds
        elif (word.fold,) in reading.operators.phrases["degrees"]:
            return False  # "older" is no part of the name behind it
        elif (at == head and not literal_type(word.fold)) or _is_compound(reading, at):
            reading.take(at, at + 1, "noun")
        else:
            return False
    if asks == "count" and "table" in reading.taken:
        return True
    if asks == "count" and head >= 0 and reading.taken[head] == "value":
        return False  # "how many symbols": what is counted is no value
    return bool(reading.filters or reading.columns) and _is_grounded(reading, head, asks)


def _is_grounded(reading: Reading, head: int, asks: str) -> bool:
    """Whether the noun asked for is the table's, a column, or vouched for by a column's name."""
    if head < 0 or reading.taken[head] != "noun" or "column" in reading.taken:
        return True
    # "Which currency has the code JPY?": a value that one row alone has.
    columns = reading.table.columns
    exact = [one for one in reading.filters if one.how == "=" and columns[one.column].is_key]
    return bool(exact) and asks == "rows" and "noun" in reading.taken[head + 1 :]


def _is_compound(reading: Reading, at: int) -> bool:
    """Whether a word is joined to a column or a value: "numeric code", "the code JPY"."""
    words, taken = reading.words, reading.taken
    if literal_type(words[at].fold):
        return False  # a number that no column has is not part of a name
    behind = [*taken[at + 1 : at + 3], "", ""]
    if behind[0] == "value":
        return True
    if at + 1 < len(words) and words[at + 1].fold == "of" and behind[1] == "column":
        return True  # "the price of gas"
    if not at or taken[at - 1] != "column":
        return False
    # "which source generated …" is a verb, "which numeric code does …" a name.
    is_asked = any(start <= _first_noun(reading) < end == at for start, end, _ in reading.columns)
    following = words[at + 1].fold if at + 1 < len(words) else ""
    return not is_asked or following in reading.operators.auxiliaries


def _first_noun(reading: Reading) -> int:
    """Return the first word that is a column: what a question begins with."""
    return reading.taken.index("column") if reading.taken[:3].count("column") else -1


def _make_query(reading: Reading, sought: _Sought, head: int) -> Query | None:
    table = reading.table
    mentioned = [name for _, _, name in sorted(reading.columns)]
    asked = [name for start, end, name in reading.columns if start <= head < end]
    rest = [name for name in mentioned if name not in asked]
    if not (sought.best or sought.aggregate):
        rest = [name for name in rest if name not in _find_owners(reading)]
    query = Query(
        *(table, sought.wants, tuple(reading.filters)),
        aggregate=sought.aggregate,
        best=sought.best,
        group=sought.group,
        score=reading.score,
    )
    if sought.group:
        return _make_groups(query, mentioned)
    numeric = [name for name in mentioned if table.columns[name].type == "number"]
    if sought.best or (sought.aggregate and numeric):
        return _make_aggregate(query, asked, rest)
    if sought.wants in ("count", "distinct"):
        return _make_count(query, asked, rest)
    return _make_lookup(query, asked, rest)


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
    measure = next((name for name in mentioned if columns[name].type == "number"), "")
    how = query.aggregate or {"max": "max", "min": "min"}.get(query.best, "")
    if query.wants != "count" and not (measure and how):
        return None
    how, measure = ("", "") if query.wants == "count" else (how, measure)
    return replace(query, wants="groups", measure=measure, aggregate=how, best="")


def _make_lookup(query: Query, asked: list[str], rest: list[str]) -> Query | None:
    """The values of the columns that are asked for, else the names of the rows."""
    table, filters = query.table, query.filters
    by_name = query.wants in ("rows", "names") and not asked and bool(filters)
    targets = [table.label] * bool(table.label) if by_name else asked or rest
    used = {one.column for one in filters if one.how == "="}
    targets = [name for name in targets if name not in used and _fits(table, name, query.wants)]
    if not targets or not (filters or rest or (asked and query.wants == "rows")):
        return None
    if query.wants == "rows":
        filters = (*filters, *(Filter(name, "filled") for name in rest if name not in targets))
    return replace(query, wants="value", targets=tuple(targets), filters=filters)


def _fits(table: Table, column: str, wants: str) -> bool:
    """Whether values of a column can answer who, when or where."""
    found = table.columns[column]
    if wants == "time":
        return found.type == "date" or not load_operators().times.isdisjoint(found.words)
    return found.type == "text" if wants in ("names", "place") else True


def _make_aggregate(query: Query, asked: list[str], rest: list[str]) -> Query | None:
    """A sum, mean or extreme: of a column, of the rows, or of the groups of rows."""
    columns = query.table.columns
    dated, counts_rows = query.best in _DATED, query.best in _COUNTED
    measured = "date" if dated else "number"
    fitting = [name for name in [*rest, *asked] if columns[name].type == measured]
    if dated and not fitting:  # a year may stand in a column of numbers
        fitting = [name for name in rest if columns[name].type == "number"]
    targets = [name for name in [*asked, *rest] if name not in fitting[:1]]
    measure = next(iter(fitting), "")
    query = replace(query, best=to_extreme(query.best, columns.get(measure)), measure=measure)
    if not query.best:
        return replace(query, wants="aggregate") if measure else None
    if not measure:
        return _make_largest_group(query, asked, rest) if counts_rows else None
    if query.aggregate and targets:
        return replace(query, wants="group", group=targets[0])
    return _make_best(query, asked, targets)


def _make_largest_group(query: Query, asked: list[str], rest: list[str]) -> Query | None:
    """The value that most rows have: "which state has the most airports"."""
    if not asked or query.wants != "rows":
        return None
    filters = (*query.filters, *(Filter(name, "filled") for name in rest))
    return replace(query, wants="group", group=asked[0], filters=filters, aggregate="")


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
    if not targets and query.wants in ("rows", "names") and table.label:
        targets = [table.label]
    if query.measure in asked and not targets:
        targets = []
    return replace(query, wants="best", targets=tuple(targets[:1]))


def _make_count(query: Query, asked: list[str], rest: list[str]) -> Query | None:
    """A number of rows, or of different values of the column that is counted."""
    table = query.table
    filters = (*query.filters, *(Filter(name, "filled") for name in rest))
    query = replace(query, filters=filters)
    if not asked:
        return replace(query, wants="count")
    column = table.columns[asked[0]]
    pinned = any(table.columns[one.column].is_key or one.column == table.label for one in filters)
    if column.type == "number" and pinned and query.wants != "distinct":
        return replace(query, wants="value", targets=(column.name,))
    if query.wants != "distinct" and column.is_nearly_key:
        return replace(query, wants="count")
    return replace(query, wants="distinct", targets=(column.name,))
