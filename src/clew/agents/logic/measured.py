"""Things compared by a number or a date that each has: which has more, and how that is said.

The words are those in which the query scorer reads comparisons, of tables as of graphs.
"""

from collections.abc import Mapping, Sequence

from clew.text.dates import DateParts, is_date, parse_date
from clew.text.quantities import parse_quantity

EXTREMES = {"max": "highest", "min": "lowest"}
DATE_EXTREMES = {"max": "latest", "min": "earliest"}
COMPARED = {"max": "more", "min": "less"}
DATE_COMPARED = {"max": "later", "min": "earlier"}
_YEARS = range(1000, 2101)  # numbers that may be years
_MAX_NAMED = 3  # things by whose names a set is said
_MAX_ANSWER = 40  # characters of the answer that are said
_MAX_WORDS = 4  # words of a value; longer texts only contain a number


def is_time(values: Sequence[str]) -> bool:
    """Whether all values are dates or years."""
    return bool(values) and all(
        is_date(value) and (not value.isdigit() or int(value) in _YEARS) for value in values
    )


def rank_values(values: Mapping[str, str], best: str) -> list[str]:
    """Return the names with the largest or smallest value; none where they cannot be compared."""
    sizes = _read_sizes(list(values.values()))
    if sizes is None or not sizes:
        return []
    wanted = max(sizes) if best == "max" else min(sizes)
    return [name for name, size in zip(values, sizes, strict=True) if size == wanted]


def is_measure(value: str) -> bool:
    """Whether a value is a number, with or without its unit, or a date."""
    return _read_sizes([value]) is not None


def _read_sizes(values: Sequence[str]) -> Sequence[DateParts | float] | None:
    """Return values as dates or as numbers of one dimension; None if they are neither."""
    dates = [parse_date(value) for value in values] if is_time(values) else []
    if dates:
        return [date for date in dates if date is not None]
    if any(not value[:1].isdigit() and value[:1] not in "+-.$€£¥" for value in values):
        return None
    if any(len(value.split()) > _MAX_WORDS for value in values):
        return None
    amounts = [parse_quantity(value) for value in values]
    known = [amount for amount in amounts if amount is not None]
    kinds = {(amount.dimension, amount.noun) for amount in known}
    if len(known) < len(values) or len(kinds) > 1:
        return None
    return [amount.amount for amount in known]


def say_measure(relations: Sequence[str]) -> str:
    """Say what is compared, by the relations that lead to it: "year of birth of founder"."""
    return " of ".join(reversed(relations))


def say_extreme(things: str, measure: str, best: str, *, dated: bool, answer: str) -> str:
    """Say which of some things has the largest or smallest measure, and which it is."""
    extreme = (DATE_EXTREMES if dated else EXTREMES)[best]
    return f"{things} with the {extreme} {measure} = {answer[:_MAX_ANSWER]}"


def say_things(names: Sequence[str]) -> str:
    """Say some things by name: both of two, the first of more."""
    if len(names) == 2:
        return " or ".join(names)
    return ", ".join(names[:_MAX_NAMED])


def say_check(names: Sequence[str], measure: str, best: str, *, dated: bool, answer: str) -> str:
    """Say whether the first of two has more than the other, or less, and whether that is so."""
    compared = (DATE_COMPARED if dated else COMPARED)[best]
    return f"whether {measure} of {names[0]} is {compared} than of {names[1]} = {answer}"
