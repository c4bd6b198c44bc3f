"""Sections of a passage that are about a name: the page, a heading's section, or sentences."""

import pytest

from clew.agents.rules.sections_about import find_sections
from clew.types import Passage


def make_passage(text: str, title: str = "") -> Passage:
    return Passage("c", "doc", title, 1.0, text, 0, len(text))


def sections(name: str, text: str, title: str = "") -> list[str]:
    return [
        text[start:end].strip() for start, end in find_sections(name, make_passage(text, title))
    ]


def test_a_page_is_about_its_title() -> None:
    text = "She was a painter. Otto Vance was her son."
    assert sections("Ana Roth", text, "Ana Roth") == [text]
    assert sections("Ana Roth", text, "Ana Roth (painter)") == [text]
    assert sections("Otto Vance", "She was a painter.", "Ana Roth") == []


def test_a_section_ends_at_the_next_heading_of_its_level() -> None:
    text = "# Ana Roth\nA painter.\n## Life\nBorn in Marn.\n# Otto Vance\nA son.\n"
    assert sections("Ana Roth", text) == ["A painter.\n## Life\nBorn in Marn."]
    assert sections("Otto Vance", text) == ["A son."]
    assert sections("Ana Roth", text, "Ana Roth") == ["A painter.\n## Life\nBorn in Marn."]


def test_sentences_belong_to_the_last_name() -> None:
    text = "Ana Roth was a painter. She was born in Marn. Otto Vance was a poet. He left."
    assert sections("Ana Roth", text) == ["Ana Roth was a painter. She was born in Marn."]
    assert sections("Otto Vance", text) == ["Otto Vance was a poet. He left."]


def test_a_line_of_its_own_is_a_heading() -> None:
    text = "Ana Roth\nA painter of the coast.\n\nOtto Vance\nA poet.\n"
    assert sections("Ana Roth", text) == ["A painter of the coast."]
    assert sections("Otto Vance", text) == ["A poet."]


@pytest.mark.parametrize(
    ("text", "about"),
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
def test_longer_names_and_possessives_are_other_entities(text: str, about: bool) -> None:
    assert sections("Ana Roth", text) == ([text] if about else [])
