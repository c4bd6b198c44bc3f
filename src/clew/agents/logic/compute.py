"""What the operators of a logic form compute of values: numbers with units, dates, order, sets."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clew.agents.logic.forms import LIST, OPERATORS, Operator
from clew.text.dates import DateParts, days_between, is_before, parse_date, years_between
from clew.text.names import name_key
from clew.text.quantities import Quantity, parse_quantity
from clew.types import Passage


class Uncomputable(ValueError):  # noqa: N818  (reads as what happened)
    """An operator cannot be applied to these values; the message says why."""


@dataclass(frozen=True)
class Value:
    """A value that was read or computed, and the passages that state it."""

    text: str
    subject: str = ""
    """What it is the value of, where it was looked up for something."""
    date: str = ""
    """The value as a date, where it is one: 1921-03-12, 1921-03 or 1921."""
    number: str = ""
    """The value as a number with its unit, where it is one: 12000 or 4.5 km."""
    sources: tuple[Passage, ...] = ()

    @property
    def measured(self) -> bool:
        """Whether it is a number or a date, and not a name."""
        return bool(self.date or self.number)

    @property
    def key(self) -> str:
        """By what it is told from others in a set: a measure of something by that thing."""
        return name_key(self.subject if self.measured and self.subject else self.text)

    @property
    def parts(self) -> DateParts | None:
        """The date as numbers."""
        return parse_date(self.date or self.text) if not self.number else None

    @property
    def amount(self) -> Quantity | None:
        """The number in its base unit."""
        return parse_quantity(self.number or self.text) if not self.date else None

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}" if self.measured and self.subject else self.text


Values = tuple[Value, ...]


def apply(step: Operator, results: Mapping[int, Values]) -> Values:
    """Apply any operator but `retrieve` to the results that it names; raises Uncomputable."""
    first = {number: values[0].text for number, values in results.items() if values}
    filled = step.fill(first).args  # a value to filter by may be a result, too
    return _FUNCTIONS[step.op](
        *(
            results[int(arg[1:])] if kind == LIST else text
            for arg, text, kind in zip(step.args, filled, OPERATORS[step.op], strict=True)
        )
    )


def _filter(values: Values, test: str, given: str) -> Values:
    return tuple(value for value in values if _passes(value, test, Value(given)))


def _passes(value: Value, test: str, given: Value) -> bool:
    if test == "contains":
        return given.text.casefold() in value.text.casefold()
    if test in ("=", "!="):
        return _are_same(value, given) == (test == "=")
    if test in ("<=", ">=") and _are_same(value, given):
        return True
    if test in ("before", "after") or value.date:
        earlier, later = ("before", "after") if test in ("before", "after") else ("<", ">")
        order = _is_earlier(value, given)
        return order is not None and test.rstrip("=") == (earlier if order else later)
    one, other = _amounts((value, given))
    return bool(_TESTS[test](one.amount, other.amount))


_TESTS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _are_same(one: Value, other: Value) -> bool:
    """Whether two values are one: the same date or number where both are, else the same name."""
    if (one.date or other.date) and one.parts and other.parts:
        return one.parts == other.parts
    if (one.number or other.number) and one.amount and other.amount:
        return one.amount.dimension == other.amount.dimension and _close(one, other)
    return name_key(one.text) == name_key(other.text)


def _close(one: Value, other: Value) -> bool:
    a, b = _amounts((one, other))
    return abs(a.amount - b.amount) <= 1e-9 * max(abs(a.amount), abs(b.amount))


def _is_earlier(one: Value, other: Value) -> bool | None:
    """Whether a date is before another; None where they do not tell, or are none."""
    return is_before(one.parts, other.parts) if one.parts and other.parts else None


def _amounts(values: Sequence[Value]) -> list[Quantity]:
    found = [value.amount for value in values]
    for value, amount in zip(values, found, strict=True):
        if amount is None:
            raise Uncomputable(f"{value.text!r} is not a number")
    known = [amount for amount in found if amount is not None]
    if len({amount.dimension for amount in known}) > 1:
        raise Uncomputable("the numbers have units that do not go together")
    return known


def _ranks(values: Values) -> Sequence[Any]:
    """Return what to order values by: dates, numbers, or names where any is neither."""
    if all(value.date for value in values):
        return [value.parts or (0, 0, 0) for value in values]
    if all(value.number for value in values):
        return [amount.amount for amount in _amounts(values)]
    return [name_key(value.text) for value in values]


def _sort(values: Values, order: str) -> Values:
    ranks = _ranks(values)
    places = sorted(range(len(values)), key=ranks.__getitem__, reverse=order == "descending")
    return tuple(values[at] for at in places)


def _extreme(order: str) -> Callable[[Values], Values]:
    """Return the operator that keeps the first in an order, and all that equal it."""

    def choose(values: Values) -> Values:
        if not values or not all(value.measured for value in values):
            raise Uncomputable("there are no numbers or dates to choose the greatest or least of")
        best, *rest = _sort(values, order)
        return (best, *(one for one in rest if _are_same(one, best)))

    return choose


def _distinct(values: Values) -> Values:
    return tuple({(v.subject, v.key): v for v in reversed(values)}.values())[::-1]


def _count(values: Values) -> Values:
    number = str(len(_distinct(values)))
    return (Value(number, number=number, sources=_sources(values)),)


def _total(values: Values, *, mean: bool = False) -> Values:
    if not values:
        raise Uncomputable("there are no numbers to add up")
    amounts = _amounts(_distinct(values))
    total = sum(one.amount for one in amounts) / (len(amounts) if mean else 1)
    text = str(replace(amounts[0], amount=total))
    return (Value(text, number=text, sources=_sources(values)),)


def _sources(values: Sequence[Value]) -> tuple[Passage, ...]:
    return tuple(dict.fromkeys(source for value in values for source in value.sources))


def _compare(left: Values, right: Values, how: str) -> Values:
    """Return the subject of the winner, yes or no, or the difference, of the first of both."""
    if not left or not right:
        raise Uncomputable("one side of the comparison was not found")
    pair = one, other = left[0], right[0]
    sources = _sources(pair)
    if how == "same":
        return (Value("yes" if _are_same(one, other) else "no", sources=sources),)
    if how == "difference":
        text = _difference(one, other)
        return (Value(text, number=text, sources=sources),)
    first = _is_earlier(one, other) if how in ("earlier", "later") else _is_smaller(one, other)
    if first is None:
        raise Uncomputable(f"it cannot be told which of {one} and {other} is {how}")
    winner = one if first == (how in ("earlier", "smaller")) else other
    return (Value(winner.subject or winner.text, sources=sources),)


def _is_smaller(one: Value, other: Value) -> bool | None:
    a, b = _amounts((one, other))
    return None if _close(one, other) else a.amount < b.amount


def _difference(one: Value, other: Value) -> str:
    """Return the years and days between two dates, or the difference of two numbers."""
    if (one.date or other.date) and one.parts and other.parts:
        low, high = sorted((one.parts, other.parts))
        days, years = days_between(low, high), years_between(low, high)
        return f"{years} years" if days is None else f"{years} years ({days:,} days)"
    a, b = _amounts((one, other))
    return str(replace(a, amount=abs(a.amount - b.amount), unit=a.unit or b.unit))


def _intersect(left: Values, right: Values) -> Values:
    keys = {value.key: value for value in right}
    return tuple(
        replace(value, sources=_sources((value, keys[value.key])))
        for value in left
        if value.key in keys
    )


def _subtract(left: Values, right: Values) -> Values:
    keys = {value.key for value in right}
    return tuple(value for value in left if value.key not in keys)


def _get(values: Values, place: str) -> Values:
    if int(place) > len(values):
        raise Uncomputable(f"there is no value {place} among {len(values)}")
    return (values[int(place) - 1],)


_FUNCTIONS: Mapping[str, Callable[..., Values]] = {
    "filter": _filter,
    "sort": _sort,
    "count": _count,
    "sum": _total,
    "mean": lambda values: _total(values, mean=True),
    "max": _extreme("descending"),
    "min": _extreme("ascending"),
    "compare": _compare,
    "intersect": _intersect,
    "union": lambda left, right: (*left, *_subtract(right, left)),
    "difference": _subtract,
    "get": _get,
}
