"""Evaluate the operators of a logic form by code: numbers, dates, units, sets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from clew.agents.logic.forms import Aggregate, Combine, Compare, Filter, Get, Sort
from clew.agents.planning.compare_answers import answers_equal
from clew.text.dates import days_between, is_before, parse_date_not_amount, years_between
from clew.text.names import name_key
from clew.text.quantities import Quantity, parse_quantity
from clew.types import Citation


@dataclass(frozen=True)
class Item:
    """A value that was found or computed, its subject, its citation, and the fact it is from."""

    text: str
    subject: str = ""
    citation: Citation | None = None
    fact: int | None = None
    """Position of the fact in the view, where the graph gave it."""


class Uncomputable(ValueError):  # noqa: N818  (reads as what happened)
    """An operator cannot be applied to these values; the message says why."""


Items = tuple[Item, ...]


def apply_filter(step: Filter, items: Items) -> Items:
    """Keep the items that pass the test; an item the test cannot judge does not pass."""
    return tuple(item for item in items if _passes_filter(item.text, step))


def _passes_filter(text: str, step: Filter) -> bool:
    if step.test == "contains":
        return step.value.casefold() in text.casefold()
    if step.test in ("before", "after"):
        one, other = parse_date_not_amount(text), parse_date_not_amount(step.value)
        order = is_before(one, other) if one and other else None
        return order is not None and order == (step.test == "before")
    if step.test in ("=", "!="):
        same = answers_equal(text, step.value) or _equal_amounts(text, step.value)
        return same == (step.test == "=")
    a, b = parse_quantity(text), parse_quantity(step.value)
    if a is None or b is None or a.dimension != b.dimension:
        return False
    compare: dict[str, Callable[[float, float], bool]] = {
        "<": lambda x, y: x < y,
        "<=": lambda x, y: x <= y,
        ">": lambda x, y: x > y,
        ">=": lambda x, y: x >= y,
    }
    return compare[step.test](a.amount, b.amount)


def _equal_amounts(one: str, other: str) -> bool:
    a, b = parse_quantity(one), parse_quantity(other)
    return bool(a and b and a.dimension == b.dimension and abs(a.amount - b.amount) < 1e-9)


def apply_sort(step: Sort, items: Items) -> Items:
    """Sort by date if all are dates, by amount if all are amounts, else by name."""
    dates = [parse_date_not_amount(item.text) for item in items]
    amounts = [parse_quantity(item.text) for item in items]
    keys: Sequence[object]
    if all(dates):
        keys = dates
    elif all(amounts) and all(a.dimension for a in amounts if a):
        keys = [a.amount for a in _parse_amounts(items)]
    elif all(amounts) and not any(a.dimension for a in amounts if a):
        keys = [a.amount for a in amounts if a]
    else:
        keys = [name_key(item.text) for item in items]
    order = sorted(range(len(items)), key=lambda at: keys[at], reverse=step.falling)  # type: ignore[arg-type,return-value]
    return tuple(items[at] for at in order)


def apply_aggregate(step: Aggregate, items: Items) -> Items:
    """Aggregate items into one value; duplicates count once."""
    once = tuple({name_key(item.text): item for item in reversed(items)}.values())[::-1]
    if step.how == "count":
        return (Item(str(len(once))),)
    if not items:
        raise Uncomputable(f"no values to take the {step.how} of")
    dates = [parse_date_not_amount(item.text) for item in items]
    if step.how in ("max", "min") and all(dates):
        pick = max if step.how == "max" else min
        return (items[pick(range(len(items)), key=lambda at: dates[at] or (0, 0, 0))],)
    amounts = _parse_amounts(items)
    if step.how in ("max", "min"):
        pick = max if step.how == "max" else min
        return (items[pick(range(len(items)), key=lambda at: amounts[at].amount)],)
    total = sum(one.amount for one in amounts)
    if step.how == "mean":
        total /= len(amounts)
    first = amounts[0]
    return (Item(str(Quantity(total, first.dimension, first.unit))),)


def _parse_amounts(items: Items) -> list[Quantity]:
    found = [parse_quantity(item.text) for item in items]
    for item, amount in zip(items, found, strict=True):
        if amount is None:
            raise Uncomputable(f"{item.text!r} is not a number")
    known = [amount for amount in found if amount is not None]
    if len({amount.dimension for amount in known}) > 1:
        raise Uncomputable("the numbers have incompatible units")
    if len(nouns := {amount.noun for amount in known if amount.noun}) > 1:
        raise Uncomputable(f"the numbers count different things: {', '.join(sorted(nouns))}")
    return known


def apply_combine(step: Combine, left: Items, right: Items) -> Items:
    """Apply a set operation by normalised name; the left side's wording is kept."""
    in_right = {name_key(item.text) for item in right}
    in_left = {name_key(item.text) for item in left}
    if step.how == "intersect":
        return tuple(item for item in left if name_key(item.text) in in_right)
    if step.how == "difference":
        return tuple(item for item in left if name_key(item.text) not in in_right)
    return (*left, *(item for item in right if name_key(item.text) not in in_left))


def apply_compare(step: Compare, left: Items, right: Items) -> Items:
    """Return the winner's subject, whether two values are the same, or their difference."""
    if not left or not right:
        raise Uncomputable("one side of the comparison was not found")
    one, other = left[0], right[0]
    if step.how == "same":
        return (Item("yes" if answers_equal(one.text, other.text) else "no"),)
    if step.how == "difference":
        return (Item(compute_difference(one.text, other.text), one.subject),)
    if step.how in ("earlier", "later"):
        a, b = parse_date_not_amount(one.text), parse_date_not_amount(other.text)
        first = is_before(a, b) if a and b else None
        if first is None:
            raise Uncomputable(f"cannot decide which of {one.text!r} and {other.text!r} is earlier")
        winner = one if first == (step.how == "earlier") else other
    else:
        x, y = _parse_amounts((one, other))
        if x.amount == y.amount:
            raise Uncomputable(f"{one.text} and {other.text} are equal")
        winner = one if (x.amount > y.amount) == (step.how == "larger") else other
    return (replace(winner, text=winner.subject or winner.text),)


def compute_difference(one: str, other: str) -> str:
    """Difference of two values: years and days for dates, else an amount in the first's unit."""
    a, b = parse_date_not_amount(one), parse_date_not_amount(other)
    if a and b:
        low, high = sorted((a, b))
        days = days_between(low, high)
        years = years_between(low, high)
        return f"{years} years" if days is None else f"{years} years ({days:,} days)"
    x, y = _parse_amounts((Item(one), Item(other)))
    return str(Quantity(abs(x.amount - y.amount), x.dimension, x.unit or y.unit))


def apply_get(step: Get, items: Items) -> Items:
    """Return one item of a list by position, or all of it."""
    if step.place == 0:
        return items
    if step.place > len(items):
        raise Uncomputable(f"there is no item {step.place} among {len(items)}")
    return (items[step.place - 1],)
