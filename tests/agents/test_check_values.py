"""Values that code puts together: each of its own thing, of one kind, and what is asked."""

import pytest

from clew.agents.core.plan import AGE, Join, JoinKind
from clew.agents.core.scratchpad import Note
from clew.agents.planning.arithmetic import compute
from clew.agents.planning.check_values import (
    WEAKEST,
    bound_by_values,
    find_mismatch,
    is_of_rival,
)
from clew.agents.rules.arithmetic import find_arithmetic
from clew.agents.rules.operators import find_comparison
from clew.engine import KnowledgeBase
from clew.types import Citation
from conftest import OpenFilled, document, stream

PAGES = {
    "Corvin Freight": "Corvin Freight will buy Marl Carriers. Marl Carriers, founded in 1983 by "
    "Ada Roe, runs 90 barges. Corvin Freight runs 240 barges.",
    "Ada Roe": "Ada Roe (14 May 1901 – 2 March 1970) was a smith. From 1931 to 1952 she "
    "directed the forge of Tull.",
    "Tull Fruit Guild": "Tull Fruit Guild was founded in 1990. It tends 120 plum trees and "
    "35 fig trees.",
}


def note(question: str, answer: str, quote: str, start: int = 0) -> Note:
    cited = Citation(doc="d", chunk="c", start=start, end=start + len(quote), quote=quote)
    return Note(question, answer, quote, cited)


def reason(how: JoinKind, *notes: Note) -> str:
    join = Join(how, ((1,), (2,)), ("Aldern", "Breck"))
    return find_mismatch("Which, Aldern or Breck?", join, dict(enumerate(notes, start=1)), [])


def test_one_place_is_no_value_of_two_things() -> None:
    one = note("How many barges has Aldern?", "90", "Breck runs 90 barges.")
    other = note("How many barges has Breck?", "90", "Breck runs 90 barges.")
    assert "one value" in reason("sum", one, other)
    both = "Aldern runs 90 barges, Breck runs 90 barges."
    assert not reason("sum", *(note(n.question, "90", both) for n in (one, other)))


@pytest.mark.parametrize(
    ("asked", "values", "fits"),
    [
        ("How much has {} sold?", ("It had 188 clerks.", "It sold for 26 million dollars."), False),
        ("How much has {} sold?", ("It sold 18 tons.", "It sold 26 tons."), True),
        ("How many copies has {} sold?", ("It has 412 pages.", "It has 388 pages."), False),
        ("How much does {} cost?", ("It cost 12 crowns.", "It cost 9 crowns."), True),
        ("How long is {}?", ("It is a film of 1968.", "It is a film of 1974."), False),
    ],
)
def test_values_measure_what_is_asked(asked: str, values: tuple[str, str], fits: bool) -> None:
    notes = []
    for name, quote in zip(("Aldern", "Breck"), values, strict=True):
        number = next(word for word in quote.rstrip(".").split() if word.isdigit())
        notes.append(note(asked.format(name), number, quote, start=len(notes)))
    assert (reason("larger", *notes) == "") is fits


@pytest.mark.parametrize(
    ("sentence", "value", "rival"),
    [
        ("Breck, founded by Aldern's smith, runs 90 barges.", "90", True),
        ("The forge at Breck made 50 tons and that at Aldern 70 tons.", "70", False),
        ("| Property: Weight | Breck: 8.4 | Aldern: 11.7 |", "8.4", True),
        ("| Property: Weight | Breck: 8.4 | Aldern: 11.7 |", "11.7", False),
    ],
)
def test_what_is_said_of_the_other_thing_is_told(sentence: str, value: str, rival: bool) -> None:
    assert is_of_rival("Aldern", ["Breck"], sentence, sentence.index(value)) is rival


def test_a_verb_tells_which_amount_is_compared() -> None:
    for question, asked in (
        ("Which firm sold more, Aldern or Breck?", "How much has Aldern sold?"),
        ("Which firm earns more, Aldern or Breck?", "How much does Aldern earn?"),
        ("Does Aldern or Breck last longer?", "How long is Aldern?"),
    ):
        places = [(question.index(name), question.index(name) + len(name)) for name in NAMES]
        found = find_comparison(question, places)
        assert found is not None and found.questions[0][0] == asked


NAMES = ("Aldern", "Breck")


@pytest.mark.parametrize(
    ("born", "died", "age"),
    [
        ("14 May 1901", "2 March 1970", "68 years"),
        ("14 May 1901", "20 May 1970", "69 years"),
        ("1901", "2 March 1970", "68 or 69 years"),
        ("May 1901", "2 May 1970", "68 or 69 years"),
    ],
)
def test_an_age_counts_the_birthday(born: str, died: str, age: str) -> None:
    join = Join("years before", ((1,), (2,)), ("A", "A"), AGE)
    notes = {1: Note("When was A born?", born), 2: Note("When did A die?", died)}
    assert compute(join, notes) == age


@pytest.mark.parametrize(
    "question",
    ["How long did Ada Roe live in Tull?", "How old is Ada Roe?", "How long did Ada Roe work?"],
)
def test_no_age_is_computed_for_other_questions(question: str) -> None:
    at = question.index("Ada Roe")
    assert find_arithmetic(question, [(at, at + 7)]) is None


def test_a_value_that_is_hardly_likely_makes_the_result_unsure() -> None:
    assert bound_by_values({WEAKEST: 0.06}) < 0.5 < bound_by_values({WEAKEST: 0.2})


@pytest.fixture
async def pages(open_filled: OpenFilled) -> KnowledgeBase:
    async def fill(base: KnowledgeBase) -> None:
        await base.take(stream([document(n.lower(), text, title=n) for n, text in PAGES.items()]))

    return await open_filled(fill)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How old was Ada Roe when she died?", "68 years"),
        ("At what age did Ada Roe die?", "68 years"),
        ("For how long did Ada Roe direct the forge of Tull?", "21 years"),
        ("How many trees does the Tull Fruit Guild tend in total?", "155 trees"),
    ],
)
async def test_what_sentences_tell_is_computed(
    pages: KnowledgeBase, question: str, answer: str
) -> None:
    told = await pages.ask(question, mode="open", k=8)
    assert told.candidate == answer and told.computed and told.citations


async def test_values_of_two_firms_are_not_read_twice(pages: KnowledgeBase) -> None:
    question = "How many barges do Corvin Freight and Marl Carriers run together?"
    assert (await pages.ask(question, mode="open", k=8)).candidate in ("330", "")
