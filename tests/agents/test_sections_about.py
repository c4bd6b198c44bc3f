"""Which part of a passage is about a name: its page, its section, or its run of sentences."""

import pytest

from clew.agents.rules.sections_about import expand_surname, find_sections, is_in_section
from clew.types import Passage


def page(text: str, title: str = "") -> Passage:
    return Passage("c", "doc", title, 1.0, text, 0, len(text))


def parts(name: str, text: str, title: str = "") -> list[str]:
    return [text[start:end].strip() for start, end in find_sections(name, page(text, title))]


def test_a_page_is_about_its_title() -> None:
    text = "She was a painter. Otto Vance was her son."
    assert parts("Ana Roth", text, "Ana Roth") == [text]
    assert parts("Ana Roth", text, "Ana Roth (painter)") == [text]
    assert parts("Otto Vance", "She was a painter.", "Ana Roth") == []


def test_sections_end_at_the_next_of_their_rank() -> None:
    text = "# Ana Roth\nA painter.\n## Life\nBorn in Marn.\n# Otto Vance\nA son.\n"
    assert parts("Ana Roth", text) == ["A painter.\n## Life\nBorn in Marn."]
    assert parts("Otto Vance", text) == ["A son."]
    assert parts("Ana Roth", text, "Ana Roth") == ["A painter.\n## Life\nBorn in Marn."]


def test_a_run_goes_from_its_name_to_the_next() -> None:
    text = "Ana Roth was a painter. She was born in Marn. Otto Vance was a poet. He left."
    assert parts("Ana Roth", text) == ["Ana Roth was a painter. She was born in Marn."]
    assert parts("Otto Vance", text) == ["Otto Vance was a poet. He left."]


def test_a_line_of_its_own_is_a_heading() -> None:
    text = "Ana Roth\nA painter of the coast.\n\nOtto Vance\nA poet.\n"
    assert parts("Ana Roth", text) == ["A painter of the coast."]
    assert parts("Otto Vance", text) == ["A poet."]


@pytest.mark.parametrize(
    ("text", "hers"),
    [
        ("Ana Roth was a painter.", True),
        ("The Ana Roth was a ship.", True),
        ("Ana Roth of course was a painter.", True),
        ("Ana Roth of.", True),
        ("Ana Roth", False),  # a heading with nothing under it
        ("Ana Roth of Marn was a queen.", False),
        ("Ana Roth Prize winners are listed.", False),
        ("Ana Roth's sister was a poet.", False),
        ("Ana Roth’s sister was a poet.", False),
        ("Anna Roth was a painter.", False),
    ],
)
def test_a_longer_name_or_what_is_hers_is_not_she(text: str, hers: bool) -> None:
    assert parts("Ana Roth", text) == ([text] if hers else [])


def test_a_place_is_in_the_part_or_not() -> None:
    text = "Ana Roth was a painter. Otto Vance was a poet."
    at = text.index("Otto")
    assert is_in_section("Ana Roth", page(text), 0)
    assert is_in_section("Ana Roth", page(text), at - 2)
    assert not is_in_section("Ana Roth", page(text), at)
    assert is_in_section("Otto Vance", page(text), at)


def test_a_surname_is_short_for_the_one_full_name_that_bears_it() -> None:
    one = page("Ana Roth was a painter. She met Roth.")
    assert expand_surname("Roth", [one]) == "Ana Roth"
    assert expand_surname("Roth", [one, page("Eva Roth was a poet.")]) == ""
    assert expand_surname("Ana Roth", [one]) == ""
    assert expand_surname("Vance", [one]) == ""
