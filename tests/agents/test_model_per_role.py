"""Models for some roles only: what needs another takes its way without one, and says so."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agent_asking import CONCLUDED, reads
from test_every_agent import EVERY, ODD, good

from clew.agents.ask import AskOptions
from clew.agents.base import Answer
from clew.config import ModelSettings, Settings
from clew.engine import KnowledgeBase
from clew.errors import ConfigError
from clew.llm.budget import UsageLimits
from clew.testing.fakes import AgentScript
from clew.testing.stub_endpoint import StubEndpoint
from conftest import VALLEY, one_in_three, stream

PLANNING = ("graphsearch", "youtu", "rograg", "graph-r1", "react", "ircot")
ROLES = {"plan": "planner", "answer": "writer", "extract": "extractor", "judge": "judge"}


@asynccontextmanager
async def with_roles(
    kb: KnowledgeBase, url: str, *roles: str, **more: object
) -> AsyncIterator[KnowledgeBase]:
    """The same with a model of its own for each of these roles, and none for the others."""
    named = {role: ROLES[role] for role in roles}
    given = {"base_url": url, "shape_by": "json", "tries": 1, **named, **more}
    settings = Settings(kb=kb.settings.kb, models=ModelSettings.model_validate(given))
    mine = KnowledgeBase(kb.store, settings, kb.embed)
    mine.reader = kb.reader
    yield mine
    for role in roles:  # hang up now: the server goes before the event loop does
        chat: Any = mine.models.chat(role)  # type: ignore[arg-type]
        while hasattr(chat, "inner"):
            chat = chat.inner
        chat.close()


async def asked(
    valley: KnowledgeBase, agent: str, *roles: str, question: str = ODD
) -> tuple[Answer, set[str]]:
    """The answer, and the names of the models that were asked."""
    async with (
        StubEndpoint(good()) as stub,
        with_roles(valley, stub.base_url, *roles) as base,
    ):
        answer = await base.ask(question, recipe=f"{agent}+clew", k=3)
        return answer, {body["model"] for body in stub.stats.bodies}


@pytest.mark.parametrize("agent", one_in_three(EVERY))
@pytest.mark.parametrize("roles", [("plan",), ("answer",), ("plan", "answer")], ids="+".join)
async def test_every_agent_asks_the_models_there_are(
    valley: KnowledgeBase, agent: str, roles: tuple[str, ...]
) -> None:
    answer, models = await asked(valley, agent, *roles)
    assert answer.complete
    assert models <= {ROLES[role] for role in roles}
    if agent != "llm":
        assert answer.verdict == "answered"
        assert {"bridge", "ilse"} & {citation.doc for citation in answer.citations}
    if agent in PLANNING:
        assert ("planner" in models) == ("plan" in roles)
    if agent in ("reader", "llm"):
        assert ("writer" in models) == ("answer" in roles)


async def test_an_answer_that_nobody_wrote_says_which_model_is_missing(
    valley: KnowledgeBase,
) -> None:
    for agent in ("reader", "steps", "rograg"):
        answer, _ = await asked(valley, agent, "plan")
        assert "no model is set for 'answer'" in answer.note
        assert "planned by rules" not in answer.note
        answer, _ = await asked(valley, agent, "extract")
        assert "no language model is configured" in answer.note
    bare, _ = await asked(valley, "llm", "plan")
    assert bare.missing == "no model is set for 'answer'"


async def test_lists_are_collected_by_whoever_plans(valley: KnowledgeBase) -> None:
    steps = [
        {"op": "retrieve", "args": ["Vessen", "people born or buried there"]},
        {"op": "count", "args": ["#1"]},
    ]
    listed = {"items": [{"text": "Ilse Brandvik", "source": 1}]}
    script = AgentScript(
        {"read": reads, "answer": CONCLUDED, "logic": {"steps": steps}, "list": listed}
    )
    async with (
        StubEndpoint(script) as stub,
        with_roles(valley, stub.base_url, "plan") as base,
    ):
        answer = await base.ask("Tell me how many people Vessen has seen.", recipe="rograg", k=3)
    assert answer.complete
    assert {body["model"] for body in stub.stats.bodies} == {"planner"}
    assert script.prompts.count("list") == 1


async def test_a_model_that_only_extracts_builds_the_graph(base: KnowledgeBase) -> None:
    async with (
        StubEndpoint() as stub,
        with_roles(base, stub.base_url, "extract") as mine,
        with_roles(base, stub.base_url, "plan") as other,
    ):
        added = await mine.take(stream(VALLEY))
        assert (added.added, added.counts.failed) == (len(VALLEY), 0)
        assert added.usage.calls == len(VALLEY)
        asked_before = stub.stats.chat_calls
        answer = await mine.ask("Where was Ilse Brandvik born?", recipe="graphsearch+clew")
        assert answer.verdict == "answered"
        assert stub.stats.chat_calls == asked_before
        with pytest.raises(ConfigError, match="no model is set for 'extract'"):
            await other.take(stream(VALLEY), "triples")


async def test_only_the_models_that_may_be_asked_need_a_price(valley: KnowledgeBase) -> None:
    manner = AskOptions(limits=UsageLimits(money=1.0))
    prices = {"planner": {"prompt": 1, "completion": 1}}
    async with (
        StubEndpoint(good()) as stub,
        with_roles(valley, stub.base_url, "plan") as unpriced,
        with_roles(valley, stub.base_url, "plan", prices=prices) as priced,
    ):
        with pytest.raises(ConfigError, match="no price is set for 'planner'"):
            await unpriced.ask(ODD, manner=manner)
        assert stub.stats.chat_calls == 0
        answer = await priced.ask(ODD, recipe="youtu+clew", manner=manner)
    assert answer.usage.money > 0


async def test_a_judge_alone_that_cannot_be_had_stops_no_question(
    valley: KnowledgeBase, tmp_path: Path
) -> None:
    judge = {"model": str(tmp_path / "none.gguf"), "client": "llama"}
    async with (
        StubEndpoint(good()) as stub,
        with_roles(valley, stub.base_url, "plan", "answer", judge=judge) as base,
    ):
        assert (await base.ask(ODD, recipe="reader+clew")).verdict == "answered"
