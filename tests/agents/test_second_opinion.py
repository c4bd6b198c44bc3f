"""With a model the reader is asked as well: it supports the written answer, or is against it."""

from typing import Any

import pytest
from agent_asking import asking

from clew.agents.core.types import Answer
from clew.agents.graph_reader import overrule
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


async def ask_model(works: KnowledgeBase, *shorts: str, question: str, **how: str) -> Answer:
    """Ask with a model that writes these, one after another, and then the last again."""
    left = list(shorts)

    def write(_: str) -> dict[str, Any]:
        short = left.pop(0) if len(left) > 1 else left[0]
        sentence = {"text": f"Ada Brink was born in {short}.", "sources": [1, 2]}
        return {"enough": True, "sentences": [sentence], "short": short, "missing": ""}

    script = AgentScript({"answer": write, "answer_graph": write})
    return await asking(works)(script, question, **how)


@pytest.mark.parametrize(
    "question", ["Where was Ada Brink born?", "What is the birthplace of Ada Brink, who was born?"]
)
async def test_the_reader_agrees_or_not(works: KnowledgeBase, question: str) -> None:
    same = await ask_model(works, "Ribe", question=question, recipe="steps-judged")
    other = await ask_model(works, "Odense", question=question, recipe="steps-judged")
    assert same.signals["agreed"] > 0
    assert other.signals["against"] > 0
    assert other.candidate == "Odense"
    assert same.confidence > other.confidence


async def test_the_better_supported_answer_is_given(works: KnowledgeBase) -> None:
    how = {"question": "Where was Ada Brink born?"}
    overruled = await ask_model(works, "Odense", recipe="steps-unasked", **how)
    assert overruled.candidate == "Ribe"
    assert "the model wrote “Odense”" in overruled.note
    assert (await ask_model(works, "Odense", recipe="steps-once", **how)).candidate == "Odense"


async def test_a_model_that_wrote_nothing_is_not_said_to_have(works: KnowledgeBase) -> None:
    script = AgentScript({"answer": lambda _: "lorem", "answer_graph": lambda _: "lorem"})
    found = await asking(works)(script, "Where was Ada Brink born?", recipe="steps-unasked")
    assert found.candidate and "no usable answer" in found.note
    read = await ask_model(works, "Ribe", question="Where was Ada Brink born?", recipe="steps")
    note = overrule(found, read).note
    assert note.startswith("the model gave no usable answer; what is read")


async def test_a_model_that_keeps_to_its_answer_is_not_overruled(works: KnowledgeBase) -> None:
    how = {"question": "Where was Ada Brink born?", "recipe": "steps"}
    kept = await ask_model(works, "Odense", **how)
    assert kept.candidate == "Odense"
    assert [step.output for step in kept.trace if step.step == "ask again"] == ["Odense"]
    assert (await ask_model(works, "Odense", "Ribe", **how)).candidate == "Ribe"
    assert (await ask_model(works, "Odense", "Vejle", **how)).candidate == "Ribe"


async def test_who_says_the_same_twice_is_trusted_more(works: KnowledgeBase) -> None:
    how = {"question": "Where was Ada Brink born?", "recipe": "steps-judged"}
    kept = await ask_model(works, "Odense", **how)
    changed = await ask_model(works, "Odense", "Vejle", **how)
    assert (kept.candidate, changed.candidate) == ("Odense", "Odense")
    assert (kept.signals["repeated"], changed.signals["repeated"]) == (1.0, 0.0)
    assert kept.confidence > changed.confidence


async def test_a_contradicted_span_is_trusted_less(works: KnowledgeBase) -> None:
    how = {"question": "Where was Ada Brink born?", "recipe": "steps-read"}
    convinced = await ask_model(works, "Odense", "Ribe", **how)
    stubborn = await ask_model(works, "Odense", **how)
    assert convinced.candidate == stubborn.candidate == "Ribe"
    assert convinced.confidence > stubborn.confidence
    assert stubborn.confidence < stubborn.signals["alone"]


async def test_what_a_model_finds_missing_is_refused(works: KnowledgeBase) -> None:
    unwritten = {"enough": False, "sentences": [], "short": "", "missing": "x"}
    script = AgentScript({"answer": unwritten, "answer_graph": unwritten})
    answer = await asking(works)(script, "Where was Ada Brink born?", recipe="steps", mode="reject")
    assert answer.verdict == "refused"
