"""Steps are quoted whole where a question wants them, whatever words it and the heading use."""

from pathlib import Path

import pytest

from clew.agents.answering.steps import wants_steps
from clew.config import Settings
from clew.engine import KnowledgeBase
from clew.llm.embed_weights import missing_packages
from clew.reader.span_reader import READER_FILE, SpanReader

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing_packages()), reason="the packages of the encoder are missing"),
    pytest.mark.skipif(not READER_FILE.is_file(), reason="the reader's weights are not installed"),
]
MOWER = """# Mower Gaia 40

The Gaia 40 cuts 40 cm. Its tank holds 1.2 litres.

## Exchanging the blade

1. Pull the plug off the spark.
2. Tip the mower back.
3. Undo the bolt in the middle.
4. Put the new knife in with its print facing down.

## Storing the mower in winter

1. Run the tank dry.
2. Brush the grass off the deck.
3. Hang it on the wall.

| Sign | Meaning | Remedy |
|---|---|---|
| K1 | The blade is bent | Order a new one |
| K2 | The plug is wet | Dry it with a cloth |

Never tip the mower on its left side: oil runs into the filter.

## Mulching

Push the green lever under the deck down. The grass is cut twice and stays on the lawn.
"""
LIBRARY = """# Village library

The library opens at 15:00. Nora Lind runs it.

## Joining

- Show a bill with your address.
- Choose a number of four digits.
- Sign the card.

## Returning books

- Lay them on the belt.
- Wait for the slip.
"""


@pytest.fixture
async def base(tmp_path: Path) -> KnowledgeBase:
    (tmp_path / "mower.md").write_text(MOWER, encoding="utf-8")
    (tmp_path / "library.md").write_text(LIBRARY, encoding="utf-8")
    kb = await KnowledgeBase.open(Settings(kb=tmp_path / "kb"), create=True)
    kb.reader = SpanReader.load()
    await kb.add([tmp_path / "mower.md", tmp_path / "library.md"])
    return kb


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What has to be done to fit a fresh cutter?", "1. Pull the plug", "facing down."),
        ("How do I get the lawn mower ready for the frost?", "1. Run the tank", "on the wall."),
        ("How does one become a member of the library?", "- Show a bill", "Sign the card."),
    ],
)
async def test_steps_are_quoted_in_order_under_other_words(
    base: KnowledgeBase, question: str, first: str, last: str
) -> None:
    answer = await base.ask(question)
    assert answer.kind == "steps" and not answer.candidate
    quote = answer.citations[0].quote
    assert quote.startswith(first) and quote.endswith(last)
    assert f"{quote}" in answer.answer


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("How do I store the mower in winter?", "“1. Run the tank", "on the wall.” [1]"),
        ("What are the steps to exchange the blade?", "“1. Pull the plug", "facing down.” [1]"),
    ],
)
async def test_nothing_is_quoted_behind_steps(
    base: KnowledgeBase, question: str, first: str, last: str
) -> None:
    answer = await base.ask(question)
    assert len(answer.citations) == 1
    assert answer.answer.startswith(first) and answer.answer.endswith(last)


@pytest.mark.parametrize(
    "question", ["My mower shows K2, what should I do?", "What has to be done if the plug is wet?"]
)
async def test_steps_yield_to_the_row_of_what_is_asked(base: KnowledgeBase, question: str) -> None:
    answer = await base.ask(question)
    assert answer.kind != "steps"
    assert "Dry it with a cloth" in answer.answer


@pytest.mark.parametrize("question", ["How do I mulch the grass?", "How can I mulch my lawn?"])
async def test_steps_yield_to_a_section_of_prose(base: KnowledgeBase, question: str) -> None:
    answer = await base.ask(question)
    assert answer.kind != "steps"
    assert "green lever" in answer.answer


async def test_steps_of_something_else_are_not_told_as_the_answer(base: KnowledgeBase) -> None:
    for question in ("How do I order a wedding cake?", "How do I leave the library?"):
        assert (await base.ask(question)).confidence < 0.5


@pytest.mark.parametrize(
    ("question", "short"),
    [("How much does the tank of the Gaia 40 hold?", "1.2 litres"), ("Who runs it?", "Nora Lind")],
)
async def test_a_short_answer_is_still_named(
    base: KnowledgeBase, question: str, short: str
) -> None:
    assert short in (await base.ask(question)).candidate


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("How do I fit a fresh cutter?", True),
        ("A child has lost her card. What do I have to do?", True),
        ("What has to be done, one after the other, to open the desk?", True),
        ("How often must the knife be exchanged?", False),
        ("How long does it take to exchange the knife?", False),
        ("Which spanner do I need to undo the bolt?", False),
        ("How did the village become a town?", False),
        ("Wie kann ich das Messer tauschen?", True),
        ("Wie oft wird das Messer getauscht?", False),
    ],
)
async def test_wanting_steps_is_told_from_asking_about_them(
    base: KnowledgeBase, question: str, wanted: bool
) -> None:
    async with base.store.snapshot() as now:
        assert await wants_steps(await base.context(now, question)) == wanted
