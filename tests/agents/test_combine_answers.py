"""Combining answers in code: each kind of comparison, and the undecided cases."""

import pytest

from clew.agents.core.plan import Join
from clew.agents.planning.compare_answers import combine_answers


def combine_both(what: str, *answers: str) -> str:
    steps = tuple((at,) for at in range(1, len(answers) + 1))
    options = tuple(f"option {at}" for at in range(1, len(answers) + 1))
    return combine_answers(Join("both", steps, options, what), dict(enumerate(answers, start=1)))


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (("yes", "Yes, it is"), "yes"),
        (("a river", "rivers"), "yes"),
        (("yes", "a long river"), "yes"),
        (("yes", "no"), "no"),
        (("a river", "No, a lake"), "no"),
        (("a river", "a lake"), "no"),
        (("a lake", "a lake"), "no"),
    ],
)
def test_both_is_yes_if_every_answer_agrees(answers: tuple[str, str], expected: str) -> None:
    assert combine_both("a river", *answers) == expected


def combine_two(how: str, *rows: tuple[str, ...]) -> str:
    """Compare the answers of two options, "A" and "B"."""
    flat = [answer for row in rows for answer in row]
    numbers = iter(range(1, len(flat) + 1))
    steps = tuple(tuple(next(numbers) for _ in row) for row in rows)
    return combine_answers(Join(how, steps, ("A", "B")), dict(enumerate(flat, start=1)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("how", "rows", "expected"),
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
def test_two_options_are_compared(
    how: str, rows: tuple[tuple[str, ...], ...], expected: str
) -> None:
    assert combine_two(how, *rows) == expected


def test_missing_answers_are_not_compared() -> None:
    assert combine_answers(Join("same", ((1,), (2,)), ("A", "B")), {1: "Vessen"}) == ""


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Brackwater and lived in Teveren", "Brackwater", "yes"),
        ("Salt Creek, where she taught maths", "Salt Creek", "yes"),
        ("Brackwater and lived in Teveren", "Teveren", "no"),
        ("Trinidad and Tobago", "Trinidad", "no"),
    ],
)
def test_the_same_name_is_the_same_whatever_follows_it(one: str, other: str, expected: str) -> None:
    assert combine_two("same", (one,), (other,)) == expected
