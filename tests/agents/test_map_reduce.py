"""MS GraphRAG's global search: points of many readers over community reports, joined by one."""

import re
from typing import Any

import pytest
from agent_asking import HALLOWMERE, asking

from clew.agents.ask import AskOptions
from clew.engine import KnowledgeBase
from clew.testing.fakes import AgentScript

WHOLE = "What do these documents tell about the Grey Coast?"
REDUCED = {
    "enough": True,
    "answer": "Hallowmere is a fishing town on the Grey Coast [1]. Elephants invented printing.",
    "short": "",
}
RECORD = AskOptions(record_prompts=True)


@pytest.fixture
async def grown(valley: KnowledgeBase) -> KnowledgeBase:
    """The valley with a tree of communities."""
    await valley.builder.make_tree_manager().build(["leiden"])
    return valley


def numbers_of(prompt: str, words: str) -> list[int]:
    return [int(n) for n, text in re.findall(r"^\[(\d+)\] (.*)$", prompt, re.M) if words in text]


def notes(prompt: str) -> dict[str, Any]:
    """A reader that notes what a report says of Hallowmere, and something of no use."""
    held = numbers_of(prompt, "Hallowmere")
    points = [
        {"text": "Pellworth has a market.", "reports": [1], "score": 0},
        {"text": "A point without a report.", "reports": [99], "score": 20},
    ]
    if held:
        text = "Hallowmere is a fishing town on the Grey Coast."
        points.append({"text": text, "reports": held[:1], "score": 90})
    return {"reasoning": "…", "points": points}


async def test_points_are_ranked_joined_and_cited_through_the_reports(
    grown: KnowledgeBase,
) -> None:
    script = AgentScript({"map_reports": notes, "reduce_points": REDUCED})
    answer = await asking(grown)(script, WHOLE, recipe="msgraphrag-global", manner=RECORD)
    points = answer.prompts[-1].messages[-1].content
    assert "[1] Hallowmere is a fishing town" in points  # the best first
    assert "A point without a report" in points and "Pellworth has a market" not in points
    assert answer.verdict == "answered"
    assert "town" in [citation.doc for citation in answer.citations]
    # What code cannot locate stays, and is marked.
    assert "Elephants invented printing. (not found in the documents)" in answer.answer


async def test_reports_are_read_in_parts_that_fit(grown: KnowledgeBase) -> None:
    for tokens, readers in ((8000, 1), (30, 2)):
        script = AgentScript({"map_reports": notes, "reduce_points": REDUCED})
        agent = {"name": "msgraphrag-global", "map_tokens": tokens}
        table = {"row": {"base": "msgraphrag-global", "agent": agent}}
        answer = await asking(grown)(script, WHOLE, recipe="row", recipes=table)
        assert (script.prompts.count("map_reports") >= 2) == (readers == 2)
        assert answer.verdict == "answered"


async def test_whether_the_points_answer_is_the_models_verdict(grown: KnowledgeBase) -> None:
    nothing = {"enough": False, "answer": "", "short": "", "missing": "the year"}
    script = AgentScript({"map_reports": {"points": []}, "reduce_points": nothing})
    answer = await asking(grown)(
        script, WHOLE, recipe="msgraphrag-global", mode="reject", manner=RECORD
    )
    assert (answer.verdict, answer.missing) == ("refused", "the year")
    assert "(no reader found anything)" in answer.prompts[-1].messages[-1].content


async def test_a_reader_whose_reply_cannot_be_read_notes_nothing(grown: KnowledgeBase) -> None:
    script = AgentScript({"map_reports": "no JSON at all", "reduce_points": REDUCED})
    answer = await asking(grown)(script, WHOLE, recipe="msgraphrag-global")
    assert answer.verdict == "answered" and not answer.model_error


async def test_without_reports_the_passages_are_read(valley: KnowledgeBase) -> None:
    script = AgentScript({"answer": HALLOWMERE})
    answer = await asking(valley)(script, recipe="msgraphrag-global+bm25")
    assert script.prompts == ["answer"]
    assert answer.candidate == "Hallowmere" and answer.citations
