"""Units that a question asks for, or says with a number, in which no column is measured.

"How many tonnes" is read as the kilograms that the columns have, "over 60 feet" as a number of
metres, and what is told is converted back. A unit of another kind than what is told (litres of a
power) makes the answer doubtful: it keeps its own unit.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import floor, log10
from typing import NamedTuple

from clew.agents.rules.table_words import is_same_word, split_question, strip_plural
from clew.agents.tables.load import Column, Table
from clew.agents.tables.reading import Query
from clew.agents.tables.values import load_vocabulary
from clew.text.quantities import parse_number
from clew.text.units import load_units

_MONEY, _TIME = "money", "time"
_POUNDS = ("pound", "pounds")  # of weight, and of money
_ASKED = re.compile(
    r"(?P<how>\bhow (?:many|much) )(?P<many>[^\W\d_]+(?: [^\W\d_]+)?)"
    r"|\bin (?P<told>[^\W\d_]+(?: [^\W\d_]+)?)(?=\s*(?:[?.,;!]|$))"
    r"|(?<![\w.,-])(?P<number>\d[\d,]*(?:\.\d+)?) ?(?P<unit>[^\W\d_]+(?: [^\W\d_]+)?)",
    re.IGNORECASE,
)
_LETTERS = 2  # of an abbreviation that a column of one word may be called by: kg
_DIGITS, _DECIMALS = 5, 3  # that a converted number has: of significance, at least behind its point


class Unit(NamedTuple):
    """A unit: as it is written, what it measures, and its size in the base unit."""

    said: str
    measures: str
    size: float

    def is_like(self, other: "Unit") -> bool:
        """Whether one can be converted into the other: no money, which nobody exchanges here."""
        return self.measures == other.measures != _MONEY

    def is_same(self, other: "Unit") -> bool:
        """Whether both are one unit, or one currency."""
        signs = load_units().currencies
        if self.measures == other.measures == _MONEY:
            own, told = (signs.get(one.said.casefold(), one.said) for one in (self, other))
            return own == told
        return (self.measures, self.size) == (other.measures, other.size)


class UnitQuestion(NamedTuple):
    """A question in the units of the columns, and the unit in which it wants its answer."""

    question: str
    wanted: Unit | None


def find_unit(column: Column) -> Unit | None:
    """Return the unit of a column: of its values, or by its name."""
    name = column.words[0] if len(column.words) == 1 else ""
    is_unit = len(name) <= _LETTERS or strip_plural(name) != name  # a column `day` has no durations
    marked = column.unit[0] or column.shown_unit[0] or column.last_of_name
    said = marked or (name if is_unit else "")
    return _read_unit(said) if column.is_quantity and not column.has_years else None


def _read_unit(said: str) -> Unit | None:
    units, form = load_vocabulary().units, said.casefold()
    known = units.get(form) or units.get(strip_plural(form))
    return Unit(said, *known) if known else None


def read_units(question: str, tables: Sequence[Table]) -> UnitQuestion:
    """Say a question in units that columns have; what it asks for is noted."""
    columns = [one for table in tables for one in table.columns.values()]
    own = list(dict.fromkeys(unit for one in columns if (unit := find_unit(one))))
    wanted: Unit | None = None
    written, end = "", 0
    for found, asked, last in _find_units(question):
        other = _choose_other(asked, own)
        wanted = asked if not found["number"] else wanted
        if other is None:
            continue
        is_named = any(other.said in one.words for one in columns)
        written += question[end : found.start()] + _say_anew(found, asked, other, is_named)
        end = last
    return UnitQuestion(" ".join((written + question[end:]).split()), wanted)


def _find_units(question: str) -> Iterator[tuple[re.Match[str], Unit, int]]:
    """Yield where a question says a unit, the unit, and where it ends."""
    for found in _ASKED.finditer(question):
        kind = next(name for name in ("many", "told", "unit") if found[name])
        first, _, _ = found[kind].partition(" ")
        for said in (found[kind], first):
            if unit := _read_unit(said):
                yield found, unit, found.start(kind) + len(said)
                break


def _choose_other(asked: Unit, own: Sequence[Unit]) -> Unit | None:
    """Return the only unit of the columns that can be converted into one that none has."""
    alike = [one for one in own if one.is_like(asked)]
    if any(one.is_same(asked) for one in alike) or len({one.size for one in alike}) != 1:
        return None
    return alike[0]


def _say_anew(found: re.Match[str], asked: Unit, other: Unit, is_named: bool) -> str:
    """Say it in the other unit; what only cells are written with says nothing alone."""
    if found["told"]:
        return f"in {other.said}" if is_named else ""
    if found["many"]:
        return f"{found['how']}{other.said}"
    number = parse_number(found["number"]) or 0.0
    return f"{_round(number * asked.size / other.size):.15g} {other.said}"


def convert_told(query: Query, wanted: Unit) -> Query | None:
    """Return a query that tells its number in another unit; None where it tells none, or in it."""
    for name in (
        query.measure if query.wants != "best" or not query.targets else "",
        *query.targets,
    ):
        unit = find_unit(query.table.columns[name]) if name else None
        if unit is not None and unit.is_like(wanted) and not unit.is_same(wanted):
            return _convert(query, name, unit, wanted)
    return None


def _convert(query: Query, name: str, unit: Unit, wanted: Unit) -> Query:
    """Put a column in another unit beside the one that a query tells."""
    table, own = query.table, query.table.columns[name]
    scale = unit.size / wanted.size
    cells = [None if one is None else _round(one * scale) for one in own.numbers]
    called = f"{name} in {wanted.said}"
    columns = {**table.columns, called: ConvertedColumn(called, cells, wanted.said)}
    targets = tuple(called if one == name else one for one in query.targets)
    measure = called if query.measure == name else query.measure
    return replace(query, table=replace(table, columns=columns), targets=targets, measure=measure)


@dataclass(frozen=True)
class ConvertedColumn(Column):
    """A column in another unit than its table has."""

    told_in: str = ""

    @cached_property
    def shown_unit(self) -> tuple[str, bool]:
        """The unit that was asked for, behind the number."""
        return self.told_in, False


def _round(number: float) -> float:
    """Round a converted number: feet of metres have no end."""
    size = floor(log10(abs(number))) if number else 0
    return round(number, max(_DECIMALS, _DIGITS - size))


def lacks_unit(query: Query, wanted: Unit) -> bool:
    """Whether what is told is in a unit of another kind than the one asked for, or a count."""
    if query.wants in ("count", "distinct"):
        return wanted.measures != _TIME  # how many days may be rows
    units = [unit for one in _list_told(query) if (unit := find_unit(one)) is not None]
    if wanted.said.casefold() in _POUNDS and any(one.measures == _MONEY for one in units):
        return False
    return bool(units) and not any(one.is_same(wanted) for one in units)


def names_other(question: str, query: Query, wanted: Unit) -> bool:
    """Whether a question names no column that is told, but one with a unit of another kind."""
    words = [one.fold for one in split_question(question) if one.fold != wanted.said.casefold()]
    named = [
        one
        for one in query.table.columns.values()
        if any(is_same_word(word, own) for word in words for own in one.words)
    ]
    units = [unit for one in named if (unit := find_unit(one)) is not None]
    told = _list_told(query)
    other = any(one.measures != wanted.measures for one in units)
    return other and not any(one in told for one in named)


def _list_told(query: Query) -> list[Column]:
    told = [query.measure] if query.wants in ("aggregate", "difference") else [*query.targets]
    return [query.table.columns[name] for name in told or [query.measure] if name]
