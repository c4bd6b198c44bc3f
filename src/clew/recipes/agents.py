"""Agents by name, each with its default retriever."""

from dataclasses import dataclass, field

from clew.agents.base import Agent
from clew.agents.baselines import ClosedBook, Reader
from clew.agents.searcher import Searcher
from clew.types import Chunking


@dataclass(frozen=True)
class AgentRecipe:
    """A named agent; the first of `retrievers` that exists is its default."""

    name: str
    agent: Agent
    about: str = field(default="", repr=False)
    source: str = field(default="", repr=False)
    retrievers: tuple[str, ...] = ("clew",)
    chunk: Chunking | None = field(default=None, repr=False)
    """How documents are split for this agent, whatever its retriever."""


_AGENT_RECIPES = (
    AgentRecipe(
        "searcher",
        Searcher(),
        "reads what a search finds, calls tools for what is missing, answers",
        "measured here, see docs/agents.md",
    ),
    AgentRecipe("reader", Reader(), "one retrieval, one written answer", "baseline"),
    AgentRecipe("llm", ClosedBook(), "the model without documents", "baseline"),
)

AGENTS: dict[str, AgentRecipe] = {recipe.name: recipe for recipe in _AGENT_RECIPES}
