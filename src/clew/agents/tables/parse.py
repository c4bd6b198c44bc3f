"""Reads a question as a query over one table: its words are columns, values, operators or fillers.

A table answers only if every word of the question is accounted for. Nothing is known about any
table in advance: columns are found by their names, filters by the values in the cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from clew.agents.tables.load import Column, Table, parse_date, parse_number
from clew.agents.tables.words import (
    Operators,
    Word,
    is_same_word,
    load_operators,
    split_question,
)

_MAX_VALUE_WORDS = 10
_CODE_LENGTH = 3  # values so short are compared with their case: "IN" is no preposition
_YEARS = (1000, 2999)
_VALUE_WEIGHT, _COLUMN_WEIGHT, _NOUN_WEIGHT = 3.0, 2.0, 1.0


@dataclass(frozen=True)
class Filter:
    """A condition on a column: `how` is =, <, >, <=, >=, contains, starts, ends, year or filled."""

    column: str
    how: str
    value: str = ""
    negated: bool = False


@dataclass(frozen=True)
class Query:
    """What a question asks of a table."""

    table: Table
    wants: str
    """count, distinct, value or rows."""
    filters: tuple[Filter, ...] = ()
    targets: tuple[str, ...] = ()
    """The columns whose values answer."""
    measure: str = ""
    aggregate: str = ""
    """sum, mean or median of `measure`, or "" """
    best: str = ""
    """max or min: of the measure, or of the group's aggregate or size."""
    group: str = ""
    score: float = 0.0


@dataclass
class _Reading:
    """What each word of a question is taken for, over one table."""

    table: Table
    words: list[Word]
    operators: Operators
    taken: list[str]
    """Per word: what it is taken for, "" if nothing yet."""
    columns: list[tuple[int, int, str]] = field(default_factory=list)
    values: list[tuple[int, int, str]] = field(default_factory=list)
    filters: list[Filter] = field(default_factory=list)
    score: float = 0.0

    def take(self, start: int, end: int, kind: str) -> None:
        """Mark words as accounted for."""
        self.taken[start:end] = [kind] * (end - start)

    def is_free(self, start: int, end: int) -> bool:
        """Whether none of the words is taken."""
        return not any(self.taken[start:end])

    def find(self, kind: str) -> list[tuple[int, int, str]]:
        """Find the operators of a kind among the free words, and take them."""
        found = [one for one in self.operators.find(kind, self.words) if self.is_free(*one[:2])]
        for start, end, _ in found:
            self.take(start, end, kind)
        return found


def parse_question(question: str, tables: Sequence[Table]) -> list[Query]:
    """Return the readings of a question over the tables that can answer it, the best first."""
    words = split_question(question)
    found = [query for table in tables if (query := _read(words, table)) is not None]
    return sorted(found, key=lambda query: -query.score)


def _read(words: list[Word], table: Table) -> Query | None:
    reading = _Reading(table, words, load_operators(), [""] * len(words))
    ask = _find_ask(reading)
    if ask is None:
        return None
    _add_values(reading, 2)  # "Town 7" before the column "town"
    _find_columns(reading)
    comparisons, texts = reading.find("comparisons"), reading.find("texts")
    aggregates, best = reading.find("aggregates"), reading.find("superlatives")
    distinct, negations = reading.find("distinct"), reading.find("negations")
    _add_comparisons(reading, comparisons)
    _add_text_filters(reading, texts)
    _add_values(reading)
    _add_parts_of_values(reading)
    _add_numbers(reading)
    head = _find_head(reading, ask)
    if not _account_for_rest(reading, head, ask[2]):
        return None
    if negations:
        reading.filters = [replace(one, negated=True) for one in reading.filters[-1:]]
    return _make_query(
        reading,
        ask[2] if not distinct else "distinct",
        head,
        aggregates[0][2] if aggregates else "",
        best[0][2] if best else "",
    )


def _find_ask(reading: _Reading) -> tuple[int, int, str] | None:
    """Return how the question begins; "what is the number of" asks like "how many"."""
    asks = reading.find("asks")
    if not asks or asks[0][0] > 1:
        return None
    counts = [one for one in asks[1:] if one[2] == "count"]
    for start, end, meaning in asks[1:]:
        if meaning != "count":
            reading.take(start, end, "")  # "name" may be a column
    return next(iter(counts), asks[0])


# -- columns


def _find_columns(reading: _Reading) -> None:
    """Find whole names of columns, the longest first, then single words that one column has."""
    names = sorted(reading.table.columns.values(), key=lambda column: -len(column.words))
    for column in names:
        for start in range(len(reading.words) - len(column.words) + 1):
            _try_column(reading, column, start)
    for at, word in enumerate(reading.words):
        if reading.is_free(at, at + 1) and word.fold not in reading.operators.fillers:
            having = [one for one in names if any(is_same_word(word.fold, w) for w in one.words)]
            if len(having) == 1 and not word.fold[:1].isdigit():
                _note_column(reading, at, at + 1, having[0].name)


def _try_column(reading: _Reading, column: Column, start: int) -> None:
    end = start + len(column.words)
    if not column.words or not reading.is_free(start, end):
        return
    pairs = zip(reading.words[start:end], column.words, strict=True)
    if all(is_same_word(word.fold, own) for word, own in pairs):
        _note_column(reading, start, end, column.name)


def _note_column(reading: _Reading, start: int, end: int, name: str) -> None:
    reading.take(start, end, "column")
    reading.columns.append((start, end, name))
    reading.score += _COLUMN_WEIGHT * (end - start)


def _nearest_column(
    reading: _Reading, start: int, end: int, types: Sequence[str]
) -> tuple[int, int, str] | None:
    """Return the mention of a column nearest to some words: behind them first, then before."""
    fitting = [one for one in reading.columns if reading.table.columns[one[2]].type in types]
    behind = sorted(one for one in fitting if 0 <= one[0] - end <= 1)
    before = sorted((one for one in fitting if one[1] <= start), reverse=True)
    return next(iter([*behind, *before, *fitting]), None)


# -- conditions


def _add_comparisons(reading: _Reading, found: Sequence[tuple[int, int, str]]) -> None:
    """Turn "more than 200 horsepower" into a filter; a comparison without a number is dropped."""
    for start, end, how in found:
        upper = end + 2 if how == "between" else end
        if end >= len(reading.words):
            continue
        value = reading.words[end].fold
        type_ = _literal_type(value)
        mention = _nearest_column(reading, start, upper + 1, [type_]) if type_ else None
        if mention is None and type_ == "number" and _is_year(value):
            mention = _nearest_column(reading, start, upper + 1, ["date"]) or _only_date(reading)
        if mention is None:
            reading.take(start, end, "")
            continue
        column = mention[2]
        _consume(reading, mention)
        if how == "between" and upper < len(reading.words):
            reading.filters.append(Filter(column, ">=", value))
            reading.filters.append(Filter(column, "<=", reading.words[upper].fold))
        else:
            reading.filters.append(Filter(column, how, value))
        reading.take(end, upper + 1, "value")
        reading.score += _VALUE_WEIGHT


def _literal_type(value: str) -> str:
    if parse_date(value):
        return "date"
    return "number" if parse_number(value) is not None else ""


def _is_year(value: str) -> bool:
    return value.isdigit() and _YEARS[0] <= int(value) <= _YEARS[1]


def _only_date(reading: _Reading) -> tuple[int, int, str] | None:
    dates = [name for name, one in reading.table.columns.items() if one.type == "date"]
    return (0, 0, dates[0]) if len(dates) == 1 else None


def _consume(reading: _Reading, mention: tuple[int, int, str]) -> None:
    """Take a mention of a column as part of a condition: it is not what is asked for."""
    if mention in reading.columns:
        reading.columns.remove(mention)


def _add_text_filters(reading: _Reading, found: Sequence[tuple[int, int, str]]) -> None:
    """Turn "a name containing Dollar" into a filter on the column before it."""
    for start, end, how in found:
        mention = _nearest_column(reading, start, start, ["text"])
        if mention is None or end >= len(reading.words) or not reading.is_free(end, end + 1):
            reading.take(start, end, "")
            continue
        _consume(reading, mention)
        last = end + 1
        reading.filters.append(Filter(mention[2], how, reading.words[end].fold))
        reading.take(end, last, "value")
        reading.score += _VALUE_WEIGHT


def _add_values(reading: _Reading, least: int = 1) -> None:
    """Find values of cells in the question, the longest first, and filter by them."""
    words = reading.words
    for size in range(min(_MAX_VALUE_WORDS, len(words)), least - 1, -1):
        for start in range(len(words) - size + 1):
            if reading.is_free(start, start + size):
                _try_value(reading, start, start + size)


def _add_parts_of_values(reading: _Reading) -> None:
    for at, word in enumerate(reading.words):
        if reading.is_free(at, at + 1) and word.fold not in reading.operators.fillers:
            _try_part_of_value(reading, at)


def _try_value(reading: _Reading, start: int, end: int) -> None:
    some = reading.words[start:end]
    if all(word.fold in reading.operators.fillers for word in some) and end - start > 1:
        return
    folded = " ".join(word.fold for word in some)
    columns = [
        column
        for column in reading.table.columns.values()
        if column.type == "text"
        and (rows := column.rows_by_value.get(folded))
        and _has_case(column, rows[0], some, reading.operators)
    ]
    if not columns:
        return
    column = _choose_column(reading, start, columns)
    reading.filters.append(Filter(column.name, "=", folded))
    reading.values.append((start, end, column.name))
    reading.take(start, end, "value")
    reading.score += _VALUE_WEIGHT * (end - start)


def _has_case(column: Column, row: int, some: Sequence[Word], operators: Operators) -> bool:
    """Whether a short value, or one that is a common word, is written just as in the cell."""
    word = some[0].fold
    if len(some) > 1 or (len(word) > _CODE_LENGTH and word not in operators.fillers):
        return True
    return str(column.cells[row]) == some[0].text and not some[0].text.islower()


def _choose_column(reading: _Reading, start: int, columns: Sequence[Column]) -> Column:
    """Choose the column of a value: one named just before it, else the label, else the first."""
    names = {column.name: column for column in columns}
    near = [one for one in reading.columns if one[2] in names and 0 <= start - one[1] <= 2]
    near += [one for one in reading.columns if one[2] in names and one not in near]
    if near:
        # "the genus Salmonella": the column belongs to the condition.
        _consume(reading, near[0])
        return names[near[0][2]]
    return names.get(reading.table.label, columns[0])


def _try_part_of_value(reading: _Reading, at: int) -> None:
    """Filter by a word that is a part of values: "LTS" of "20.04 LTS"."""
    word = reading.words[at]
    if len(word.fold) < 2 or any(is_same_word(word.fold, own) for own in reading.table.words):
        return
    found = []
    for column in reading.table.columns.values():
        if column.type == "text":
            rows = sum(len(r) for v, r in column.rows_by_value.items() if word.fold in v.split())
            found += [(rows, column)] * bool(rows)
    near = [one for one in found if any(m[2] == one[1].name for m in reading.columns)]
    if not found or (len(found) > 1 and not near):
        return
    column = (near or found)[0][1]
    if word.text.islower() and not near:
        return  # a common word is seldom meant as a part of a name
    for mention in [one for one in reading.columns if one[2] == column.name]:
        if _is_condition(reading, mention, at):
            _consume(reading, mention)
    reading.filters.append(Filter(column.name, "contains", word.fold))
    reading.values.append((at, at + 1, column.name))
    reading.take(at, at + 1, "value")
    reading.score += _VALUE_WEIGHT / 2


def _is_condition(reading: _Reading, mention: tuple[int, int, str], at: int) -> bool:
    """Whether a column stands before its value and is not what the question begins with."""
    return 0 <= at - mention[1] <= 1


def _add_numbers(reading: _Reading) -> None:
    """Filter by numbers and dates without a comparison: "8 cylinders", "in 1931"."""
    for at, word in enumerate(reading.words):
        if not reading.is_free(at, at + 1) or not (type_ := _literal_type(word.fold)):
            continue
        found = _choose_literal_column(reading, at, type_)
        if found is None:
            continue
        column, how, mention = found
        if mention is not None:
            _consume(reading, mention)
        reading.filters.append(Filter(column, how, word.fold))
        reading.values.append((at, at + 1, column))
        reading.take(at, at + 1, "value")
        reading.score += _VALUE_WEIGHT


def _choose_literal_column(
    reading: _Reading, at: int, type_: str
) -> tuple[str, str, tuple[int, int, str] | None] | None:
    """Return the column that a number or date is a value of, how it is compared, its mention."""
    word = reading.words[at].fold
    year = _find_year_column(reading) if _is_year(word) else None
    for one in reading.columns:
        if reading.table.columns[one[2]].type == type_ and _is_joined(reading, one, at, year):
            return one[2], "=", one
    if type_ == "date":
        date = _only_date(reading)
        return (date[2], "=", None) if date else None
    return year


def _is_joined(
    reading: _Reading, mention: tuple[int, int, str], at: int, year: object | None
) -> bool:
    """Whether a number belongs to a column: "8 cylinders", "a code of 76"; "in 1931" does not."""
    if mention[0] == at + 1 or mention[1] == at:
        return True
    return year is None and 0 < at - mention[1] <= 2 and not any(reading.taken[mention[1] : at])


def _find_year_column(reading: _Reading) -> tuple[str, str, None] | None:
    for name, column in reading.table.columns.items():
        if column.type == "number" and "year" in column.words:
            return name, "=", None
    date = _only_date(reading)
    return (date[2], "year", None) if date else None


# -- the rest


def _find_head(reading: _Reading, ask: tuple[int, int, str]) -> int:
    """Return the noun that the question asks for ("which car", "how many different states")."""
    at = ask[1]
    skipped = ("distinct", "aggregates", "superlatives")
    while at < len(reading.words) and (
        reading.taken[at] in skipped
        or (not reading.taken[at] and reading.words[at].fold in ("the", "of", "all"))
    ):
        at += 1
    return at if at < len(reading.words) and ask[2] in ("count", "rows") else -1


def _account_for_rest(reading: _Reading, head: int, asks: str) -> bool:
    """Whether every word is accounted for: names of the table, the head noun, fillers."""
    for at, word in enumerate(reading.words):
        if reading.taken[at]:
            continue
        if any(is_same_word(word.fold, own) for own in reading.table.words):
            reading.take(at, at + 1, "table")
            reading.score += _NOUN_WEIGHT
        elif word.fold in reading.operators.fillers:
            reading.take(at, at + 1, "filler")
        elif (at == head and not _literal_type(word.fold)) or _is_compound(reading, at):
            reading.take(at, at + 1, "noun")
        else:
            return False
    has_content = bool(reading.filters or reading.columns)
    return has_content and _is_grounded(reading, head, asks)


def _is_grounded(reading: _Reading, head: int, asks: str) -> bool:
    """Whether the noun asked for is the table's, a column, or vouched for by a column's name."""
    if head < 0 or reading.taken[head] != "noun" or "column" in reading.taken:
        return True
    # "Which currency has the code JPY?": a value that one row alone has.
    columns = reading.table.columns
    exact = [one for one in reading.filters if one.how == "=" and columns[one.column].is_key]
    return bool(exact) and asks == "rows" and "noun" in reading.taken[head + 1 :]


def _is_compound(reading: _Reading, at: int) -> bool:
    """Whether a word is joined to a column or a value: "numeric code", "the code JPY"."""
    if _literal_type(reading.words[at].fold):
        return False  # a number that no column has is not part of a name
    before = reading.taken[at - 1] if at else ""
    behind = reading.taken[at + 1] if at + 1 < len(reading.taken) else ""
    return before == "column" or behind == "value"


def _make_query(
    reading: _Reading, wants: str, head: int, aggregate: str, best: str
) -> Query | None:
    table = reading.table
    mentioned = [name for _, _, name in sorted(reading.columns)]
    asked = [name for start, end, name in reading.columns if start <= head < end]
    rest = [name for name in mentioned if name not in asked]
    query = Query(table, wants, tuple(reading.filters), score=reading.score)
    if best or (aggregate and mentioned):
        return _make_aggregate(query, asked, rest, aggregate, best)
    if wants in ("count", "distinct"):
        return _make_count(query, asked, rest)
    return _make_lookup(query, asked, rest)


def _make_lookup(query: Query, asked: list[str], rest: list[str]) -> Query | None:
    """The values of the columns that are asked for, else the names of the rows."""
    table, filters = query.table, query.filters
    by_name = query.wants in ("rows", "names") and not asked and bool(filters)
    targets = [table.label] * bool(table.label) if by_name else asked or rest
    used = {one.column for one in filters if one.how == "="}
    targets = [name for name in targets if name not in used and _fits(table, name, query.wants)]
    if not targets or not (filters or rest):
        return None
    if query.wants == "rows":
        filters = (*filters, *(Filter(name, "filled") for name in rest if name not in targets))
    return replace(query, wants="value", targets=tuple(targets), filters=filters)


def _fits(table: Table, column: str, wants: str) -> bool:
    """Whether values of a column can answer who, when or where."""
    found = table.columns[column]
    if wants == "time":
        return found.type == "date" or "year" in found.words
    return found.type == "text" if wants in ("names", "place") else True


def _make_aggregate(
    query: Query, asked: list[str], rest: list[str], aggregate: str, best: str
) -> Query | None:
    """A sum, mean or extreme: of a column, of the rows, or of the groups of rows."""
    table = query.table
    numeric = [name for name in rest if table.columns[name].type != "text"]
    others = [name for name in rest if name not in numeric]
    target = next(iter(asked or others), "")
    measure = numeric[0] if numeric else ""
    if best and not measure and target:
        if table.columns[target].type != "text" and not asked:
            return None
        return replace(query, wants="group", group=target, best=best)
    if best and aggregate and target:
        return replace(
            query, wants="group", group=target, best=best, aggregate=aggregate, measure=measure
        )
    if not measure:
        measure = next((name for name in asked if table.columns[name].type != "text"), "")
        if not measure:
            return None
    if best:
        named = query.wants == "rows" or bool(target and target != measure)
        label = target if target and target != measure else table.label
        targets = (label,) if named and label else ()
        return replace(query, wants="best", best=best, measure=measure, targets=targets)
    return replace(query, wants="aggregate", aggregate=aggregate, measure=measure)


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
    filled = sum(cell is not None for cell in column.cells)
    if query.wants != "distinct" and len(column.rows_by_value) >= 0.9 * filled:
        return replace(query, wants="count")
    return replace(query, wants="distinct", targets=(column.name,))
