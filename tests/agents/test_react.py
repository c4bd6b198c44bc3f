"""ReAct and IRCoT: reasoning and retrieval by turns."""

from typing import Any

import pytest
from agent_asking import HALLOWMERE, Ask, asking

from clew.agents.ask import AskOptions
from clew.engine import KnowledgeBase
from clew.testing.fakes import AgentScript

RECORD = AskOptions(record_prompts=True)


@pytest.fixture
def ask(valley: KnowledgeBase) -> Ask:
    """Ask the valley with a scripted model."""
    return asking(valley)


def act(thought: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """A thought and a call of a tool."""
    return {"reasoning": thought, "wants": [{"tool": tool, "arguments": arguments}]}


def turns(*replies: dict[str, Any]) -> AgentScript:
    return AgentScript({"react": list(replies)})


async def test_react_sees_its_thoughts_actions_and_observations(ask: Ask) -> None:
    script = turns(
        act("The designer first.", "search", query="Who designed Marrow Bridge?"),
        act("Now her.", "entity", name="Ilse Brandvik"),
        HALLOWMERE,
    )
    answer = await ask(script, recipe="react+bm25", manner=RECORD)
    first, second, third = (prompt.messages[-1].content for prompt in answer.prompts)
    assert "(nothing yet)" in first and "Turns left to act: 7" in first
    assert "Thought: The designer first." in second
    assert "Action: search(query='Who designed Marrow Bridge?')" in second
    assert "designed by Ilse Brandvik" in second
    assert "Thought: Now her." in third and "Turns left to act: 5" in third
    assert answer.candidate == "Hallowmere" and answer.citations


async def test_react_does_one_thing_at_a_time(ask: Ask) -> None:
    both = act("two", "search", query="Marrow Bridge")
    both["wants"].append({"tool": "search", "arguments": {"query": "Anton Reeve"}})
    answer = await ask(turns(both, HALLOWMERE), recipe="react+bm25", manner=RECORD)
    second = answer.prompts[1].messages[-1].content
    assert "Marrow Bridge" in second and "Anton Reeve" not in second


async def test_react_is_told_what_is_wrong_with_an_action(ask: Ask) -> None:
    script = turns(act("odd", "teleport", place="Vessen"), HALLOWMERE)
    answer = await ask(script, recipe="react+bm25", manner=RECORD)
    assert "there is no tool 'teleport'" in answer.prompts[1].messages[-1].content
    assert answer.verdict == "answered"


async def test_what_was_observed_before_is_only_numbered(ask: Ask) -> None:
    again = act("again", "search", query="Who designed Marrow Bridge?")
    answer = await ask(turns(again, again, HALLOWMERE), recipe="react+bm25", manner=RECORD)
    third = answer.prompts[2].messages[-1].content
    assert third.count("designed by Ilse Brandvik") == 1
    assert "(as above)" in third


async def test_react_must_finish_when_its_turns_are_used_up(ask: Ask) -> None:
    table = {"row": {"base": "bm25", "agent": {"name": "react", "turns": 1}}}
    script = turns(act("more", "search", query="Marrow Bridge"), HALLOWMERE)
    answer = await ask(script, recipe="row", recipes=table, manner=RECORD)
    assert "Turns left to act: 0" in answer.prompts[1].messages[-1].content
    assert answer.candidate == "Hallowmere" and len(script.prompts) == 2
    table = {"row": {"base": "bm25", "agent": {"name": "react", "turns": 0}}}
    never = await ask(turns(act("more", "search", query="x")), recipe="row", recipes=table)
    assert never.verdict == "refused"


async def test_react_finds_all_it_cites_also_where_the_window_is_small(ask: Ask) -> None:
    script = turns(
        act("a", "search", query="Who designed Marrow Bridge?"),
        act("b", "search", query="Where was Ilse Brandvik born?"),
        HALLOWMERE,
    )
    answer = await ask(script, recipe="react+bm25", window=3000)
    assert answer.verdict == "answered" and answer.citations


async def test_each_sentence_of_ircot_is_the_next_query(ask: Ask) -> None:
    thoughts = [
        {"sentence": "Its designer was Ilse Brandvik, born somewhere.", "done": False},
        {"sentence": "Ilse Brandvik was born in Hallowmere.", "done": True},
    ]
    script = AgentScript({"next_thought": thoughts, "answer": HALLOWMERE})
    table = {"row": {"base": "bm25", "agent": {"name": "ircot", "top_k": 1}}}
    answer = await ask(script, recipe="row", recipes=table, manner=RECORD)
    searched = [step.input for step in answer.trace if step.step == "search"]
    assert searched == [answer.question, thoughts[0]["sentence"]]
    first, second, last = (prompt.messages[-1].content for prompt in answer.prompts)
    assert "born in Hallowmere" not in first
    assert "born in Hallowmere" in second
    assert str(thoughts[0]["sentence"]) in second
    assert all(str(thought["sentence"]) in last for thought in thoughts)
    assert answer.candidate == "Hallowmere" and answer.citations


@pytest.mark.parametrize(
    ("thoughts", "asked"),
    [
        ([{"sentence": "The same.", "done": False}], 2),  # it turns in circles
        ([{"sentence": "", "done": False}], 1),
        (["no JSON at all"], 2),  # it is asked once to mend that
    ],
)
async def test_ircot_answers_where_its_reasoning_ends(
    ask: Ask, thoughts: list[Any], asked: int
) -> None:
    script = AgentScript({"next_thought": thoughts, "answer": HALLOWMERE})
    answer = await ask(script, recipe="ircot+bm25")
    assert answer.candidate == "Hallowmere"
    assert len(script.prompts) == asked + 1
