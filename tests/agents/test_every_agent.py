"""What holds for every agent: modes, budgets, broken models, broken retrievers, the trace."""

import asyncio
from typing import Any

import pytest
from agent_asking import ASKED, CONCLUDED, Ask, asking, reads, refines

from clew.agents.ask import AskOptions
from clew.context import AnswerDelta, Context, StepEnded, StepStarted
from clew.engine import KnowledgeBase
from clew.errors import ConfigError, ModelError, StoreError
from clew.llm.budget import UsageLimits
from clew.recipes.agents import AGENTS
from clew.recipes.registry import RECIPES, resolve_recipe
from clew.retrieve.step import Chain
from clew.testing.fakes import AgentScript
from clew.types import Found
from conftest import one_in_three

ODD = "Tell me the birth town of the person behind Marrow Bridge, please."
EVERY = ("reader", "steps", "graphsearch", "youtu", "rograg", "graph-r1", "react", "ircot", "llm")
READING = EVERY[:-1]


@pytest.fixture
def ask(valley: KnowledgeBase) -> Ask:
    """Ask the valley with a scripted model."""
    return asking(valley)


def good(**more: Any) -> AgentScript:
    """A model that answers every prompt well."""
    steps = [{"op": "retrieve", "args": ["Marrow Bridge", "designer"]}]
    return AgentScript(
        {
            "read": reads,
            "refine_read": refines,
            "answer": CONCLUDED,
            "conclude": CONCLUDED,
            "know": {"answer": "She was born in Hallowmere.", "short": "Hallowmere"},
            "refine": {"notes": []},
            "draft": {"steps": [], "answer": "Hallowmere"},
            "verify": {"verdict": "ACCEPT", "missing": ""},
            "decompose": {
                "questions": ["Who is the designer of Marrow Bridge?", "Where was #1 born?"]
            },
            "relations": {"facts": []},
            "involved": {
                "parts": [
                    {"question": "Who is the designer of Marrow Bridge?", "types": ["person"]},
                    {"question": "Where was #1 born?", "types": []},
                ]
            },
            "reflect": {"thought": "done", "action": "answer", "text": "Hallowmere"},
            "react": [
                {"thought": "look", "action": "search", "input": "Who designed Marrow Bridge?"},
                {"thought": "look", "action": "search", "input": "Where was Ilse Brandvik born?"},
                {"thought": "done", "action": "finish", "input": "Hallowmere"},
            ],
            "next_thought": [
                {"sentence": "Marrow Bridge was designed by Ilse Brandvik.", "answer": ""},
                {"sentence": "Ilse Brandvik was born in Hallowmere.", "answer": "Hallowmere"},
            ],
            "logic": {"steps": [*steps, {"op": "retrieve", "args": ["#1", "birthplace"]}]},
            "sufficient": {"sufficient": True, "missing": ""},
            "intent": {"intent": "question", "topic": "bridges"},
            "graph_r1": [
                "<think>who</think><query>Who designed Marrow Bridge?",
                "<think>where</think><query>Where was Ilse Brandvik born?",
                "<think>done</think><answer>Hallowmere",
            ],
            **more,
        }
    )


@pytest.mark.parametrize("agent", one_in_three(EVERY))
@pytest.mark.parametrize("question", [ASKED, ODD], ids=["shape", "odd"])
async def test_a_good_model_gives_a_cited_answer(ask: Ask, agent: str, question: str) -> None:
    answer = await ask(good(), question, recipe=f"{agent}+clew")
    assert (answer.verdict, answer.candidate) == ("answered", "Hallowmere")
    if agent == "llm":
        assert "own knowledge" in answer.answer
    else:
        assert "ilse" in [citation.doc for citation in answer.citations]
    assert answer.usage.calls > 0 or agent == "steps"  # code reads what it can
    assert answer.complete


@pytest.mark.parametrize("agent", one_in_three(EVERY))
async def test_nonsense_is_never_a_crash_and_never_a_citation(ask: Ask, agent: str) -> None:
    for said in ("", "la la la", "{", '{"answer": 5}'):
        answer = await ask(lambda _, said=said: said, ODD, recipe=f"{agent}+clew", mode="reject")
        if agent == "steps" and answer.verdict == "answered":  # what code reads by itself
            assert (answer.candidate, answer.citations[0].doc) == ("Hallowmere", "bridge")
            continue
        assert answer.verdict == "refused"
        assert answer.citations == ()
        assert answer.missing


@pytest.mark.parametrize("agent", EVERY)
async def test_without_a_model_evidence_is_quoted(valley: KnowledgeBase, agent: str) -> None:
    answer = await valley.ask(ASKED, recipe=f"{agent}+clew")
    if agent == "llm":
        assert answer.verdict == "refused"
        return
    assert answer.verdict == "answered"
    assert "no language model" in answer.note
    for citation in answer.citations:
        assert citation.quote in answer.answer


@pytest.mark.parametrize("agent", EVERY)
@pytest.mark.parametrize(
    "calls", [2, *(pytest.param(one, marks=pytest.mark.slow) for one in (1, 3))]
)
async def test_a_budget_that_ends_leaves_the_best_so_far(ask: Ask, agent: str, calls: int) -> None:
    manner = AskOptions(UsageLimits(calls=calls))
    answer = await ask(good(), ODD, recipe=f"{agent}+clew", manner=manner)
    assert answer.usage.calls <= calls
    if not answer.complete:
        assert "the budget of" in f"{answer.note} {answer.answer}"
        for citation in answer.citations:
            assert citation.quote


class Broken:
    """A retriever that works a while."""

    def __init__(self, inner: Chain, good_for: int, error: Exception) -> None:
        self.inner, self.left, self.error = inner, good_for, error

    async def __call__(self, ctx: Context, found: Found, /) -> Found:
        """Fail when its time has come."""
        self.left -= 1
        if self.left < 0:
            raise self.error
        return await self.inner(ctx, found)


@pytest.mark.parametrize("agent", READING)
@pytest.mark.parametrize("good_for", [pytest.param(0, marks=pytest.mark.slow), 1])
async def test_a_retriever_that_fails_midway_is_seen_in_the_trace(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, agent: str, good_for: int
) -> None:
    for error in (ModelError("it is gone"), RuntimeError("boom")):
        broken = Broken(RECIPES["clew"], good_for, error)
        monkeypatch.setitem(RECIPES, "broken", Chain("broken", (broken,)))
        answer = await ask(good(), ASKED, recipe=f"{agent}+broken", mode="reject")
        assert answer.verdict in ("answered", "refused")
        if broken.left < 0:
            assert str(error) in str(answer.trace)


@pytest.mark.parametrize("agent", READING)
async def test_a_damaged_knowledge_base_is_an_error_and_no_refusal(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    broken = Broken(RECIPES["clew"], 0, StoreError("a row of kb.sqlite is damaged"))
    monkeypatch.setitem(RECIPES, "broken", Chain("broken", (broken,)))
    with pytest.raises(StoreError, match="damaged"):
        await ask(good(), ASKED, recipe=f"{agent}+broken")


async def test_what_the_user_can_fix_is_said_and_not_buried(ask: Ask) -> None:
    with pytest.raises(ConfigError, match="no agent 'nobody'"):
        await ask(good(), recipe="nobody+clew")
    with pytest.raises(ConfigError, match="no recipe 'nothing'"):
        await ask(good(), recipe="graphsearch+nothing")


@pytest.mark.parametrize("agent", EVERY)
async def test_steps_and_pieces_are_told_as_they_happen(ask: Ask, agent: str) -> None:
    events: list[Any] = []
    answer = await ask(
        good(), ODD, recipe=f"{agent}+clew", manner=AskOptions(on_event=events.append)
    )
    began = [event for event in events if isinstance(event, StepStarted)]
    ended = [event for event in events if isinstance(event, StepEnded)]
    assert len(began) == len(ended) > 0
    outer = [event.step for event in ended if event.depth == 0]
    assert [step for step in answer.trace if step in outer] == outer
    if agent in ("reader", "graphsearch"):
        said = "".join(event.text for event in events if isinstance(event, AnswerDelta))
        assert said == "Ilse Brandvik was born in Hallowmere."


async def test_the_cost_of_a_step_holds_the_cost_of_what_is_within(ask: Ask) -> None:
    answer = await ask(good(), ODD, recipe="graphsearch+clew")
    total = sum(step.usage.calls for step in answer.trace)
    assert total == answer.usage.calls
    for step in answer.trace:
        assert step.usage.calls >= sum(inner.usage.calls for inner in step.steps)


async def test_an_agent_can_be_stopped(ask: Ask) -> None:
    stopped = asyncio.Event()

    def slow(_: Any) -> str:
        stopped.set()
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await ask(slow, ODD, recipe="graphsearch+clew")
    assert stopped.is_set()


def test_names_say_which_retriever_stands_in() -> None:
    asked = resolve_recipe("youtu")
    assert asked.retrieve.name == "youtu" or "youtu" in asked.note
    assert resolve_recipe("graphsearch+naive").retrieve.name == "naive"
    assert resolve_recipe("naive").agent == AGENTS["reader"].agent
