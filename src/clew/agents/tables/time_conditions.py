"""Finds the conditions of a question on times: periods, months and days, and whose they are."""

from clew.agents.rules.table_words import strip_plural
from clew.agents.tables.periods import find_periods, read_moment
from clew.agents.tables.reading import VALUE_WEIGHT, Filter, Mention, Reading, consume, nearest_of
from clew.agents.tables.values import is_year
from clew.text.dates import MONTHS


def add_periods(reading: Reading) -> None:
    """Turn "from March to August 2024" and "the first quarter of 2024" into one filter."""
    for one in find_periods(reading.words):
        if not reading.is_free(one.start, one.end):
            continue
        if one.is_years and reading.words[one.start].fold == "between":
            continue  # any two numbers may stand so
        columns = reading.table.columns
        named = [m for m in reading.columns if columns[m[2]].type == "date"]
        named += [m for m in reading.columns if columns[m[2]].has_years and one.is_whole_years]
        mention = nearest_of(named, one.start, one.end) or find_only_date(reading)
        if mention is None:
            year = find_year_column(reading) if one.is_whole_years else None
            mention = (0, 0, year[0]) if year else None
        if mention is None:
            continue
        consume(reading, mention)
        reading.filters.append(Filter(mention[2], "within", one.value, at=one.start, said=one.said))
        reading.values.append((one.start, one.end, mention[2]))
        reading.take(one.start, one.end, "value")
        reading.score += VALUE_WEIGHT


def add_months(reading: Reading) -> None:
    """Filter by a month, with or without its year: "in February 2024"."""
    for at, word in enumerate(reading.words):
        if not reading.is_free(at, at + 1) or word.fold not in MONTHS or word.text.islower():
            continue
        dates = [one for one in reading.columns if reading.table.columns[one[2]].type == "date"]
        mention = next(iter(dates), None) or find_only_date(reading)
        if mention is None:
            continue
        if mention in dates:
            consume(reading, mention)
        start, end, how, value = _read_month(reading, at)
        reading.filters.append(Filter(mention[2], how, value, at=at))
        reading.values.append((start, end, mention[2]))
        reading.take(start, end, "value")
        reading.score += VALUE_WEIGHT


def _read_month(reading: Reading, at: int) -> tuple[int, int, str, str]:
    """Return the words of a month with its year, or of a day of it, and how that is compared."""
    words = reading.words
    for start in (at - 2, at - 1, at):
        found = read_moment(words, start) if start >= 0 else None
        if found is None or not found[0].day or not found[0].iso or not start <= at < found[1]:
            continue
        if reading.is_free(start, found[1]):
            return start, found[1], "=", found[0].iso
    year = words[at + 1].fold if at + 1 < len(words) else ""
    end = at + 2 if says_year(year) and reading.is_free(at + 1, at + 2) else at + 1
    return at, end, "month", f"{year if end > at + 1 else ''}-{MONTHS[words[at].fold]:02}-"


def find_year_column(reading: Reading) -> tuple[str, str, Mention | None] | None:
    """Return the column of a year in the question: one that is named, of years, or of dates."""
    dates = [one for one in reading.columns if reading.table.columns[one[2]].type == "date"]
    if dates:
        return dates[0][2], "year", dates[0]
    for name, column in reading.table.columns.items():
        if column.has_years and "year" in column.words:
            return name, "=", None
    date = find_only_date(reading)
    return (date[2], "year", None) if date else None


def find_only_date(reading: Reading) -> Mention | None:
    """Return the only column of dates, or the only one that is called as the rows are."""
    dates = [name for name, one in reading.table.columns.items() if one.type == "date"]
    if len(dates) > 1:  # of orders the `order_date`
        own = {strip_plural(one) for one in reading.table.own_words} | reading.operators.times
        dates = [name for name in dates if own.issuperset(reading.table.columns[name].words)]
    return (0, 0, dates[0]) if len(dates) == 1 else None


def says_year(value: str) -> bool:
    """Whether a word is a number that may be a year."""
    return value.isdigit() and is_year(int(value))
