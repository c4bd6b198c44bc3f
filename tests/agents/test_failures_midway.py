"""Models and retrievers that fail on the way: what is there is given, and what failed is said."""

from collections.abc import Callable
from typing import Any

import pytest
from agent_asking import ASKED, Ask, asking
from test_every_agent import READING, Broken, good
from test_graphsearch import named

from clew.agents.ask import AskOptions
from clew.agents.core.types import Mode
from clew.engine import KnowledgeBase
from clew.errors import AuthError, ModelError
from clew.llm.budget import UsageLimits
from clew.llm.chat import EndpointError
from clew.recipes.registry import RECIPES
from clew.retrieve.step import Chain

ODD = "Tell me the birth town of the person behind Marrow Bridge, please."
DOWN = EndpointError("the endpoint answered 500: boom", status=500)


@pytest.fixture
def ask(valley: KnowledgeBase) -> Ask:
    """Ask the valley with a scripted model."""
    return asking(valley)


def failing(good_for: int, error: Exception = DOWN) -> Callable[[Any], str]:
    """A good model whose endpoint goes down after so many replies."""
    inner, replies = good(), iter(range(1000))

    def say(messages: Any) -> str:
        if next(replies) >= good_for:
            raise error
        return inner(messages)

    return say


@pytest.mark.parametrize("agent", ["graphsearch", "youtu", "rograg", "graph-r1", "react", "ircot"])
@pytest.mark.parametrize("mode", ["open", "reject"])
@pytest.mark.parametrize("good_for", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
async def test_an_endpoint_that_fails_midway_leaves_the_best_so_far(
    ask: Ask, agent: str, mode: str, good_for: int
) -> None:
    said = failing(good_for)
    try:
        answer = await ask(said, ODD, recipe=f"{agent}+clew", mode=mode)
    except ModelError:
        # Nothing was found yet: the loops ask the model before they look anything up.
        assert agent in ("youtu", "graph-r1", "react")
        assert good_for == 1
        return
    if not answer.complete:
        assert "boom" in answer.note
        assert "best answer so far" in answer.note
        [ended] = named(answer.trace, "best so far")
        assert "boom" in ended.input
        assert answer.verdict == "refused" or answer.citations


async def test_quoted_evidence_is_not_called_an_answer_without_a_model(ask: Ask) -> None:
    answer = await ask(failing(1), ODD, recipe="graphsearch+clew")
    assert not answer.complete
    assert "quoted evidence" in answer.note
    assert "no language model" not in answer.note


async def test_the_notes_so_far_are_the_answer(ask: Ask) -> None:
    answer = await ask(failing(7), ODD, recipe="graphsearch+clew")
    assert not answer.complete
    assert {citation.doc for citation in answer.citations} >= {"bridge"}
    assert "Ilse Brandvik" in answer.answer


@pytest.mark.parametrize("agent", [agent for agent in READING if agent != "steps"])
async def test_a_failure_on_the_first_call_is_told_beside_what_needs_no_model(
    ask: Ask, agent: str
) -> None:
    answer = await ask(failing(0), ODD, recipe=f"{agent}+clew")
    assert "boom" in answer.model_error and not answer.complete
    assert "given without the model" in answer.note


@pytest.mark.parametrize("mode", ["open", "reject"])
@pytest.mark.parametrize("question", [ODD, ASKED])
@pytest.mark.parametrize("recipe", [None, "steps+bm25"])
async def test_a_model_that_cannot_be_used_changes_nothing_but_the_note(
    valley: KnowledgeBase, ask: Ask, question: str, mode: Mode, recipe: str | None
) -> None:
    alike = AskOptions(confidence=0.2)
    without = await valley.ask(question, mode=mode, recipe=recipe, manner=alike)
    unpaid = AskOptions(confidence=0.2, limits=UsageLimits(calls=0))
    tried = (
        (await ask(failing(0), question, mode=mode, recipe=recipe), "boom"),
        (await ask(good(), question, mode=mode, recipe=recipe, manner=unpaid), "budget of 0 calls"),
    )
    for answer, why in tried:
        assert (answer.answer, answer.candidate) == (without.answer, without.candidate)
        assert (answer.verdict, answer.confidence) == (without.verdict, without.confidence)
        assert answer.citations == without.citations
        if not answer.complete:  # else it needed no model
            assert why in answer.note and "given without the model" in answer.note
            assert named(answer.trace, "answer without the model")
    assert not tried[0][0].complete or question == ASKED


@pytest.mark.parametrize("good_for", [0, 4])
async def test_a_refused_key_is_told_whenever_it_comes(ask: Ask, good_for: int) -> None:
    said = failing(good_for, AuthError("the key is refused"))
    answer = await ask(said, ODD, recipe="graphsearch+clew")
    assert not answer.complete and "the key is refused" in answer.model_error + answer.note


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Put a retriever under the name "broken" that works so many times."""

    def put(good_for: int) -> None:
        step = Broken(RECIPES["clew"], good_for, ModelError("the retriever is gone"))
        monkeypatch.setitem(RECIPES, "broken", Chain("broken", (step,)))

    return put


async def test_failed_look_ups_are_counted_in_the_note(
    ask: Ask, broken: Callable[[int], None]
) -> None:
    broken(1)
    answer = await ask(good(), ASKED, recipe="rograg+broken")
    looks = named(answer.trace, "retrieve")
    failed = [look for look in looks if look.output.startswith("failed")]
    assert 0 < len(failed) < len(looks)
    told = f"{len(failed)} of {len(looks)} retrievals failed: the retriever is gone"
    assert told in answer.note


@pytest.mark.parametrize("agent", READING)
async def test_a_refusal_where_every_look_up_failed_says_so(
    ask: Ask, broken: Callable[[int], None], agent: str
) -> None:
    broken(0)
    answer = await ask(good(), ASKED, recipe=f"{agent}+broken", mode="reject")
    assert answer.verdict == "refused"
    assert answer.missing == "every retrieval failed: the retriever is gone"
    assert answer.missing in answer.answer
    assert "retrievals failed: the retriever is gone" in answer.note


async def test_without_a_model_failed_look_ups_are_said_too(
    valley: KnowledgeBase, broken: Callable[[int], None]
) -> None:
    broken(0)
    answer = await valley.ask(ASKED, recipe="steps+broken", mode="reject")
    assert "every retrieval failed: the retriever is gone" in answer.answer
