"""Options of a question as text."""

import pytest

from clew.text.options import format_options, split_options

OPTIONS = {"A": "Vessen", "B": "Hallowmere", "C": "St. Olav's Quay"}
ASKED = format_options("Where was Ilse born?", OPTIONS)


def test_options_are_the_last_lines() -> None:
    assert split_options(ASKED) == ("Where was Ilse born?", OPTIONS)
    for plain in ("Who is A. Vessen?", "A. Vessen\nB. Hallowmere", "Who?\nA. Vessen", "Who?\n"):
        assert split_options(plain) == (plain, {})


@pytest.mark.parametrize(
    "marks",
    [
        "{q} A) {a} B) {b} C) {c}",
        "{q} (A) {a}, (B) {b}, or (C) {c}",
        "{q} A. {a} B. {b} C. {c}",
        "{q}\nA) {a} B) {b}\nC) {c}",
    ],
)
def test_options_may_stand_in_one_line(marks: str) -> None:
    asked = "Where was Ilse born?"
    line = marks.format(q=asked, a="Vessen", b="Hallowmere", c="St. Olav's Quay")
    assert split_options(line) == (asked, OPTIONS)


@pytest.mark.parametrize(
    "plain",
    [
        "Who was born first, A. Smith or B. Jones?",
        "Is plan (A) or plan (B) cheaper?",
        "Who built B) the bridge A) the mill",
        "A) Vessen B) Hallowmere",
        "Compare A) and B)",
    ],
)
def test_letters_within_a_question_are_no_options(plain: str) -> None:
    assert split_options(plain) == (plain, {})


def test_options_keep_initials_in_their_names() -> None:
    line = "Who signed it? A. John F. Kennedy B. Lyndon B. Johnson"
    assert split_options(line)[1] == {"A": "John F. Kennedy", "B": "Lyndon B. Johnson"}
