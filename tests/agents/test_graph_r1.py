"""Graph-R1: think, query, read fused facts, think again, answer."""

from collections.abc import Callable
from typing import Any

import pytest
from agent_asking import ASKED, HALLOWMERE, Ask, asking

from clew.agents.ask import AskOptions
from clew.agents.base import Answer
from clew.agents.graph_r1_protocol import FINAL_ANSWER_REQUEST, FORMAT_REMINDER
from clew.engine import KnowledgeBase
from clew.llm.chat import Reply
from clew.testing.fakes import AgentScript
from conftest import document, stream

QUERY = "<think>who?</think><query>Who designed Marrow Bridge?</query>"
BORN = "<think>her</think><query>Where was Ilse Brandvik born?</query>"
RECORD = AskOptions(record_prompts=True)


@pytest.fixture
def ask(valley: KnowledgeBase) -> Ask:
    """Ask the valley with a scripted model."""
    return asking(valley)


def steps(*replies: Any, **more: Any) -> AgentScript:
    """A model that takes these steps."""
    return AgentScript({"graph_r1": list(replies), **more})


def told(answer: Answer) -> list[str]:
    """What the knowledge base told the model, reply by reply."""
    shown = answer.prompts[-1].messages
    return [m.content for m in shown if m.role == "user"][1:]


async def test_a_query_shows_the_fused_facts_with_their_scores_and_nothing_else(ask: Ask) -> None:
    final = "<think>it says so</think><answer>Ilse Brandvik</answer>"
    answer = await ask(steps(QUERY, final), recipe="graph-r1", manner=RECORD)
    [knowledge] = told(answer)
    lines = knowledge.splitlines()[1:-1]
    assert 0 < len(lines) <= 5
    assert all(line.startswith("- ") and line.endswith(")") and "(score " in line for line in lines)
    assert answer.candidate == "Ilse Brandvik"
    assert [citation.doc for citation in answer.citations][:1] == ["bridge"]


async def test_where_the_retriever_finds_no_facts_passages_are_shown(ask: Ask) -> None:
    final = "<think>now I know</think><answer>Hallowmere</answer>"
    answer = await ask(steps(QUERY, BORN, final), recipe="graph-r1+bm25", manner=RECORD)
    assert "She was born in Hallowmere" in told(answer)[1]
    assert "(score " not in told(answer)[1]
    assert answer.answer.startswith("Hallowmere [1]")
    # What was read last is looked at first: not the page about the town.
    assert answer.citations[0].quote.startswith("She was born in Hallowmere")


async def test_a_step_without_a_tag_is_reminded_of_the_format(ask: Ask) -> None:
    final = "<think>x</think><answer>Hallowmere</answer>"
    answer = await ask(steps("I wonder.", BORN, final), recipe="graph-r1+bm25", manner=RECORD)
    assert told(answer)[0] == FORMAT_REMINDER
    assert answer.candidate == "Hallowmere"


async def test_after_the_last_turn_an_answer_is_demanded(ask: Ask) -> None:
    table = {"row": {"base": "bm25", "agent": {"name": "graph-r1", "turns": 2}}}
    script = steps(QUERY, BORN, "<answer>Hallowmere</answer>")
    answer = await ask(script, recipe="row", recipes=table, manner=RECORD)
    assert [FINAL_ANSWER_REQUEST in reply for reply in told(answer)] == [False, True]
    assert answer.candidate == "Hallowmere"


async def test_a_model_that_only_ever_queries_writes_from_what_it_has_read(ask: Ask) -> None:
    script = steps(BORN, answer=HALLOWMERE)
    answer = await ask(script, recipe="graph-r1+bm25")
    assert script.prompts == ["graph_r1"] * 6 + ["answer"]
    assert answer.candidate == "Hallowmere" and answer.citations


async def test_an_answer_that_no_document_spells_out_is_explained_by_its_thought(ask: Ask) -> None:
    final = "<think>Ilse Brandvik was born in Hallowmere.</think><answer>yes</answer>"
    answer = await ask(steps(BORN, final), recipe="graph-r1+bm25")
    assert answer.candidate == "yes"
    assert answer.answer.startswith("yes")
    assert "Ilse Brandvik was born in Hallowmere. [1]" in answer.answer


async def test_what_is_answered_without_reading_is_not_said_to_be_in_the_documents(
    ask: Ask,
) -> None:
    script = steps("<think>known</think><answer>Hallowmere</answer>")
    answer = await ask(script, recipe="graph-r1+bm25")
    assert answer.candidate == "Hallowmere" and not answer.citations
    assert "not all of it is in the documents" in answer.note
    refused = await ask(script, recipe="graph-r1+bm25", mode="reject")
    assert refused.verdict == "refused"


async def test_it_may_refuse_where_only_documents_count(ask: Ask) -> None:
    script = steps(QUERY, "<think>nothing</think><answer>unknown</answer>")
    answer = await ask(script, recipe="graph-r1+bm25", mode="reject", manner=RECORD)
    assert answer.verdict == "refused"
    assert "the answer is: unknown" in answer.prompts[0].messages[1].content
    opened = await ask(script, recipe="graph-r1+bm25", manner=RECORD)
    assert "the answer is: unknown" not in opened.prompts[0].messages[1].content


async def test_a_step_that_was_cut_off_is_asked_for_again_with_more_room(ask: Ask) -> None:
    limits = []

    def say(request: Any) -> Reply:
        limits.append(request.max_tokens)
        if len(limits) == 1:
            return Reply("<think>a very long thought", finish="length")
        return Reply("<think>so</think><answer>Hallowmere</answer>")

    answer = await ask(say, recipe="graph-r1+bm25", window=64_000)
    assert answer.candidate == "Hallowmere"
    assert limits[1] > limits[0]


async def test_a_long_episode_is_cut_where_it_is_oldest(base: KnowledgeBase) -> None:
    pages = [document(f"p{n}", f"Town {n} saw rain. " * 200, f"Town {n}") for n in range(6)]
    await base.take(stream(pages))
    sizes = []

    def say(request: Any) -> str:
        sizes.append(sum(len(m.content) for m in request.messages) // 4)
        step = len(sizes)
        return f"<think>t</think><query>town {step}</query>" if step < 6 else "<answer>rain"

    table = {"row": {"base": "bm25", "agent": {"name": "graph-r1", "room": 900}}}
    answer = await asking(base)(say, ASKED, recipe="row", recipes=table, window=4000)
    assert answer.candidate == "rain"
    assert max(sizes) < 4000
    assert any("messages shortened" in s.output for t in answer.trace for s in (t, *t.steps))


@pytest.mark.parametrize(
    ("settings", "queries", "differs"),
    [
        ({"show": "passages"}, 1, lambda known: "(score " in known),
        ({"top_k": 1}, 1, lambda known: known.count("- ") > 1),
        ({"turns": 1}, 2, lambda known: True),
    ],
)
async def test_settings_change_the_answer(
    ask: Ask, settings: dict[str, Any], queries: int, differs: Callable[[str], bool]
) -> None:
    """What a query is answered with, how much of it, and how often it may ask."""

    def thinking() -> Callable[[str], str]:
        heard: list[str] = []

        def think(message: str) -> str:
            heard.extend([message] if message.startswith("<knowledge>") else [])
            if len(heard) < queries:
                return QUERY
            return f"<answer>{'Hallowmere' if differs(heard[0]) else 'Vessen'}</answer>"

        return think

    towns = []
    for changed in ({}, settings):
        script = AgentScript({"graph_r1": thinking(), "answer": HALLOWMERE | {"short": "Vessen"}})
        table = {"row": {"base": "graph-r1", "agent": {"name": "graph-r1", **changed}}}
        towns.append((await ask(script, recipe="row", recipes=table)).candidate)
    assert towns == ["Hallowmere", "Vessen"]
