"""What a cell says: a number with its unit, a date, or yes and no; decided for whole columns."""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

# An exponent only as programs write it: "1E4" is more often a code.
_NUMBER = re.compile(r"[+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?")
_GAPS = "  \u202f'’"
_BODY = re.compile(
    rf"(?P<sign>[+−-]?)\s*(?P<before>[^\W\d_]{{3}}\s|[^\w\s.,+−-]?)\s*(?P<minus>-?)"
    rf"(?P<digits>\d(?:[\d.,{_GAPS}]*\d)?)\s*(?P<after>[^\W\d_]{{1,12}}|[^\w\s.,]|°[CF])?"
)
_GROUPED = re.compile(r"\d{1,3}(?:(?P<gap>[.,])\d{3})(?:(?P=gap)\d{3})*")
_DATE = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:[T ].*)?")
_MONTH = re.compile(r"(\d{4})-(\d{2})")
_NAMED_MONTH = re.compile(r"(?:[A-Za-z]{3,9}\.? \d{1,2},? \d{4}|\d{1,2} [A-Za-z]{3,9} \d{4})")
_DOTTED_DATE = re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}")
_DATE_FORMS = ("%b %d %Y", "%B %d %Y", "%d %b %Y", "%d %B %Y", "%d.%m.%Y")
_YEARS = (1000, 2999)


class Quantity(NamedTuple):
    """A number as it is written, and its unit: "" for none."""

    digits: str
    unit: str
    leads: bool
    """Whether the unit stands before the number."""


class Vocabulary(NamedTuple):
    """The words of cells that mean the same in every table."""

    truths: Mapping[str, bool]
    totals: Mapping[str, str]
    identifiers: frozenset[str]
    ranks: frozenset[str]
    stocks: frozenset[str]
    references: frozenset[str]
    units: Mapping[str, tuple[str, float]]
    """For each unit what it measures, and its size."""


@cache
def load_vocabulary() -> Vocabulary:
    """Load the words of cells."""
    raw = (files("clew.agents.tables") / "values.toml").read_text(encoding="utf-8")
    data = tomllib.loads(raw)
    flags = {word: kind == "true" for kind, text in data["flags"].items() for word in text.split()}
    totals = {word: kind for kind, text in data["totals"].items() for word in text.split()}
    units = {
        unit: (family, float(size))
        for family, sizes in data["units"].items()
        for unit, size in sizes.items()
    }
    kinds = ("identifiers", "ranks", "stocks", "references")
    words = {kind: frozenset(data[kind]["words"].split()) for kind in kinds}
    return Vocabulary(flags, totals, units=units, **words)


def parse_number(cell: object) -> float | None:
    """Return a cell as a plain number, if it is one."""
    if isinstance(cell, int | float):
        return float(cell)
    text = str(cell).strip()
    return float(text.replace(",", "")) if _NUMBER.fullmatch(text) else None


def parse_quantity(cell: object) -> Quantity | None:
    """Return a cell as a number with its unit, if it is one."""
    if isinstance(cell, int | float):
        return Quantity(str(float(cell)), "", False)
    text = str(cell).strip()
    if _NUMBER.fullmatch(text):
        return Quantity(text, "", False)
    found = _BODY.fullmatch(text)
    if found is None:
        return None
    before, after = found["before"].strip(), found["after"] or ""
    if (before and after) or not _may_lead(before):
        return None
    sign = "-" if found["sign"] in ("-", "−") or found["minus"] else ""
    return Quantity(f"{sign}{found['digits']}", before or after, bool(before))


def _may_lead(unit: str) -> bool:
    """Whether a sign or word may stand before a number as its unit: of money, or none."""
    if not unit or unicodedata.category(unit[0]) == "Sc":
        return True
    return load_vocabulary().units.get(unit.casefold(), ("",))[0] == "money"


def choose_decimal(digits: Iterable[str]) -> str:
    """Return the decimal sign of a column's numbers: what one of them can only be written with."""
    votes = {".": 0, ",": 0}
    for text in digits:
        body = text.lstrip("+-")
        marks = [char for char in body if char in ".,"]
        if not marks:
            continue
        if len(set(marks)) == 2:
            votes[marks[-1]] += 1
        elif len(marks) > 1:
            votes["," if marks[0] == "." else "."] += 1
        elif not _GROUPED.fullmatch(body):
            votes[marks[0]] += 1
    return "," if votes[","] > votes["."] else "."


def to_float(digits: str, decimal: str) -> float | None:
    """Return written digits as a number, if the decimal sign allows it."""
    thousands = "." if decimal == "," else ","
    plain = re.sub(f"[{_GAPS}]", "", digits)
    whole, _, _ = plain.lstrip("+-").partition(decimal)
    if thousands in whole and not _GROUPED.fullmatch(whole):
        return None
    try:
        return float(plain.replace(thousands, "").replace(decimal, "."))
    except ValueError:
        return None


def parse_date(cell: object) -> date | None:
    """Return a cell as a date, if it is one and says which number is the month."""
    text = str(cell).strip()
    found = _DATE.fullmatch(text) or _MONTH.fullmatch(text)
    if found:
        year, month, day = (*map(int, found.groups()), 1)[:3]
        try:
            return date(year, month, day)
        except ValueError:
            return None
    if not _NAMED_MONTH.fullmatch(text) and not _DOTTED_DATE.fullmatch(text):
        return None
    for form in _DATE_FORMS:
        try:
            return datetime.strptime(text.replace(",", " ").replace("  ", " "), form).date()
        except ValueError:
            continue
    return None


def is_year(number: float) -> bool:
    """Whether a number may be a year."""
    return _YEARS[0] <= number <= _YEARS[1]


def read_truths(cells: Sequence[Any]) -> dict[Any, bool] | None:
    """Return what the values of a column of yes and no mean, or None if it is no such column.

    A single mark, as in a column of ticks, says yes where it stands and no where it lacks.
    """
    known = load_vocabulary().truths
    values = {cell for cell in cells if cell is not None}
    found: dict[Any, bool] = {}
    for cell in values:
        truth = cell if isinstance(cell, bool) else known.get(_fold_flag(cell))
        if truth is None or len(values) > 4:
            return None
        found[cell] = truth
    if len(set(found.values())) == 2:
        return found
    if any(isinstance(cell, bool) for cell in values):
        return found
    is_mark = len(values) == 1 and all(found.values()) and None in cells
    return found if is_mark and not any(_fold_flag(cell) == "1" for cell in values) else None


def _fold_flag(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return str(cell).strip().casefold()
