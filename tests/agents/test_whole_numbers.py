"""What is read or counted cuts no number in two."""

import pytest

from clew.agents.reading.spans import widen_to_number
from clew.text.quantities import find_amounts


@pytest.mark.parametrize(
    ("text", "read", "whole"),
    [
        ("It holds 65,536 octets.", "65", "65,536"),
        ("It holds 65,536 octets.", "536 octets", "65,536 octets"),
        ("It takes 0:45 h.", "45 h", "0:45 h"),
        ("Version 3.11 came.", "3", "3.11"),
        ("In 1990, 200 came.", "200", "200"),
        ("In 1990, 200 came.", "1990", "1990"),
        ("From 9:00 on.", "on", "on"),
    ],
)
def test_a_span_has_whole_numbers(text: str, read: str, whole: str) -> None:
    start = text.index(read)
    assert text[slice(*widen_to_number(text, start, start + len(read)))] == whole


def test_a_time_of_the_clock_is_no_amount() -> None:
    found = find_amounts("It takes 0:45 h and 12 litres.")
    assert [amount.amount for _, _, amount in found] == [12]
