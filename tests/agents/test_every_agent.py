"""What holds for every agent: modes, budgets, broken models, broken retrievers, the trace."""

import asyncio
from itertools import product
from typing import Any

import pytest
from agent_asking import ASKED, HALLOWMERE, Ask, asking

from clew.agents.ask import WITHOUT_MODEL, AskOptions
from clew.context import AnswerDelta, StepEnded, StepStarted
from clew.engine import KnowledgeBase
from clew.errors import AuthError, ConfigError, InputError, ModelError, StoreError
from clew.llm.budget import UsageLimits
from clew.llm.chat import Request
from clew.recipes.agents import AGENTS
from clew.recipes.registry import RECIPES, resolve_recipe
from clew.retrieve.step import Chain
from clew.testing.fakes import AgentScript
from clew.types import Found
from conftest import one_in_three

EVERY = [name for name in AGENTS if "-" not in name or name == "graph-r1"]
"""Every agent; their variants differ in settings alone."""
READING = [name for name in EVERY if name != "llm"]
GARBAGE = ("", "{", '{"answer": 5', "<think>hm", '{"queries": "x", "steps": 7, "action": "fly"}')


@pytest.fixture
def ask(valley: KnowledgeBase) -> Ask:
    """Ask the valley with a scripted model."""
    return asking(valley)


def good(**more: Any) -> AgentScript:
    """A model that answers every prompt well, so that the whole method runs."""
    asked = ["Who designed Marrow Bridge?", "Where was #1 born?"]
    triple = {"subject": "Marrow Bridge", "relation": "designed by", "object": "Entity#1"}
    look = {"reasoning": "look", "wants": [{"tool": "search", "arguments": {"query": "Ilse"}}]}
    steps = [
        {"op": "retrieve", "args": ["Marrow Bridge", "designed by", "?"]},
        {"op": "retrieve", "args": ["#1", "born in", "?"]},
    ]
    kept = {"items": [1, 2], "context": "It was designed by Ilse Brandvik, of Hallowmere."}
    return AgentScript(
        {
            "answer": HALLOWMERE,
            "answer_or_search": [look, HALLOWMERE],
            "react": [look, HALLOWMERE],
            "next_thought": [{"sentence": "Ilse Brandvik"}, {"sentence": "so", "done": True}],
            "decompose_text": {"queries": asked},
            "decompose_triples": {"queries": [{"triples": [triple]}]},
            "decompose_by_schema": {"sub_questions": asked},
            "ground": {"query": "Where was Ilse Brandvik born?"},
            "refine_text": kept,
            "refine_triples": kept,
            "sub_answer": {"answer": "Ilse Brandvik"},
            "draft": {"reasoning": "she made it", "answer": "Hallowmere"},
            "verify": {"verdict": "ACCEPT"},
            "reflect": {"reasoning": "done", "action": "answer", "text": "Hallowmere"},
            "intent": {"intent": "question", "topic": "bridges"},
            "logic": {"steps": steps},
            "read_values": {"values": [{"text": "Ilse Brandvik", "items": [1]}]},
            "check_argument": {"sufficient": True},
            "graph_r1": [
                "<think>who</think><query>Who designed Marrow Bridge?</query>",
                "<think>where</think><query>Where was Ilse Brandvik born?</query>",
                "<think>done</think><answer>Hallowmere</answer>",
            ],
            **more,
        }
    )


@pytest.mark.parametrize("mode", ["open", "reject"])
@pytest.mark.parametrize("agent", EVERY)
async def test_a_good_model_gives_a_cited_answer(ask: Ask, agent: str, mode: str) -> None:
    answer = await ask(good(), recipe=f"{agent}+clew", mode=mode)
    if agent == "llm":
        assert answer.verdict == ("answered" if mode == "open" else "refused")
        assert not answer.citations
        return
    assert (answer.verdict, answer.candidate) == ("answered", "Hallowmere")
    assert "ilse" in [citation.doc for citation in answer.citations]
    assert answer.complete and not answer.model_error and answer.usage.calls > 0


@pytest.mark.parametrize("mode", ["open", "reject"])
@pytest.mark.parametrize("agent", EVERY)
async def test_unknown_is_a_refusal(ask: Ask, agent: str, mode: str) -> None:
    nothing = {"enough": False, "short": "unknown", "missing": "her birthplace"}
    names = ("answer", "answer_or_search", "react", "reduce_points")
    end = "<think>no</think><answer>unknown</answer>"
    script = good(**dict.fromkeys(names, nothing), graph_r1=end)
    answer = await ask(script, recipe=f"{agent}+clew", mode=mode)
    assert answer.verdict == "refused" and answer.missing
    assert not answer.candidate and not answer.citations and answer.confidence == 0


@pytest.mark.parametrize(("garbage", "agent"), one_in_three(product(GARBAGE, READING)))
async def test_garbage_is_never_passed_for_an_answer_of_the_model(
    ask: Ask, garbage: str, agent: str
) -> None:
    answer = await ask(lambda _: garbage, recipe=f"{agent}+clew")
    assert answer.model_error or answer.verdict == "refused"
    if answer.model_error:
        assert WITHOUT_MODEL in answer.note and not answer.complete
    for citation in answer.citations:
        assert citation.quote


def failing(at: int, error: Exception | str) -> Any:
    """A good model whose call of this number fails, or replies otherwise."""
    script, calls = good(), [0]

    def say(request: Request) -> Any:
        calls[0] += 1
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        return error if calls[0] == at else script(messages)

    return say


@pytest.mark.parametrize(("at", "agent"), one_in_three(product((1, 2, 3), READING)))
async def test_a_model_that_fails_at_any_call_leaves_an_answer_without_it(
    ask: Ask, at: int, agent: str
) -> None:
    answer = await ask(failing(at, ModelError("it is gone")), recipe=f"{agent}+clew")
    if not answer.model_error:  # it has fewer calls
        assert answer.candidate == "Hallowmere"
        return
    assert answer.model_error == "it is gone" and not answer.complete
    assert f"{WITHOUT_MODEL}: it is gone" in answer.note
    assert "it is gone" in str(answer.trace)


@pytest.mark.parametrize(("at", "agent"), one_in_three(product((1, 2, 3), READING)))
async def test_one_reply_of_garbage_ends_no_question(ask: Ask, at: int, agent: str) -> None:
    """What one module cannot say, the others do without; the last word is asked for again."""
    answer = await ask(failing(at, "{"), recipe=f"{agent}+clew")
    assert answer.candidate == "Hallowmere" and answer.complete and not answer.model_error


@pytest.mark.parametrize("agent", EVERY)
async def test_a_refused_key_is_said(ask: Ask, agent: str) -> None:
    answer = await ask(lambda _: AuthError("401: no such key"), recipe=f"{agent}+clew")
    assert "401: no such key" in answer.model_error and "401" in answer.note


@pytest.mark.parametrize("agent", EVERY)
async def test_without_a_model_code_answers_and_says_so(valley: KnowledgeBase, agent: str) -> None:
    answer = await valley.ask(ASKED, recipe=f"{agent}+clew")
    assert answer.usage.calls == 0 and not answer.model_error
    assert (answer.verdict == "refused") == (agent == "llm")
    assert bool(answer.citations) == (agent != "llm")


@pytest.mark.parametrize(
    "limits", [UsageLimits(calls=1), UsageLimits(tokens=900), UsageLimits(seconds=1e-9)], ids=str
)
@pytest.mark.parametrize("agent", READING)
async def test_a_budget_that_ends_leaves_a_marked_answer(
    ask: Ask, agent: str, limits: UsageLimits
) -> None:
    answer = await ask(good(), recipe=f"{agent}+clew", manner=AskOptions(limits))
    assert limits.calls is None or answer.usage.calls <= limits.calls
    if answer.complete:
        assert limits.seconds is None and answer.candidate == "Hallowmere"
        return
    assert WITHOUT_MODEL in answer.note and "the budget of" in answer.note
    assert not answer.model_error


class Broken:
    """A retriever that works a while."""

    def __init__(self, good_for: int, error: Exception) -> None:
        self.left, self.error = good_for, error

    async def __call__(self, ctx: Any, found: Found, /) -> Found:
        """Fail when its time has come."""
        self.left -= 1
        if self.left < 0:
            raise self.error
        return await RECIPES["clew"](ctx, found)


@pytest.mark.parametrize("error", [RuntimeError("boom"), StoreError("a row is damaged")], ids=repr)
@pytest.mark.parametrize("agent", READING)
async def test_a_broken_retriever_is_an_error_and_no_refusal(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, agent: str, error: Exception
) -> None:
    for good_for in (0, 1):
        broken = Broken(good_for, error)
        monkeypatch.setitem(RECIPES, "broken", Chain("broken", (broken,)))
        try:
            answer = await ask(good(), recipe=f"{agent}+broken")
        except (InputError, StoreError) as said:
            assert str(error) in str(said)
        else:  # it searched no more, or was told what went wrong
            assert broken.left >= 0 or str(error) in str(answer.trace)


@pytest.mark.parametrize("agent", READING)
async def test_what_names_nothing_is_told_to_the_model(ask: Ask, agent: str) -> None:
    answer = await ask(good(), "Who came second there?", recipe=f"{agent}+lego-12")
    assert answer.verdict == "answered" and not answer.model_error


@pytest.mark.parametrize("agent", READING)
async def test_prompts_trace_and_k_are_what_was_done(ask: Ask, agent: str) -> None:
    manner = AskOptions(record_prompts=True)
    script = good()
    answer = await ask(script, recipe=f"{agent}+bm25", k=1, manner=manner)
    assert len(answer.prompts) == len(script.prompts) == answer.usage.calls
    assert sum(step.usage.calls for step in answer.trace) == answer.usage.calls
    for step in answer.trace:
        assert step.usage.calls >= sum(inner.usage.calls for inner in step.steps)
    searched = [step for step in _flatten(answer.trace) if step.step == "search"]
    assert searched and all(len(step.docs) <= 1 for step in searched)


def _flatten(trace: Any) -> list[Any]:
    return [one for step in trace for one in (step, *_flatten(step.steps))]


@pytest.mark.parametrize("agent", EVERY)
async def test_steps_and_the_answer_are_told_as_they_happen(ask: Ask, agent: str) -> None:
    events: list[Any] = []
    answer = await ask(good(), recipe=f"{agent}+clew", manner=AskOptions(on_event=events.append))
    began = [event for event in events if isinstance(event, StepStarted)]
    ended = [event for event in events if isinstance(event, StepEnded)]
    assert len(began) == len(ended) > 0
    outer = [event.step for event in ended if event.depth == 0]
    assert [step for step in answer.trace if step in outer] == outer
    said = ""
    for event in events:
        if isinstance(event, AnswerDelta):
            said = event.text if event.restart else said + event.text
    if agent != "graph-r1":  # its steps are tags
        assert said.strip() == HALLOWMERE["answer"]


async def test_what_the_user_can_fix_is_said_and_not_buried(ask: Ask) -> None:
    with pytest.raises(ConfigError, match="no agent 'nobody'"):
        await ask(good(), recipe="nobody+clew")
    with pytest.raises(ConfigError, match="no recipe 'nothing'"):
        await ask(good(), recipe="graphsearch+nothing")


async def test_an_agent_can_be_stopped(ask: Ask) -> None:
    def slow(_: Any) -> str:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await ask(slow, recipe="graphsearch+clew")


def test_names_say_which_retriever_stands_in() -> None:
    asked = resolve_recipe("youtu")
    assert asked.retrieve.name == "youtu" or "youtu" in asked.note
    assert resolve_recipe("graphsearch+naive").retrieve.name == "naive"
    assert resolve_recipe("naive").agent == AGENTS["reader"].agent
