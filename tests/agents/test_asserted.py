"""A yes needs a sentence that says so: no question, no condition, no plan and no rumour does."""

import pytest

from clew.agents.core.confidence import save_models
from clew.engine import KnowledgeBase
from clew.testing.word_reader import CONFIDENCE
from conftest import OpenFilled, document, stream

NOTES = """# Notes of the ferry

The crew bought the lantern in 1931. Ada Brink taught the navigation course in 1940.

The captain refused to sell the anchor. The owners plan to paint the hull. If the dock is dry, the
keel will be welded. It is not certain that the mast was replaced. A sailor said that the rudder
was broken, which turned out to be false. The cook believed the stove was stolen. Nobody knows
whether the bell was cast in Ribe. The deck almost burned in 1952.

The funnel was raised in 1960. This was not true. The pilot confirmed that the compass was mended.
The mate managed to free the cable. The winch was oiled. The hatch was oiled by the second engineer
shortly before the long crossing to the northern islands in the spring of that cold year.
Passengers can hire a bicycle. The galley might close in winter.

Replacing the propeller needs a dock. The ferry does not carry lorries longer than 12 metres. The
default of the heating can be changed with `FERRY_HEATING_DEFAULT`. The radio is on by default.
"""
HELP = """# Help for passengers

**Can I bring a horse on board?**
No. Only dogs and cats are carried.

## Is the saloon heated?
Yes, from October to April.

Q: May children steer the ferry?
A: We advise against it.

**How do I change my ticket?**
Write to the harbour office and name the new day.

**How do I reserve a cabin?**
1. Choose the crossing.
2. Choose the cabin.
3. Pay at the counter.

**Which coins are accepted on board?**
- crowns
- marks

Foreign notes are not taken.
"""


async def fill_ferry(base: KnowledgeBase) -> None:
    pages = [document("notes", NOTES, title="Notes"), document("help", HELP, title="Help")]
    await base.take(stream(pages))
    await save_models(base.store, CONFIDENCE)


@pytest.fixture
async def ferry(open_filled: OpenFilled) -> KnowledgeBase:
    base = await open_filled(fill_ferry)
    base.scorer = None  # what sentences prove without it
    return base


@pytest.mark.parametrize(
    "question",
    [
        "Did the captain sell the anchor?",
        "Did the owners paint the hull?",
        "Is the dock dry?",
        "Will the keel be welded?",
        "Was the mast replaced?",
        "Was the rudder broken?",
        "Was the stove stolen?",
        "Was the bell cast in Ribe?",
        "Did the deck burn in 1952?",
        "Was the funnel raised in 1960?",
        "Will the galley close in winter?",
        "Does the ferry replace the propeller?",
        "Does the ferry carry lorries?",
        "Is the heating on by default?",
    ],
)
async def test_what_is_not_said_to_be_so_gives_no_yes(ferry: KnowledgeBase, question: str) -> None:
    assert (await ferry.ask(question)).candidate == ""


@pytest.mark.parametrize(
    "question",
    [
        "Did the crew buy the lantern in 1931?",
        "Did Ada Brink teach the navigation course in 1940?",
        "Was the compass mended?",
        "Did the mate free the cable?",
        "Can passengers hire a bicycle?",
        "May passengers hire a bicycle?",
        "Is the radio on by default?",
    ],
)
async def test_what_is_said_to_be_so_gives_a_yes(ferry: KnowledgeBase, question: str) -> None:
    assert (await ferry.ask(question)).candidate == "yes"


@pytest.mark.parametrize(
    ("question", "short", "quoted"),
    [
        ("Can I bring a horse on board?", "no", "Only dogs and cats"),
        ("May a horse be brought on board?", "no", "Only dogs and cats"),
        ("Is the saloon heated?", "yes", "from October"),
        ("May children steer the ferry?", "", "advise against"),
    ],
)
async def test_a_question_in_the_text_is_answered_by_what_stands_under_it(
    ferry: KnowledgeBase, question: str, short: str, quoted: str
) -> None:
    answer = await ferry.ask(question)
    assert answer.candidate == short
    assert quoted in answer.citations[0].quote


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("How do I change my ticket?", "harbour office"),
        ("How do I reserve a cabin?", "3. Pay at the counter."),
        ("Which coins are accepted on board?", "- crowns\n- marks"),
    ],
)
async def test_the_block_under_the_line_that_asks_is_quoted_first(
    ferry: KnowledgeBase, question: str, quoted: str
) -> None:
    answer = await ferry.ask(question)
    assert quoted in answer.citations[0].quote
    assert answer.answer.startswith(f"“{answer.citations[0].quote}")


async def test_a_sentence_that_says_more_gives_a_less_certain_yes(ferry: KnowledgeBase) -> None:
    short = await ferry.ask("Was the winch oiled?")
    long = await ferry.ask("Was the hatch oiled?")
    assert short.candidate == long.candidate == "yes"
    assert short.confidence > long.confidence


@pytest.mark.parametrize(
    ("question", "short"),
    [
        ("Did Ada Brink teach the navigation course in 1940?", "yes"),
        ("Can I bring a horse on board?", "no"),
        ("How do I change my ticket?", ""),
        ("May children steer the ferry?", ""),
    ],
)
@pytest.mark.parametrize("wording", ["Hi there! {} Thanks in advance.", "capitals"])
async def test_capitals_and_thanks_change_no_answer(
    ferry: KnowledgeBase, question: str, short: str, wording: str
) -> None:
    plain = await ferry.ask(question)
    asked = question.upper() if wording == "capitals" else wording.format(question)
    answer = await ferry.ask(asked)
    assert answer.candidate == plain.candidate == short
    assert answer.question == asked
    assert answer.confidence >= 0.9 * plain.confidence
