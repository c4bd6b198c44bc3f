"""With passages only no agent shows anything of the graph, and with the graph only no passage."""

import re

import pytest
from agent_asking import Ask, asking
from test_every_agent import ODD, READING, good

from clew.agents.ask import AskOptions
from clew.engine import KnowledgeBase
from clew.layout import Modality
from conftest import VALLEY

GRAPH = re.compile(r"^(Entities|Relations|Paths|Topics):$|\(score \d", re.MULTILINE)
AGENTS = [agent for agent in READING if agent != "steps"]  # code reads what this question asks


@pytest.fixture
def ask(valley: KnowledgeBase) -> Ask:
    """Ask the valley with a scripted model."""
    return asking(valley)


async def show(ask: Ask, agent: str, evidence: Modality) -> str:
    """Everything that an agent's model was shown after the examples of its prompts."""
    manner = AskOptions(evidence=evidence, record_prompts=True)
    answer = await ask(good(), ODD, recipe=f"{agent}+hypergraphrag", manner=manner)
    assert answer.verdict == "answered"
    return "\n".join(prompt.messages[-1].content for prompt in answer.prompts)


async def test_passages_only_or_the_graph_only(ask: Ask) -> None:
    pages = [page.text for page in VALLEY if page.text.count(".") > 1]  # one sentence is a fact
    for agent in AGENTS:
        text = await show(ask, agent, "text")
        assert not GRAPH.search(text), agent
        assert any(page in text for page in pages), agent
        graph = await show(ask, agent, "graph")
        assert "Passages:" not in graph, agent
        assert not any(page in graph for page in pages), agent
