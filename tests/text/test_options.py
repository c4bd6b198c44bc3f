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
