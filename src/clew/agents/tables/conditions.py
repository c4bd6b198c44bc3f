"""Finds the conditions of a question: values of cells, comparisons, parts of texts, numbers."""

from collections.abc import Sequence
from dataclasses import replace
from os.path import commonprefix

from clew.agents.rules.table_words import Operators, Word, fold_text, is_same_word
from clew.agents.tables.load import Column
from clew.agents.tables.meanings import Senses
from clew.agents.tables.periods import read_moment
from clew.agents.tables.reading import (
    VALUE_WEIGHT,
    Filter,
    Mention,
    Reading,
    consume,
    find_named_before,
    nearest_column,
    nearest_of,
)
from clew.agents.tables.senses import find_measure
from clew.agents.tables.time_conditions import find_only_date, find_year_column, says_year
from clew.agents.tables.values import load_vocabulary
from clew.text.countries import find_countries
from clew.text.dates import parse_whole_date
from clew.text.quantities import parse_number

_MAX_VALUE_WORDS = 10
_CODE_LENGTH = 3  # values so short are compared with their case: "IN" is no preposition
_MIN_SHARED = 4  # letters of a name in two cases …
_MAX_CASE = 2  # … and of the ending
_MIN_DERIVED = 6  # letters of a word that is another form of a value
_MAX_KINDS = 100  # different values of a column that tells kinds
_NEAR = 3  # words between "no" and the column that it denies
_TIME_SIGNS = {"after": ">", "since": ">=", "before": "<", "until": "<="}


def add_comparisons(reading: Reading, found: Sequence[Mention], senses: Senses) -> None:
    """Turn "more than 200 horsepower" into a filter; a comparison without a number is dropped."""
    for start, end, how in found:
        literal = _read_literal(reading, end)
        if literal is None:
            reading.take(start, end, "")
            reading.dropped.add(start)
            continue
        value, behind = literal
        upper = _read_literal(reading, behind + 1) if how == "between" else None
        stop = upper[1] if upper else behind
        mention = _find_compared_column(reading, (start, stop, how), value, senses)
        if mention is None:
            reading.take(start, end, "")
            continue
        column = mention[2]
        consume(reading, mention)
        if how == "between" and upper:
            reading.filters.append(Filter(column, ">=", value, at=start))
            reading.filters.append(Filter(column, "<=", upper[0], at=start))
        else:
            reading.filters.append(Filter(column, _TIME_SIGNS.get(how, how), value, at=start))
        reading.take(end, stop, "value")
        reading.score += VALUE_WEIGHT


def _read_literal(reading: Reading, at: int) -> tuple[str, int] | None:
    """Return the number with its unit, the date or the month of a year here, and where it ends."""
    words = [word.fold for word in reading.words[at : at + 2]]
    if not words:
        return None
    moment, end = read_moment(reading.words, at) or (None, at)
    if moment is not None and moment.month and moment.iso:
        return moment.iso, end
    value = reading.operators.phrases["numbers"].get((words[0],), words[0])
    if not literal_type(value):
        return None
    is_unit = len(words) > 1 and words[1] in load_vocabulary().units
    if is_unit and reading.is_free(at + 1, at + 2):
        return f"{value} {words[1]}", at + 2
    return value, at + 1


def _find_compared_column(
    reading: Reading, where: Mention, value: str, senses: Senses
) -> Mention | None:
    """Return the column that is compared with a value: of times first for "since 2000"."""
    start, end, how = where
    number, _, unit = value.partition(" ")
    type_ = literal_type(number)
    if type_ == "number" and says_year(number) and (how in _TIME_SIGNS or how == "between"):
        times = [one for one in reading.columns if _holds_years(reading, one[2])]
        year = find_year_column(reading)
        if times or year:
            return nearest_of(times, start, end) or (0, 0, year[0] if year else "")
    named = nearest_column(reading, start, end, [type_]) if type_ else None
    if named is not None and not reading.table.columns[named[2]].is_id:
        return named
    if type_ == "date":
        return find_only_date(reading)
    name = find_measure(reading, senses, start, unit, parse_number(number))
    return (0, 0, name) if name else None


def _holds_years(reading: Reading, name: str) -> bool:
    column = reading.table.columns[name]
    return column.type == "date" or (column.has_years and "year" in column.words)


def literal_type(value: str) -> str:
    """Return "date" or "number" for a word that is one, else ""."""
    if parse_whole_date(value):
        return "date"
    return "number" if parse_number(value) is not None else ""


def add_flags(reading: Reading, negations: Sequence[Mention], measured: bool) -> bool:
    """Filter by columns of yes and no that are named, and deny what "not" stands before.

    False if a negation denies nothing: then the question says more than was understood.
    """
    columns = reading.table.columns
    for mention in list(reading.columns):
        start, end, name = mention
        column = columns[name]
        if column.truths is None or (column.type != "flag" and measured):
            continue
        consume(reading, mention)
        reading.take(start, end, "flag")
        if not any(one.column == name for one in reading.filters):
            denied = start in reading.reversed
            reading.filters.append(Filter(name, "flag", negated=denied, at=start))
            reading.values.append((start, end, name))
    return all(_deny(reading, start, end) for start, end, _ in negations)


def _deny(reading: Reading, start: int, end: int) -> bool:
    """Deny the condition behind a negation, or before it; of a column alone, that it has values."""
    behind = [one for one in reading.filters if one.at >= end]
    first = min((one.at for one in behind), default=len(reading.words))
    columns = [one for one in reading.columns if end <= one[0] < min(first, end + _NEAR)]
    before = [one for one in reading.filters if one.at < start]
    if not behind and _names_table(reading, end):  # "no orders": of one table that says nothing
        for mention in [one for one in reading.columns if end <= one[0] < end + _NEAR]:
            consume(reading, mention)
        reading.unlinked = True
        return bool(reading.table.partners)
    if columns or not (behind or before):
        columns = columns or [one for one in reading.columns if one[1] <= start]
        if not columns:
            return False
        mention = columns[0] if columns[0][0] >= end else columns[-1]
        consume(reading, mention)
        reading.filters.append(Filter(mention[2], "empty", at=mention[0]))
        return True
    at = first if behind else max(one.at for one in before)
    chosen = next(one for one in reading.filters if one.at == at)
    reading.filters = [
        replace(one, negated=not one.negated)
        if one is chosen or (one.column == chosen.column and one.how == "=" and one.at > at)
        else one
        for one in reading.filters
    ]
    return True


def _names_table(reading: Reading, at: int) -> bool:
    """Whether a word behind "no" or "never" is the name of the table: "no orders"."""
    behind = [word.fold for word in reading.words[at : at + _NEAR]]
    names = reading.table.own_words
    if any(is_same_word(word, own) for word in behind for own in names):
        return True
    if not behind or not reading.is_free(at, at + 1):
        return False
    if not any(_is_deed(behind[0], own) for own in names):
        return False
    reading.take(at, at + 1, "table")  # "never observed" of observations
    return True


def _is_deed(verb: str, name: str) -> bool:
    """Whether a verb and the name of a table are of one stem: "observed", observations."""
    shared = len(commonprefix([verb, name]))
    return shared > _MIN_SHARED and shared * 2 > max(len(verb), len(name))


def add_text_filters(reading: Reading, found: Sequence[Mention]) -> None:
    """Turn "a name containing Dollar" into a filter on the column before it."""
    for start, end, how in found:
        mention = nearest_column(reading, start, start, ["text"])
        if mention is None or end >= len(reading.words) or not reading.is_free(end, end + 1):
            reading.take(start, end, "")
            continue
        consume(reading, mention)
        last = end + 1
        reading.filters.append(Filter(mention[2], how, reading.words[end].fold, at=end))
        reading.take(end, last, "value")
        reading.score += VALUE_WEIGHT


def add_values(reading: Reading, least: int = 1) -> None:
    """Find values of cells in the question, the longest first, and filter by them."""
    words = reading.words
    for size in range(min(_MAX_VALUE_WORDS, len(words)), least - 1, -1):
        for start in range(len(words) - size + 1):
            if reading.is_free(start, start + size):
                _try_value(reading, start, start + size)


def add_parts_of_values(reading: Reading) -> None:
    """Filter by free words that are parts of values."""
    for at, word in enumerate(reading.words):
        if reading.is_free(at, at + 1) and word.fold not in reading.operators.fillers:
            _try_part_of_value(reading, at)


def add_derived_values(reading: Reading) -> None:
    """Filter by a free word that is a form of the only value like it: "engineers"."""
    texts = [one for one in reading.table.columns.values() if one.type == "text"]
    shared = [
        one for one in texts if not one.is_nearly_key and len(one.rows_by_value) <= _MAX_KINDS
    ]
    for at, word in enumerate(reading.words):
        if not _may_be_derived(reading, at):
            continue
        found = [
            (column.name, value)
            for column in shared
            for value in column.rows_by_value
            if " " not in value and is_same_word(word.fold, value)
        ]
        if len(found) == 1:
            [(name, value)] = found
            reading.filters.append(Filter(name, "=", value, at=at))
            reading.values.append((at, at + 1, name))
            reading.take(at, at + 1, "value")
            reading.score += VALUE_WEIGHT / 2
            reading.guess("form", at)


def _may_be_derived(reading: Reading, at: int) -> bool:
    """Whether a word is free and common, and names neither this table nor another."""
    word = reading.words[at]
    if not reading.is_free(at, at + 1) or not word.text.islower() or at in reading.dropped:
        return False
    if word.fold in reading.operators.fillers or len(word.stem) < _MIN_DERIVED:
        return False
    names = {*reading.table.words, *reading.foreign}
    return not any(is_same_word(word.fold, own) for own in names)


def add_demonyms(reading: Reading) -> None:
    """Filter by the country that a word is of: "Norwegian" for Norway."""
    for at, word in enumerate(reading.words):
        if not reading.is_free(at, at + 1) or not word.text[:1].isupper():
            continue
        countries, _ = find_countries([word.stem if word.fold.endswith("s") else word.fold])
        names = {fold_text(country) for country in countries}
        found = [
            (column.name, value)
            for column in reading.table.columns.values()
            if column.type == "text"
            for value in names.intersection(column.rows_by_value)
        ]
        if len(found) == 1:
            [(name, value)] = found
            reading.filters.append(Filter(name, "=", value, at=at))
            reading.values.append((at, at + 1, name))
            reading.take(at, at + 1, "value")
            reading.score += VALUE_WEIGHT


def add_kind(reading: Reading, at: int) -> bool:
    """Filter by a noun that ends the names of some rows: "lamps" for "Desk Lamp"."""
    label = reading.table.columns.get(reading.table.label)
    stem = reading.words[at].stem
    if label is None or label.type != "text" or len(stem) <= _CODE_LENGTH:
        return False
    if not any(value.split()[-1] == stem for value in label.rows_by_value if value):
        return False
    reading.filters.append(Filter(label.name, "contains", stem, at=at))
    reading.score += VALUE_WEIGHT / 2
    return True


def _try_value(reading: Reading, start: int, end: int) -> None:
    some = reading.words[start:end]
    if all(word.fold in reading.operators.fillers for word in some) and end - start > 1:
        return
    forms = [" ".join(w.fold for w in some), " ".join(w.stem for w in some)]
    if end - start == 1:
        forms += _find_declined(reading, some[0])
    for folded in dict.fromkeys(forms):
        columns = _find_value_columns(reading, some, folded)
        if columns:
            column = _choose_column(reading, start, columns)
            reading.filters.append(Filter(column.name, "=", folded, at=start))
            reading.values.append((start, end, column.name))
            reading.take(start, end, "value")
            reading.score += VALUE_WEIGHT * (end - start)
            return


def _find_declined(reading: Reading, word: Word) -> list[str]:
    """Return the only value that a name of another script is a form of: "Германии"."""
    if word.fold.isascii() or not word.fold.isalpha() or word.fold in reading.operators.fillers:
        return []
    found = {
        value
        for column in reading.table.columns.values()
        if column.type == "text"
        for value in column.rows_by_value
        if " " not in value and _is_declined(word.fold, value)
    }
    return list(found) if len(found) == 1 else []


def _is_declined(word: str, value: str) -> bool:
    shared = len(commonprefix([word, value]))
    return shared >= _MIN_SHARED and max(len(word), len(value)) - shared <= _MAX_CASE


def _find_value_columns(reading: Reading, some: Sequence[Word], folded: str) -> list[Column]:
    return [
        column
        for column in reading.table.columns.values()
        if column.type == "text"
        and (rows := column.rows_by_value.get(folded))
        and _has_case(column, rows[0], some, reading.operators)
    ]


def _has_case(column: Column, row: int, some: Sequence[Word], operators: Operators) -> bool:
    """Whether a short value, or one that is a common word, is written just as in the cell."""
    word = some[0].fold
    if len(some) > 1 or (len(word) > _CODE_LENGTH and word not in operators.fillers):
        return True
    if str(column.cells[row]) != some[0].text:
        return False
    # Codes tell rows apart; what rows share may be a short word: "low", "red".
    is_kind = len(word) == _CODE_LENGTH and word.isalpha() and not column.is_nearly_key
    return not some[0].text.islower() or (is_kind and word not in operators.fillers)


def _choose_column(reading: Reading, start: int, columns: Sequence[Column]) -> Column:
    """Choose the column of a value: one named just before it, else the label, else the first."""
    columns = find_named_before(reading.words, start, columns) or columns
    names = {column.name: column for column in columns}
    near = [one for one in reading.columns if one[2] in names and 0 <= start - one[1] <= 2]
    near += [one for one in reading.columns if one[2] in names and one not in near]
    if near:
        # "the genus Salmonella": the column belongs to the condition.
        consume(reading, near[0])
        return names[near[0][2]]
    # "Away goals" are those of the column `away`.
    said = {word for _, _, name in reading.columns for word in reading.table.columns[name].words}
    alike = [column for column in columns if not said.isdisjoint(column.words)]
    if len(columns) > 1 and len(alike) == 1:
        return alike[0]
    if len(columns) > 1 and reading.table.label not in names:
        reading.guess("ambiguous", start)
    return names.get(reading.table.label, columns[0])


def _try_part_of_value(reading: Reading, at: int) -> None:
    """Filter by a word that is a part of values: "LTS" of "20.04 LTS"."""
    word = reading.words[at]
    if len(word.fold) < 2 or any(is_same_word(word.fold, own) for own in reading.table.words):
        return
    found = []
    for column in reading.table.columns.values():
        if column.type == "text":
            forms = {word.fold, word.stem}
            rows = sum(
                len(r) for v, r in column.rows_by_value.items() if not forms.isdisjoint(v.split())
            )
            found += [(rows, column)] * bool(rows)
    near = [one for one in found if any(m[2] == one[1].name for m in reading.columns)]
    near = near or [one for one in found if one[1].name == reading.table.label and len(found) > 1]
    if not found or (len(found) > 1 and not near):
        return
    column = (near or found)[0][1]
    if word.text.islower() and column.name not in {name for _, _, name in reading.columns}:
        return  # a common word is seldom meant as a part of a name
    for mention in [one for one in reading.columns if one[2] == column.name]:
        if _is_condition(reading, mention, at):
            consume(reading, mention)
    reading.filters.append(Filter(column.name, "contains", word.stem, at=at))
    reading.values.append((at, at + 1, column.name))
    reading.take(at, at + 1, "value")
    reading.score += VALUE_WEIGHT / 2


def _is_condition(reading: Reading, mention: Mention, at: int) -> bool:
    """Whether a column stands before its value and is not what the question begins with."""
    return 0 <= at - mention[1] <= 1


def add_numbers(reading: Reading) -> None:
    """Filter by numbers and dates without a comparison: "8 cylinders", "in 1931"."""
    for at, word in enumerate(reading.words):
        if not reading.is_free(at, at + 1) or not (type_ := literal_type(word.fold)):
            continue
        found = _choose_literal_column(reading, at, type_)
        if found is None:
            continue
        column, how, mention = found
        if mention is not None:
            consume(reading, mention)
        reading.filters.append(Filter(column, how, word.fold, at=at))
        reading.values.append((at, at + 1, column))
        reading.take(at, at + 1, "value")
        reading.score += VALUE_WEIGHT


def _choose_literal_column(
    reading: Reading, at: int, type_: str
) -> tuple[str, str, Mention | None] | None:
    """Return the column that a number or date is a value of, how it is compared, its mention."""
    word = reading.words[at].fold
    year = find_year_column(reading) if says_year(word) else None
    before = reading.words[at - 1].fold if at else ""
    if any(is_same_word(before, own) for own in reading.table.own_words):
        if key := _find_key_column(reading, word):
            return key  # "visit 17"
    for one in reading.columns:
        if reading.table.columns[one[2]].type == type_ and _is_joined(reading, one, at, year):
            return one[2], "=", one
    if type_ == "date":
        date = find_only_date(reading)
        return (date[2], "=", None) if date else None
    return year or _find_key_column(reading, word)


def _is_joined(reading: Reading, mention: Mention, at: int, year: object | None) -> bool:
    """Whether a number belongs to a column: "8 cylinders", "a code of 76"; "in 1931" does not."""
    if mention[0] == at + 1 or mention[1] == at:
        return True
    return year is None and 0 < at - mention[1] <= 2 and not any(reading.taken[mention[1] : at])


def _find_key_column(reading: Reading, word: str) -> tuple[str, str, None] | None:
    """Return the only column in which a number names a row: "Debian 11"."""
    found = [
        name
        for name, column in reading.table.columns.items()
        if column.is_nearly_key and len(column.rows_by_value.get(word, ())) == 1
    ]
    return (found[0], "=", None) if len(found) == 1 else None
