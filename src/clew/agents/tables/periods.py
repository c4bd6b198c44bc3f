"""Finds the periods that a question names: from March to August 2024, the first quarter of a year.

Two dates of any precision make one: a part that one of them lacks is taken from the other. Halves,
quarters, seasons and decades are periods by themselves. Without any year a period is of each year.
"""

import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from clew.agents.rules.table_words import Word, load_operators
from clew.agents.tables.values import is_year
from clew.text.dates import MONTHS, parse_whole_date

_ARTICLES = frozenset({"the", "of"})
_TO = frozenset("to until till through".split())
_BEFORE_SEASON = frozenset("in during of each every".split())
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th|\.)?")
_DECADE = re.compile(r"(\d{3}0)s")
_MAX_DAY, _LAST_MONTH = 31, 12
MONTH_NAMES = {number: name for name, number in MONTHS.items() if len(name) > 3 or name == "may"}


@dataclass(frozen=True)
class Moment:
    """A day, month or year as a question says it; 0 for what it leaves out."""

    year: int = 0
    month: int = 0
    day: int = 0

    @property
    def iso(self) -> str:
        """The day or the month as it is compared, "" if it says no year."""
        parts = [f"{self.year:04}", f"{self.month:02}", f"{self.day:02}"]
        said = 1 + bool(self.month) + bool(self.month and self.day)
        return "-".join(parts[:said]) if self.year else ""


@dataclass(frozen=True)
class Period:
    """Words of a question, from and to (exclusive), and the days that they mean."""

    start: int
    end: int
    value: str
    """The first and the last day, 2024-03-01/2024-08-31; of each year 03-01/08-31."""
    said: str
    """The words themselves, with "in" before what is a period by itself."""
    is_years: bool = False
    """Whether only two years are said, which may be other numbers."""

    @property
    def is_whole_years(self) -> bool:
        """Whether it is one of years alone."""
        return list_whole_years(self.value) is not None

    def covers(self, at: int) -> bool:
        """Whether a word belongs to it."""
        return self.start <= at < self.end


@dataclass(frozen=True)
class _Dated:
    """What words say of time: its first and last moment, and where they end."""

    end: int
    first: Moment
    last: Moment
    is_part: bool = False
    """Whether it is a part of a year or several years: a period by itself."""


def find_periods(words: Sequence[Word]) -> list[Period]:
    """Return the periods of a question in order."""
    found: list[Period] = []
    at = 0
    while at < len(words):
        period = _read_range(words, at) or _read_part(words, at)
        found += [period] if period else []
        at = period.end if period else at + 1
    return found


def read_moment(words: Sequence[Word], at: int) -> tuple[Moment, int] | None:
    """Return the day, month or year that begins here, and where it ends."""
    found = _read_day(words, at) or _read_year(words, at)
    return (found.first, found.end) if found else None


def is_within(day: date, value: str) -> bool:
    """Whether a day lies in a period; one of each year may go beyond its end."""
    first, _, last = value.partition("/")
    own = day.isoformat()[-len(first) :]
    return first <= own <= last if first <= last else own >= first or own <= last


def list_whole_years(value: str) -> tuple[int, int] | None:
    """Return the first and the last year of a period of whole years, else None."""
    first, _, last = value.partition("/")
    is_whole = first.endswith("-01-01") and last.endswith("-12-31")
    return (int(first[:4]), int(last[:4])) if is_whole else None


def say_period(value: str) -> str:
    """Say a period in words: between March 2024 and August 2024."""
    if years := list_whole_years(value):
        return f"between {years[0]} and {years[1]}" if years[0] < years[1] else f"in {years[0]}"
    first, last = (_to_moment(one) for one in value.split("/"))
    if first.day == 1 and last.day == _count_days(last):
        first, last = replace(first, day=0), replace(last, day=0)
    return f"between {_say_moment(first)} and {_say_moment(last)}"


def _to_moment(text: str) -> Moment:
    *year, month, day = map(int, text.split("-"))
    return Moment(year[0] if year else 0, month, day)


def _say_moment(one: Moment) -> str:
    parts = (one.day or "", MONTH_NAMES[one.month], one.year or "")
    return " ".join(str(part) for part in parts if part)


def _read_range(words: Sequence[Word], at: int) -> Period | None:
    """Read "from A to B", "between A and B", "A until B" and "A-B"."""
    opener = words[at].fold
    start = at + 1 if opener in ("from", "between", "since") else at
    joints = frozenset({"and"}) if opener == "between" else _TO
    for one in _read_all(words, start):
        if one.end >= len(words):
            continue
        is_joined = words[one.end].fold in joints
        is_dashed = words[one.end].after_dash and opener != "between"
        if not (is_joined or is_dashed):
            continue
        for other in _read_all(words, one.end + is_joined):
            if period := _join(words, at, one, other):
                return period
    return None


def _read_part(words: Sequence[Word], at: int) -> Period | None:
    """Read what is a period by itself: "the second half of 2023", "summer 2022", "the 1990s"."""
    found = _read_quarter(words, at) or _read_decade(words, at)
    if found is None:
        return None
    return _join(words, at, found, found)


def _read_all(words: Sequence[Word], at: int) -> Iterator[_Dated]:
    """Yield what may be said of time here, the longest first; a day alone is the last."""
    while at < len(words) and words[at].fold in _ARTICLES:
        at += 1
    if at >= len(words):
        return
    readings = (_read_quarter, _read_decade, _read_day, _read_year, _read_number)
    for read in readings:
        if found := read(words, at):
            yield found


def _read_quarter(words: Sequence[Word], at: int) -> _Dated | None:
    """Read a half, a quarter or a season, with its year behind or before it."""
    known = load_operators().phrases["periods"]
    year = _to_year(words, at)
    start = at + 1 if year else at
    for size in (2, 1):
        months = known.get(tuple(word.fold for word in words[start : start + size]))
        if months is None or start + size > len(words):
            continue
        end, behind = _pass_year(words, start + size)
        is_code = words[start].fold[-1:].isdigit()  # Q1
        if not behind and is_code:
            end, behind = _pass_short_year(words, end)
        if not (year or behind or is_code or (size == 1 and _stands_as_season(words, start))):
            end = _pass_any_year(words, start + size)
            if end == start + size:
                return None  # "the first half" may be of a match
        first, last = (int(one) for one in months.split("-"))
        year = year or behind
        following = year + 1 if year and last < first else year
        return _Dated(end, Moment(year, first), Moment(following, last), is_part=True)
    return None


def _stands_as_season(words: Sequence[Word], at: int) -> bool:
    """Whether a word stands behind "in" or "in the": "in summer", not "which fall"."""
    before = [word.fold for word in words[max(0, at - 2) : at] if word.fold != "the"]
    return bool(before) and before[-1] in _BEFORE_SEASON


def _pass_year(words: Sequence[Word], at: int) -> tuple[int, int]:
    """Return where "of 2024" or "2024" ends, and the year; 0 if there is none."""
    start = at
    while at < len(words) and words[at].fold == "of":
        at += 1
    year = _to_year(words, at)
    return (at + 1, year) if year else (start, 0)


def _pass_short_year(words: Sequence[Word], at: int) -> tuple[int, int]:
    """Return where "24" ends behind a code of a quarter, and the year; 0 if it is no year."""
    fold = words[at].fold if at < len(words) else ""
    return (at + 1, 2000 + int(fold)) if fold.isdigit() and len(fold) == 2 else (at, 0)


def _pass_any_year(words: Sequence[Word], at: int) -> int:
    """Return where "of the year" or "of each year" ends."""
    folds = [word.fold for word in words[at : at + 3]]
    is_any = folds[:1] == ["of"] and folds[1:2] in (["the"], ["each"], ["every"], ["any"])
    return at + 3 if is_any and folds[2:] == ["year"] else at


def _read_decade(words: Sequence[Word], at: int) -> _Dated | None:
    found = _DECADE.fullmatch(words[at].fold) if at < len(words) else None
    if found is None:
        return None
    year = int(found[1])
    return _Dated(at + 1, Moment(year), Moment(year + 9), is_part=True)


def _read_day(words: Sequence[Word], at: int) -> _Dated | None:
    """Read "2024-03-01", "1 March 2024", "the 1st of March", "March 1, 2024" or "March 2024"."""
    folds = [word.fold for word in words[at : at + 5]]
    if not folds:
        return None
    if (whole := parse_whole_date(folds[0])) and folds[0].count("-") > 1:
        day = Moment(whole.year, whole.month, whole.day)
        return _Dated(at + 1, day, day)
    end = at
    number = _to_day(folds[0])
    if number:
        end += 2 if folds[1:2] == ["of"] else 1
    if end >= len(words) or words[end].fold not in MONTHS:
        return None
    month = MONTHS[words[end].fold]
    end += 1
    if not number and end < len(words) and not words[end].after_dash:
        number = _to_day(words[end].fold)
        end += bool(number)
    end, year = _pass_year(words, end)
    day = Moment(year, month, number)
    return _Dated(end, day, day)


def _read_year(words: Sequence[Word], at: int) -> _Dated | None:
    year = _to_year(words, at)
    return _Dated(at + 1, Moment(year), Moment(year)) if year else None


def _read_number(words: Sequence[Word], at: int) -> _Dated | None:
    """Read a day of a month that is said later: "from 3 to 17 May"."""
    day = Moment(day=_to_day(words[at].fold))
    return _Dated(at + 1, day, day) if day.day else None


def _to_day(fold: str) -> int:
    found = _DAY.fullmatch(fold)
    return int(found[1]) if found and 0 < int(found[1]) <= _MAX_DAY else 0


def _to_year(words: Sequence[Word], at: int) -> int:
    if at >= len(words):
        return 0
    fold = words[at].fold
    fold = fold.removeprefix("-") if words[at].after_dash else fold
    return int(fold) if fold.isdigit() and len(fold) == 4 and is_year(int(fold)) else 0


def _join(words: Sequence[Word], start: int, one: _Dated, other: _Dated) -> Period | None:
    """Return the period from one date to another, each with what only the other says."""
    said = " ".join(word.fold for word in words[start : other.end])
    said = f"in {said}" if one is other else said
    first, last = _share(one.first, other.last)
    is_years = not (first.month or last.month or one.is_part or other.is_part)
    if first.year and last.year:
        low, high = _to_first(first), _to_last(last)
        return Period(start, other.end, f"{low}/{high}", said, is_years) if low <= high else None
    if first.year or last.year or not (first.month and last.month):
        return None
    low, high = _to_first(replace(first, year=2000)), _to_last(replace(last, year=2000))
    return Period(start, other.end, f"{low[5:]}/{high[5:]}", said)


def _share(first: Moment, last: Moment) -> tuple[Moment, Moment]:
    """Return two moments with the month and the year that one of them leaves to the other."""
    if first.day and not first.month:
        first = replace(first, month=last.month)
    if last.day and not last.month:
        last = replace(last, month=first.month)
    if not (first.month and last.month):
        return first, last
    is_turned = (first.month, first.day) > (last.month, last.day or _MAX_DAY)
    if last.year and not first.year:
        first = replace(first, year=last.year - is_turned)
    elif first.year and not last.year:
        last = replace(last, year=first.year + is_turned)
    return first, last


def _to_first(one: Moment) -> str:
    return f"{one.year:04}-{one.month or 1:02}-{one.day or 1:02}"


def _to_last(one: Moment) -> str:
    month = one.month or _LAST_MONTH
    day = min(one.day or _MAX_DAY, _count_days(replace(one, month=month)))
    return f"{one.year:04}-{month:02}-{day:02}"


def _count_days(one: Moment) -> int:
    return monthrange(one.year or 2000, one.month)[1]
