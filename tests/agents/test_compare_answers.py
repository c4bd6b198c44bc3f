"""Whether two short answers mean the same thing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.planning.compare_answers import answers_equal, combine_answers
from clew.agents.rule_planner import plan_comparison
from clew.agents.rules.operators import find_comparison
from clew.engine import KnowledgeBase
from clew.text.countries import find_countries
from clew.text.unicode import split_words
from conftest import document, stream


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Dutch", "the Netherlands"),
        ("U.S.", "American film"),
        ("Greek American", "American"),
        ("Franco-British", "British"),
        ("South Korean", "South Korea"),
        ("German", "East German"),
        ("Congo", "Republic of the Congo"),
        ("Bavaria", "Bavarian"),
        ("Sicily", "Sicilian"),
        ("Vienna, Austria", "Vienna"),
        ("Vienna, Austria", "Austria"),
        ("City of London", "London"),
        ("the novelist Anton Reeve", "Anton Reeve"),
        ("1946", "3 May 1946"),
        ("中国", "中国人"),
    ],
)
def test_the_same_in_other_words(one: str, other: str) -> None:
    assert answers_equal(one, other)
    assert answers_equal(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Austria", "Australia"),
        ("Austrian", "Australian"),
        ("Niger", "Nigeria"),
        ("Niger", "Nigerian"),
        ("Slovak", "Slovenian"),
        ("Indian", "Indonesian"),
        ("Dominica", "Dominican Republic"),
        ("Guinea", "Equatorial Guinea"),
        ("China", "Republic of China"),
        ("New York", "York"),
        ("new york", "york"),
        ("Mexico City", "Mexico"),
        ("John Adams", "John Quincy Adams"),
        ("Apollo 11", "Apollo"),
        ("May 1946", "June 1946"),
        ("印度", "印度尼西亚"),
    ],
)
def test_two_things_with_words_in_common(one: str, other: str) -> None:
    assert not answers_equal(one, other)
    assert not answers_equal(other, one)


@given(st.text(max_size=20), st.text(max_size=20))
def test_which_comes_first_does_not_matter(one: str, other: str) -> None:
    assert answers_equal(one, other) == answers_equal(other, one)


def test_the_longest_name_of_a_country_counts() -> None:
    found, left = find_countries(split_words("a South Sudanese runner"))
    assert (found, left) == (frozenset({"South Sudan"}), ["a", "runner"])
    assert find_countries(split_words("Papua New Guinea"))[0] == {"Papua New Guinea"}
    assert find_countries(split_words("Korean"))[0] == {"North Korea", "South Korea"}
    assert find_countries(split_words("nowhere")) == (frozenset(), ["nowhere"])


@pytest.mark.parametrize(
    ("other", "said"), [("an Australian", "no"), ("an Austrian", "yes"), ("a Dutch", "no")]
)
async def test_one_country_or_two(base: KnowledgeBase, other: str, said: str) -> None:
    papers = (
        document("a", "Karl Holt was an Austrian painter.", "Karl Holt"),
        document("b", f"Ann Reed was {other} writer.", "Ann Reed"),
    )
    await base.take(stream(papers))
    answer = await base.ask("Do Karl Holt and Ann Reed have the same nationality?", mode="reject")
    assert (answer.verdict, answer.candidate) == ("answered", said)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (("14 March 1871", "3 May 1871"), "yes"),
        (("14 March 1871", "1868"), "no"),
        (("Lisle Haven", "Veldon"), ""),
    ],
)
def test_the_same_year_is_told_by_dates_alone(values: tuple[str, str], said: str) -> None:
    question = "Were Ada Brink and Ole Falk born in the same year?"
    names = [(question.index(name), question.index(name) + 8) for name in ("Ada Br", "Ole Fa")]
    compared = find_comparison(question, [(names[0][0], names[0][1] + 1), names[1]])
    assert compared is not None
    assert [one[0][:8] for one in compared.questions] == ["When was", "When was"]
    plan = plan_comparison(compared)
    assert plan.join is not None
    assert combine_answers(plan.join, {1: values[0], 2: values[1]}) == said
