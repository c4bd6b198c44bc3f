"""Plans without a model: the shapes of questions, and what makes a plan fit to run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.core.plan import (
    Plan,
    fill_placeholders,
    find_placeholders,
    has_placeholders,
    strip_placeholders,
    validate_questions,
)
from clew.agents.rules.english_questions import plan_by_rules


def planned(question: str, *names: str) -> Plan:
    """The plan of a question in which these names are known."""
    spans = []
    for name in names:
        at = question.index(name)
        spans.append((at, at + len(name)))
    return plan_by_rules(question, spans)


@pytest.mark.parametrize(
    ("question", "names", "steps"),
    [
        (
            "When did Otto Vance's mother die?",
            ["Otto Vance"],
            ["Who is the mother of Otto Vance?", "When did #1 die?"],
        ),
        (
            "What is the place of birth of the director of film The Grey Tide?",
            ["The Grey Tide"],
            ["Who is the director of film The Grey Tide?", "What is the place of birth of #1?"],
        ),
        (
            "What is the capital of the country of Lake Orm?",
            ["Lake Orm"],
            ["What is the country of Lake Orm?", "What is the capital of #1?"],
        ),
        (
            "Who is Otto Vance's paternal grandmother?",
            ["Otto Vance"],
            ["Who is the father of Otto Vance?", "Who is the mother of #1?"],
        ),
        (
            "Who is the father-in-law of Otto Vance?",
            ["Otto Vance"],
            ["Who is the spouse of Otto Vance?", "Who is the father of #1?"],
        ),
        (
            "When was the wife of Otto Vance's brother born?",
            ["Otto Vance"],
            [
                "Who is the brother of Otto Vance?",
                "Who is the wife of #1?",
                "When was #2 born?",
            ],
        ),
        (
            "What is the population of the city where Otto Vance was born?",
            ["Otto Vance"],
            ["In which city was Otto Vance born?", "What is the population of #1?"],
        ),
    ],
)
def test_chains(question: str, names: list[str], steps: list[str]) -> None:
    plan = planned(question, *names)
    assert list(plan.questions) == steps
    assert plan.join is None


@pytest.mark.parametrize(
    ("question", "how", "first"),
    [
        ("Which film was released first, Ash or Elm?", "earlier", "When was Ash released?"),
        ("Which film came out more recently, Ash or Elm?", "later", "When was Ash released?"),
        ("Who was born later, Ash or Elm?", "later", "When was Ash born?"),
        ("Who is older, Ash or Elm?", "earlier", "When was Ash born?"),
        ("Who is younger, Ash or Elm?", "later", "When was Ash born?"),
        ("Who died first, Ash or Elm?", "earlier", "When did Ash die?"),
        ("Who was born first out of Ash and Elm?", "earlier", "When was Ash born?"),
        ("Was Ash or Elm founded earlier?", "earlier", "When was Ash founded?"),
        ("Which tower is taller, Ash or Elm?", "larger", "How tall is Ash?"),
        ("Which city has more inhabitants, Ash or Elm?", "larger", "How many inhabitants does"),
        ("Are Ash and Elm in the same country?", "same", "Which country is Ash in or from?"),
        ("Do Ash and Elm have the same nationality?", "same", "What is the nationality of Ash?"),
        ("Does Ash have the same employer as Elm?", "same", "What is the employer of Ash?"),
        ("Were Ash and Elm born in the same town?", "same", "Where was Ash born?"),
        ("Were Ash and Elm both engineers?", "both", "Was Ash an engineer?"),
        ("Are both Ash and Elm American magazines?", "both", "Is Ash an American magazine?"),
        ("Are Ash and Elm both located in Texas?", "both", "Is Ash located in Texas?"),
    ],
)
def test_comparisons(question: str, how: str, first: str) -> None:
    plan = planned(question, "Ash", "Elm")
    assert plan.join is not None
    assert (plan.join.how, plan.join.options) == (how, ("Ash", "Elm"))
    assert plan.questions[0].startswith(first)
    assert plan.join.question_numbers == ((1,), (2,))


def test_a_bridge_before_the_comparison() -> None:
    plan = planned("Which film has the director who died later, Ash or Elm?", "Ash", "Elm")
    assert plan.questions == (
        "Who is the director of the film Ash?",
        "Who is the director of the film Elm?",
        "When did #1 die?",
        "When did #2 die?",
    )
    assert plan.join is not None
    assert plan.join.question_numbers == ((3,), (4,))


def test_a_life_needs_two_dates() -> None:
    plan = planned("Who lived longer, Ash or Elm?", "Ash", "Elm")
    assert plan.join is not None
    assert (plan.join.how, plan.join.question_numbers) == ("longer life", ((1, 2), (3, 4)))


def test_chinese_chains_and_comparisons() -> None:
    chain = plan_by_rules("林湾天文台的创立者的出生地是哪里？", [])
    assert chain.questions == ("林湾天文台的创立者是谁或什么？", "#1的出生地是哪里？")
    compared = plan_by_rules("甲城和乙城哪个更早成立？", [])
    assert compared.join is not None
    assert compared.join.options == ("甲城", "乙城")


@pytest.mark.parametrize(
    "question", ["Who founded Ash?", "Why is the sky blue?", "Ash", "", "?", "#1 of #2 of #3?"]
)
def test_what_has_no_shape_stays_whole(question: str) -> None:
    plan = plan_by_rules(question, [(i, i + 3) for i in [question.find("Ash")] if i >= 0])
    assert plan.simple or "#1" in question


def test_brackets_belong_to_the_name_before_them() -> None:
    plan = planned("Where was the director of film Ash (1962 Film) born?", "Ash")
    assert plan.questions[0] == "Who is the director of film Ash (1962 Film)?"


@given(st.text(max_size=200), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60))))
def test_any_text_gives_a_plan_that_can_run(text: str, spans: list[tuple[int, int]]) -> None:
    plan = plan_by_rules(text, [(a, b) for a, b in spans if a < b <= len(text)])
    assert plan.questions
    for number, question in enumerate(plan.questions, start=1):
        # Placeholders in the text itself are the user's; those a plan adds point back.
        if "#" not in text:
            assert all(0 < one < number for one in find_placeholders(question))


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
