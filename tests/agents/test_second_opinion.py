"""With a model the reader is asked as well: it supports the written answer, or is against it."""

import pytest
from agent_asking import asking

from clew.agents.core.types import Answer
from clew.engine import KnowledgeBase
from clew.testing.fakes import AgentScript
from conftest import document, stream

PAGES = {
    "Ada Brink": "Ada Brink was a surveyor. She was born in Ribe. She died in Odense.",
    "Storm Works": "Storm Works makes pumps. It was founded by Ada Brink.",
}


@pytest.fixture
async def works(base: KnowledgeBase) -> KnowledgeBase:
    await base.take(stream([document(n.lower(), text, title=n) for n, text in PAGES.items()]))
    return base


async def ask_model(works: KnowledgeBase, short: str, question: str, **how: str) -> Answer:
    """Ask with a model that writes this."""
    sentence = {"text": f"Ada Brink was born in {short}.", "sources": [1, 2]}
    written = {"enough": True, "sentences": [sentence], "short": short, "missing": ""}
    script = AgentScript({"answer": written, "answer_graph": written})
    return await asking(works)(script, question, **how)


@pytest.mark.parametrize(
    "question", ["Where was Ada Brink born?", "What is the birthplace of Ada Brink, who was born?"]
)
async def test_the_reader_agrees_or_not(works: KnowledgeBase, question: str) -> None:
    same = await ask_model(works, "Ribe", question, recipe="steps-judged")
    other = await ask_model(works, "Odense", question, recipe="steps-judged")
    assert same.signals["agreed"] > 0
    assert other.signals["against"] > 0
    assert other.candidate == "Odense"
    assert same.confidence > other.confidence


async def test_the_better_supported_answer_is_given(works: KnowledgeBase) -> None:
    question = "Where was Ada Brink born?"
    assert (await ask_model(works, "Odense", question, recipe="steps")).candidate == "Ribe"
    assert (await ask_model(works, "Odense", question, recipe="steps-once")).candidate == "Odense"


async def test_what_a_model_finds_missing_is_refused(works: KnowledgeBase) -> None:
    unwritten = {"enough": False, "sentences": [], "short": "", "missing": "x"}
    script = AgentScript({"answer": unwritten, "answer_graph": unwritten})
    answer = await asking(works)(script, "Where was Ada Brink born?", recipe="steps", mode="reject")
    assert answer.verdict == "refused"
