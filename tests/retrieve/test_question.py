"""How a question is read once its names are known."""

import pytest

from clew.retrieve.question import locate_names, tidy_question
from clew.text.names import relation_to_words


def test_overlapping_names_stand_once() -> None:
    question = "did Ann Lee meet Ann Lee Moss"
    assert locate_names(question, ["Ann Lee", "Ann Lee Moss", "Bob"]) == [(1, 3), (4, 7)]


@pytest.mark.parametrize(
    "relation", ["release_year", "releaseYear", "release-year", "release.year", "release year"]
)
def test_relations_in_words(relation: str) -> None:
    assert relation_to_words(relation) == "release year"


def test_a_relation_of_marks_only_stays() -> None:
    assert relation_to_words("___") == "___" and relation_to_words("上映年份") == "上映年份"


@pytest.mark.parametrize(
    ("question", "tidy"),
    [
        ("who designed Marrow Bridge", "who designed Marrow Bridge?"),
        ("who designed Marrow Bridge. ", "who designed Marrow Bridge?"),
        ("Who designed it!!??", "Who designed it?"),
        ("谁设计了它？", "谁设计了它？"),
        ("...", "..."),
        ("", ""),
    ],
)
def test_a_question_ends_with_one_mark(question: str, tidy: str) -> None:
    assert tidy_question(question) == tidy
