"""What is said before a question goes to its place in it."""

import pytest

from clew.agents.rules.question_context import place_context
from clew.engine import KnowledgeBase
from conftest import OpenFilled, document, stream

PAGES = {
    "Potter 2 on Linux": "Potter 2 runs on Linux and on Haiku. It fires the kiln with one command.",
    "Kiln": "The Kiln of Brask was built by Ole Falk. It stands on the quay.",
}


async def fill_pottery(base: KnowledgeBase) -> None:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in PAGES.items()]))


@pytest.fixture
async def pottery(open_filled: OpenFilled) -> KnowledgeBase:
    return await open_filled(fill_pottery)


@pytest.mark.parametrize(
    ("question", "placed"),
    [
        ("In potter, what does -k do?", "What does -k do in potter?"),
        ("For orders below 20 kr, what is added?", "What is added for orders below 20 kr?"),
        ("MSP: on which port is it?", "MSP: on which port is it?"),  # "it" stands for MSP
        ("MSP: on which port is the server?", "On which port is the server in MSP?"),
        ("I'm on Haiku. How do I fire it up?", "I'm on Haiku. How do I fire it up?"),
        ("I'm on Haiku. How do I fire the kiln?", "How do I fire the kiln on Haiku?"),
        ("We use Linux. Which command fires it?", "We use Linux. Which command fires it?"),
        ("I have a Potter 2. What fires the kiln?", "What fires the kiln with Potter 2?"),
        ("I'm on BeOS. How do I fire the kiln?", "I'm on BeOS. How do I fire the kiln?"),
        ("In which town, if any, is it?", "In which town, if any, is it?"),
        ("According to the documents, who built the kiln?", "Who built the kiln?"),
        ("According to Ole Falk, who lit it?", "According to Ole Falk, who lit it?"),
        ("According to the guide, who lit fires?", "Who lit fires according to the guide?"),
        ("In 1902, Ole Falk built what?", "In 1902, Ole Falk built what?"),
        ("在布拉斯克，谁建了窑？", "在布拉斯克，谁建了窑？"),
    ],
)
async def test_context_goes_behind_what_is_asked(
    pottery: KnowledgeBase, question: str, placed: str
) -> None:
    async with pottery.store.snapshot() as snapshot:
        view = (await pottery.context(snapshot, "x")).view
        assert place_context(view, question) == placed


async def test_a_question_with_its_context_first_is_answered_alike(pottery: KnowledgeBase) -> None:
    plain = await pottery.ask("Who built the Kiln in Brask?", mode="open")
    first = await pottery.ask("In Brask, who built the Kiln?", mode="open")
    assert first.candidate == plain.candidate == "Ole Falk"
    assert first.confidence == plain.confidence


@pytest.mark.parametrize("code", ["E4", "--dry-run", "7741?", "KILN_HEAT"])
async def test_a_code_alone_asks_nothing(pottery: KnowledgeBase, code: str) -> None:
    refused = await pottery.ask(code, mode="reject")
    assert refused.verdict == "refused"
    assert f"“{code.rstrip('?')}” alone asks nothing" in refused.missing


async def test_a_long_question_is_not_repeated_whole(pottery: KnowledgeBase) -> None:
    answer = await pottery.ask("Who built the Kiln of Brask? " + "Is clay grey? " * 900)
    assert "Ole Falk" in answer.answer
    assert "of 12,629 characters of the question the first 8,000 were read" in answer.note
    longest = max(map(len, answer.answer.split("\n")))
    assert longest < 1000
