"""Agents by name, each with its default retriever."""

from dataclasses import dataclass, field

from clew.agents.base import Agent
from clew.agents.baselines import ClosedBook, Reader
from clew.agents.graph_r1 import GraphR1
from clew.agents.map_reduce import MapReduce
from clew.agents.react import IrCot, React
from clew.agents.rograg import Rograg
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


_ROGRAG = "ROGRAG (2025)"
_ROGRAG_RETRIEVERS = ("rograg-dual", "clew")


def _rograg(name: str, agent: Rograg, about: str, place: str) -> AgentRecipe:
    return AgentRecipe(f"rograg-{name}", agent, about, f"{_ROGRAG}, {place}", _ROGRAG_RETRIEVERS)


_AGENT_RECIPES = (
    AgentRecipe(
        "searcher",
        Searcher(),
        "reads what a search finds, calls tools for what is missing, answers",
        "measured here, see docs/agents.md",
    ),
    AgentRecipe("reader", Reader(), "one retrieval, one written answer", "baseline"),
    AgentRecipe("llm", ClosedBook(), "the model without documents", "baseline"),
    AgentRecipe("react", React(), "thought, action, observation", "ReAct (Yao et al. 2023)"),
    AgentRecipe(
        "ircot",
        IrCot(),
        "each sentence of the reasoning is the next query",
        "IRCoT (Trivedi et al. 2023)",
        ("naive",),
    ),
    AgentRecipe(
        "rograg",
        Rograg(),
        "a logic form run by code, its arguments checked, the dual level behind it",
        _ROGRAG,
        _ROGRAG_RETRIEVERS,
    ),
    # Tables 6 and 7: the check before or after the answer, or none; one method alone.
    _rograg("argument", Rograg(), "the arguments checked before the answer", "Table 7"),
    _rograg("result", Rograg(check="result"), "the result checked instead", "Table 7"),
    _rograg("unchecked", Rograg(check="none"), "nothing checked", "Table 7"),
    _rograg(
        "logic", Rograg(fallback=False), "the logic form alone, without the dual level", "Table 6"
    ),
    AgentRecipe(
        "graph-r1",
        GraphR1(),
        "think, query, think again, answer; each query shows five fused facts with their scores",
        "Graph-R1 (2025)",
        ("graph-r1", "clew"),
    ),
    AgentRecipe(
        "graph-r1-facts",
        GraphR1(top_k=12, show="pages"),
        "the same loop over the facts of the pages about what a query names",
        "measured here, see docs/results/training.md",
        ("own-facts", "clew"),
    ),
    AgentRecipe(
        "msgraphrag-global",
        MapReduce(),
        "points noted over community reports, the best put together",
        "MS GraphRAG (Edge et al. 2024)",
        ("msgraphrag-global",),
    ),
)

AGENTS: dict[str, AgentRecipe] = {recipe.name: recipe for recipe in _AGENT_RECIPES}
