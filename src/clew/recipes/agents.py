"""Agents by name, each with its default retriever."""

from dataclasses import dataclass, field, replace

from clew.agents.baselines import ClosedBook, IrCot, React, Reader
from clew.agents.core.types import Agent
from clew.agents.graph_r1 import GraphR1
from clew.agents.graphsearch import GraphSearch
from clew.agents.map_reduce import MapReduce
from clew.agents.planning.model_plan import Verdict
from clew.agents.rograg import Rograg
from clew.agents.run_plan import RulePlanner
from clew.agents.youtu import Youtu


@dataclass(frozen=True)
class AgentRecipe:
    """A named agent; the first of `retrievers` that exists is its default."""

    name: str
    agent: Agent
    retrievers: tuple[str, ...] = ("clew",)
    about: str = field(default="", repr=False)
    source: str = field(default="", repr=False)


_GRAPHSEARCH = "GraphSearch (2025)"
_YOUTU = "Youtu-GraphRAG (2025)"
_ROGRAG = "ROGRAG (2025)"
# Ablation rows plan by the model: a plan by rules would not use the modules switched off.
_MODEL_PLANNED = GraphSearch(rules=False)
_NO_MODULES = GraphSearch(  # Table 3, first row: every module off
    *(False,) * 6,
    top_k=30,
    rules=False,
)

_AGENT_RECIPES = (
    AgentRecipe("reader", Reader(), about="one retrieval, one written answer", source="baseline"),
    AgentRecipe(
        "steps",
        RulePlanner(),
        about="rules plan, the model reads one small question at a time, code joins the answers",
        source="measured here, see docs/agents.md",
    ),
    AgentRecipe(
        "graphsearch",
        GraphSearch(),
        about="two channels of sub-queries, drafted, verified, expanded",
        source=_GRAPHSEARCH,
    ),
    AgentRecipe(
        "graphsearch-released",
        GraphSearch(top_k=5, max_reflections=1, expand_on=Verdict.ACCEPT, rules=False),
        about="as the authors' code does it: expands on ACCEPT, one reflection, top-k 5",
        source=f"{_GRAPHSEARCH}, authors' code",
    ),
    # Table 3: modules added one after another.
    AgentRecipe(
        "graphsearch-none", _NO_MODULES, about="no module", source=f"{_GRAPHSEARCH}, Table 3"
    ),
    AgentRecipe(
        "graphsearch-qd-cr",
        replace(_NO_MODULES, decompose=True, refine=True),
        about="decomposition and refinement",
        source=f"{_GRAPHSEARCH}, Table 3",
    ),
    AgentRecipe(
        "graphsearch-qd-cr-qg",
        replace(_NO_MODULES, decompose=True, refine=True, ground=True),
        about="and grounding",
        source=f"{_GRAPHSEARCH}, Table 3",
    ),
    AgentRecipe(
        "graphsearch-qd-cr-qg-ld",
        replace(_NO_MODULES, decompose=True, refine=True, ground=True, draft=True),
        about="and drafting",
        source=f"{_GRAPHSEARCH}, Table 3",
    ),
    AgentRecipe(
        "graphsearch-qd-cr-qg-ld-ev-qe",
        _MODEL_PLANNED,
        about="and verification and expansion: all modules, planned by the model",
        source=f"{_GRAPHSEARCH}, Table 3",
    ),
    # Figure 5: one channel at a time.
    AgentRecipe(
        "graphsearch-semantic",
        replace(_MODEL_PLANNED, channels=("semantic",)),
        about="the semantic channel alone",
        source=f"{_GRAPHSEARCH}, Figure 5",
    ),
    AgentRecipe(
        "graphsearch-relational",
        replace(_MODEL_PLANNED, channels=("relational",)),
        about="the relational channel alone",
        source=f"{_GRAPHSEARCH}, Figure 5",
    ),
    AgentRecipe(
        "youtu",
        Youtu(),
        ("youtu", "clew"),
        about="schema-guided sub-questions, four routes, reflection",
        source=_YOUTU,
    ),
    AgentRecipe(
        "youtu-by-model",
        Youtu(rules=False),
        ("youtu", "clew"),
        about="the same, planned by the model also where a rule fits",
        source=f"{_YOUTU}, Table 3",
    ),
    AgentRecipe(
        "youtu-no-schema",
        Youtu(schema=False, rules=False),
        ("youtu", "clew"),
        about="without the schema",
        source=f"{_YOUTU}, Table 3",
    ),
    AgentRecipe(
        "youtu-no-agent",
        Youtu(reflection=False, rules=False),
        ("youtu", "clew"),
        about="without reflection",
        source=f"{_YOUTU}, Table 3",
    ),
    AgentRecipe(
        "rograg",
        Rograg(),
        ("rograg-dual", "clew"),
        about="gate, logic-form plan run by code, argument check, fallback",
        source=_ROGRAG,
    ),
    AgentRecipe(
        "rograg-result",
        Rograg(check="result"),
        ("rograg-dual", "clew"),
        about="with the result checked instead of the arguments",
        source=f"{_ROGRAG}, Table 7",
    ),
    AgentRecipe(
        "graph-r1",
        GraphR1(),
        ("graph-r1", "clew"),
        about="think, query, think again, answer",
        source="Graph-R1 (2025)",
    ),
    AgentRecipe(
        "graph-r1-facts",
        GraphR1(top_k=12, show="facts"),
        ("own-facts", "clew"),
        about="the same loop over the facts of the pages about what a query names",
        source="measured here, see docs/results/training.md",
    ),
    AgentRecipe(
        "msgraphrag-global",
        MapReduce(),
        ("msgraphrag-global",),
        about="points noted over community reports, the best put together",
        source="MS GraphRAG (Edge et al. 2024)",
    ),
    AgentRecipe("react", React(), about="thought, action, observation", source="Yao et al. 2023"),
    AgentRecipe(
        "ircot",
        IrCot(),
        about="each sentence of the reasoning is the next query",
        source="Trivedi et al. 2023",
    ),
    AgentRecipe("llm", ClosedBook(), about="the model without documents", source="baseline"),
)

AGENTS: dict[str, AgentRecipe] = {recipe.name: recipe for recipe in _AGENT_RECIPES}
