"""Options of a question as text, and the letters of a choice."""

import pytest

from clew.text.options import format_options, match_option, spell_out_choice, split_options

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
    assert spell_out_choice(line, "B") == ["Hallowmere"]


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


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("B", ["Hallowmere"]),
        ("(B).", ["Hallowmere"]),
        ("The correct answer is B.", ["Hallowmere"]),
        ("A, C", ["Vessen", "St. Olav's Quay"]),
        ("AC", ["Vessen", "St. Olav's Quay"]),
        ("A and B", ["Vessen", "Hallowmere"]),
        ("答案是B。", ["Hallowmere"]),
        ("选 A、B", ["Vessen", "Hallowmere"]),
        ("B. Hallowmere", ["Hallowmere"]),
        ("B. Vessen", []),
        ("D", []),
        ("A poet", []),
        ("Hallowmere", []),
        ("", []),
    ],
)
def test_letters_stand_for_their_options(text: str, chosen: list[str]) -> None:
    assert spell_out_choice(ASKED, text) == chosen
    assert spell_out_choice("Where was Ilse born?", text) == []


def test_an_answer_fits_if_it_is_an_option_or_there_are_none() -> None:
    assert match_option(ASKED, "hallowmere") == "hallowmere"
    assert match_option(ASKED, "Oslo") == ""
    assert match_option("Where?", "Oslo") == "Oslo"
