"""What bears a sentence out: names, numbers, the thing said, and whether it is denied."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.writing.bearing import Quote, borne, claim_of
from clew.agents.writing.kinds import kind_fits
from clew.agents.writing.support import best_citation, citations_for
from clew.types import Passage

TOWN = """Vera Lund (4 May 1931 – 9 June 2001) was a Danish film director. She was born in Ribe, \
a small town. Her father was Per Lund, a smith. She was married to the composer Karl Brask.

Karl Brask (1 January 1920 – 4 March 1999) was a composer born in Odense. He died in Aarhus.

The Grey Mill is a 1970 film directed by Vera Lund. The Long Ferry is a 1981 film directed by \
Jon Dahl.

Ribe is a town. Its population is 8,000. Ida Holm was a civil engineer born in Kolding."""
PAGE = Passage("c", "doc", "Vera Lund", 1.0, TOWN, 0, len(TOWN))


@pytest.mark.parametrize(
    "sentence",
    [
        "Karl Brask murdered Vera Lund.",
        "Vera Lund won a Bodil.",
        "Karl Brask was born in Aarhus.",
        "Jon Dahl directed The Grey Mill.",
        "Ida Holm was a painter born in Kolding.",
        "Vera Lund was never married to Karl Brask.",
        "The population of Ribe is 9,000.",
        "Jon Dahl was born in Ribe.",
        "Vera Lund was born in 1932.",
        "The Grey Mill was the longer film.",
    ],
)
def test_what_nobody_said_is_not_cited(sentence: str) -> None:
    assert citations_for(sentence, [1], [PAGE]) == []
    assert best_citation(sentence, [PAGE]) is None


@pytest.mark.parametrize(
    ("sentence", "quote"),
    [
        ("Vera Lund was married to Karl Brask.", "married to the composer Karl Brask"),
        ("Karl Brask's wife was Vera Lund.", "married to the composer Karl Brask"),
        ("Vera Lund was born in 1931.", "(4 May 1931"),
        ("Karl Brask died in Aarhus.", "He died in Aarhus."),
        ("The director of The Grey Mill was born in Ribe.", "born in Ribe"),
        ("The Long Ferry was released in 1981.", "a 1981 film"),
        ("Ribe has a population of 8,000.", "8,000"),
        ("Karl Brask is older than Vera Lund.", "Karl Brask"),
    ],
)
def test_what_is_said_in_other_words_is_cited(sentence: str, quote: str) -> None:
    cited = citations_for(sentence, [1], [PAGE])
    assert quote in " ".join(one.quote for one in cited)
    assert all(TOWN[one.start : one.end] == one.quote for one in cited)


def test_a_title_that_another_has_excuses_nothing() -> None:
    text = "The Salt Road is a film directed by Anselm Krug."
    other = Passage("c", "doc", "The Lantern Keeper", 1.0, text, 0, len(text))
    assert citations_for("Anselm Krug directed The Lantern Keeper.", [1], [other]) == []


def test_scripts_without_capitals() -> None:
    text = "李明华出生于青岛。王晓东1963年出生于成都。"
    page = Passage("c", "doc", "人物", 1.0, text, 0, len(text))
    assert citations_for("李明华出生于青岛。", [1], [page])
    assert citations_for("王晓东出生于青岛。", [1], [page]) == []
    assert citations_for("李明华没有出生于青岛。", [1], [page]) == []


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_has_an_answer(sentence: str, text: str) -> None:
    page = Passage("c", "doc", "t", 1.0, text, 0, len(text))
    claim_of(sentence)
    assert borne(sentence, [Quote(page, 0, len(text))]) in (True, False)
    for one in citations_for(sentence, [1], [page]):
        assert text[one.start : one.end] == one.quote


@pytest.mark.parametrize(
    ("question", "short", "fits"),
    [
        ("When was Vera Lund born?", "Ribe", False),
        ("When was Vera Lund born?", "4 May 1931", True),
        ("How many films did she direct?", "Vera Lund", False),
        ("How many films did she direct?", "two", True),
        ("Who directed The Grey Mill?", "1970", False),
        ("Where was she born?", "Ribe", True),
        ("李明华何时出生？", "青岛", False),
    ],
)
def test_an_answer_is_of_the_kind_asked_for(question: str, short: str, fits: bool) -> None:
    assert kind_fits(question, short) == fits
