"""Answers that code compares: each way of joining, and what it does not decide."""

import pytest

from clew.agents.core.plan import Join
from clew.agents.planning.compare_answers import combine_answers


def both(what: str, *answers: str) -> str:
    places = tuple((at,) for at in range(1, len(answers) + 1))
    options = tuple(f"option {at}" for at in range(1, len(answers) + 1))
    return combine_answers(Join("both", places, options, what), dict(enumerate(answers, start=1)))


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (("yes", "Yes, it is"), "yes"),
        (("a river", "rivers"), "yes"),
        (("yes", "a long river"), "yes"),
        (("yes", "no"), "no"),
        (("a river", "No, a lake"), "no"),
        (("a river", "a lake"), ""),
        (("a lake", "a lake"), ""),
    ],
)
def test_both_are_so_where_each_says_it(answers: tuple[str, str], said: str) -> None:
    assert both("a river", *answers) == said


def two(how: str, *rows: tuple[str, ...]) -> str:
    """Two options, "A" and "B", with the answers of each."""
    flat = [answer for row in rows for answer in row]
    numbers = iter(range(1, len(flat) + 1))
    places = tuple(tuple(next(numbers) for _ in row) for row in rows)
    return combine_answers(Join(how, places, ("A", "B")), dict(enumerate(flat, start=1)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("how", "rows", "said"),
    [
        ("same", (("Vessen",), ("Vessen",)), "yes"),
        ("same", (("Vessen",), ("Pellworth",)), "no"),
        ("earlier", (("1888",), ("3 May 1921",)), "A"),
        ("later", (("1888",), ("3 May 1921",)), "B"),
        ("earlier", (("1921",), ("1888",)), "B"),
        ("later", (("1921",), ("1888",)), "A"),
        ("earlier", (("1921",), ("1921",)), ""),
        ("earlier", (("1921",), ("in spring",)), ""),
        ("larger", (("300 m",), ("2 km",)), "B"),
        ("smaller", (("300 m",), ("2 km",)), "A"),
        ("larger", (("300 m",), ("2 kg",)), ""),
        ("larger", (("300 m",), ("very long",)), ""),
        ("larger", (("300",), ("300",)), ""),
        ("longer life", (("1800", "1850"), ("1800", "1890")), "B"),
        ("shorter life", (("1800", "1850"), ("1800", "1890")), "A"),
        ("longer life", (("1 May 1800", "1 May 1850"), ("1 May 1800", "1 July 1850")), "B"),
        ("longer life", (("1850", "1800"), ("1800", "1890")), ""),
        ("longer life", (("1800", ""), ("1800", "1890")), ""),
    ],
)
def test_two_are_compared(how: str, rows: tuple[tuple[str, ...], ...], said: str) -> None:
    assert two(how, *rows) == said


def test_what_is_not_answered_is_not_compared() -> None:
    assert combine_answers(Join("same", ((1,), (2,)), ("A", "B")), {1: "Vessen"}) == ""
