"""What cells say by their words: yes and no, totals, kinds of columns; for whole columns."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from clew.text.units import units_of_cells

_YEARS = (1000, 2999)
_FEW = 3  # numbers that may follow each other by chance


class Vocabulary(NamedTuple):
    """The words of cells that mean the same in every table."""

    truths: Mapping[str, bool]
    totals: Mapping[str, str]
    identifiers: frozenset[str]
    ranks: frozenset[str]
    stocks: frozenset[str]
    references: frozenset[str]
    readings: frozenset[str]
    units: Mapping[str, tuple[str, float]]
    """For each unit what it measures, and its size."""


@cache
def load_vocabulary() -> Vocabulary:
    """Load the words of cells."""
    raw = (files("clew.agents.tables") / "values.toml").read_text(encoding="utf-8")
    data = tomllib.loads(raw)
    flags = {word: kind == "true" for kind, text in data["flags"].items() for word in text.split()}
    totals = {word: kind for kind, text in data["totals"].items() for word in text.split()}
    kinds = ("identifiers", "ranks", "stocks", "references", "readings")
    words = {kind: frozenset(data[kind]["words"].split()) for kind in kinds}
    return Vocabulary(flags, totals, units=units_of_cells(), **words)


def is_year(number: float) -> bool:
    """Whether a number may be a year."""
    return _YEARS[0] <= number <= _YEARS[1]


def counts_up(numbers: Sequence[float | None]) -> bool:
    """Whether each number is one more than the one before, as rows are numbered."""
    known = [number for number in numbers if number is not None]
    steps = zip(known, known[1:], strict=False)
    return len(numbers) == len(known) > _FEW and all(later - one == 1 for one, later in steps)


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
