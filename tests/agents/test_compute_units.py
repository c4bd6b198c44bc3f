"""Numbers that have units: what is a date, what goes together, what is one number."""

import pytest

from clew.agents.logic.compute import (
    Item,
    Uncomputable,
    apply_aggregate,
    apply_compare,
    apply_filter,
    apply_sort,
)
from clew.agents.logic.forms import Aggregate, Aggregation, Compare, Filter, Sort
from clew.text.dates import parse_date_not_amount
from clew.text.quantities import parse_quantity


def items(*texts: str) -> tuple[Item, ...]:
    return tuple(Item(text) for text in texts)


def value(how: Aggregation, *some: str) -> str:
    return apply_aggregate(Aggregate(1, how), items(*some))[0].text


def test_metres_are_no_years() -> None:
    assert value("max", "1200 m", "900 m", "1500 mm") == "1200 m"
    assert value("min", "1200 m", "900 m", "1500 mm") == "1500 mm"
    by_length = apply_sort(Sort(1), items("1200 m", "900 m", "1500 mm"))
    assert [item.text for item in by_length] == ["1500 mm", "900 m", "1200 m"]
    assert apply_filter(Filter(1, "before", "1300"), items("1200 m", "1200")) == items("1200")
    with pytest.raises(Uncomputable, match="earlier"):
        apply_compare(Compare(1, 2, "earlier"), items("1200 m"), items("1300 m"))


@pytest.mark.parametrize(
    "text", ["1200", "3 May 1200", "1200 in France", "1200年5月3日", "1200 AD"]
)
def test_years_are_years(text: str) -> None:
    found = parse_date_not_amount(text)
    assert found is not None
    assert found[0] == 1200


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("$5", "€3"),
        ("$5", "¥100"),
        ("5 dollars", "3 euros"),
        ("10 °C", "50 °F"),
        ("5 apples", "3 people"),
    ],
)
def test_what_does_not_go_together(one: str, other: str) -> None:
    for how in ("sum", "mean", "max", "min"):
        with pytest.raises(Uncomputable):
            value(how, one, other)  # type: ignore[arg-type]
    with pytest.raises(Uncomputable):
        apply_compare(Compare(1, 2, "larger"), items(one), items(other))


def test_what_goes_together_by_other_words() -> None:
    assert value("sum", "$5", "3 dollars") == "$8"
    assert value("sum", "12,500 people", "500 inhabitants") == "13,000"
    assert value("mean", "10 °C", "20 °C") == "15 °c"


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("6 ft 2 in", 6 * 0.3048 + 2 * 0.0254),
        ("6 feet, 2 inches tall", 6 * 0.3048 + 2 * 0.0254),
        ("2 h 30 min", 9000.0),
        ("2 hours and 30 minutes", 9000.0),
        ("2 km 3 kg", 2000.0),
        ("2 m 3 km", 2.0),
        ("1.234.567 people", 1_234_567.0),
        ("1.234 people", 1.234),
        ("1,5 km", 1500.0),
        ("1,500 km", 1_500_000.0),
    ],
)
def test_one_number_in_several_parts(text: str, amount: float) -> None:
    found = parse_quantity(text)
    assert found is not None
    assert found.amount == pytest.approx(amount)


def test_blanks_and_digits_without_end_are_read_at_once() -> None:
    assert parse_quantity(" " * 50_000) is None
    assert parse_quantity("5" + " " * 50_000 + "km") == parse_quantity("5 km")
