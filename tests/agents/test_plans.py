"""Plans: what makes a model's plan fit to run, and what is compared without a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.core.plan import (
    fill_placeholders,
    find_placeholders,
    has_placeholders,
    strip_placeholders,
    validate_questions,
)
from clew.agents.rules.chinese import plan_chinese
from clew.agents.rules.operators import Comparison, find_comparison, settle_event


def compared(question: str, *names: str) -> Comparison | None:
    """What a question compares in which these names are known."""
    spans = [(question.index(name), question.index(name) + len(name)) for name in names]
    return find_comparison(question, spans)


@pytest.mark.parametrize(
    ("question", "how", "first"),
    [
        ("Which film was released first, Ash or Elm?", "earlier", "When was Ash released?"),
        ("Which film came out more recently, Ash or Elm?", "later", "When was Ash released?"),
        ("Did Ash or Elm reach cinemas earlier?", "earlier", "When was Ash"),
        ("Who was born later, Ash or Elm?", "later", "When was Ash born?"),
        ("Who is older, Ash or Elm?", "earlier", "When was Ash born?"),
        ("Of Ash and Elm, who is the younger one?", "later", "When was Ash born?"),
        ("Who died first, Ash or Elm?", "earlier", "When did Ash die?"),
        ("Who was born first out of Ash and Elm?", "earlier", "When was Ash born?"),
        ("Was Ash or Elm founded earlier?", "earlier", "When was Ash founded?"),
        ("Which tower is taller, Ash or Elm?", "larger", "How tall is Ash?"),
        (
            "Which city has more inhabitants, Ash or Elm?",
            "larger",
            "What is the population of Ash?",
        ),
        ("Do Ash and Elm have the same nationality?", "same", "What is the nationality of Ash?"),
        ("Do Ash and Elm share an employer?", "same", "What is the employer of Ash?"),
        ("Were Ash and Elm both engineers?", "both", "What is Ash?"),
        ("Is Ash an engineer as well as Elm?", "both", "What is Ash?"),
        ("Do Ash and Elm lie in one country?", "same", "What is the country"),
        ("Is Ash in the country that Elm is in?", "same", "What is the country"),
        ("Who lived longer, Ash or Elm?", "longer life", "When was Ash born?"),
        ("Which is older, Ash or Elm?", "earlier", "When did Ash begin?"),
        ("Which company is older, Ash or Elm?", "earlier", "When did Ash begin?"),
    ],
)
def test_comparisons(question: str, how: str, first: str) -> None:
    found = compared(question, "Ash", "Elm")
    assert found is not None
    assert (found.how, found.options) == (how, ("Ash", "Elm"))
    assert found.questions[0][0].startswith(first)


def test_something_of_the_options_is_compared() -> None:
    found = compared("Which film has the director who died later, Ash or Elm?", "Ash", "Elm")
    assert found is not None
    assert found.questions == (
        ("When did the director of Ash die?",),
        ("When did the director of Elm die?",),
    )


def test_whether_one_is_older_is_answered_by_yes_or_no() -> None:
    found = compared("Is Ash older than Elm?", "Ash", "Elm")
    assert found is not None
    assert (found.how, found.yes_no) == ("earlier", True)


@pytest.mark.parametrize("order", ["before", "after"])
def test_an_order_of_two_is_answered_by_yes_or_no(order: str) -> None:
    found = compared(f"Was Ash built {order} Elm?", "Ash", "Elm")
    assert found is not None
    assert (found.yes_no, found.questions[1]) == (True, ("When was Elm built?",))


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("It was opened on 4 May 1887.", "When was Elm opened?"),
        ("Elm (1849 – 1921) was an engineer.", "When was Elm born?"),
        ("The band Elm was formed in 1990.", "When was Elm formed?"),
        ("It employed 400 people in 1880.", "When did Elm begin?"),
        ("It was founded by a duke.", "When did Elm begin?"),
    ],
)
def test_how_a_thing_began_is_asked_as_its_pages_say_it(said: str, asked: str) -> None:
    assert settle_event("When did Elm begin?", [said]) == asked
    assert settle_event("Who built Elm?", [said]) == "Who built Elm?"


@pytest.mark.parametrize("question", ["Who founded Ash?", "Why is the sky blue?", "Ash", "", "?"])
def test_what_compares_nothing_stays_whole(question: str) -> None:
    names = ["Ash"] if "Ash" in question else []
    assert compared(question, *names) is None


def test_chinese_chains_and_comparisons() -> None:
    chain = plan_chinese("林湾天文台的创立者的出生地是哪里？")
    assert chain.questions == ("林湾天文台的创立者是谁或什么？", "#1的出生地是哪里？")
    pair = plan_chinese("甲城和乙城哪个更早成立？")
    assert pair.join is not None
    assert pair.join.options == ("甲城", "乙城")


def test_what_is_denied_is_not_compared() -> None:
    assert compared("Which is heavier, Ada or Bo?", "Ada", "Bo") is not None
    assert compared("Which is not heavier, Ada or Bo?", "Ada", "Bo") is None


@given(st.text(max_size=200), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60))))
def test_any_text_is_compared_or_left(text: str, spans: list[tuple[int, int]]) -> None:
    names = [(a, b) for a, b in spans if a < b <= len(text)]
    found = find_comparison(text, names)
    assert found is None or all(found.questions)


@given(
    st.text(alphabet="陈雨和与的导演父亲出生于在哪里谁是何时更早12年（－）《》#，？", max_size=60)
)
def test_any_chinese_text_gives_a_plan(text: str) -> None:
    assert plan_chinese(text).questions


def test_a_models_plan_is_made_sound() -> None:
    said = ["Where was #2 born?", "  ", "Who designed #1?", "#1", "Who  designed it?"]
    found = validate_questions(said, 3)
    assert found.questions == ("Who designed it?",)
    assert found.dropped == (
        "dropped question 1: #2 points forward",
        "dropped question 2: it asks nothing",
        "dropped question 3: #1 was dropped",
        "dropped question 4: #1 was dropped",
    )
    assert validate_questions(["A town?"] * 5 + ["B town?"], 3).questions == ("A town?", "B town?")
    assert "points at itself" in str(validate_questions(["Who made Entity#1?"], 3))
    assert "points nowhere" in str(validate_questions(["Who made #0?", "Who made #7?"], 3))
    twice = ["Who is A?", "Who is A?", "Where was #2 born?"]
    assert validate_questions(twice, 3).questions == ("Who is A?", "Where was #1 born?")


@given(st.lists(st.text(alphabet="ab#123 ?", max_size=12), max_size=8))
def test_a_sound_plan_only_looks_back(said: list[str]) -> None:
    kept = validate_questions(said, 4).questions
    assert len(kept) <= 4
    for number, question in enumerate(kept, start=1):
        assert all(0 < one < number for one in find_placeholders(question))


def test_placeholders() -> None:
    assert fill_placeholders("Where was Entity#1 born?", {1: "Ilse"}) == "Where was Ilse born?"
    assert fill_placeholders("When did #1 die?", {1: "Ilse"}) == "When did Ilse die?"
    assert fill_placeholders("When did #2 die?", {1: "Ilse"}) == "When did #2 die?"
    assert has_placeholders("When did #2 die?")
    assert strip_placeholders("When did #2 die?") == "When did die?"
