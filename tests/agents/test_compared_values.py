"""A compared value counts where a clause says it of the thing, as what is asked for."""

import pytest

from clew.agents.citing.clauses import split_clauses
from clew.agents.core.confidence import save_models
from clew.agents.reading.spans import Reading
from clew.agents.reading.values import is_astray, move_to_condition, states_value
from clew.engine import KnowledgeBase
from clew.testing.word_reader import CONFIDENCE, WordReader
from clew.types import Passage
from conftest import document, one_in_three, stream

PAGES = {
    "Staff": "The head is Ida Moe, who followed Per Lie in May 2019. Ole Vik joined in 2011. He "
    "reports to Per Lie. Ida Moe was born in Ribe and studied at Lund College.",
    "Storm Works": "Storm Works is a maker of pumps. It was founded in 1953. The Odense yard was "
    "opened in 2006 and is led by Per Lie. The works has 40 cranes.",
    "Eva Dahl": "Eva Dahl (born 1930) is a director. She made Salt (1961) and Tide (1968).",
    "Jon Dahl": "Jon Dahl (1893 – 1970) was an engineer.",
}


def read(title: str, text: str, value: str, question: str) -> Reading:
    """A value as it would be read in a page."""
    start = text.index(value)
    page = Passage("p", "p", title, 1.0, text, 0, len(text))
    return Reading(question, value, page, start, start + len(value), 5.0)


@pytest.mark.parametrize(
    ("sentence", "subjects"),
    [
        ("Ida Moe was born in Ribe and studied at Lund College.", ["Ida Moe", "Ida Moe"]),
        ("The head is Ida Moe, who followed Per Lie.", ["The head", "Ida Moe"]),
        ("She wrote Salt Marsh, published in 1902.", ["She", "Salt Marsh"]),
        ("Born in Ribe, he taught Ida Moe.", ["he", "he"]),
        ("A pump has a valve and a lamp but no alarm.", ["A pump"]),
    ],
)
def test_a_sentence_is_split_where_another_verb_says_something(
    sentence: str, subjects: list[str]
) -> None:
    assert [clause.subject for clause in split_clauses(sentence)] == subjects


@pytest.mark.parametrize(
    ("name", "text", "value", "question", "stated"),
    [
        ("Ola Moe", "Ola Moe (1861 – 1938) was a painter.", "1861", "When was Ola Moe born?", True),
        ("Ola Moe", "Ola Moe (1861 – 1938) was a painter.", "1938", "When did Ola Moe die?", True),
        ("Ola Moe", "Ola Moe (1861 – d. 1938) sang.", "1938", "When did Ola Moe die?", True),
        ("Ola Moe", "Ola Moe (1861 – 1938) sang.", "1861", "When did Ola Moe die?", False),
        ("Ola Moe", "Ola Moe (born 1930) sings.", "1930", "When did Ola Moe die?", False),
        ("Ola Moe", "Ola Moe joined in 2011.", "2011", "When was Ola Moe born?", False),
        ("Ola Moe", "His father died in 1900.", "1900", "When did Ola Moe die?", False),
        ("Ash", "Ash is a 1961 film.", "1961", "When was Ash released?", True),
        ("Ash", "Ash (1961) is a film.", "1961", "How long is Ash?", False),
        ("Ash", "Ash is 90 minutes long.", "90 minutes", "How long is Ash?", True),
        ("Ash", "The Elm office was opened in 2006.", "2006", "When was Ash opened?", False),
        ("Ash", "The mill was completed in 1887.", "1887", "When was Ash built?", True),
        ("Ola Moe", "He was born in Ribe.", "Ribe", "What is the nationality of Ola Moe?", False),
    ],
)
def test_a_value_stands_with_what_is_asked_of_the_thing(
    name: str, text: str, value: str, question: str, stated: bool
) -> None:
    assert states_value([name], read(name, text, value, question), of_itself=True) == stated


@pytest.fixture
async def staff(base: KnowledgeBase) -> KnowledgeBase:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in PAGES.items()]))
    base.reader = WordReader()
    await save_models(base.store, {"rank": CONFIDENCE["rank"]})
    return base


@pytest.mark.parametrize(
    "question",
    one_in_three(
        [
            "Who is older, Ida Moe or Per Lie?",
            "Who was born first, Ole Vik or Ida Moe?",
            "Who lived longer, Eva Dahl or Jon Dahl?",
            "Which film is longer, Salt or Tide?",
            "Do Ida Moe and Per Lie have the same nationality?",
            "Did Ida Moe study in Ribe?",
            "Does Storm Works have 2006 cranes?",
        ]
    ),
)
async def test_what_no_clause_says_has_one_low_confidence(
    staff: KnowledgeBase, question: str
) -> None:
    refused = await staff.ask(question, mode="reject")
    assert refused.verdict == "refused"
    given = await staff.ask(question)
    assert not given.computed
    assert given.confidence == refused.confidence < 0.5


async def test_values_that_are_said_are_compared(staff: KnowledgeBase) -> None:
    answer = await staff.ask("Who was born first, Jon Dahl or Eva Dahl?")
    assert (answer.candidate, answer.computed) == ("Jon Dahl", True)


@pytest.mark.parametrize(
    ("question", "short"),
    [
        ("Was Ida Moe born in Ribe?", "yes"),
        ("Was Ida Moe born in Lund College?", "no"),
        ("Was Storm Works founded in 2006?", "no"),
        ("Does Ole Vik report to Per Lie?", "yes"),
    ],
)
async def test_yes_or_no_goes_by_the_clause(
    staff: KnowledgeBase, question: str, short: str
) -> None:
    assert (await staff.ask(question)).candidate == short


@pytest.mark.parametrize(
    ("title", "text", "answer", "name", "question", "astray"),
    [
        ("Jon", "Jon was the son of Ole.", "Ole", "Eva", "Who is Eva's father?", True),
        ("Jon", "Jon was the son of Ole.", "Ole", "Jon", "Who is Jon's father?", False),
        ("Eva", "She made Salt (1961) and Tide (1968).", "Salt", "Tide", "Who made Tide?", True),
        ("Orm", "The chief clerk is Eva.", "Eva", "Orm", "Who is chief ship officer of Orm?", True),
        ("Orm", "The chief clerk is Eva.", "Eva", "Orm", "Who is the chief clerk of Orm?", False),
    ],
)
def test_a_sentence_about_another_thing_is_astray(
    title: str, text: str, answer: str, name: str, question: str, astray: bool
) -> None:
    assert is_astray(question, [name], answer, read(title, text, answer, question)) == astray


@pytest.mark.parametrize(
    ("name", "moved"), [("Orm", "65 euros"), ("Sarn", "50 euros"), ("Ribe", "65 euros")]
)
def test_an_amount_is_that_beside_the_name_asked_about(name: str, moved: str) -> None:
    text = "The allowance is 65 euros in Orm and 50 euros in Sarn."
    reading = read("Rules", text, "65 euros", f"What is the allowance in {name}?")
    assert move_to_condition([name], reading).text == moved
