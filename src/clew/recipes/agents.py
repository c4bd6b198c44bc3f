"""Agents by name, each with its default retriever."""

from dataclasses import dataclass, field, replace

from clew.agents.base import Agent
from clew.agents.baselines import ClosedBook, Reader
from clew.agents.graph_r1 import GraphR1
from clew.agents.graphsearch import BOTH_CHANNELS, GraphSearch, Verdict
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
_GRAPHSEARCH = "GraphSearch (2025)"
_GRAPHSEARCH_CHUNKS = Chunking(400, 0, "sentences")  # implementation details: 400 tokens
_NO_MODULES = GraphSearch(*(False,) * 6)  # Table 3, first row
_QD_CR = replace(_NO_MODULES, decompose=True, refine=True)
_QD_CR_QG = replace(_QD_CR, ground=True)


def _graphsearch(name: str, agent: GraphSearch, about: str, place: str) -> AgentRecipe:
    source = f"{_GRAPHSEARCH}, {place}"
    return AgentRecipe(f"graphsearch-{name}", agent, about, source, chunk=_GRAPHSEARCH_CHUNKS)


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
    AgentRecipe(
        "graphsearch",
        GraphSearch(),
        "two channels of sub-queries, drafted, verified, expanded",
        _GRAPHSEARCH,
        chunk=_GRAPHSEARCH_CHUNKS,
    ),
    _graphsearch(
        "released",
        GraphSearch(top_k=5, max_reflections=1, expand_on=Verdict.ACCEPT),
        "as the authors' code does it: expands on ACCEPT, one reflection, top-k 5",
        "authors' code",
    ),
    # Table 3: modules added one after another.
    _graphsearch("none", _NO_MODULES, "no module", "Table 3"),
    _graphsearch("qd-cr", _QD_CR, "decomposition and refinement", "Table 3"),
    _graphsearch("qd-cr-qg", _QD_CR_QG, "and grounding", "Table 3"),
    _graphsearch("qd-cr-qg-ld", replace(_QD_CR_QG, draft=True), "and drafting", "Table 3"),
    _graphsearch(
        "qd-cr-qg-ld-ev-qe",
        GraphSearch(),
        "and verification and expansion: all modules, the same as graphsearch",
        "Table 3",
    ),
    # Figure 5: one channel at a time.
    *(
        _graphsearch(
            channel,
            GraphSearch(channels=(channel,)),
            f"the {channel} channel alone",
            "Figure 5",
        )
        for channel in BOTH_CHANNELS
    ),
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
