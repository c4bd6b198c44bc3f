"""Totals and differences of two things: planned, computed from cited values, or refused."""

import re

import pytest

from clew.agents.core.plan import Join, JoinKind
from clew.agents.core.scratchpad import Note
from clew.agents.planning.arithmetic import compute
from clew.agents.rules.arithmetic import find_arithmetic
from clew.agents.rules.chinese import plan_chinese
from clew.agents.rules.operators import find_base, find_comparison
from clew.engine import KnowledgeBase
from conftest import OpenFilled, document, stream

NAMES = re.compile(r"Aldern|Breck|Corve|Ida Moe|Per Lie")
PAGES = {
    "Aldern": "Aldern is a town. It has 8,400 inhabitants and six schools. Aldern was founded in "
    "1210.",
    "Breck": "Breck is a town. It has 5,100 inhabitants and 11 schools. Breck was founded in 1388.",
    "Corve": "Corve is a village. Its church was built in 1702.",
    "Lake Orr": "Lake Orr is a reservoir. Its dam is 41 metres high.",
    "Lake Ulm": "Lake Ulm is a reservoir. Its dam is 38 metres high and 90 metres long.",
    "Mast A": "The mast of Aldern is 212 metres high.",
}


def spans(question: str) -> list[tuple[int, int]]:
    return [found.span() for found in NAMES.finditer(question)]


@pytest.mark.parametrize(
    ("question", "how", "first"),
    [
        ("How many schools do Aldern and Breck have together?", "sum", "How many schools does {}"),
        ("What is the total area of Aldern, Breck and Corve?", "sum", "What is the area of {}?"),
        ("How much higher is Aldern than Breck?", "difference", "How high is {}?"),
        ("How much shorter is Aldern than Breck?", "shortfall", "How long is {}?"),
        ("How many more schools does Aldern have than Breck?", "difference", "How many schools"),
        ("How much brighter is Aldern than Breck?", "difference", "How bright is {}?"),
        ("By how much is Aldern taller than Breck?", "difference", "How tall is {}?"),
        ("What is the difference in height between Aldern and Breck?", "apart", "What is the he"),
        ("How many years after Breck was Aldern founded?", "years after", "When was {} founded?"),
    ],
)
def test_each_value_is_asked_by_the_question_without_the_other(
    question: str, how: str, first: str
) -> None:
    found = find_arithmetic(question, spans(question))
    assert found is not None and found.how == how
    assert found.questions[0][0].startswith(first.format("Aldern"))


@pytest.mark.parametrize(
    "question",
    [
        "Who together with Aldern built Breck?",
        "How many schools does Aldern have?",
        "How much water flows from Aldern to Breck?",
        "Is Aldern higher than Breck?",
        "Which is higher, Aldern or Breck?",
        "How many members later joined Aldern and Breck?",
    ],
)
def test_other_questions_compute_nothing(question: str) -> None:
    assert find_arithmetic(question, spans(question)) is None


@pytest.mark.parametrize(
    ("how", "values", "result"),
    [
        ("sum", ["nine schools", "14 schools"], "23"),
        ("sum", ["38 kg", "51 kg"], "89 kg"),
        ("sum", ["38 kg", "3 metres"], ""),
        ("sum", ["5 goats", "3 sheep"], ""),
        ("difference", ["1,842 metres", "1,610 metres"], "232 metres"),
        ("difference", ["1,610 metres", "1,842 metres"], ""),
        ("shortfall", ["1,610 metres", "1,842 metres"], "232 metres"),
        ("difference", ["412 metres", "1,260 feet"], "27.95 metres"),
        ("difference", ["183 cm", "1.76 m"], "7 cm"),
        ("difference", ["1 hour and 20 minutes", "55 minutes"], "25 minutes"),
        ("apart", ["5 kg", "12 kg"], "7 kg"),
        ("years before", ["3 March 1889", "9 October 1902"], "13 years"),
        ("years after", ["1889", "1902"], ""),
    ],
)
def test_values_are_computed_where_they_go_together(
    how: JoinKind, values: list[str], result: str
) -> None:
    asked = "How many schools does N have?"
    notes = {n: Note(asked, value, f"It is {value}.") for n, value in enumerate(values, start=1)}
    assert compute(Join(how, ((1,), (2,)), ("A", "B")), notes) == result
    assert compute(Join(how, ((1,), (2,)), ("A", "B")), {1: notes[1]}) == ""


def test_what_counts_something_else_is_not_added() -> None:
    asked = "How many tram lines does N have?"
    notes = {1: Note(asked, "112,000", "It had 112,000 residents."), 2: Note(asked, "5", "5 lines")}
    assert compute(Join("sum", ((1,), (2,)), ("A", "B")), notes) == ""


def test_the_last_part_of_an_amount_stands_for_all_of_it() -> None:
    asked = "How long does N take?"
    notes = {
        1: Note(asked, "20 minutes", "The ride takes 1 hour and 20 minutes."),
        2: Note(asked, "55", "The ride takes 55 minutes."),
    }
    assert compute(Join("difference", ((1,), (2,)), ("A", "B")), notes) == "25 minutes"


def test_chinese_differences_are_planned() -> None:
    plan = plan_chinese("青石桥比白沙桥长多少？")
    assert plan.join is not None and plan.join.how == "difference"
    assert plan.questions == ("青石桥有多长？", "白沙桥有多长？")


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Which company employs fewer people, Aldern or Breck?", "How many people does Aldern emp"),
        ("Which club has won more titles, Aldern or Breck?", "How many titles has Aldern won?"),
        ("Which has the higher dam, Aldern or Breck?", "How high is the dam of Aldern?"),
        ("Which kettle is more powerful, Aldern or Breck?", "How powerful is Aldern?"),
        ("Is Aldern taller than Breck?", "How tall is Aldern?"),
        ("Which was designed by the older smith, Aldern or Breck?", "When was the smith of Aldern"),
    ],
)
def test_comparisons_ask_by_the_words_of_the_question(question: str, asked: str) -> None:
    found = find_comparison(question, spans(question))
    assert found is not None and found.questions[0][0].startswith(asked)


def test_the_adjective_of_a_comparative_is_known() -> None:
    words = "higher heavier bigger wider larger cheaper newer safer quieter taller"
    bases = "high heavy big wide large cheap new safe quiet tall"
    assert [find_base(word) for word in words.split()] == bases.split()


async def fill(base: KnowledgeBase) -> None:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in PAGES.items()]))


@pytest.fixture
async def towns(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_filled(fill)


async def test_a_total_cites_both_values(towns: KnowledgeBase) -> None:
    question = "How many schools do Aldern and Breck have together?"
    answer = await towns.ask(question, mode="open", k=8)
    assert answer.candidate == "17" and answer.computed and len(answer.citations) == 2


async def test_a_total_is_refused_with_what_is_not_said(towns: KnowledgeBase) -> None:
    question = "How many schools do Aldern and Corve have together?"
    answer = await towns.ask(question, mode="open", k=8)
    assert answer.verdict == "refused"
    assert "How many schools does Corve have?" in answer.missing


async def test_the_parts_of_two_things_are_compared(towns: KnowledgeBase) -> None:
    question = "Which of the two has the higher dam, Lake Ulm or Lake Orr?"
    answer = await towns.ask(question, mode="open", k=8)
    assert answer.candidate == "Lake Orr" and len(answer.citations) == 2
